package replication

import (
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// An inputRig is a server that asks for a client's input in every tick.
type inputRig struct {
	*end
	server *Server
	given  map[Tick]mMove

	asked, exact uint64
	delays       []float64
}

func newInputRig(seed uint64, link netsim.Config, opts ...ServerOption) *inputRig {
	w := ecs.NewWorld()
	s := NewServer(&w, messageSchema(), append(opts, WithSeed(seed))...)
	r := &inputRig{end: connect(s, seed, link, WithSeed(seed+1)), server: s, given: map[Tick]mMove{}}
	OnInput(r.client, r.give)
	return r
}

// tick plays a tick. No two inputs are equal.
func (r *inputRig) tick(t testing.TB) {
	next := r.server.Tick() + 1
	if in, ok := Input[mMove](r.peer, next); r.peer.Connected() {
		r.asked++
		if ok {
			r.exact++
			require.Equal(t, r.given[Tick(uint32(next))].Stamp, in.Stamp)
			require.Equal(t, r.given[Tick(uint32(next))].Fire, in.Fire)
			require.InDelta(t, r.given[Tick(uint32(next))].Aim, in.Aim, 0.01)
		}
	}
	delete(r.given, next-200)
	r.server.Replicate()
	r.link.Step()
	r.link.Down.Receive(func(p []byte) { _ = r.client.Receive(p) })
	require.NoError(t, r.client.Apply())
	if r.client.Connected() {
		r.delays = append(r.delays, r.client.InputDelay())
	}
	r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
}

// give gives the client's input.
func (r *inputRig) give(tick Tick) mMove {
	in := mMove{Aim: float32(tick%600)/100 - 3, Fire: tick%7 == 0, Stamp: uint16(tick)}
	r.given[Tick(uint32(tick))] = in
	return in
}

func TestInputsArriveInTime(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(60_000, 20_000)
	for i, c := range []struct {
		name  string
		link  netsim.Config
		share float64
	}{
		{"120 ms and 20 percent loss", netsim.Config{Latency: 7, Loss: 0.2}, 0.999},
		{"perfect", netsim.Config{}, 1},
		{"jitter", netsim.Config{Latency: 3, Jitter: 3, Loss: 0.02}, 0.998},
		{"hostile", netsim.Config{Latency: 6, Jitter: 2, Loss: 0.2, Duplicate: 0.25, Reorder: 0.3, ReorderBy: 8}, 0.995},
		{"half is lost", netsim.Config{Latency: 6, Loss: 0.5}, 0.99},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := seedOf(t)
			r := newInputRig(seed, c.link)
			for range 2000 {
				r.tick(t)
			}
			if i > 0 {
				ticks = min(ticks, 10_000)
			}
			r.asked, r.exact, r.delays = 0, 0, nil
			before := r.client.Stats()
			for range ticks {
				r.tick(t)
			}
			share, mean := float64(r.exact)/float64(r.asked), 0.0
			for _, l := range r.delays {
				mean += l / float64(len(r.delays))
			}
			stats := r.client.Stats()
			t.Logf("in time %.3f%%, input delay %.2f ticks, round trip %.1f, jitter %.2f, %.1f bytes a packet; server at %d, estimate %.1f",
				100*share, mean, r.client.RoundTrip(), r.client.Jitter(),
				float64(stats.InputBytes-before.InputBytes)/float64(stats.InputPackets-before.InputPackets), r.server.Tick(), r.client.ServerTick())
			require.GreaterOrEqual(t, share, c.share)
		})
	}
}

// TestInputsFollowALinkThatChanges: the input delay grows at once when latency grows, and shrinks
// when latency is low again.
func TestInputsFollowALinkThatChanges(t *testing.T) {
	r := newInputRig(1, netsim.Config{Latency: 3})
	run := func(ticks int) (missed uint64) {
		r.asked, r.exact = 0, 0
		for range ticks {
			r.tick(t)
		}
		return r.asked - r.exact
	}
	run(600)
	near := r.client.InputDelay()
	require.InDelta(t, 5, near, 2)
	r.link.SetConfig(netsim.Config{Latency: 12})
	require.Less(t, run(100), uint64(50), "two round trips and a report")
	require.LessOrEqual(t, run(500), uint64(3))
	far := r.client.InputDelay()
	require.InDelta(t, 14, far, 3.1)
	r.link.SetConfig(netsim.Config{Latency: 3})
	require.LessOrEqual(t, run(6000), uint64(6))
	require.InDelta(t, near, r.client.InputDelay(), 2)
}

// TestInputsSurviveAPause: inputs arrive in time again after the server or the client has paused.
func TestInputsSurviveAPause(t *testing.T) {
	for _, pause := range []int{20, 200, 5000} {
		r := newInputRig(1, netsim.Config{Latency: 3}, WithTimeout(0))
		settled := func() {
			for range 300 {
				r.tick(t)
			}
			r.asked, r.exact = 0, 0
			for range 200 {
				r.tick(t)
			}
			require.LessOrEqual(t, r.asked-r.exact, uint64(2), "after a pause of %d", pause)
			require.InDelta(t, float64(r.server.Tick()), r.client.ServerTick(), 3)
		}
		settled()
		for range pause { // the server pauses
			r.link.Step()
			r.link.Down.Receive(func(p []byte) { _ = r.client.Receive(p) })
			require.NoError(t, r.client.Apply())
			r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
		}
		settled()
		for range pause { // the client pauses
			_, _ = Input[mMove](r.peer, r.server.Tick()+1)
			r.server.Replicate()
			r.link.Step()
			r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
		}
		settled()
	}
}

// TestAnInputThatIsMissing: for a while, the previous input is returned in its place.
func TestAnInputThatIsMissing(t *testing.T) {
	x := connectedWire(t, messageSchema())
	first := x.client.InputTick()
	require.NoError(t, SetInput(x.client, first, mMove{Stamp: 1}))
	require.NoError(t, SetInput(x.client, first+2, mMove{Stamp: 2, Fire: true}))
	require.ErrorIs(t, SetInput(x.client, first+2, mMove{}), ErrInputSet)
	require.ErrorIs(t, SetInput(x.client, first-1, mMove{}), ErrInputSet)
	x.round()
	get := func(tick uint32) (uint16, bool) {
		in, ok := Input[mMove](x.peer, Tick(tick))
		return in.Stamp, ok
	}
	for _, c := range []struct {
		tick  uint32
		stamp uint16
		exact bool
	}{{uint32(first - 1), 0, false}, {uint32(first), 1, true}, {uint32(first + 1), 1, false}, {uint32(first + 2), 2, true}, {uint32(first + 3), 2, false}, {uint32(first + 34), 2, false}, {uint32(first + 35), 0, false}} {
		stamp, exact := get(c.tick)
		require.Equal(t, c.stamp, stamp, "tick %d", Tick(c.tick)-first)
		require.Equal(t, c.exact, exact, "tick %d", Tick(c.tick)-first)
	}
	require.EqualValues(t, 2, x.peer.Stats().Inputs)
	x.rounds(40)
	x.rounds(5)
	missed := x.peer.Stats().InputsMissed
	require.LessOrEqual(t, missed, uint64(message.InputsBehind))
	x.rounds(40)
	require.Equal(t, missed, x.peer.Stats().InputsMissed, "who gives no inputs misses none")
}

// TestTheFirstInputOfASession is set after the first Frame that knows of it. It is for a future
// tick and for no other one: on the wire a tick has 16 bits.
func TestTheFirstInputOfASession(t *testing.T) {
	const first = 1<<16 - 40
	x := newWire(t, messageSchema(), replicationtest.FirstTick(first))
	for range 2 {
		for !x.client.Connected() { // until the welcome
			x.answer(x.apply()...)
			x.deliver(x.replicate()...)
		}
		x.answer(x.apply()...)
		given := x.client.InputTick()
		require.Greater(t, given, x.server.Tick())
		require.LessOrEqual(t, given, x.server.Tick()+16)
		require.NoError(t, SetInput(x.client, given, mMove{Stamp: 7}))
		for range 60 {
			in, ok := Input[mMove](x.peer, x.server.Tick()+1)
			require.Equal(t, x.server.Tick()+1 == given, ok)
			require.True(t, !ok || in.Stamp == 7)
			x.round()
		}
		require.EqualValues(t, 1, x.peer.Stats().Inputs)
		x.peer.stats.Inputs = 0
		x.client.Reconnect()
	}
}

// TestNoInputBeforeThereIsATickForIt: in the frame in which the welcome comes, InputTick is not known yet.
func TestNoInputBeforeThereIsATickForIt(t *testing.T) {
	schema := testSchema()
	RegisterInput[uint8Input](schema)
	x := newWire(t, schema)
	set := 0
	for range 5 {
		x.deliver(x.replicate()...)
		x.deliver(x.takeDown()...)
		newest := x.client.InputTick()
		for tick := newest - 7; tick != newest+1; tick++ {
			if SetInput(x.client, tick, uint8Input{}) == nil {
				set++
				require.Less(t, tick, uint32(1000))
			}
		}
		x.client.Advance(time.Second / 60)
		x.answer(x.apply()...)
	}
	require.NotZero(t, set)
}

type uint8Input struct{ Keys uint8 }
