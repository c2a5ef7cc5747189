package interpolation_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestTheDelayCoversSaving: where a budget has no room for a packet in each tick, the server saves up for packets that
// are worth their header, and the delay covers the time between these. So what moves goes on in almost all frames. It
// stood still in two of five.
func TestTheDelayCoversSaving(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := newRand(t)
	for _, c := range []struct {
		rate   float64
		budget int
	}{{60, 3000}, {20, 1500}} {
		g := newGame(t, r.Uint64(), profile{oneWay: 0.04}, c.rate)
		g.peer.SetBudget(c.budget)
		v := newView(g)
		all := g.spawnMany(60)
		g.onTick = func(int) {
			for _, e := range all {
				g.place(e).X += 0.5 + g.rand.Float32()
			}
		}
		g.run(20)
		frames, still := 0, 0
		last := map[ecs.Entity]float32{}
		v.after = func(float64) {
			for _, e := range all {
				at, _ := g.shown(e)
				if frames++; at.X == last[e] {
					still++
				}
				last[e] = at.X
			}
		}
		before := g.client.Stats().Packets
		g.run(20)
		t.Logf("%v ticks/s, %d B/s: %.1f packets/s, delay %v, still in %.1f %%", c.rate, c.budget,
			float64(g.client.Stats().Packets-before)/20, v.Stats().Delay, 100*float64(still)/float64(frames))
		require.Less(t, still, frames/12)
	}
}
