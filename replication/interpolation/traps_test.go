package interpolation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

type steer struct{ Left bool }

// TestTrap6ZeroLatency: a client beside its server is not shown the future, and gives inputs for ticks that are to come.
func TestTrap6ZeroLatency(t *testing.T) {
	g := &game{t: t, rand: newRand(t), rate: 20, frames: 144, wobble: 0.1}
	g.prepare(1, func() { replication.RegisterInput[steer](g.schema) })
	e := g.spawn(place{})
	v := newView(g)
	missed := 0
	g.onTick = func(n int) {
		g.place(e).X = float32(n)
		if _, ok := replication.Input[steer](g.peer, g.server.Tick()+1); n > 60 && !ok {
			missed++
		}
	}
	g.run(2)
	replication.OnInput(g.client, func(replication.Tick) steer { return steer{true} })
	v.after = func(float64) {
		require.LessOrEqual(t, v.time, g.newest(), "there is no newer state")
		at, _ := g.shown(e)
		require.InDelta(t, v.time, at.X, quantum)
		tick := g.client.InputTick()
		require.Greater(t, int32(tick-g.server.Tick()), int32(0), "the tick is over")
	}
	g.run(20)
	require.Zero(t, missed)
	require.Less(t, v.delay(), 0.15, "two intervals and a frame, about")
}

// TestTrap20BudgetStarvedIsNotResting: an entity that waits for the budget is not taken for one that rests. When
// its next state comes, it is where it was, and not where it had been long before.
func TestTrap20BudgetStarvedIsNotResting(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), profile{oneWay: 0.05}, 20)
	const n = 200
	e := g.spawn(place{})
	others := make([]func(x float32), 0, n)
	for range n {
		o := g.spawn(place{})
		others = append(others, func(x float32) { *g.place(o) = place{X: x, Y: -x, Z: 2 * x} })
	}
	g.onTick = func(tick int) {
		g.place(e).X = float32(tick)
		for i, set := range others {
			set(float32(math.Sin(float64(tick*(i+1)))) * 1000)
		}
	}
	g.run(2)
	g.peer.SetBudget(4000) // bytes per second: each entity waits for many ticks
	g.run(3)
	v := newView(g)
	g.run(2)
	moved := 0
	v.after = func(float64) {
		own, _ := g.mirror(e)
		tick, _ := g.client.StateTick(own)
		if v.time >= float64(g.ticked-1)-float64(int32(replication.Tick(g.tick)-tick)) {
			return // it waits for its next state
		}
		moved++
		at, _ := g.shown(e)
		require.InDelta(t, v.time, at.X, quantum, "it is not on its way")
	}
	g.run(30)
	require.Greater(t, moved, 500)
	require.Positive(t, g.peer.Stats().OverBudget, "the budget sufficed")
}

// TestTrap20TicksWrap: nothing happens when the server's ticks wrap.
func TestTrap20TicksWrap(t *testing.T) {
	for _, wrap := range []uint32{0, 1 << 31} {
		g := newGame(t, replicationtest.Seed(t), profileB, 20, replicationtest.FirstTick(wrap-100))
		e := g.spawn(place{})
		v := newView(g)
		g.onTick = func(n int) { g.place(e).X = float32(n) * 2 }
		g.run(2)
		frames := 0
		v.after = func(float64) {
			if v.time > g.newest() {
				return
			}
			frames++
			at, _ := g.shown(e)
			require.InDelta(t, 2*v.time, at.X, quantum+1e-3)
			require.GreaterOrEqual(t, v.time, v.before)
		}
		g.run(10)
		require.Greater(t, frames, 1000)
		require.Less(t, g.server.Tick()-replication.Tick(wrap), uint32(1000), "they wrapped")
	}
}
