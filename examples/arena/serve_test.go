package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// requireFits checks everything that is printed without a terminal.
func requireFits(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	require.NotContains(t, text, "\x1b")
	for _, line := range strings.Split(text, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 100, "%q", line)
	}
}

type outcome struct {
	result *report
	err    error
}

// startServer runs a server and returns its address.
func startServer(ctx context.Context, t *testing.T, args ...string) (address string, done <-chan outcome) {
	t.Helper()
	return startMatch(ctx, t, append(args, "-serve", "127.0.0.1:0")...)
}

// startMatch runs a match that listens and returns where it does.
func startMatch(ctx context.Context, t *testing.T, args ...string) (address string, done <-chan outcome) {
	t.Helper()
	c := testConfig(t, args...)
	listening := make(chan string, 1)
	c.onListen = func(address string) { listening <- address }
	results := make(chan outcome, 1)
	go func() {
		r, err := runMatch(ctx, &c, &screen{})
		results <- outcome{r, err}
	}()
	select {
	case address = <-listening:
	case o := <-results:
		require.NoError(t, o.err)
		t.Fatal("the server ended before it began")
	}
	return address, results
}

// startClients runs a process of clients.
func startClients(ctx context.Context, t *testing.T, address string, args ...string) <-chan outcome {
	t.Helper()
	c := testConfig(t, append(args, "-connect", address)...)
	results := make(chan outcome, 1)
	go func() {
		r, err := runClients(ctx, &c, &screen{})
		results <- outcome{r, err}
	}()
	return results
}

func await(t *testing.T, done <-chan outcome) *report {
	t.Helper()
	select {
	case o := <-done:
		require.NoError(t, o.err)
		return o.result
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
		return nil
	}
}

// requireEqual checks that clients elsewhere had the server's world at the end.
func requireEqual(t *testing.T, r *report, clients int) {
	t.Helper()
	require.True(t, r.Converged)
	require.False(t, r.Left)
	require.Zero(t, r.Mismatches)
	require.Positive(t, r.Checks)
	require.Equal(t, clients, r.Clients)
	require.Len(t, r.Rows, clients)
	for _, row := range r.Rows {
		require.True(t, row.Compared && row.Equal)
		require.Positive(t, row.Packets)
	}
}

func TestServerAndClientsAsProcesses(t *testing.T) {
	t.Parallel()
	address, server := startServer(t.Context(), t, "-ticks", "150", "-bots", "20", "-clients", "3")
	one := startClients(t.Context(), t, address, "-clients", "1", "-loss", "0.2")
	two := startClients(t.Context(), t, address, "-clients", "2", "-seed", "9", "-reorder", "0.1")
	requireEqual(t, await(t, one), 1)
	requireEqual(t, await(t, two), 2)
	r := await(t, server)
	requireEqual(t, r, 3)
	require.Equal(t, 150, r.Ticks)
	require.Positive(t, r.Lost)
	require.Equal(t, 3, r.Announced.Joins)
	require.Greater(t, r.Checks, 100, "also what clients compare meanwhile")
}

func TestLateClientsCatchUp(t *testing.T) {
	t.Parallel()
	address, server := startServer(t.Context(), t, "-duration", "1500ms", "-bots", "20", "-clients", "1")
	first := startClients(t.Context(), t, address, "-clients", "1")
	time.Sleep(700 * time.Millisecond)
	second := startClients(t.Context(), t, address, "-clients", "2")
	requireEqual(t, await(t, first), 1)
	requireEqual(t, await(t, second), 2)
	requireEqual(t, await(t, server), 3)
}

func TestClientsLeaveEarly(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address, server := startServer(ctx, t, "-bots", "10", "-clients", "1")
	leaving, leave := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer leave()
	r := await(t, startClients(leaving, t, address, "-clients", "1"))
	require.True(t, r.Interrupted && r.Left)
	require.False(t, r.Converged)
	require.True(t, r.ok())

	start := time.Now()
	r = await(t, startClients(t.Context(), t, address, "-clients", "1", "-duration", "700ms"))
	require.Less(t, time.Since(start), 15*time.Second, "not until it is stopped")
	require.False(t, r.Interrupted)
	require.True(t, r.Left)
	require.True(t, r.ok())

	stop()
	r = await(t, server)
	require.True(t, r.Interrupted)
	require.True(t, r.ok())
	for _, row := range r.Rows {
		require.False(t, row.Compared, "nobody could know")
	}
}

func TestTheServerIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address, server := startServer(ctx, t, "-bots", "10", "-clients", "1")
	clients := startClients(t.Context(), t, address, "-clients", "1")
	time.Sleep(700 * time.Millisecond)
	stop()
	requireEqual(t, await(t, server), 1)
	requireEqual(t, await(t, clients), 1)
}

func TestNobodyComes(t *testing.T) {
	t.Parallel()
	_, server := startServer(t.Context(), t, "-wait", "50ms", "-clients", "2")
	o := <-server
	require.EqualError(t, o.err, "0 of 2 clients came within 50ms")

	ctx, stop := context.WithCancel(t.Context())
	_, server = startServer(ctx, t)
	stop()
	require.True(t, await(t, server).ok())
}

func nobodyThere(t *testing.T) (address string) {
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	return free.LocalAddr().String()
}

// TestAMissingServerIsReported while clients wait for one, and at the end.
func TestAMissingServerIsReported(t *testing.T) {
	t.Parallel()
	address := nobodyThere(t)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-connect", address, "-wait", "800ms"}, &stdout, &stderr))
	requireFits(t, stdout.String()+stderr.String())
	require.Contains(t, stdout.String(), "waiting for a server at "+address)
	require.Contains(t, stdout.String(), "go run ./examples/arena -serve "+address)
	require.Contains(t, strings.Join(strings.Fields(stderr.String()), " "), "no server answered at "+address+" within 800ms")
}

func TestAPortThatIsTakenIsReported(t *testing.T) {
	t.Parallel()
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-serve", taken.LocalAddr().String()}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "address already in use")
}

// TestALoadPrintsPercentiles of its clients, and each of them plays.
func TestALoadPrintsPercentiles(t *testing.T) {
	t.Parallel()
	address, server := startServer(t.Context(), t, "-duration", "2s", "-bots", "10", "-clients", "20")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-connect", address, "-load", "20"}, &stdout, &stderr)
	require.Equal(t, exitOK, code, stderr.String())
	requireFits(t, stdout.String())
	for _, part := range []string{"20 clients  least  median  95 %  99 %  most", "round trip, ms", "All worlds became equal"} {
		require.Contains(t, strings.ReplaceAll(stdout.String(), "   ", "  "), part)
	}
	r := await(t, server)
	requireEqual(t, r, 20)
	require.Equal(t, 20, r.Announced.Joins)
}

// tripwire collects output, and interrupts once it contains a text.
type tripwire struct {
	mu    sync.Mutex
	text  bytes.Buffer
	until string
	stop  func()
}

func (w *tripwire) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(text)
	if strings.Contains(w.text.String(), w.until) {
		w.stop()
	}
	return n, err
}

func TestClientsThatLeaveReportIt(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	address, _ := startServer(ctx, t, "-bots", "10")
	for _, format := range []string{"text", "json"} {
		ctx, leave := context.WithTimeout(t.Context(), 20*time.Second)
		defer leave()
		out, errs := &tripwire{until: "  1.0 s  ", stop: leave}, &tripwire{until: "  1.0 s  ", stop: leave}
		args := []string{"-connect", address, "-clients", "2"}
		if format == "json" {
			args = append(args, "-json")
		}
		require.Equal(t, exitOK, run(ctx, args, out, errs))
		requireFits(t, out.text.String()+errs.text.String())
		if format == "json" {
			var r report
			require.NoError(t, json.Unmarshal(out.text.Bytes(), &r))
			require.True(t, r.Left && r.Interrupted)
			require.False(t, r.Converged)
			require.Len(t, r.Rows, 2)
			require.Positive(t, r.Checks)
			continue
		}
		require.Contains(t, out.text.String(), "The fight was not over")
		require.Contains(t, words(out.text.String()), "found nothing wrong")
		require.NotContains(t, out.text.String(), "equal")
	}
}
