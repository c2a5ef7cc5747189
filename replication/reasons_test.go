package replication

import (
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestReasonsAddUp: every live entity is counted once per peer and tick, as sent or with the reason
// why not.
func TestReasonsAddUp(t *testing.T) {
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 60)
	for range 30 { // something to send from the start
		g.spawn(g.ids[0], g.ids[1], g.ids[3])
	}
	o := newTruth()
	var ends []*end
	for i := range 6 {
		e := connect(s, seed+uint64(i), netsim.Config{Latency: float64(i), Loss: 0.1 * float64(i%2)}, WithSeed(uint64(i)+1))
		switch i {
		case 1:
			e.peer.SetBudget(800)
		case 2:
			e.peer.SetSendInterval(4)
		case 3:
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return (int(e.ID())+int(s.Tick())/50)%2 == 0 }})
		case 4:
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return (int(e.ID())+int(s.Tick())/50)%2 == 0 }, Keep: true})
		}
		ends = append(ends, e)
	}
	for n := 0; n < 30 || slices.ContainsFunc(ends, func(e *end) bool { return !e.peer.Connected() }); n++ {
		require.Less(t, n, 1000, "all connect")
		g.step()
		tickAll(t, s, o, ends)
	}
	before := make([]PeerStats, len(ends))
	for i, e := range ends {
		before[i] = e.peer.Stats()
	}
	for range 300 {
		g.step()
		tickAll(t, s, o, ends)
		for i, e := range ends {
			b, a := before[i], e.peer.Stats()
			before[i] = a
			total := a.NotVisible - b.NotVisible + a.UpToDate - b.UpToDate + a.InFlight - b.InFlight +
				a.NotItsTurn - b.NotItsTurn + a.Silent - b.Silent + a.OverBudget - b.OverBudget + a.Updates - b.Updates + a.FullStates - b.FullStates + a.KeyframeFallbacks - b.KeyframeFallbacks
			require.EqualValues(t, s.Stats().Entities, total, "peer %d\n%+v\n%+v", i, b, a)
		}
	}
	require.NotZero(t, before[1].OverBudget)
	require.NotZero(t, before[2].NotItsTurn)
	require.NotZero(t, before[3].NotVisible)
	require.NotZero(t, before[4].NotVisible)
	require.NotZero(t, before[5].InFlight)
	for i, stats := range before {
		require.NotZero(t, stats.UpToDate)
		if i != 2 {
			require.Zero(t, stats.NotItsTurn)
		}
		if i != 1 {
			require.Zero(t, stats.OverBudget)
		}
	}
	stats := s.Stats()
	ages, sent := uint64(0), uint64(0)
	for _, n := range stats.BaselineAges {
		ages += n
	}
	for _, p := range before {
		sent += p.Updates + p.FullStates + p.KeyframeFallbacks
	}
	require.Equal(t, stats.Entries, ages)
	require.GreaterOrEqual(t, stats.Entries, sent)
}

// TestReasonsOfAScript plays a script whose counts are all known.
func TestReasonsOfAScript(t *testing.T) {
	x := connectedWire(t, testSchema())
	var entities []ecs.Entity
	position := ecs.ComponentID[tPosition](x.world)
	for range 10 {
		entities = append(entities, x.spawn(position))
	}
	was := x.peer.Stats()
	expect := func(updates, wholes, upToDate, inFlight, notVisible, interval, over uint64) {
		t.Helper()
		s := x.peer.Stats()
		require.Equal(t, []uint64{updates, wholes, upToDate, inFlight, notVisible, interval, over}, []uint64{
			s.Updates - was.Updates, s.FullStates - was.FullStates, s.UpToDate - was.UpToDate, s.InFlight - was.InFlight,
			s.NotVisible - was.NotVisible, s.NotItsTurn - was.NotItsTurn, s.OverBudget - was.OverBudget,
		})
		was = s
	}
	packets := x.replicate()
	expect(0, 10, 0, 0, 0, 0, 0)
	packets = append(packets, x.replicate()...)
	expect(0, 0, 0, 10, 0, 0, 0)
	x.deliver(packets...)
	x.answer(x.apply()...)
	x.replicate()
	expect(0, 0, 10, 0, 0, 0, 0)
	(*tPosition)(x.world.Get(entities[0], position)).X = 3
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != entities[9] }})
	x.replicate()
	expect(1, 0, 8, 0, 1, 0, 0)
	(*tPosition)(x.world.Get(entities[1], position)).X = 3
	x.peer.SetSendInterval(60)
	x.peer.acked.Phase = 0
	x.replicate()
	expect(0, 0, 0, 0, 1, 9, 0) // dirty state is not evaluated
	x.peer.SetSendInterval(1)
	x.peer.SetBudget(1) // a minute's budget for the first packet
	x.replicate()
	expect(0, 0, 7, 1, 1, 0, 1)
}

// TestAUserPanicDoesNotLast: a game that goes on after its callbacks panicked in a few ticks has a
// server that goes on, too.
func TestAUserPanicDoesNotLast(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, panics := range []int{1, 2, 8, 40} {
		seed := seedOf(t)
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed))
		position, marker := ecs.ComponentID[tPosition](&w), ReplicatedID(&w)
		var entities []ecs.Entity
		for range 200 {
			entities = append(entities, w.NewEntity(position, marker))
		}
		move := func() {
			for _, e := range entities {
				(*tPosition)(w.Get(e, position)).X += 0.1
			}
		}
		upset := false
		o := newTruth()
		ends := []*end{connect(s, seed, netsim.Config{Latency: 1}), connect(s, seed+1, netsim.Config{Latency: 1})}
		ends[1].peer.SetInterest(Interest{Visible: func(ecs.Entity) bool {
			if upset {
				panic("the user's")
			}
			return true
		}})
		for range 100 {
			move()
			tickAll(t, s, o, ends)
		}
		require.NotZero(t, s.Stats().SharedPackets)
		upset = true
		for range panics {
			move()
			require.PanicsWithValue(t, "the user's", s.Replicate)
			for _, e := range ends {
				e.step(t)
			}
		}
		upset = false
		for range 100 {
			move()
			require.NotPanics(t, func() { tickAll(t, s, o, ends) })
		}
		requireEqualSoon(t, s, o, ends, 200)
	}
}

// TestAFailedSendBeforeAPanicIsCountedOnce: in many ticks the send function fails, and then panics. Each packet that
// failed is lost once, and none of a later tick that has its place in the log is.
func TestAFailedSendBeforeAPanicIsCountedOnce(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(64))
	position := ecs.ComponentID[tPosition](x.world)
	var entities []ecs.Entity
	for range 60 {
		entities = append(entities, x.spawn(position))
	}
	x.rounds(40)
	move := func() {
		for _, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X += 7
		}
	}
	before, calls, failed, send := x.peer.Stats(), 0, uint64(0), x.peer.out.Send
	x.peer.out.Send = func([]byte) error {
		if calls++; calls%3 == 0 {
			panic("the user's")
		}
		failed++
		return errRefused
	}
	for range 200 {
		move()
		func() {
			defer func() { _ = recover() }()
			x.server.Replicate()
		}()
	}
	require.Greater(t, failed, uint64(100))
	x.peer.out.Send = send
	x.rounds(100)
	after := x.peer.Stats()
	require.Equal(t, before.SendErrors+failed, after.SendErrors)
	require.LessOrEqual(t, after.Lost-before.Lost, uint64(calls), "packets")
	x.requireEqual()
}

// TestAPanicOfTheSendFunction: whichever message packet it panics on, no message is delivered
// twice, and reliable ones are delivered once, in order.
func TestAPanicOfTheSendFunction(t *testing.T) {
	for at := range 6 {
		x := connectedWire(t, messageSchema(), WithMTU(64))
		var hits, sparks []uint32
		OnServerMessage(x.client, func(m mHit) { hits = append(hits, m.Number) })
		OnServerMessage(x.client, func(m mSpark) { sparks = append(sparks, m.Number) })
		send, left := x.peer.out.Send, at
		x.peer.out.Send = func(p []byte) error {
			if wire.KindOf(p[wire.ChecksumSize:]) == wire.KindMessages {
				if left == 0 {
					left = -1
					panic("the user's")
				}
				left--
			}
			return send(p)
		}
		var want []uint32
		for i := range uint32(20) {
			want = append(want, i)
			require.NoError(t, SendToClient(x.peer, mHit{Number: i}))
			require.NoError(t, SendToClient(x.peer, mSpark{Number: i}))
		}
		require.PanicsWithValue(t, "the user's", x.server.Replicate, "at %d", at)
		x.deliver(x.takeDown()...)
		for range 20 {
			require.NotPanics(t, x.round)
		}
		require.Equal(t, want, hits)
		require.IsIncreasing(t, sparks, "%v", at)
	}
}

// TestAPanickingMessageIsNotRepeatedForever: not even one at which the library itself fails.
func TestAPanickingMessageIsNotRepeatedForever(t *testing.T) {
	x := connectedWire(t, messageSchema())
	var hits, sparks []uint32
	OnServerMessage(x.client, func(m mHit) { hits = append(hits, m.Number) })
	OnServerMessage(x.client, func(m mSpark) { sparks = append(sparks, m.Number) })
	for i := range uint32(3) {
		require.NoError(t, SendToClient(x.peer, mHit{Number: i}))
		require.NoError(t, SendToClient(x.peer, mSpark{Number: i}))
	}
	x.server.messages.Messenger.Pending[2].Place = 1 << 30 // the second hit
	x.server.messages.Messenger.Pending[3].Place = 1 << 30
	require.Panics(t, x.server.Replicate)
	require.Panics(t, x.server.Replicate)
	for range 10 {
		require.NotPanics(t, x.round)
	}
	require.Equal(t, []uint32{0, 2}, hits)
	require.Equal(t, []uint32{2}, sparks, "the one in the packet that was open is lost")
	require.Empty(t, x.server.messages.Messenger.Pending)
}
