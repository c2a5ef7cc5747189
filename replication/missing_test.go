package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// muteAcks plays ticks in which an entity moves and the client's packets are lost: the server keeps
// using the baselines that it knows of, and the client must hold them.
func (x *fixture) muteAcks(ticks int, move func()) {
	x.t.Helper()
	x.server.opts.NoSilence = true
	for range ticks {
		move()
		x.deliver(x.replicate()...)
		x.apply()
	}
	require.Zero(x.t, x.client.Stats().MissingBaselines)
	x.requireEqual()
}

// TestChangesOutOfViewAreMissing: an entity changes while it is out of view and comes back a tick
// later. Not all changes up to then were sent, so acknowledgements of those ticks do not cover the
// entity.
func TestChangesOutOfViewAreMissing(t *testing.T) {
	for phase := range 4 {
		x, e, move := crowd(t, 2)
		set := x.server.NewEntitySet()
		set.Add(e[0])
		set.Add(e[1])
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
		var down [][][]byte
		play := func(ticks int) {
			for range ticks {
				move(e[0], 0.1)
				move(e[1], 0.1)
				down = append(down, x.replicate())
				if len(down) > 4 {
					x.deliver(down[0]...)
					down = down[1:]
				}
				x.answer(x.apply()...)
			}
		}
		play(snapshot.RecentTicks + 20 + phase)
		require.NotZero(t, inStep(&x.peer.acked, 0)&1)
		set.Remove(e[0])
		play(1)
		set.Add(e[0])
		play(40)
		require.NotZero(t, inStep(&x.peer.acked, 0)&1, "it is again")
		require.Zero(t, x.client.Stats().MissingBaselines, "phase %d", phase)
	}
}

// TestAStateSentTwice: a state was sent twice, and only the first packet is acknowledged. If the
// second one arrives, the client holds the state as of that tick for good, and as of the first tick
// only for a while.
func TestAStateSentTwice(t *testing.T) {
	x, e, move := crowd(t, 2)
	for range snapshot.RecentTicks + 20 {
		move(e[1], 0.1)
		x.round()
	}
	require.EqualValues(t, 3, inStep(&x.peer.acked, 0))
	move(e[0], 1)
	first := x.replicate()
	var again [][]byte
	for i := 0; again == nil; i++ {
		require.Less(t, i, 60)
		move(e[1], 0.1)
		var others [][]byte
		if again, others = x.split(x.replicate(), 0); again == nil {
			x.deliver(others...)
			x.answer(x.apply()...)
		}
	}
	x.deliver(first...)
	x.answer(x.apply()...)
	for range 3 * 4 {
		move(e[1], 0.1)
		x.round()
	}
	x.deliver(again...)
	for range 3 * x.server.opts.Window {
		move(e[1], 0.1)
		x.round()
	}
	x.muteAcks(40, func() { move(e[0], 0.1) })
}

// TestAStateSentTwiceInSuccessiveTicks: the second packet arrived, but not all packets of its tick,
// so the peer is served against the previous tick. The client's newest state is of the later tick
// all the same.
func TestAStateSentTwiceInSuccessiveTicks(t *testing.T) {
	oneGoroutine(t)
	for phase := range 4 {
		x, e, move := crowd(t, 100, WithMTU(100))
		moveOthers := func() {
			for i, e := range e[1:] {
				move(e, float32((Tick(i)*7+x.server.Tick()*13)%11)/8-0.6)
			}
		}
		for range snapshot.RecentTicks + 20 + phase {
			moveOthers()
			x.round()
		}
		move(e[0], 1)
		first := x.replicate()
		var again, others [][]byte
		for i := 0; again == nil; i++ {
			require.Less(t, i, 60)
			moveOthers()
			if again, others = x.split(x.replicate(), 0); again == nil {
				x.deliver(others...)
				x.answer(x.apply()...)
			}
		}
		require.NotEmpty(t, others, "and they are lost")
		x.deliver(first...)
		x.deliver(again...)
		x.answer(x.apply()...)
		for range 4 + 1 {
			x.replicate()
		}
		for range 3 * x.server.opts.Window {
			moveOthers()
			x.round()
		}
		x.muteAcks(40, func() { move(e[0], 0.1) })
	}
}

// TestAnEntityThatWakesAndJoinsAGroupInOneTick: the client holds the state of the idle period that
// ends now, not of an earlier one.
func TestAnEntityThatWakesAndJoinsAGroupInOneTick(t *testing.T) {
	x, e, move := crowd(t, 2)
	for range 3 {
		move(e[0], 1)
		x.rounds(snapshot.RecentTicks + 20)
	}
	require.NotZero(t, inStep(&x.peer.acked, 0)&1)
	last := x.server.snap.Slots.ChangedAt[0]
	x.server.NewGroup().Add(e[0])
	move(e[0], 1)
	x.replicate()
	require.Equal(t, last, x.acked(0))
}

// TestOutages: for a while nothing arrives. The server learns that packet by packet, or for many at
// once when something arrives again, and never uses a baseline that the client does not hold.
func TestOutages(t *testing.T) {
	for _, ticks := range []int{10, snapshot.RecentTicks, snapshot.RecentTicks + 1, 2 * snapshot.RecentTicks, clock.MaxTimeout, 300} {
		x, e, move := crowd(t, 2, neverSilent, WithTimeout(0))
		for range 40 {
			move(e[0], 0.1)
			x.round()
		}
		for range ticks {
			move(e[0], 0.1)
			x.replicate()
			require.Empty(t, heldBy(x.server, x.peer, x.client))
		}
		require.LessOrEqual(t, x.server.snap.Tick-x.peer.acked.Acks.Through, delta.Tick(min(ticks+2, clock.MaxTimeout+2)), "after %d ticks", ticks)
		for range 30 {
			move(e[1], 1)
			x.round()
			require.Empty(t, heldBy(x.server, x.peer, x.client))
		}
		x.requireEqual()
		require.Zero(t, x.client.Stats().MissingBaselines)
	}
}

// TestAStateInPartsIsNotSharedMeanwhile: a known entity changes by more than a packet holds, and in
// the next tick nearly changes back. While the large state is in flight in parts, the client is not
// sent a newer one, because it would then drop the parts.
func TestAStateInPartsIsNotSharedMeanwhile(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(128))
	bulk := x.spawn(ecs.ComponentID[tBulk](x.world))
	var down [][][]byte
	play := func(ticks int, change func(b *tBulk)) {
		for range ticks {
			b := (*tBulk)(x.world.Get(bulk, ecs.ComponentID[tBulk](x.world)))
			b.Cells[0]++
			if change != nil {
				change(b)
			}
			down = append(down, x.replicate())
			if len(down) > 4 {
				x.deliver(down[0]...)
				down = down[1:]
			}
			x.answer(x.apply()...)
			require.Empty(t, heldBy(x.server, x.peer, x.client))
		}
	}
	play(80, nil)
	shared, parts := x.server.Stats().SharedPackets, x.peer.Stats().Parts
	require.NotZero(t, shared)
	fill := func(v uint64) func(b *tBulk) {
		return func(b *tBulk) {
			for i := range b.Cells[1:] {
				b.Cells[1+i] = v * uint64(i+1) * wire.Golden64
			}
		}
	}
	play(1, fill(1))
	require.Greater(t, x.peer.Stats().Parts, parts)
	play(1, fill(0))
	n := len(down)
	down[n-2], down[n-1] = down[n-1], down[n-2] // the first to be sent arrives last
	play(80, nil)
	require.Greater(t, x.server.Stats().SharedPackets, shared)
	for ; len(down) > 0; down = down[1:] {
		x.deliver(down[0]...)
	}
	x.rounds(3)
	x.requireEqual()
}

// TestEarlierLossesDoNotCount: an entity leaves the view and comes back. The loss of an earlier
// packet does not make it dirty once more.
func TestEarlierLossesDoNotCount(t *testing.T) {
	x, e, move := crowd(t, 2)
	set := x.server.NewEntitySet()
	set.Add(e[0])
	set.Add(e[1])
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(20)
	move(e[0], 1)
	x.replicate() // this packet is lost
	set.Remove(e[0])
	x.round()
	before := x.peer.Stats()
	require.Zero(t, before.Lost)
	set.Add(e[0])
	back := x.replicate()
	for i := 0; x.peer.Stats().Lost == 0; i++ {
		require.Less(t, i, 10)
		move(e[1], 1)
		x.round()
	}
	x.deliver(back...)
	x.rounds(5)
	x.requireEqual()
	now := x.peer.Stats()
	require.EqualValues(t, 1, now.Lost)
	require.EqualValues(t, 1, now.FullStates-before.FullStates)
}
