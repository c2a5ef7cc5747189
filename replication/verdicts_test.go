package replication

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func withVerdicts() ServerOption {
	return config.ServerFunc(func(o *config.ServerOptions) { o.Verdicts = true })
}

// verdictRig is a game whose server notes for which ticks it had the client's input. Outages lose or delay what the
// client sends.
type verdictRig struct {
	*inputRig
	up     func(packet []byte) error
	outage int      // ticks that it still lasts
	delays bool     // it delays packets
	held   [][]byte // by the outage

	first    Tick // for which the client gave an input
	had      map[Tick]bool
	learnt   map[Tick]Tick // misses that the client knows, and the server's tick when it learnt them
	reported map[Tick]bool // ticks of which the client knows it
	count    uint32
	off      bool // the server reports no misses
}

func newVerdictRig(seed uint64, link netsim.Config, opts ...ServerOption) *verdictRig {
	x := &verdictRig{
		inputRig: newInputRig(seed, link, opts...),
		had:      map[Tick]bool{}, learnt: map[Tick]Tick{}, reported: map[Tick]bool{},
	}
	x.up = x.link.Up.Send
	OnInput(x.client, func(tick Tick) mMove {
		if len(x.given) == 0 {
			x.first = tick
		}
		return x.give(tick)
	})
	seam.OfClient(x.client).Messages.Transmit = func(packet []byte) {
		switch {
		case x.outage > 0 && x.delays:
			x.held = append(x.held, slices.Clone(packet))
		case x.outage <= 0:
			_ = x.up(packet)
		}
	}
	return x
}

// tick plays a tick, and compares what the client knows with what the server had.
func (x *verdictRig) tick(t testing.TB) {
	next := x.server.Tick() + 1
	_, x.had[next] = Input[mMove](x.peer, next)
	x.inputRig.tick(t)
	if x.outage--; x.outage == 0 {
		for _, p := range x.held {
			_ = x.up(p)
		}
		x.held = nil
	}
	v := &seam.OfClient(x.client).Messages.Verdicts
	if !v.Known {
		return
	}
	require.GreaterOrEqual(t, v.Count, x.count)
	for back := range Tick(64) {
		tick := v.Tick - back
		_, known := x.learnt[tick]
		missed, reported := v.Missed>>back&1 == 1, v.Reported>>back&1 == 1
		require.False(t, missed && !reported)
		require.False(t, known && !missed, "tick %d is no miss any more", tick)
		require.False(t, x.reported[tick] && !reported, "tick %d was known", tick)
		if reported {
			require.Equal(t, x.isMiss(tick) && !x.off, missed, "tick %d of %d", tick, v.Tick)
		}
		if reported {
			x.reported[tick] = true
		}
		if missed && !known {
			x.learnt[tick] = next
			require.NotEqual(t, x.count, v.Count)
		}
	}
	x.count = v.Count
}

// isMiss reports whether the server simulated a tick without its input, and the client had begun to give inputs.
func (x *verdictRig) isMiss(tick Tick) bool {
	had, known := x.had[tick]
	return known && !had && !tick.Before(x.first)
}

// TestTheClientLearnsWhichInputsTheServerMissed, each of them, no other, and soon: outages of the way up lose inputs or
// make them late, while the way down loses packets.
func TestTheClientLearnsWhichInputsTheServerMissed(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	const latency = 4
	for _, c := range []struct {
		loss        float64
		most, usual Tick // ticks until a miss is known: at worst, and in 95 % of cases
		first       uint32
	}{
		{0, latency + 3, latency + 3, 1},
		{0.05, latency + 20, latency + 8, 1<<31 + 5},
		{0.2, latency + 31, latency + 14, 1<<32 - 700},
	} {
		t.Run(fmt.Sprint(c.loss), func(t *testing.T) {
			seed := replicationtest.Seed(t)
			rand := rand.New(rand.NewPCG(seed, 0))
			x := newVerdictRig(seed, netsim.Config{Latency: latency}, replicationtest.FirstTick(c.first), withVerdicts())
			for range 100 {
				x.tick(t)
			}
			require.Less(t, len(x.learnt), 16, "the first inputs are late")
			x.link.Down.SetConfig(netsim.Config{Latency: latency, Loss: c.loss, Jitter: 2 * c.loss, Reorder: c.loss, ReorderBy: 9})
			for range 160 {
				x.outage, x.delays = 6+rand.IntN(25), rand.IntN(3) == 0
				for range 60 + rand.IntN(60) {
					x.tick(t)
				}
			}
			for range 60 {
				x.tick(t)
			}
			missed, took := 0, []Tick{}
			for tick := range x.had {
				if !x.isMiss(tick) || x.server.Tick()-tick < 40 {
					continue
				}
				missed++
				require.Contains(t, x.learnt, tick, "the client does not know that tick %d was missed", tick)
				if tick-Tick(c.first) < 50 {
					continue
				}
				took = append(took, x.learnt[tick]-tick)
				if c.loss == 0 && !x.isMiss(tick-1) {
					require.EqualValues(t, latency-1, x.learnt[tick]-tick, "the first miss of a run is reported at once")
				}
			}
			slices.Sort(took)
			t.Logf("%d misses; known after %d ticks, %d in 95 %%, %d at worst", missed, took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
			require.Len(t, x.learnt, missed)
			require.Greater(t, missed, 500)
			require.LessOrEqual(t, took[len(took)*95/100], c.usual)
			require.LessOrEqual(t, took[len(took)-1], c.most)
		})
	}
}

// TestALongOutageIsReportedWhileItLasts: the server sends reports though nothing comes that they could answer. If they
// get lost as well, the client learns the misses of the last 32 ticks afterwards.
func TestALongOutageIsReportedWhileItLasts(t *testing.T) {
	oneGoroutine(t)
	for _, both := range []bool{false, true} {
		link := netsim.Config{Latency: 4}
		x := newVerdictRig(replicationtest.Seed(t), link, withVerdicts())
		for range 100 {
			x.tick(t)
		}
		begun := x.server.Tick()
		x.outage = 70
		for i := range 140 {
			if both {
				link.Loss = 0
				if i < 70 {
					link.Loss = 1
				}
				x.link.Down.SetConfig(link)
			}
			x.tick(t)
		}
		missed, learnt := 0, 0
		for tick := range x.had {
			if !tick.After(begun) || !x.isMiss(tick) {
				continue
			}
			missed++
			if at, known := x.learnt[tick]; known {
				learnt++
				require.True(t, both || at-tick < 8, "tick %d was known in tick %d", tick, at)
			}
		}
		require.Greater(t, missed, 60)
		if both {
			require.Greater(t, learnt, 20)
			require.LessOrEqual(t, learnt, 40)
		} else {
			require.Equal(t, missed, learnt)
		}
	}
}

// TestVerdictsAreOnlySentToThoseWhoPredict: without them, and with them while no input is missed, packets are the same.
func TestVerdictsAreOnlySentToThoseWhoPredict(t *testing.T) {
	oneGoroutine(t)
	seed := replicationtest.Seed(t)
	play := func(outages, off bool, opts ...ServerOption) (packets, bytes uint64, misses int) {
		x := newVerdictRig(seed, netsim.Config{Latency: 4}, opts...)
		x.off = off
		var before PeerStats
		for i := range 400 {
			if i == 100 { // the first inputs are late
				before = x.peer.Stats()
				misses -= len(x.learnt)
			}
			if outages && i > 100 && i%50 == 0 {
				x.outage = 20
			}
			x.tick(t)
		}
		after := x.peer.Stats()
		return after.MessagePackets - before.MessagePackets, after.MessageBytes - before.MessageBytes, misses + len(x.learnt)
	}
	packets, bytes, misses := play(false, true)
	packets2, bytes2, misses2 := play(false, false, withVerdicts())
	require.Zero(t, misses)
	require.Zero(t, misses2)
	require.Equal(t, packets, packets2)
	require.Equal(t, bytes, bytes2)

	packets, bytes, misses = play(true, true)
	packets2, bytes2, misses2 = play(true, false, withVerdicts())
	t.Logf("with outages: %d packets, %d bytes; %d and %d with verdicts", packets, bytes, packets2, bytes2)
	require.Zero(t, misses)
	require.Greater(t, misses2, 50)
	require.Greater(t, packets2, packets)
	require.Greater(t, bytes2, bytes)
}

// TestVerdictsEndWithTheSession: the next one has its own.
func TestVerdictsEndWithTheSession(t *testing.T) {
	oneGoroutine(t)
	x := newVerdictRig(replicationtest.Seed(t), netsim.Config{Latency: 4}, withVerdicts())
	for range 100 {
		x.tick(t)
	}
	x.outage = 20
	for range 30 {
		x.tick(t)
	}
	v := &seam.OfClient(x.client).Messages.Verdicts
	require.NotZero(t, v.Missed)
	x.client.Reconnect()
	anew := x.server.Tick()
	for range 20 {
		if x.inputRig.tick(t); !v.Known {
			break
		}
	}
	require.Zero(t, *v)
	for range 40 {
		x.inputRig.tick(t)
	}
	require.True(t, v.Known)
	require.Zero(t, v.Missed>>(v.Tick-anew), "misses of the session before")
}
