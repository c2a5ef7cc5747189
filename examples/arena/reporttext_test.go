package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// textOf returns the words of a report.
func textOf(t *testing.T, r *report) string {
	t.Helper()
	var out strings.Builder
	r.TickRate = 60
	r.sumUp()
	require.NoError(t, r.writeText(&out, plainWidth))
	requireFits(t, out.String())
	return out.String()
}

func words(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestTheTableOfAPage(t *testing.T) {
	left := row{Packets: 100, seconds: 10, bytes: 1e5, left: true, checks: 5000}
	there := row{Packets: 100, seconds: 10, bytes: 1e5, Compared: true, Equal: true, checks: 12001}
	silent := row{Packets: 100, seconds: 10, bytes: 1e5, checks: 700}
	for _, tt := range []struct {
		report  report
		all     string
		verdict string
	}{
		{
			report{Role: "server", Rows: []row{left, there}, Converged: true, Interrupted: true, QuietTicks: 12},
			"equal",
			"All worlds became equal 12 ticks after the last change, and clients found nothing wrong in 17,001 comparisons of an entity.",
		},
		{
			report{Role: "server", Rows: []row{left}, Interrupted: true, Left: true},
			"left",
			"No client was there at the end, so no complete worlds were compared then. Clients found nothing wrong in 5,000 comparisons of an entity.",
		},
		{
			report{Role: "server", Rows: []row{there, silent}, Interrupted: true},
			"no answer",
			"Not all clients answered within 5 s, so not all complete worlds were compared at the end. Clients found nothing wrong in 12,701 comparisons of an entity.",
		},
		{
			report{Role: "server", Rows: []row{{seconds: 1, left: true}}, Interrupted: true, Left: true},
			"left",
			"Clients compared nothing before.",
		},
	} {
		text := textOf(t, &tt.report)
		lines := strings.Split(text, "\n")
		all := lines[len(tt.report.Rows)+1]
		require.True(t, strings.HasPrefix(strings.TrimSpace(all), "all"), text)
		require.True(t, strings.HasSuffix(all, "  "+tt.all), text)
		require.Contains(t, words(text), tt.verdict)
	}
}

func TestManyClientsHavePercentiles(t *testing.T) {
	for _, role := range []string{"server", "clients"} {
		r := &report{Role: role, Converged: true}
		for i := range 50 {
			r.Rows = append(r.Rows, row{Packets: 100, Lost: uint64(i % 3), seconds: 10, bytes: 1e5, Compared: i > 4, Equal: i > 4, left: i <= 4})
		}
		text := textOf(t, r)
		require.Less(t, strings.Count(text, "\n"), 20)
		require.Contains(t, text, "median")
		require.Equal(t, role == "server", strings.Contains(text, "packets lost"))
		require.Equal(t, role == "clients", strings.Contains(text, "shown late"))
		require.Contains(t, words(text), "Worlds: 45 equal, 5 left.")
	}
}

// Nobody is sent anything: there are dashes, not the figures of those who left.
func TestWithoutClientsThereAreDashes(t *testing.T) {
	c := testConfig(t, "-serve", "127.0.0.1:0")
	m, now := &meter{}, &cost{Raw: 1300, JSON: 24000}
	gone := row{left: true, RoundTrip: 7, bytes: 1e6, seconds: 10}
	for _, tt := range []struct {
		rows []row
		dash bool
	}{{nil, true}, {[]row{gone}, true}, {[]row{gone, {RoundTrip: 7, bytes: 1e6, seconds: 10}}, false}} {
		f := m.figures(60, &c, now, tt.rows)
		require.Equal(t, tt.dash, f.sentText("%.1f") == "-")
		require.Equal(t, tt.dash, f.savedOf(f.json) == "-", f.savedOf(f.json))
		require.Equal(t, tt.dash, roundTripText(f.roundTrip, 60) == "unknown")
	}
	require.Equal(t, "-", savedText(0.6, 3800))
	require.Equal(t, "71.0 %", savedText(63, 217))
	require.Equal(t, 32+headerBytes, inPackets(32))
	require.Equal(t, 3000+3*headerBytes, inPackets(3000))
}
