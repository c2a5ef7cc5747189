package main

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testConfig parses flags.
func testConfig(t *testing.T, args ...string) config {
	t.Helper()
	c, err := parseFlags(args, io.Discard)
	require.NoError(t, err)
	return c
}

func TestNonsenseIsRefusedInASentence(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"-ticks", "0"}, "-ticks is 0 but must be at least 1"},
		{[]string{"-ticks", "many"}, `invalid value "many" for flag -ticks: parse error`},
		{[]string{"-ticks", "9", "-duration", "1s"}, "-ticks and -duration both set the length of the fight: give one of them"},
		{[]string{"-duration", "0s"}, "-duration is 0s but must be more than 0 and at most 24h"},
		{[]string{"-bots", "0"}, "-bots is 0 but must be from 1 to 1024"},
		{[]string{"-bots", "1025"}, "-bots is 1025 but must be from 1 to 1024"},
		{[]string{"-clients", "0"}, "-clients is 0 but must be from 1 to 256"},
		{[]string{"-clients", "257"}, "-clients is 257 but must be from 1 to 256"},
		{[]string{"-tick-rate", "0"}, "-tick-rate is 0 but must be from 1 to 240"},
		{[]string{"-send-rate", "0"}, "-send-rate is 0 but must divide -tick-rate, which is 60"},
		{[]string{"-send-rate", "25"}, "-send-rate is 25 but must divide -tick-rate, which is 60"},
		{[]string{"-send-rate", "120"}, "-send-rate is 120 but must divide -tick-rate, which is 60"},
		{[]string{"-tick-rate", "120", "-send-rate", "1"}, "-send-rate is 1 but must be at least a 60th of -tick-rate, which is 120"},
		{[]string{"-loss", "1.1"}, "-loss is 1.1 but must be from 0 to 1"},
		{[]string{"-loss", "NaN"}, "-loss is NaN but must be from 0 to 1"},
		{[]string{"-dup", "-0.1"}, "-dup is -0.1 but must be from 0 to 1"},
		{[]string{"-reorder", "+Inf"}, "-reorder is +Inf but must be from 0 to 1"},
		{[]string{"-latency", "-1ms"}, "-latency is -1ms but must be from 0 to 10s"},
		{[]string{"-jitter", "11s"}, "-jitter is 11s but must be from 0 to 10s"},
		{[]string{"-transport", "pigeon"}, `-transport is "pigeon" but must be memory or udp`},
		{[]string{"-serve", ":1", "-connect", ":1"}, "-serve and -connect are two processes: give one of them to each"},
		{[]string{"-serve", ""}, `-serve is "" but must be an address with a port, like 127.0.0.1:9000`},
		{[]string{"-connect", "server"}, `-connect is "server" but must be an address with a port, like 127.0.0.1:9000`},
		{[]string{"-wait", "-1s"}, "-wait is -1s but must not be negative"},
		{[]string{"now"}, `there is nothing to do with the argument "now": use flags only`},
		{[]string{"-speed", "9"}, "flag provided but not defined: -speed"},
	}
	for _, tt := range tests {
		_, err := parseFlags(tt.args, io.Discard)
		require.EqualError(t, err, tt.want)

		var stdout, stderr bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), tt.args, &stdout, &stderr))
		require.Empty(t, stdout.String())
		requireFits(t, stderr.String())
		require.Equal(t, "arena: "+tt.want+"; -help lists the flags", strings.Join(strings.Fields(stderr.String()), " "))
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"-help"}, &stdout, &stderr))
	require.Contains(t, stdout.String(), "-send-rate")
	requireFits(t, stdout.String())
	require.Empty(t, stderr.String())
	_, err := parseFlags([]string{"-h"}, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestHowLongToPlay(t *testing.T) {
	tests := []struct {
		args []string
		want int
	}{
		{nil, 600},
		{[]string{"-duration", "2s"}, 120},
		{[]string{"-duration", "1ms"}, 1},
		{[]string{"-ticks", "7"}, 7},
		{[]string{"-headless"}, 600},
		{[]string{"-serve", ":0"}, 0},
		{[]string{"-serve", ":0", "-ticks", "7"}, 7},
		{[]string{"-serve", ":0", "-duration", "1s"}, 60},
		{[]string{"-serve", ":0", "-headless"}, 600},
		{[]string{"-connect", ":1"}, 0},
		{[]string{"-connect", ":1", "-headless"}, 0},
		{[]string{"-connect", ":1", "-ticks", "7"}, 7},
		{[]string{"-connect", ":1", "-duration", "1s"}, 60},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, testConfig(t, tt.args...).ticks, "%q", tt.args)
	}
}

func TestLinkConfigIsInTicks(t *testing.T) {
	c := testConfig(t, "-latency", "50ms", "-jitter", "25ms", "-loss", "0.1", "-dup", "0.2", "-reorder", "0.3")
	w := c.weather()
	require.NoError(t, w.Validate())
	require.InDelta(t, 3, w.Latency, 1e-9)
	require.InDelta(t, 1.5, w.Jitter, 1e-9)
	require.Equal(t, []float64{0.1, 0.2, 0.3}, []float64{w.Loss, w.Duplicate, w.Reorder})
	require.Greater(t, w.ReorderBy, c.sendStep(), "held back by less, nothing is overtaken")

	c = testConfig(t, "-latency", "0", "-jitter", "0", "-loss", "0", "-dup", "0", "-reorder", "0")
	require.Zero(t, c.weather())
}

func TestHowLongToWait(t *testing.T) {
	require.Equal(t, 30*time.Second, testConfig(t, "-headless").wait)
	require.Zero(t, testConfig(t, "-serve", ":0").wait, "for ever")
	require.Equal(t, time.Minute, testConfig(t, "-connect", ":1").wait)
	require.Equal(t, 2*time.Second, testConfig(t, "-connect", ":1", "-duration", "2s").wait)
	require.Equal(t, 3*time.Second, testConfig(t, "-connect", ":1", "-duration", "2s", "-wait", "3s").wait)
}
