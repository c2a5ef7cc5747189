package netsim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestOnePipeThroughABottleneck: a pipe alone on a bottleneck delivers the same packets at the same
// ticks as one with that bandwidth and queue of its own, also when these change.
func TestOnePipeThroughABottleneck(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := netsim.Config{Latency: 2.5, Jitter: 1, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 3}
		own, shared := cfg, cfg
		own.Bandwidth, own.QueueLimit = 500, 3000
		line := netsim.NewBottleneck(500, 3000)
		shared.Through = line
		a, b := netsim.NewPipe(seed, own), netsim.NewPipe(seed, shared)
		arrivals := func(p *netsim.Pipe) (got []string) {
			p.Receive(func(packet []byte) { got = append(got, string(packet)) })
			return got
		}
		for tick := range 400 {
			if tick%100 == 99 {
				own.Bandwidth, own.QueueLimit = 200+rng.IntN(800), 1000+rng.IntN(5000)
				a.SetConfig(own)
				line.SetLimits(own.Bandwidth, own.QueueLimit)
			}
			for range rng.IntN(4) {
				packet := numbered(uint64(tick), 20+rng.IntN(1000))
				require.NoError(t, a.Send(packet))
				require.NoError(t, b.Send(packet))
			}
			line.Step()
			a.Step()
			b.Step()
			require.Equal(t, arrivals(a), arrivals(b), "seed %d, tick %d", seed, tick)
			require.Equal(t, a.Pending(), b.Pending())
			require.Equal(t, a.Stats(), b.Stats())
		}
		require.NotZero(t, a.Stats().Dropped)
	}
}

// TestPipesShareABottleneck: the packets of two pipes wait in one queue, in the order in which they
// were sent, and come out of the pipe that they were put into.
func TestPipesShareABottleneck(t *testing.T) {
	line := netsim.NewBottleneck(100, 500)
	cfg := netsim.Config{Through: line}
	a, b := netsim.NewPipe(1, cfg), netsim.NewPipe(2, cfg)
	for seq := range uint64(4) {
		require.NoError(t, a.Send(numbered(seq, 100)))
		require.NoError(t, b.Send(numbered(10+seq, 100)))
	}
	require.Equal(t, 500, line.Waiting(), "one is through, five wait")
	require.EqualValues(t, 2, a.Stats().Dropped+b.Stats().Dropped)
	var got []byte
	note := func(packet []byte) { got = append(got, packet[0]) }
	for range 8 {
		a.Receive(note)
		b.Receive(note)
		checkBooks(t, a)
		checkBooks(t, b)
		line.Step()
		a.Step()
		b.Step()
	}
	require.Equal(t, []byte{0, 10, 1, 11, 2, 12}, got)
	require.Zero(t, line.Waiting())
	require.Zero(t, a.Pending()+b.Pending())
}

// TestLeavingABottleneck: a pipe may change to another line. Packets waiting at the old one stay
// there.
func TestLeavingABottleneck(t *testing.T) {
	line := netsim.NewBottleneck(100, 0)
	p := netsim.NewPipe(1, netsim.Config{Through: line})
	require.NoError(t, p.Send(numbered(1, 300)))
	p.SetConfig(netsim.Config{})
	require.NoError(t, p.Send(numbered(2, 300)))
	var got []byte
	for range 4 {
		p.Receive(func(packet []byte) { got = append(got, packet[0]) })
		line.Step()
		p.Step()
	}
	require.Equal(t, []byte{2, 1}, got)
}

func TestBottleneckRefusesNonsense(t *testing.T) {
	require.Panics(t, func() { netsim.NewBottleneck(-1, 0) })
	require.Panics(t, func() { netsim.NewBottleneck(1, 0).SetLimits(1, -1) })
	require.EqualError(t, netsim.Config{Bandwidth: 1, Through: netsim.NewBottleneck(1, 0)}.Validate(),
		"netsim: Config.Bandwidth and Config.QueueLimit must be 0 with Through, which has a bandwidth and a queue of its own")
}

func TestBottleneckAllocatesNothingOnceWarm(t *testing.T) {
	line := netsim.NewBottleneck(2000, 20_000)
	cfg := netsim.Config{Through: line, Latency: 3}
	pipes := []*netsim.Pipe{netsim.NewPipe(1, cfg), netsim.NewPipe(2, cfg)}
	packet := make([]byte, 500)
	tick := func() {
		for _, p := range pipes {
			for range 3 {
				_ = p.Send(packet)
			}
		}
		line.Step()
		for _, p := range pipes {
			p.Step()
			p.Receive(func([]byte) {})
		}
	}
	for range 500 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(200, tick))
}
