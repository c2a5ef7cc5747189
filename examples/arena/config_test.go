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

// testConfig parses flags, without a page unless they ask for one.
func testConfig(t *testing.T, args ...string) config {
	t.Helper()
	c, err := parseFlags(append([]string{"-http="}, args...), io.Discard)
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
		{[]string{"-wait", "-1s"}, "-wait is -1s but must be more than 0"},
		{[]string{"-load", "0", "-connect", ":1"}, "-load is 0 but must be from 1 to 256"},
		{[]string{"-load", "9"}, "-load needs a server in another process: give its address by -connect"},
		{[]string{"-http", "8080"}, `-http is "8080" but must be an address with a port, like 127.0.0.1:9000`},
		{[]string{"-http", ":8080", "-headless"}, "-http serves a page, and -headless does something else: give one of them"},
		{[]string{"-record", ""}, "-record needs the name of a file"},
		{[]string{"-replay", ""}, "-replay needs the name of a file"},
		{[]string{"-record", "a", "-connect", ":1"}, "-record records a server, and -connect is for its clients: give it to that of -serve"},
		{[]string{"-replay", "a", "-record", "b"}, "-replay plays what was recorded, where -record changes nothing: leave it out"},
		{[]string{"-replay", "a", "-loss", "0"}, "-replay plays what was recorded, where -loss changes nothing: leave it out"},
		{[]string{"-replay", "a", "-serve", ":1"}, "-replay plays what was recorded, where -serve changes nothing: leave it out"},
		{[]string{"-replay", "a", "-http", ":1", "-headless"}, "-http serves a page, and -headless does something else: give one of them"},
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
		args     []string
		ticks    int // of a server
		duration time.Duration
	}{
		{nil, 600, 10 * time.Second},
		{[]string{"-duration", "2s"}, 120, 2 * time.Second},
		{[]string{"-duration", "1ms"}, 1, time.Millisecond},
		{[]string{"-ticks", "6"}, 6, time.Second / 10},
		{[]string{"-headless"}, 600, 10 * time.Second},
		{[]string{"-serve", ":0"}, 0, 0},
		{[]string{"-serve", ":0", "-ticks", "6"}, 6, time.Second / 10},
		{[]string{"-serve", ":0", "-duration", "1s"}, 60, time.Second},
		{[]string{"-connect", ":1"}, 0, 0},
		{[]string{"-connect", ":1", "-ticks", "6"}, 6, time.Second / 10},
		{[]string{"-connect", ":1", "-duration", "1s"}, 60, time.Second},
	}
	for _, tt := range tests {
		c := testConfig(t, tt.args...)
		require.Equal(t, tt.ticks, c.ticks, "%q", tt.args)
		require.Equal(t, tt.duration, c.duration, "%q", tt.args)
	}
}

func TestTheNetworkIsAsBadAsAskedFor(t *testing.T) {
	c := testConfig(t, "-latency", "50ms", "-jitter", "25ms", "-loss", "0.1", "-dup", "0.2", "-reorder", "0.3")
	p := c.network()
	require.NoError(t, p.Validate())
	require.Equal(t, 50*time.Millisecond, p.Latency)
	require.Equal(t, 25*time.Millisecond, p.Jitter)
	require.Equal(t, []float64{0.1, 0.2, 0.3}, []float64{p.Loss, p.Duplicate, p.Reorder})
	require.Greater(t, p.Config(60).ReorderBy, c.sendStep(), "held back by less, nothing is overtaken")

	c = testConfig(t, "-latency", "0", "-jitter", "0", "-loss", "0", "-dup", "0", "-reorder", "0")
	require.Zero(t, c.network())
}

func TestHowManyClients(t *testing.T) {
	require.Equal(t, 4, testConfig(t).clients)
	require.Equal(t, 4, testConfig(t, "-connect", ":1").clients)
	require.Equal(t, 200, testConfig(t, "-connect", ":1", "-load", "200").clients)
	require.Zero(t, testConfig(t, "-serve", ":0").clients, "it waits for nobody")
	require.Equal(t, 2, testConfig(t, "-serve", ":0", "-clients", "2").clients)
}

func TestAPageIsServedUnlessFlagsAskForSomethingElse(t *testing.T) {
	parse := func(args ...string) config {
		c, err := parseFlags(args, io.Discard)
		require.NoError(t, err)
		return c
	}
	c := parse()
	require.Equal(t, "127.0.0.1:8080", c.http)
	require.Zero(t, c.ticks, "it goes on until Ctrl-C")
	require.Zero(t, c.clients)
	c = parse("-duration", "2s")
	require.NotEmpty(t, c.http)
	require.Equal(t, 120, c.ticks)
	for _, args := range [][]string{
		{"-http="}, {"-headless"}, {"-json"}, {"-clients", "3"}, {"-transport", "udp"}, {"-serve", ":1"}, {"-connect", ":1"},
	} {
		require.Empty(t, parse(args...).http, args)
	}
	c = parse("-http=")
	require.Equal(t, 600, c.ticks)
	require.Equal(t, 4, c.clients)
}
