package replication

import (
	"bytes"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// References to entities that a peer does not see.

// TestTargetsInAndOutOfView: a reference to an entity out of view is zero, whether or not the
// entity was visible before.
func TestTargetsInAndOutOfView(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := newReferring(t)
		visible := map[ecs.Entity]bool{}
		x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return visible[e] }, Keep: keep})
		e, target := x.spawn(x.target), x.spawn(x.target)
		visible[e] = true
		x.point(e, target)
		x.point(target, e)
		x.rounds(3)
		require.Equal(t, nobody, x.shown(e), "never seen")
		visible[target] = true
		x.rounds(3)
		x.requireShown(e, target)
		x.requireShown(target, e)

		visible[target] = false
		x.rounds(3)
		if keep {
			x.requireShown(e, target, "as it was last seen")
		} else {
			require.Equal(t, nobody, x.shown(e))
		}
		visible[target], visible[e] = true, false
		x.rounds(3)
		if keep {
			x.requireShown(e, target)
			x.requireShown(target, e)
		} else {
			require.Equal(t, nobody, x.shown(target))
		}
		visible[e] = true
		x.rounds(3)
		x.requireShown(e, target)
		x.requireShown(target, e)

		visible[e] = false
		x.rounds(3)
		x.world.RemoveEntity(target) // e is not sent again, only the despawn
		x.rounds(3)
		if keep {
			require.Equal(t, nobody, x.shown(e))
		}
		visible[e] = true
		x.rounds(3)
		require.Equal(t, nobody, x.shown(e))
		checkLinks(&x.client.apply, t, 0)
	}
}

// TestHiddenTargetsShowTheirNumberOnly: the state of a hidden entity changes no bit of the packets
// of a peer that sees a reference to it. Its NetID does, and so does its despawn.
func TestHiddenTargetsShowTheirNumberOnly(t *testing.T) {
	play := func(strangers int, act func(x *referring, hidden ecs.Entity, tick int)) (sent []byte) {
		x := newReferring(t)
		e := x.spawn(x.target)
		x.peer.SetInterest(Interest{Visible: func(other ecs.Entity) bool { return other == e }})
		for range strangers {
			x.spawn()
		}
		hidden := x.spawn()
		x.rounds(2) // the first entity to be captured gets the lower slot
		x.point(e, hidden)
		for tick := range 20 {
			act(x, hidden, tick)
			down := x.replicate()
			sent = append(sent, bytes.Join(down, nil)...)
			x.deliver(down...)
			x.answer(x.apply()...)
			x.requireShown(e, nobody)
		}
		return sent
	}
	still := play(1, func(*referring, ecs.Entity, int) {})
	busy := play(1, func(x *referring, hidden ecs.Entity, tick int) {
		if tick%5 == 1 {
			x.world.Add(hidden, x.target, ecs.ComponentID[tPosition](x.world))
			x.point(hidden, hidden)
		}
		if tick%5 == 4 {
			x.world.Remove(hidden, x.target, ecs.ComponentID[tPosition](x.world))
		}
		x.spawn(x.target)
	})
	require.Equal(t, still, busy)
	require.NotEqual(t, still, play(2, func(*referring, ecs.Entity, int) {}))
	mortal := play(1, func(x *referring, hidden ecs.Entity, tick int) {
		if tick == 10 {
			x.world.RemoveEntity(hidden)
		}
	})
	require.NotEqual(t, still, mortal)
}
