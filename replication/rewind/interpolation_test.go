package rewind

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/mlange-42/arche/ecs"
)

// Torso moves in all ways that fields have.
type Torso struct {
	Yaw    float32 `repl:"angle,bits=10,period=360"`
	Heat   uint8   `repl:"linear"`
	Clock  uint16  `repl:"range=0:999,wrap"`
	HP     int16   `repl:"range=0:100"`
	Speed  float64
	Facing [4]float32 `repl:"quat,bits=9"`
	Tilt   float32    `repl:"range=-1:1,step=0.01,hold"`
	Name   string     `repl:"max=4"`
}

// Jumps counts teleports, Bag is what only the owner sees, and Swaps counts its discontinuities.
type (
	Jumps struct {
		N uint8 `repl:"cut"`
	}
	Bag struct {
		Gold float32 `repl:"range=0:1000,step=0.1"`
	}
	Swaps struct {
		N uint8 `repl:"cut"`
	}
)

// Ride moves along curves, with Gait as its velocity, and Badge is shown newest.
type (
	Ride  struct{ Along, Aside float32 }
	Gait  struct{ Along, Aside float32 }
	Badge struct {
		N float32 `repl:"range=0:100000,step=1"`
	}
)

// A tally counts what was compared of a component.
type tally struct{ all, differ, lost, early int }

func (c *tally) add(shown, found, equal bool) {
	if !shown && !found {
		return
	}
	c.all++
	switch {
	case !found:
		c.lost++
	case !shown:
		c.early++ // the client has removed it, though the time that it shows is before that
	case !equal:
		c.differ++
	}
}

// A look is what is shown of an entity.
type look struct {
	position                   Position
	body                       Torso
	bag                        Bag
	ride                       Ride
	badge                      Badge
	hasPlace, hasTorso, hasBag bool
}

// TestViewsMatchInterpolation compares views with the world of a client that interpolates: fields that move in all ways,
// curves, cuts, snaps, conditions, and components and entities that come and go, with loss.
func TestViewsMatchInterpolation(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for i, loss := range []float64{0, 0.05, 0.2, 0.05} {
		schema := replication.NewSchema()
		replication.Register[Position](schema, replication.Snap(2))
		replication.Register[Torso](schema)
		replication.Register[Gait](schema)
		replication.Register[Ride](schema, replication.Hermite[Gait](1./30))
		replication.Register[Badge](schema, replication.Newest())
		replication.Register[Jumps](schema)
		replication.Register[Bag](schema, replication.OwnerOnly())
		replication.Register[Swaps](schema, replication.OwnerOnly())
		replication.RegisterInput[Shot](schema)
		g := newGameOf(t, replicationtest.Seed(t), 30, loss, schema)
		g.playing = false
		if i == 3 {
			g.peer.SetSendInterval(3)
		}
		g.attach()
		rides, gaits, badges := ecs.ComponentID[Ride](g.world), ecs.ComponentID[Gait](g.world), ecs.ComponentID[Badge](g.world)
		ownRides, ownBadges := ecs.ComponentID[Ride](g.mirror), ecs.ComponentID[Badge](g.mirror)
		ids := struct{ body, jumps, bag, swaps ecs.ID }{
			ecs.ComponentID[Torso](g.world), ecs.ComponentID[Jumps](g.world), ecs.ComponentID[Bag](g.world), ecs.ComponentID[Swaps](g.world),
		}
		at := struct{ position, body, bag ecs.ID }{
			ecs.ComponentID[Position](g.mirror), ecs.ComponentID[Torso](g.mirror), ecs.ComponentID[Bag](g.mirror),
		}
		var all []ecs.Entity
		spawn := func() ecs.Entity {
			e := g.spawn(g.rng.Float32() * 100)
			g.world.Add(e, ids.body, ids.jumps, ids.bag, ids.swaps, rides, gaits, badges)
			if g.rng.IntN(2) == 0 {
				g.server.SetOwner(e, g.peer)
			}
			return e
		}
		for range 30 {
			all = append(all, spawn())
		}
		screens := map[uint32]map[ecs.Entity]look{}
		g.input = func(tick uint32) {
			if replication.SetInput(g.client, replication.Tick(tick), Shot{}) != nil {
				return
			}
			screens[tick] = map[ecs.Entity]look{}
			for _, e := range all {
				m, ok := g.mirrored(e)
				if !ok {
					continue
				}
				var l look
				if p := (*Position)(g.mirror.Get(m, at.position)); p != nil {
					l.position, l.hasPlace = *p, true
				}
				if p := (*Torso)(g.mirror.Get(m, at.body)); p != nil {
					l.body, l.hasTorso = *p, true
				}
				if p := (*Bag)(g.mirror.Get(m, at.bag)); p != nil {
					l.bag, l.hasBag = *p, true
				}
				l.ride, l.badge = *(*Ride)(g.mirror.Get(m, ownRides)), *(*Badge)(g.mirror.Get(m, ownBadges))
				screens[tick][e] = l
			}
		}
		change := func(i int, e ecs.Entity) {
			switch g.rng.IntN(300) {
			case 0:
				g.world.RemoveEntity(e)
				all[i] = spawn()
				return
			case 1:
				if g.world.Has(e, ids.body) {
					g.world.Remove(e, ids.body)
				} else {
					g.world.Add(e, ids.body)
				}
			case 2, 3, 4:
				g.at(e).X = g.rng.Float32() * 100
				(*Jumps)(g.world.Get(e, ids.jumps)).N++
			case 5:
				g.at(e).Y = g.rng.Float32() * 100
			case 6, 7, 8:
				(*Bag)(g.world.Get(e, ids.bag)).Gold = g.rng.Float32() * 100
				(*Swaps)(g.world.Get(e, ids.swaps)).N++
			case 9:
				g.server.SetOwner(e, nil)
			case 10:
				g.server.SetOwner(e, g.peer)
			}
			if i%4 == 0 || i%4 == 1 && (int(g.server.Tick())/20+i)%3 != 0 { // some rest for a while
				g.at(e).X += g.rng.Float32()
				(*Bag)(g.world.Get(e, ids.bag)).Gold += g.rng.Float32()
				r, w := (*Ride)(g.world.Get(e, rides)), (*Gait)(g.world.Get(e, gaits))
				r.Along, r.Aside = r.Along+w.Along/30, r.Aside+w.Aside/30
				w.Along, w.Aside = w.Along+g.rng.Float32()-0.5, w.Aside+g.rng.Float32()-0.5
				(*Badge)(g.world.Get(e, badges)).N++
			}
			if b := (*Torso)(g.world.Get(e, ids.body)); b != nil && i%3 == 0 {
				b.Yaw += g.rng.Float32() * 90
				b.Heat += uint8(g.rng.IntN(30))
				b.Clock = (b.Clock + uint16(g.rng.IntN(300))) % 1000
				b.HP, b.Speed, b.Tilt = int16(g.rng.IntN(100)), g.rng.NormFloat64(), g.rng.Float32()
				for k := range b.Facing {
					b.Facing[k] = g.rng.Float32() - 0.5
				}
				b.Name = string(rune('a' + g.rng.IntN(26)))
			}
		}
		g.tick = func() {
			for i, e := range all {
				change(i, e)
			}
		}
		var tallies [5]tally
		n := g.eachView(60, func(v View) {
			if _, exact := replication.Input[Shot](g.peer, g.server.Tick()+1); !exact {
				return
			}
			for e, l := range screens[uint32(g.server.Tick())+1] {
				var p Position
				var b Torso
				var x Bag
				if _, alive := g.history.slotOf(e, 0); !alive {
					continue
				}
				ok := Get(v, e, &p)
				tallies[0].add(l.hasPlace, ok, p == l.position)
				ok = Get(v, e, &b)
				tallies[1].add(l.hasTorso, ok, b == l.body)
				ok = Get(v, e, &x)
				tallies[2].add(l.hasBag, ok, x == l.bag)
				var r Ride
				var n Badge
				ok = Get(v, e, &r)
				tallies[3].add(true, ok, r == l.ride)
				ok = Get(v, e, &n)
				off := math.Abs(float64(n.N - l.badge.N)) // it is not known exactly which state was the newest one
				tallies[4].add(true, ok, off <= 2*float64(g.client.Stats().SendInterval))
			}
		})
		require.Greater(t, n, 1200)
		for k, what := range []string{"position", "torso", "bag", "ride", "badge"} {
			c := &tallies[k]
			t.Logf("%2.0f %% loss, %-8s: %d shown or found, %d differ, %d not found, %d removed early", 100*loss, what, c.all, c.differ, c.lost, c.early)
			require.Greater(t, c.all, 20_000)
			most := 0.3 + 4*loss
			if what == "bag" { // its owner changes, too
				most = 0.3 + 12*loss
			}
			require.LessOrEqual(t, percent(c.differ+c.lost, c.all), most, what)
			require.Less(t, percent(c.early, c.all), 10., what)
		}
	}
}

// attach makes the client interpolate.
func (g *game) attach() *interpolation.Interpolation {
	play := interpolation.Attach(g.client)
	g.frame = func() {}
	return play
}
