package rewind

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
)

// view returns a view of the peer's input for the next tick, as of which the game asks.
func (g *game) view() (View, error) { return g.history.View(g.peer, g.server.Tick()+1) }

// eachView calls fn in every tick of the server for which there is a view, before Replicate.
func (g *game) eachView(seconds float64, fn func(v View)) (n int) {
	was := g.tick
	g.tick = func() {
		if v, err := g.view(); err == nil {
			fn(v)
			n++
		}
		if was != nil {
			was()
		}
	}
	g.run(seconds)
	g.tick = was
	return n
}

// TestViewsMatchTheScreen compares every entity with the client's screen in every frame that an input was given in:
// with loss and jitter, some entities resting, some moving, and some that come and go, also while ticks wrap.
func TestViewsMatchTheScreen(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for i, loss := range []float64{0, 0.05, 0.2, 0, 0.05} {
		rate := 30.0
		if i > 2 {
			rate = 60
		}
		first := [...]uint32{1, 1<<32 - 600, 1<<31 - 600, 1<<31 - 600, 1<<32 - 600}[i]
		g := newGame(t, replicationtest.Seed(t), rate, loss, replicationtest.FirstTick(first))
		g.startAt(first)
		if g.delay, g.parts = 0.2+loss/2, 5; i > 2 {
			g.peer.SetSendInterval(3)
		}
		var all []ecs.Entity
		for i := range 40 {
			all = append(all, g.spawn(float32(i)))
		}
		screens := map[uint32]map[ecs.Entity]Position{} // by tick of the input
		g.input = func(tick uint32) {
			if replication.SetInput(g.client, replication.Tick(tick), Shot{}) != nil {
				return
			}
			screens[tick] = map[ecs.Entity]Position{}
			for _, e := range all {
				if m, ok := g.mirrored(e); ok {
					if p, ok := g.screen(m); ok {
						screens[tick][e] = p
					}
				}
			}
		}
		g.tick = func() {
			for i, e := range all {
				switch {
				case g.rng.IntN(200) == 0: // another one instead, probably in the same slot
					g.world.RemoveEntity(e)
					all[i] = g.spawn(float32(i))
				case i%4 == 0, i%4 == 1 && (int(g.server.Tick())/20+i)%3 != 0: // some rest for a while
					g.at(e).X += g.rng.Float32()
				}
			}
		}
		compared, right, shown := 0, 0, 0
		n := g.eachView(60, func(v View) {
			if _, exact := replication.Input[Shot](g.peer, g.server.Tick()+1); !exact {
				return
			}
			for e, seen := range screens[uint32(g.server.Tick())+1] {
				var p Position
				if _, alive := g.history.slotOf(e, 0); !alive {
					require.False(t, Get(v, e, &p), "it is gone")
					continue
				}
				compared++
				if Get(v, e, &p) {
					shown++
					if p == seen {
						right++
					}
				}
			}
		})
		require.Greater(t, n, 1200)
		t.Logf("%.0f %% loss: %d compared, %.3f %% found, %.3f %% equal", 100*loss, compared, percent(shown, compared), percent(right, compared))
		require.Greater(t, percent(shown, compared), 99.7)
		require.Greater(t, percent(right, compared), 99.5)
		if loss == 0 {
			require.Greater(t, percent(shown, compared), 99.8)
			require.Greater(t, percent(right, compared), 99.8)
		}
	}
}

// TestTrap17_TicksAreNotOffByOne: a view at the very tick of a state is that state, not the one before or after.
func TestTrap17_TicksAreNotOffByOne(t *testing.T) {
	g := newGame(t, 1, 60, 0)
	g.parts = 0 // stamps are ticks
	e := g.spawn(0)
	g.tick = func() { g.at(e).X = float32(g.server.Tick()+1) / 100 } // what the tick about to be made has
	n := g.eachView(10, func(v View) {
		tick, fraction := uint32(v.Time().Tick), v.Time().Fraction
		require.Zero(t, fraction)
		var p Position
		if tick > 60 {
			require.True(t, Get(v, e, &p))
			require.InDelta(t, float32(tick)/100, p.X, 1e-3)
		}
	})
	require.Greater(t, n, 400)
}

// TestTrap17_TargetDespawnedSince: a target that is gone is not found, nor is the one that has its slot now.
func TestTrap17_TargetDespawnedSince(t *testing.T) {
	g := newGame(t, 1, 20, 0)
	target := g.spawn(5)
	g.run(3)
	slot, _ := g.history.slotOf(target, 0)
	g.world.RemoveEntity(target)
	var newcomer ecs.Entity
	ticks := 0
	g.eachView(0.4, func(v View) {
		var p Position
		require.False(t, Get(v, target, &p) && ticks > 0)
		if ticks++; ticks == 2 {
			newcomer = g.spawn(100)
		}
		if ticks > 3 {
			at, ok := g.history.slotOf(newcomer, 0)
			require.True(t, ok)
			require.Equal(t, slot, at, "the test needs the same slot")
			if Get(v, newcomer, &p) {
				require.InDelta(t, 100, p.X, 0.01, "never the target's place")
			}
		}
	})
	require.Greater(t, ticks, 4)
	n := g.eachView(1, func(v View) {
		var p Position
		if require.True(t, Get(v, newcomer, &p)); g.now > 4.2 {
			require.InDelta(t, 100, p.X, 0.01)
		}
	})
	require.Greater(t, n, 10)
}

// TestTrap17_ShooterDoesNotMeetHimself: what the peer owns is not among what is near.
func TestTrap17_ShooterDoesNotMeetHimself(t *testing.T) {
	g := newGame(t, 1, 20, 0)
	shooter, target, far := g.spawn(0), g.spawn(1), g.spawn(50)
	g.server.SetOwner(shooter, g.peer)
	n := g.eachView(5, func(v View) {
		var near []ecs.Entity
		g.history.Near(v, [3]float64{-2, -2}, [3]float64{2, 2}, func(e ecs.Entity) { near = append(near, e) })
		if g.now > 2 {
			require.Equal(t, []ecs.Entity{target}, near)
		}
		require.NotContains(t, near, far)
	})
	require.Greater(t, n, 50)
}

// TestTrap17_ProjectilesNeedSuccessiveTicks: a projectile moves on through what its shooter saw, up to the present.
func TestTrap17_ProjectilesNeedSuccessiveTicks(t *testing.T) {
	g := newGame(t, 1, 20, 0)
	g.parts = 1
	e := g.spawn(0)
	g.tick = func() { g.at(e).X = float32(g.server.Tick()+1) / 10 }
	n := g.eachView(8, func(v View) {
		if g.now < 3 {
			return
		}
		start, part := uint32(v.Time().Tick), v.Time().Fraction
		steps := 0
		for ; ; steps++ {
			later, ok := v.Later(steps)
			if !ok {
				break
			}
			var p Position
			require.True(t, Get(later, e, &p))
			tick := uint32(later.Time().Tick)
			require.Equal(t, start+uint32(steps), tick)
			want := min((float32(tick)+part)/10, float32(g.server.Tick())/10)
			require.InDelta(t, want, p.X, 0.11, "in the last ticks, before the states have been acknowledged, by one at most")
		}
		require.Equal(t, int(g.server.Tick()-replication.Tick(start))+1, steps)
	})
	require.Greater(t, n, 80)
}

// TestNearFindsAllThatGetFinds compares the broad phase with asking for every entity.
func TestNearFindsAllThatGetFinds(t *testing.T) {
	g := newGame(t, replicationtest.Seed(t), 20, 0.1)
	var all []ecs.Entity
	for range 100 {
		all = append(all, g.spawn(0))
	}
	g.tick = func() {
		for _, e := range all {
			p := g.at(e)
			p.X, p.Y = p.X+2*g.rng.Float32()-1, p.Y+2*g.rng.Float32()-1
		}
	}
	found, extra := 0, 0
	g.eachView(20, func(v View) {
		x, y := 6*g.rng.Float64()-3, 6*g.rng.Float64()-3
		low, high := [3]float64{x - 1, y - 1, 1}, [3]float64{x + 1, y + 1, -1}
		near := map[ecs.Entity]bool{}
		g.history.Near(v, low, high, func(e ecs.Entity) { near[e] = true })
		for _, e := range all {
			var p Position
			ok := Get(v, e, &p)
			inside := ok && math.Abs(float64(p.X)-x) <= 1 && math.Abs(float64(p.Y)-y) <= 1
			if inside {
				require.True(t, near[e])
				found++
			} else if near[e] {
				extra++
			}
		}
	})
	require.Greater(t, found, 200)
	require.Less(t, extra, 2*found, "it is a narrow box")
}

// TestCutsAndSnapsAreNotBlended: as package interpolation does.
func TestCutsAndSnapsAreNotBlended(t *testing.T) {
	type Teleports struct{ N uint8 }
	for _, by := range []string{"cut", "Snap"} {
		var schema *replication.Schema
		if by == "cut" {
			schema = newSchema()
			replication.Register[Teleports](schema, replication.Field("N", "cut"))
		} else {
			schema = newSchema(replication.Snap(1))
			replication.Register[Teleports](schema)
		}
		g := newGameOf(t, 1, 20, 0, schema)
		e := g.spawn(0)
		n := ecs.ComponentID[Teleports](g.world)
		g.world.Add(e, n)
		g.tick = func() {
			p := g.at(e)
			if p.X += 0.3; g.server.Tick()%16 == 0 {
				p.X = -p.X // by more than 2, mostly
				(*Teleports)(g.world.Get(e, n)).N++
			}
		}
		between := 0
		g.eachView(20, func(v View) {
			var p Position
			if !Get(v, e, &p) || g.now < 3 {
				return
			}
			a, b := g.history.kept[0].past, v.time
			slot, _ := g.history.slotOf(e, 0)
			first, _ := a.At(slot, b.Tick)
			second, _ := a.At(slot, b.Tick+1)
			if b.Part > 0 && math.Abs(float64(int32(first[0]-second[0]))) > 100 { // codes of 0.01
				between++
				var want Position
				g.kernel.Blend(pointer(&want), first, nil, 0)
				require.Equal(t, want, p, by)
			}
		})
		require.Greater(t, between, 5)
	}
}

// TestComponentsThatAreNotReplicated are those of the server in the tick of the view.
func TestComponentsThatAreNotReplicated(t *testing.T) {
	type Pose struct{ Tick uint32 }
	g := newGame(t, 1, 60, 0)
	Keep[Pose](g.history)
	shown, hidden := g.spawn(0), g.world.NewEntity()
	pose := ecs.ComponentID[Pose](g.world)
	g.world.Add(shown, pose)
	g.world.Add(hidden, pose)
	g.tick = func() {
		for _, e := range []ecs.Entity{shown, hidden} {
			if g.world.Alive(e) && g.world.Has(e, pose) {
				(*Pose)(g.world.Get(e, pose)).Tick = uint32(g.server.Tick() + 1)
			}
		}
		if g.server.Tick() == 400 {
			g.world.Remove(shown, pose)
		}
		if g.server.Tick() == 500 {
			g.world.RemoveEntity(hidden)
		}
	}
	n := g.eachView(10, func(v View) {
		tick := uint32(v.Time().Tick)
		var p Pose
		if ok := Get(v, shown, &p); tick > 60 {
			require.Equal(t, tick <= 400, ok, "%d", tick)
			require.True(t, !ok || p.Tick == tick)
		}
		p.Tick = 0
		if ok := Get(v, hidden, &p); tick > 60 {
			require.Equal(t, g.server.Tick() <= 500, ok)
			require.True(t, !ok || p.Tick == tick)
		}
	})
	require.Greater(t, n, 400)
}

// TestTrap20_SubEntitiesLaterThanTheirEntity: components under a condition have states of their own, which come when the
// condition is met and not when the entity comes.
func TestTrap20_SubEntitiesLaterThanTheirEntity(t *testing.T) {
	type Aim struct {
		Yaw float32 `repl:"range=-1000:1000,step=0.01"`
	}
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.Register[Aim](schema, replication.OwnerOnly())
	replication.RegisterInput[Shot](schema)
	g := newGameOf(t, 1, 20, 0, schema)
	e := g.spawn(0)
	aim := ecs.ComponentID[Aim](g.world)
	g.world.Add(e, aim)
	g.tick = func() {
		g.at(e).X += 0.1
		if tick := g.server.Tick(); tick == 100 {
			g.server.SetOwner(e, g.peer)
		} else if tick > 100 {
			(*Aim)(g.world.Get(e, aim)).Yaw = float32(tick+1) / 10
		}
	}
	early, later := 0, 0
	g.eachView(12, func(v View) {
		var p Position
		var a Aim
		tick := uint32(v.Time().Tick)
		if !Get(v, e, &p) || tick < 40 {
			return
		}
		switch ok := Get(v, e, &a); {
		case g.server.Tick() <= 100:
			require.False(t, ok, "the peer did not own it")
			early++
		case tick > 102:
			require.True(t, ok)
			require.InDelta(t, (float64(v.time.Tick)+float64(v.time.Part)/blend.Parts)/10, a.Yaw, 0.02)
			later++
		}
	})
	require.Greater(t, early, 30)
	require.Greater(t, later, 60)
}

// TestTrap16_RowsMoveInTheWorld: entities change their rows and archetypes, and handles are used again; a view goes by
// the entity.
func TestTrap16_RowsMoveInTheWorld(t *testing.T) {
	type Tag struct{ N int32 }
	g := newGame(t, replicationtest.Seed(t), 20, 0)
	tag := ecs.ComponentID[Tag](g.world)
	var all []ecs.Entity
	born := map[ecs.Entity]float32{}
	spawn := func() ecs.Entity {
		x := float32(len(born))
		e := g.spawn(x)
		born[e] = x
		return e
	}
	for range 30 {
		all = append(all, spawn())
	}
	g.tick = func() {
		for i := range all {
			switch g.rng.IntN(40) {
			case 0:
				g.world.RemoveEntity(all[i])
				all[i] = spawn()
			case 1:
				g.world.Exchange(all[i], exchange(g.world.Has(all[i], tag), tag, false), exchange(g.world.Has(all[i], tag), tag, true))
			}
		}
	}
	found := 0
	g.eachView(20, func(v View) {
		for _, e := range all {
			var p Position
			if Get(v, e, &p) {
				require.InDelta(t, born[e], p.X, 0.01)
				found++
			}
		}
	})
	require.Greater(t, found, 8000)
}

func exchange(has bool, id ecs.ID, remove bool) []ecs.ID {
	if has == remove {
		return []ecs.ID{id}
	}
	return nil
}
