package rewind

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
)

// TestViewsOfAWorldAtRest: nothing moves in the world, or the only entity stops for two of four seconds, so that the
// server sends next to nothing. Honest clients get their views all the same, and these match their screens.
func TestViewsOfAWorldAtRest(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, c := range []struct {
		rate, loss float64
		moves      bool
		busy       bool    // something else moves in every tick
		least      float64 // percent of views that match the screen: not all do where the first packets of a motion are lost
	}{
		{20, 0, false, false, 100},
		{20, 0.02, false, false, 99},
		{20, 0.2, false, false, 99},
		{60, 0, false, false, 100},
		{60, 0.02, false, false, 99},
		{60, 0.05, false, false, 99},
		{60, 0.2, false, false, 99},
		{20, 0, true, false, 99.5},
		{20, 0.05, true, false, 97},
		{20, 0.2, true, false, 90},
		{60, 0.05, true, false, 98},
		{20, 0, true, true, 99.5},
		{20, 0.05, true, true, 98.5},
		{20, 0.2, true, true, 97},
		{60, 0.05, true, true, 99},
		{60, 0.2, true, true, 97},
	} {
		t.Run(fmt.Sprintf("rate=%v,loss=%v,moves=%v,busy=%v", c.rate, c.loss, c.moves, c.busy), func(t *testing.T) {
			g := newGame(t, replicationtest.Seed(t), c.rate, c.loss)
			g.playing, g.exact, g.resting = false, false, !c.busy
			e := g.spawn(3)
			g.attach()
			screens := map[uint32]float32{}
			at := ecs.ComponentID[Position](g.mirror)
			g.input = func(tick uint32) {
				if m, ok := g.mirrored(e); ok && g.now > 5 && replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil {
					screens[tick] = (*Position)(g.mirror.Get(m, at)).X
				}
			}
			all, refused, differ := 0, map[string]int{}, 0
			g.tick = func() {
				if second := int(g.now); c.moves && second%4 < 2 {
					g.at(e).X += float32(6/c.rate) * float32(1-second%8/4*2)
				}
				next := g.server.Tick() + 1
				shown, given := screens[uint32(next)]
				if _, ok := replication.Input[Shot](g.peer, next); !ok || !given || g.now < 8 {
					return
				}
				all++
				v, err := g.history.View(g.peer, next)
				var p Position
				switch {
				case err != nil:
					refused[err.Error()[:32]]++
				case !Get(v, e, &p) || p.X != shown:
					differ++
				}
			}
			g.run(120)
			n := 0
			for _, k := range refused {
				n += k
			}
			t.Logf("%d inputs, %d refused %v, %d differ", all, n, refused, differ)
			require.Greater(t, all, 2000)
			require.LessOrEqual(t, percent(n, all), 0.2+5*c.loss, "refused")
			require.GreaterOrEqual(t, percent(all-n-differ, all-n), c.least)
		})
	}
}

// TestViewsBesideManyPackets: a tick takes seven packets, and the entity in question sets out and rests again.
func TestViewsBesideManyPackets(t *testing.T) {
	t.Parallel()
	g := newGame(t, replicationtest.Seed(t), 60, 0)
	g.up.jitter, g.down.jitter = 0.001, 0.001
	g.playing, g.exact, g.resting = false, false, true
	e := g.spawn(3)
	var crowd []ecs.Entity
	for range 2000 {
		crowd = append(crowd, g.spawn(float32(g.rng.IntN(1000))))
	}
	g.attach()
	screens := map[uint32]float32{}
	at := ecs.ComponentID[Position](g.mirror)
	g.input = func(tick uint32) {
		if m, ok := g.mirrored(e); ok && g.now > 2 && replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil {
			screens[tick] = (*Position)(g.mirror.Get(m, at)).X
		}
	}
	all := 0
	g.tick = func() {
		if second := int(g.now); second%2 < 1 {
			g.at(e).X += 0.1 * float32(1-second%4/2*2)
		}
		for _, m := range crowd {
			g.at(m).X += float32(g.rng.NormFloat64())
			g.at(m).Y += float32(g.rng.NormFloat64())
		}
		next := g.server.Tick() + 1
		shown, given := screens[uint32(next)]
		if _, ok := replication.Input[Shot](g.peer, next); !ok || !given || g.now < 3 {
			return
		}
		all++
		v, err := g.history.View(g.peer, next)
		require.NoError(t, err)
		var p Position
		require.True(t, Get(v, e, &p))
		require.Equal(t, shown, p.X)
	}
	g.run(9)
	require.Greater(t, all, 300)
	stats := g.peer.Stats()
	require.Greater(t, stats.Packets, uint64(6*g.server.Tick()))
}

// TestNewestOf: what was acknowledged before an input came shows what the client had, unless the input was late.
func TestNewestOf(t *testing.T) {
	var peer ackstate.Tracker
	in := message.Stamped{Arrived: 100, Acked: 95}
	require.Equal(t, delta.Tick(95), newestOf(&in, &peer, 4), "no round trip is known")
	peer.Trip.Smooth = 8 * 6
	require.Equal(t, delta.Tick(95), newestOf(&in, &peer, 0))
	require.Equal(t, delta.Tick(90), newestOf(&in, &peer, 4))
	in.Acked = 80
	require.Equal(t, delta.Tick(94), newestOf(&in, &peer, 0), "acknowledgements got lost")
}
