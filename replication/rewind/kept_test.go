package rewind

import (
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// TestViewsOfKeptEntities: an entity that its client keeps out of view is where the client shows it for as long as that
// is known, and nowhere from then on; never where it really was, also when it comes back.
func TestViewsOfKeptEntities(t *testing.T) {
	for _, window := range []int{33, 48, 64, 100} {
		testKept(t, window)
	}
}

// keptGame is a game whose client keeps what goes out of view.
type keptGame struct {
	*game
	set      *replication.EntitySet // that the client sees
	e, other ecs.Entity             // in the set, moving
	friend   ecs.Entity             // of e, hidden
	screens  map[uint32]float32     // where the client showed e at the input for a tick
}

func newKeptGame(t *testing.T, window int) *keptGame {
	g := &keptGame{game: newGame(t, replicationtest.Seed(t), 30, 0, replication.WithTuning(replication.Tuning{Window: window})), screens: map[uint32]float32{}}
	g.playing, g.exact = false, false
	g.set, g.e, g.other = g.server.NewEntitySet(), g.spawn(3), g.spawn(4)
	g.set.Add(g.e)
	g.set.Add(g.other)
	g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{g.set}, Keep: true})
	g.attach()
	at := ecs.ComponentID[Position](g.mirror)
	g.input = func(tick uint32) {
		if m, ok := g.mirrored(g.e); ok && g.now > 5 && replication.SetInput(g.client, replication.Tick(tick), Shot{}) == nil {
			g.screens[tick] = (*Position)(g.mirror.Get(m, at)).X
		}
	}
	return g
}

// TestViewsOfKeptEntitiesInACorner: however an entity that moves out of view ends, is in view for a moment or is sent in
// part, views never have it where it was hidden.
func TestViewsOfKeptEntitiesInACorner(t *testing.T) {
	const never = 1 << 30
	comesBack := func(g *keptGame) { g.set.Add(g.e) }
	for _, c := range []struct {
		name   string
		window int
		before func(g *keptGame) // at the beginning
		out    func(g *keptGame) // out of view
		away   uint32            // ticks after which it leaves until that
		again  uint32            // until it leaves again
		rests  uint32            // until it rests
	}{
		{"in view for a tick", 64, nil, comesBack, 180, 181, never},
		{"in view for some ticks", 64, nil, comesBack, 180, 187, 182},
		{"keep ends", 64, nil, func(g *keptGame) {
			g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{g.set}})
		}, 180, never, never},
		{"a member of its group ends", 64, func(g *keptGame) {
			g.friend = g.spawn(5)
			group := g.server.NewGroup()
			group.Add(g.e)
			group.Add(g.friend)
		}, func(g *keptGame) { g.world.RemoveEntity(g.friend) }, 180, never, never},
		{"send interval", 64, func(g *keptGame) { g.peer.SetSendInterval(8) }, nil, 0, never, never},
		{"window of 48", 48, nil, comesBack, 52, never, 60},
		{"window of 100", 100, nil, comesBack, 104, never, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newKeptGame(t, c.window)
			if c.before != nil {
				c.before(g)
			}
			left, found := uint32(0), 0
			g.tick = func() {
				tick := g.server.Tick() + 1
				if left == 0 && g.now > 8 {
					left = uint32(tick)
				}
				switch since := tick - replication.Tick(left); {
				case left == 0:
				case since == 0, since == replication.Tick(c.again):
					g.set.Remove(g.e)
				case since == replication.Tick(c.away) && c.out != nil:
					c.out(g)
				}
				if left == 0 || tick-replication.Tick(left) < replication.Tick(c.rests) {
					g.at(g.e).X += 0.1
				}
				g.at(g.other).X += 0.1
				shown, given := g.screens[uint32(tick)]
				v, err := g.history.View(g.peer, replication.Tick(uint32(tick)))
				var p Position
				if !given || err != nil || left == 0 {
					return
				}
				if Get(v, g.e, &p) {
					require.InDelta(t, shown, p.X, 0.11, "%d ticks after it left", tick-replication.Tick(left))
					found++
				} else if c.again == never {
					require.Less(t, tick-replication.Tick(left), c.rests+30, "at rest and in view")
				}
			}
			g.run(25)
			require.Positive(t, found)
		})
	}
}

func testKept(t *testing.T, window int) {
	g := newKeptGame(t, window)
	e, other, set, screens := g.e, g.other, g.set, g.screens
	found, gone, again := 0, 0, 0
	g.tick = func() {
		switch {
		case g.now < 10:
		case math.Mod(g.now, 4) < 2: // it is out of view for two to four seconds each time
			set.Remove(e)
		case math.Mod(g.now, 8) > 6:
			set.Add(e)
		}
		g.at(e).X += 0.1
		g.at(other).X += 0.1
		shown, given := screens[uint32(g.server.Tick())+1]
		v, err := g.history.View(g.peer, g.server.Tick()+1)
		if !given || err != nil || g.now < 8 {
			return
		}
		var p Position
		if Get(v, e, &p) {
			if found++; gone > 0 {
				again++
			}
			require.InDelta(t, shown, p.X, 0.02)
		} else {
			gone++
		}
	}
	g.run(40)
	t.Logf("window %d: found %d times, not found %d times", window, found, gone)
	require.Greater(t, found, 60)
	require.Greater(t, gone, 60*64/window/2)
	require.Greater(t, again, 60)
}

// TestViewsOfWhatIsAwayForAMoment: an entity that rests, and that nobody saw for some ticks, is found all the time.
func TestViewsOfWhatIsAwayForAMoment(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), 30, 0)
	g.playing, g.exact = false, false
	e, moves := g.spawn(3), g.spawn(4)
	set := g.server.NewEntitySet()
	set.Add(e)
	set.Add(moves)
	g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}, Keep: true})
	g.attach()
	found := 0
	g.tick = func() {
		switch g.server.Tick() % 100 {
		case 0:
			set.Remove(e)
			if g.rng.IntN(2) == 0 {
				g.at(e).Y++ // which the client gets when it is back
			}
		case 3:
			set.Add(e)
		case 90:
			g.at(e).Y++
		}
		g.at(moves).X += 0.1
		v, err := g.history.View(g.peer, g.server.Tick()+1)
		if err != nil || g.now < 5 {
			return
		}
		var p Position
		if since := g.server.Tick() % 100; since > 30 { // play-out shows it as it is
			require.True(t, Get(v, e, &p), "tick %d", g.server.Tick())
			if found++; since < 90 {
				require.InDelta(t, g.at(e).Y, p.Y, 0.02)
			}
		}
	}
	g.run(60)
	require.Greater(t, found, 1000)
}

// TestWhatLeavesBeforeTheFirstAck: an entity is sent with the first states of a session, and is out of view before any of
// them can have been acknowledged. It is not found after that, however long the session lasts.
func TestWhatLeavesBeforeTheFirstAck(t *testing.T) {
	for _, keep := range []bool{false, true} {
		g := newGame(t, replicationtest.Seed(t), 30, 0)
		g.playing, g.exact = false, false
		e, other := g.spawn(3), g.spawn(4)
		set := g.server.NewEntitySet()
		set.Add(other)
		g.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{set}, Keep: keep})
		g.attach()
		g.server.OnConnect(func(*replication.Peer) { set.Add(e) })
		left, views := uint32(0), 0
		g.tick = func() {
			switch {
			case left == 0 && g.peer.Stats().Packets == 2:
				require.Zero(t, g.peer.Stats().Acked)
				set.Remove(e)
				left = uint32(g.server.Tick() + 1)
			case left > 0:
				g.at(e).X += 0.1
			}
			g.at(other).X += 0.1
			if v, err := g.history.View(g.peer, g.server.Tick()+1); err == nil && left > 0 && g.server.Tick() > replication.Tick(left)+replication.Tick(100) {
				var p Position
				require.False(t, Get(v, e, &p), "keep %v, tick %d", keep, g.server.Tick())
				views++
			}
		}
		g.run(10)
		require.Positive(t, left)
		require.Greater(t, views, 100)
	}
}
