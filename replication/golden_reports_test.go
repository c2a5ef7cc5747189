//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// TestGoldenReports compares the reports about inputs of which some were late, lost or not given with
// docs/vectors/reports.txt.
func TestGoldenReports(t *testing.T) {
	schema := replication.NewSchema()
	replication.RegisterInput[vectorMove](schema, replication.Name("Move"))
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	x := newDocWire(t, &world, &mirror, schema, []replication.ServerOption{
		replicationtest.FirstTick(1<<32 - 20),
		config.ServerFunc(func(o *config.ServerOptions) { o.Verdicts = true }),
	})
	var out strings.Builder
	fmt.Fprintf(&out, "fingerprint %#x\n", schema.Fingerprint())
	x.shows = func(from string, packet []byte) bool {
		switch {
		case from == "server" && packet[4]&7 == 1:
			fmt.Fprintf(&out, "nonce 2\nwelcome %x\n", packet)
		case from == "server" && packet[4]&7 == 5:
			var h wire.MessageHeader
			rest, ok := h.Parse(packet[4:], uint32(x.server.Tick()))
			require.True(t, ok)
			r := bitbuf.NewReader(rest)
			var report wire.InputReport
			index := r.ReadExpGolomb(0)
			report.Read(&r, true)
			require.NoError(t, r.Err())
			fmt.Fprintf(&out, "report %x\n  time %d\n  index %d\n", packet, h.Time, index)
			if !report.Present {
				return false
			}
			fmt.Fprintf(&out, "  echo %d\n  held %d\n  gathered %d\n  late %d\n", report.Echo, report.Held, report.Gathered, report.Late)
			if report.Judged {
				fmt.Fprintf(&out, "  margin %d\n  input %d\n", report.Margin, h.Time+128-uint32(report.Back))
			}
			if report.Misses != 0 {
				fmt.Fprint(&out, "  missed")
				for back := uint32(31); back < 32; back-- {
					if report.Misses>>back&1 == 1 {
						fmt.Fprintf(&out, " %d", h.Time-back)
					}
				}
				fmt.Fprintln(&out)
			}
		}
		return false
	}
	rand := rand.New(rand.NewPCG(1, 2))
	outage, late := 0, [][]byte(nil)
	for tick := range 160 {
		if outage--; outage < 0 && tick > 20 && rand.IntN(10) == 0 {
			outage = 1 + rand.IntN(8)
		}
		if tick == 100 {
			outage = 40
		}
		x.server.Replicate()
		for ; len(x.down) > 0; x.down = x.down[1:] {
			require.NoError(t, x.client.Receive(x.down[0]))
		}
		if tick >= 10 && rand.IntN(12) != 0 {
			require.NoError(t, replication.SetInput(x.client, x.server.Tick()+3, vectorMove{Turn: int8(tick % 2)}))
		}
		require.NoError(t, x.client.Apply())
		if outage <= 0 {
			for _, packet := range late {
				_ = x.peer.Receive(packet)
			}
			late = nil
		}
		for ; len(x.up) > 0; x.up = x.up[1:] {
			switch {
			case outage > 0 && rand.IntN(2) == 0: // lost
			case outage > 0:
				late = append(late, bytes.Clone(x.up[0]))
			default:
				require.NoError(t, x.peer.Receive(x.up[0]))
			}
		}
	}
	require.Equal(t, replication.Tick(139), x.server.Tick())
	require.Greater(t, strings.Count(out.String(), "missed"), 10)
	file := filepath.Join(docsRoot, "docs", "vectors", "reports.txt")
	if os.Getenv("GOLDEN") == "update" {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}
