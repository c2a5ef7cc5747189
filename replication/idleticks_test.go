package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A peer is idle in ticks in which nothing is sent to it: its interest and missing state are not
// evaluated.

// TestIdleTicksOfAPeerSendNothing: that a peer received all changes in its last active tick does
// not cover the ticks in which it is idle, because of its interval or because it is silent.
func TestIdleTicksOfAPeerSendNothing(t *testing.T) {
	relay := func() (x *fixture, tick func() [][]byte) {
		x, entities, move := crowd(t, 130)
		tick = func() [][]byte {
			for i, e := range entities {
				move(e, float32(i%5+1)/8)
			}
			packets := x.replicate()
			require.Empty(t, heldBy(x.server, x.peer, x.client))
			return packets
		}
		for range 20 {
			x.deliver(tick()...)
			x.answer(x.apply()...)
		}
		require.True(t, x.peer.out.Relays)
		return x, tick
	}
	settle := func(x *fixture, tick func() [][]byte) {
		for range 20 {
			x.deliver(tick()...)
			x.answer(x.apply()...)
			require.Zero(t, x.client.Stats().MissingBaselines)
			require.Zero(t, x.peer.Stats().MissingBaselines)
		}
		x.requireEqual()
	}
	for interval := 2; interval <= 9; interval++ {
		x, tick := relay()
		x.peer.SetSendInterval(interval)
		for i := 0; i == 0 || !x.peer.out.Rests; i++ {
			x.deliver(tick()...)
			x.answer(x.apply()...)
		}
		x.peer.SetSendInterval(1)
		settle(x, tick)
	}
	x, tick := relay()
	var acks [][]byte
	rests := 0
	for i := 0; i < 60 && rests < 3; i++ {
		x.deliver(tick()...)
		acks = append(acks, x.apply()...) // these arrive too late
		if x.peer.out.Rests {
			rests++
		}
	}
	require.Equal(t, 3, rests)
	require.EqualValues(t, 3*130, x.peer.Stats().Silent)
	require.Zero(t, x.peer.Stats().NotItsTurn)
	x.answer(acks...)
	settle(x, tick)
}

// TestMessagesToViewersInIdleTicks: the viewers of an entity are determined for every message,
// whether or not it waits for the state of its tick.
func TestMessagesToViewersInIdleTicks(t *testing.T) {
	waiting, immediate := testSchema(), testSchema()
	RegisterMessage[mChat](waiting)
	RegisterMessage[mFlash](waiting, Unreliable())
	RegisterMessage[mChat](immediate, Immediate())
	RegisterMessage[mFlash](immediate, Immediate(), Unreliable())
	for _, schema := range []*Schema{waiting, immediate} {
		x := connectedWire(t, schema)
		var got []string
		collect[mChat](x.client, &got)
		collect[mFlash](x.client, &got)
		e := x.spawn(ecs.ComponentID[tPosition](x.world))
		set := x.server.NewEntitySet()
		set.Add(e)
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
		x.rounds(5)
		x.peer.SetSendInterval(60)
		x.round()
		require.True(t, x.peer.out.Rests)
		send := func() int {
			got = nil
			require.NoError(t, SendToViewers(x.server, e, mChat{Number: 1}))
			require.NoError(t, SendToViewers(x.server, e, mFlash{}))
			x.round()
			return len(got)
		}
		require.Equal(t, 2, send())
		set.Remove(e)
		require.Zero(t, send(), "it is hidden")
		set.Add(e)
		if now := send(); schema == waiting {
			require.Zero(t, now, "the client does not show it yet")
			x.round()
			require.True(t, x.peer.out.Rests)
			x.peer.SetSendInterval(1)
			x.rounds(2)
		}
		require.Len(t, got, 2, "it is shown again")
	}
}

// resting returns a wire whose peer sees some entities of a set, and whose send interval has not
// elapsed.
func resting(t *testing.T, n int, of Interest) (x *fixture, entities []ecs.Entity) {
	x, entities, _ = crowd(t, n)
	x.peer.SetInterest(of)
	x.peer.SetBudget(100000)
	x.rounds(5)
	x.peer.acked.Phase = 1 - x.server.snap.Tick // its turn is in 60 ticks
	x.peer.SetSendInterval(60)
	x.round()
	require.True(t, x.peer.out.Rests)
	return x, entities
}

// TestInterestIsNotEvaluatedInIdleTicks until the peer's turn comes or it gets an interest.
func TestInterestIsNotEvaluatedInIdleTicks(t *testing.T) {
	asked := 0
	of := Interest{Visible: func(ecs.Entity) bool { asked++; return true }}
	x, _ := resting(t, 3, of)
	asked = 0
	for !x.peer.acked.MaySendNow() {
		require.Zero(t, asked)
		x.round()
	}
	require.Equal(t, 3, asked)
	for _, i := range []Interest{{}, of} {
		x.peer.SetInterest(i)
		x.round()
		require.False(t, x.peer.out.Rests, "what it sees is limited now, or is not any more")
		require.Equal(t, i.Visible != nil, x.peer.sight.View.InView != nil)
		x.round()
		require.True(t, x.peer.out.Rests)
	}
}

// TestEntitiesSpawnedInIdleTicksAreNotVisible before interest is evaluated, because a slot may go
// to a hidden entity.
func TestEntitiesSpawnedInIdleTicksAreNotVisible(t *testing.T) {
	var secret ecs.Entity
	x, entities := resting(t, 3, Interest{Visible: func(e ecs.Entity) bool { return e != secret }})
	slot := x.slotOf(entities[1])
	x.world.RemoveEntity(entities[1])
	x.round()
	secret = x.spawn(ecs.ComponentID[tPosition](x.world))
	x.round()
	require.Equal(t, slot, x.slotOf(secret))
	require.True(t, x.peer.out.Rests)
	require.Zero(t, x.peer.sight.View.Sees(0, 1<<slot))
	x.peer.SetSendInterval(1)
	x.rounds(3)
	x.requireSeen(entities[0], entities[2])
}

// TestReasonsInIdleTicks: they add up, also when there are fewer entities than the peer saw at the
// last evaluation.
func TestReasonsInIdleTicks(t *testing.T) {
	hidden := map[ecs.Entity]bool{}
	x, entities := resting(t, 10, Interest{Visible: func(e ecs.Entity) bool { return !hidden[e] }})
	hidden[entities[9]] = true
	was := x.peer.Stats()
	expect := func(interval, notVisible uint64) {
		t.Helper()
		x.round()
		require.True(t, x.peer.out.Rests)
		now := x.peer.Stats()
		require.Equal(t, []uint64{interval, notVisible}, []uint64{now.NotItsTurn - was.NotItsTurn, now.NotVisible - was.NotVisible})
		require.Equal(t, []uint64{was.Withheld, was.UpToDate, was.InFlight, was.Silent}, []uint64{now.Withheld, now.UpToDate, now.InFlight, now.Silent})
		was = now
	}
	expect(10, 0) // not evaluated yet: one is hidden
	x.spawn(ecs.ComponentID[tPosition](x.world))
	expect(10, 1)
	for _, e := range entities {
		x.world.RemoveEntity(e)
	}
	expect(1, 0)
}

// TestPacketsAreResolvedInIdleTicks: packets are forgotten once acknowledged or lost, and marked
// lost in time.
func TestPacketsAreResolvedInIdleTicks(t *testing.T) {
	for _, comes := range []bool{true, false} {
		x, entities := resting(t, 3, Interest{})
		for !x.peer.acked.MaySendNow() {
			(*tPosition)(x.world.Get(entities[0], ecs.ComponentID[tPosition](x.world))).X++
			packets := x.replicate()
			if comes || !x.peer.acked.MaySendNow() {
				x.deliver(packets...)
			}
			x.answer(x.apply()...)
		}
		require.NotEqual(t, x.peer.acked.Log.Oldest, x.peer.acked.Log.Next)
		for i := 0; x.peer.acked.Log.Oldest != x.peer.acked.Log.Next; i++ {
			x.round()
			require.True(t, x.peer.out.Rests)
			require.Less(t, i, 50)
		}
		require.Equal(t, !comes, x.peer.Stats().Lost > 0)
	}
}
