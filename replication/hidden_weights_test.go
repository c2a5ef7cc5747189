package replication

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type tHero struct{}

// TestHiddenWeightsLeaveNoTrace: under a budget, a despawn does not wait for longer or shorter because of what has the
// slot now: the entity that went out of view, or another one that the peer has never seen.
func TestHiddenWeightsLeaveNoTrace(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		for _, reuse := range []bool{false, true} {
			require.Equal(t, sentBesideHiddenWeights(t, coding, reuse, false), sentBesideHiddenWeights(t, coding, reuse, true),
				"%v, the slots are used again: %v", coding, reuse)
		}
	}
}

func sentBesideHiddenWeights(t *testing.T, coding Coding, reuse, heavy bool) (sent [][]byte) {
	schema := NewSchema()
	Register[tPosition](schema)
	Register[tHero](schema, Priority(200))
	x := newWire(t, schema, WithSeed(3))
	x.peer.conn.Compact = coding == Compact
	position, hero := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHero](x.world)
	seen := map[ecs.Entity]bool{}
	spawn := func(n int) (all []ecs.Entity) {
		for range n {
			e := x.spawn(position)
			all, seen[e] = append(all, e), true
		}
		return all
	}
	leave, movers := spawn(100), spawn(200)
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return seen[e] }})
	x.rounds(20)
	x.peer.SetBudget(1800)
	for i := range 60 {
		for k, e := range movers {
			(*tPosition)(x.world.Get(e, position)).X += float32((k*7+i)%11) - 5
		}
		for k, e := range leave {
			switch {
			case i == 20 && reuse:
				x.world.RemoveEntity(e)
			case i == 20:
				delete(seen, e)
			case i == 21 && reuse:
				leave[k] = x.spawn(position)
			}
			if i == 21 && heavy && k >= 90 {
				x.world.Add(leave[k], hero)
			}
		}
		packets := x.replicate()
		sent = append(sent, packets...)
		x.deliver(packets...)
		x.answer(x.apply()...)
	}
	return sent
}

// TestHiddenMotionLeavesNoTrace: under a budget, what comes into view does not wait for longer or shorter because it has
// moved just before, or has rested.
func TestHiddenMotionLeavesNoTrace(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		for _, keep := range []bool{false, true} {
			rested, moved := sentAfterHiddenMotion(t, coding, keep, false), sentAfterHiddenMotion(t, coding, keep, true)
			require.True(t, slices.EqualFunc(rested, moved, bytes.Equal), "%v, Keep: %v", coding, keep)
		}
	}
}

func sentAfterHiddenMotion(t *testing.T, coding Coding, keep, moves bool) (sent [][]byte) {
	schema := NewSchema()
	Register[tPosition](schema)
	x := newWire(t, schema, WithSeed(3))
	x.peer.conn.Compact = coding == Compact
	position := ecs.ComponentID[tPosition](x.world)
	seen := map[ecs.Entity]bool{}
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return seen[e] }, Keep: keep})
	var all []ecs.Entity
	for range 200 {
		e := x.spawn(position)
		all, seen[e] = append(all, e), true
	}
	x.rounds(20)
	x.peer.SetBudget(1800)
	for i := range 90 {
		for k, e := range all {
			hidden := k < 60
			seen[e] = !hidden || i < 2 || i > 50
			switch {
			case !hidden:
				(*tPosition)(x.world.Get(e, position)).X += float32((k*7+i)%11) - 5
			case i == 5, i == 50:
				(*tPosition)(x.world.Get(e, position)).X = 20
			case i == 49 && moves:
				(*tPosition)(x.world.Get(e, position)).X = 30
			}
		}
		packets := x.replicate()
		if i > 50 {
			sent = append(sent, packets...)
		}
		x.deliver(packets...)
		x.answer(x.apply()...)
	}
	return sent
}
