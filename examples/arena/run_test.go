package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rough is a bad network, and a fight short enough for a test.
var rough = []string{
	"-headless", "-ticks", "240", "-bots", "20", "-clients", "3", "-seed", "5",
	"-loss", "0.2", "-latency", "60ms", "-jitter", "20ms", "-dup", "0.05", "-reorder", "0.1",
}

// runOK runs the program with these flags and returns its report.
func runOK(t *testing.T, args ...string) *report {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), append(args, "-json"), &stdout, &stderr)
	require.Empty(t, stderr.String())
	var r report
	decoder := json.NewDecoder(&stdout)
	require.NoError(t, decoder.Decode(&r))
	require.False(t, decoder.More(), "exactly one object")
	require.Equal(t, exitOK, code, "%+v", r)
	return &r
}

// requireMirrored checks the report of any process.
func requireMirrored(t *testing.T, r *report) {
	t.Helper()
	require.True(t, r.Converged)
	require.Zero(t, r.Mismatches)
	require.Zero(t, r.Unchecked)
	// Packets that overtake the first one of a session, or arrive while that is lost, are refused
	// and sent again.
	require.LessOrEqual(t, r.Refused, uint64(30))
	require.Equal(t, 240, r.Ticks)
	require.Equal(t, 3, r.Clients)
	require.Len(t, r.Rows, 3)
	for _, row := range r.Rows {
		require.True(t, row.Equal)
		require.Positive(t, row.Packets)
		require.InDelta(t, 8, row.RoundTrip, 3, "60 ms are 3.6 ticks, each way") // reordering adds
	}
	require.Positive(t, r.Lost, "the network was not bad")
	require.Greater(t, r.Spawns, uint64(20))
	require.Positive(t, r.Despawns)
	require.Less(t, r.BytesPerClientPerSecond, r.RawBytesPerClientPerSecond)
	require.InDelta(t, 1-r.BytesPerClientPerSecond/r.RawBytesPerClientPerSecond, r.Saved, 0.001)
}

func TestAllWorldsConverge(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"memory", "udp"} {
		t.Run(transport, func(t *testing.T) {
			requireMirrored(t, runOK(t, append(rough, "-transport", transport)...))
		})
	}
}

func TestPredictionIsOptional(t *testing.T) {
	on, off := runOK(t, rough...), runOK(t, append(rough, "-predict=false")...)
	requireMirrored(t, off)
	require.Positive(t, on.Rollbacks)
	require.Positive(t, on.Again)
	require.Zero(t, off.Rollbacks)
}

func TestSameSeedSameBytes(t *testing.T) {
	require.Equal(t, runOK(t, rough...), runOK(t, rough...))
}

func TestJSONHasTheKeysThatScriptsRead(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), append(rough, "-json"), &stdout, &stderr))
	var keys map[string]any
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &keys))
	for _, key := range []string{
		"ticks", "clients", "converged", "mismatches", "bytes_per_client_per_second",
		"raw_bytes_per_client_per_second", "saved", "spawns", "despawns",
	} {
		require.Contains(t, keys, key)
	}
}

func TestTheTableIsForPeople(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), rough, &stdout, &stderr))
	require.Empty(t, stderr.String())
	requireFits(t, stdout.String())
	lines := strings.Split(stdout.String(), "\n")
	require.Contains(t, lines[0], "world")
	require.Contains(t, lines[4], "equal")
	require.Empty(t, lines[5])
	text := strings.Join(strings.Fields(stdout.String()), " ")
	require.Contains(t, text, "3 players joined, 0 left")
	require.Contains(t, text, "All worlds became equal")
	require.Contains(t, text, " % saved")
}

// No packet may arrive until the network recovers.
func TestNothingArrivesUntilTheNetworkHeals(t *testing.T) {
	r := runOK(t, "-headless", "-ticks", "60", "-bots", "5", "-clients", "2", "-loss", "1")
	require.True(t, r.Converged)
	require.Zero(t, r.Packets)
}

func TestInterruptEndsInOrder(t *testing.T) {
	for _, transport := range []string{"memory", "udp"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		start := time.Now()
		code := run(ctx, []string{"-json", "-transport", transport, "-bots", "10", "-duration", "1h"}, &stdout, &stderr)
		require.Equal(t, exitOK, code, "%s", stdout.String())
		require.Less(t, time.Since(start), 10*time.Second)
		var r report
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &r))
		require.True(t, r.Interrupted)
		require.True(t, r.Converged)
		require.Positive(t, r.Ticks)
	}
}

func TestRealTimeIsReal(t *testing.T) {
	var stdout, stderr bytes.Buffer
	start := time.Now()
	require.Equal(t, exitOK, run(t.Context(), []string{"-http=", "-duration", "1200ms", "-bots", "10"}, &stdout, &stderr))
	took := time.Since(start)
	require.Greater(t, took, time.Second)
	require.Less(t, took, 10*time.Second, "on a machine that has other things to do, too")
	requireFits(t, stdout.String())
	require.Contains(t, stdout.String(), "link: 5 % lost", "before all")
	require.Contains(t, stdout.String(), "  1.0 s  warm-up  nobody ", "a line per second")
	require.NotContains(t, stdout.String(), "  0.0 ", "of which each has figures")
}
