package rewind

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/playout"
)

// TestViewsOfKeptEntities: an entity that its client keeps out of view is where the client shows it for as long as that
// is known, and nowhere from then on; never where it really was.
func TestViewsOfKeptEntities(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), 30, 0)
	g.playing, g.exact = false, false
	Keep[Position](g.history)
	e, other := g.spawn(3), g.spawn(4)
	set := g.server.NewEntitySet()
	set.Add(e)
	set.Add(other)
	g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}, Keep: true})
	play := g.playOut()
	playout.Interpolate[Position](play)
	at := ecs.ComponentID[Position](g.mirror)
	screens := map[uint32]float32{}
	g.input = func(tick uint32) {
		if m, ok := g.mirrored(e); ok && g.now > 5 && replication.SetInput(g.client, tick, Shot{}) == nil {
			screens[tick] = (*Position)(g.mirror.Get(m, at)).X
		}
	}
	found, gone := 0, 0
	g.tick = func() {
		if g.now >= 10 {
			set.Remove(e)
		}
		g.at(e).X += 0.1
		g.at(other).X += 0.1
		shown, given := screens[g.server.Tick()+1]
		v, err := g.history.View(g.peer, g.server.Tick()+1)
		if !given || err != nil || g.now < 8 {
			return
		}
		var p Position
		if Get(v, e, &p) {
			found++
			require.InDelta(t, shown, p.X, 0.02)
		} else {
			gone++
		}
	}
	g.run(20)
	require.Greater(t, found, 60)
	require.Greater(t, gone, 60)
}
