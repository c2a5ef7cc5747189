package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
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

// tripwire collects output, and interrupts once it contains a text.
type tripwire struct {
	text  bytes.Buffer
	until string
	stop  func()
}

func (w *tripwire) Write(text []byte) (int, error) {
	n, err := w.text.Write(text)
	if w.until != "" && strings.Contains(w.text.String(), w.until) {
		w.stop()
	}
	return n, err
}

// connect runs a process of clients, and interrupts it when it has printed the text until, if
// given.
func connect(t *testing.T, until, address string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	out, errs := &tripwire{until: until, stop: stop}, &tripwire{until: until, stop: stop}
	code = run(ctx, append([]string{"-connect", address}, args...), out, errs)
	requireFits(t, out.text.String())
	requireFits(t, errs.text.String())
	return code, out.text.String(), errs.text.String()
}

// endless starts a server that plays until the end of the test.
func endless(t *testing.T, args ...string) (address string) {
	ctx, stop := context.WithCancel(context.Background())
	address, done := startServer(ctx, t, append(args, "-bots", "10")...)
	t.Cleanup(func() {
		stop()
		<-done
	})
	return address
}

func nobodyThere(t *testing.T) (address string) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	return free.Addr().String()
}

func TestClientsThatLeaveReportWhatTheyReceived(t *testing.T) {
	t.Parallel()
	address := endless(t, "-clients", "1")
	code, stdout, stderr := connect(t, "  1.0 s  ", address, "-clients", "1")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Left after 1.")
	require.Contains(t, stdout, "1 client received ")
	require.Contains(t, stdout, "found nothing wrong")
	for _, claim := range []string{"differs", "equal", " 0 bytes", "1 clients", "0 in time"} {
		require.NotContains(t, stdout, claim, "nobody could know")
	}
}

func TestClientsThatLeaveReportItInJSON(t *testing.T) {
	t.Parallel()
	address := endless(t, "-clients", "2")
	code, stdout, stderr := connect(t, "  1.0 s  ", address, "-clients", "2", "-json")
	require.Equal(t, exitOK, code, stderr)
	var r report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.True(t, r.Left && r.Interrupted)
	require.False(t, r.Converged)
	require.Len(t, r.Rows, 2)
	bytes := 0.0
	for i, row := range r.Rows {
		require.Equal(t, i+1, row.Client)
		require.False(t, row.Compared)
		require.Positive(t, row.Packets)
		bytes += row.Bytes * float64(r.Ticks) / float64(r.TickRate)
	}
	require.InDelta(t, r.Bytes, bytes, 10, "rates are rounded")
	require.Positive(t, r.Checks)
	require.Positive(t, r.Entities)
}

func TestClientsPlayForTheirDuration(t *testing.T) {
	t.Parallel()
	address := endless(t, "-clients", "1")
	start := time.Now()
	code, stdout, stderr := connect(t, "", address, "-clients", "1", "-duration", "500ms")
	require.Equal(t, exitOK, code, stderr)
	require.Less(t, time.Since(start), 15*time.Second, "not until it is stopped")
	require.Contains(t, stdout, "Left after 0.5 s of the fight.")
}

// The server stops without notice, as if its machine had failed.
func TestClientsPlayForTheirDurationThoughTheServerIsSilent(t *testing.T) {
	v := &visit{c: &config{tickRate: 60, ticks: 120}}
	require.Equal(t, 7*time.Second, v.patience(0))
	require.Equal(t, 4*time.Second, v.patience(3*time.Second))
	require.Positive(t, v.patience(time.Hour))
	v.c.ticks = 0
	require.Equal(t, maxSilence, v.patience(time.Hour))
}

func TestClientsReportAMissingServer(t *testing.T) {
	t.Parallel()
	address := nobodyThere(t)
	start := time.Now()
	code, stdout, stderr := connect(t, "", address, "-duration", "300ms")
	require.Less(t, time.Since(start), 15*time.Second, "not until it is stopped")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "waiting for a server at "+address)
	require.Contains(t, stdout, "go run ./examples/arena -serve "+address+" -clients 4")
	require.Contains(t, stderr, "no server answered at "+address+" within 300ms")
}

func TestClientsAreInterruptedBeforeThereIsAServer(t *testing.T) {
	t.Parallel()
	code, _, stderr := connect(t, "start one with", nobodyThere(t))
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "nothing was received")
}

func TestClientsReportThatTheServerWaitsForOthers(t *testing.T) {
	t.Parallel()
	address := endless(t, "-clients", "3")
	code, stdout, stderr := connect(t, "", address, "-clients", "1", "-wait", "400ms")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stdout, "waiting for the server to begin")
	require.Contains(t, stdout, "it waits for 3 clients in all")
	require.Contains(t, stderr, "the server did not begin within 400ms")
}

func TestClientsThatLeaveBeforeTheFightAreNotCounted(t *testing.T) {
	t.Parallel()
	address := endless(t, "-clients", "2")
	for range 2 {
		code, _, stderr := connect(t, "", address, "-clients", "1", "-wait", "300ms")
		require.Equal(t, exitFailed, code, "one is not enough")
		require.Contains(t, stderr, "did not begin")
	}
	code, stdout, stderr := connect(t, "", address, "-clients", "2", "-duration", "1s", "-latency", "0")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "Left after 1.0 s")
}

func TestClientsHaveTheNumbersThatTheServerGaveThem(t *testing.T) {
	address, server := startServer(t.Context(), t, "-headless", "-ticks", "60", "-bots", "5", "-clients", "2")
	one := startClients(t.Context(), t, address, "-headless", "-clients", "1")
	two := startClients(t.Context(), t, address, "-headless", "-clients", "1")
	numbers := []int{await(t, one).Rows[0].Client, await(t, two).Rows[0].Client}
	require.ElementsMatch(t, []int{1, 2}, numbers)
	await(t, server)
}
