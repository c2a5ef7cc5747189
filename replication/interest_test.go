package replication

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// tOnStage is in no schema: it moves entities between Arche's tables, and filters ask
// for it.
type tOnStage struct{}

// A stage is a world in which every entity says itself which one it is and since when it
// is as it is, and in which it is known who was to be seen when.
type stage struct {
	world    *ecs.World
	server   *Server
	schema   *Schema
	rng      *rand.Rand
	actors   []*actor         // that live
	known    map[NetID]*actor // all that ever had a slot
	entities map[ecs.Entity]*actor
	grid     *Grid
	set      *EntitySet
	ends     []*end
	last     []map[NetID]uint32 // by end: tick shown before

	position, exact, onStage, marker ecs.ID
}

type actor struct {
	serial  int32
	entity  ecs.Entity
	visible bool
	flips   []uint32 // ticks from which on it was visible, hidden, visible ...
	acts    []uint32 // ticks in which it changed, rising
	ended   uint32   // tick from which on it was gone, 0 while it lives
}

func newStage(t testing.TB, actors int) *stage { return newStageOf(seedOf(t), actors) }

func newStageOf(seed uint64, actors int) *stage {
	w := ecs.NewWorld()
	g := &stage{world: &w, schema: testSchema(), rng: rand.New(rand.NewPCG(seed, 5)), known: map[NetID]*actor{}, entities: map[ecs.Entity]*actor{}}
	g.server = NewServer(g.world, g.schema, WithSeed(seed), WithFirstTick(1))
	g.position, g.exact = ecs.ComponentID[tPosition](g.world), ecs.ComponentID[tExact](g.world)
	g.onStage, g.marker = ecs.ComponentID[tOnStage](g.world), ReplicatedID(g.world)
	g.grid = g.server.NewGrid(10, "tPosition.X", "tPosition.Y")
	g.set = g.server.NewEntitySet()
	for range actors {
		g.enter(g.rng)
	}
	return g
}

// interests are the ways to say that what is on stage is visible.
func (g *stage) interests(keep bool) []namedInterest {
	onStage := ecs.All(g.onStage)
	return []namedInterest{
		{"filter", Interest{Filter: &onStage, Keep: keep}},
		{"grid", Interest{Grid: g.grid, Keep: keep}},
		{"set", Interest{Sets: []*EntitySet{g.set}, Keep: keep}},
		{"visible", Interest{Visible: func(e ecs.Entity) bool { return g.entities[e].visible }, Keep: keep}},
	}
}

type namedInterest struct {
	name string
	Interest
}

// connect adds an end with an interest.
func (g *stage) connect(i Interest, cfg netsim.Config) *end {
	n := uint64(len(g.ends))
	e := connect(g.server, g.rng.Uint64(), cfg, WithNonce(n+1))
	e.peer.SetInterest(i)
	e.peer.LookFrom(20, 0, 0)
	g.ends = append(g.ends, e)
	return e
}

// enter adds an actor, who is behind the stage.
func (g *stage) enter(rng *rand.Rand) *actor {
	a := &actor{serial: int32(len(g.entities) + 1)}
	a.entity = g.world.NewEntity(g.position, g.exact, g.marker)
	g.entities[a.entity] = a
	(*tPosition)(g.world.Get(a.entity, g.position)).X = 50 + 40*rng.Float32()
	g.actors = append(g.actors, a)
	g.act(a)
	return a
}

// act makes the actor's state say in which tick it is from.
func (g *stage) act(a *actor) {
	next := g.server.Tick() + 1
	v := (*tExact)(g.world.Get(a.entity, g.exact))
	v.A, v.B = float64(next), a.serial
	if n := len(a.acts); n == 0 || a.acts[n-1] != next {
		a.acts = append(a.acts, next)
	}
}

// flip brings the actor on stage, or off it.
func (g *stage) flip(a *actor) {
	a.visible = !a.visible
	a.flips = append(a.flips, g.server.Tick()+1)
	p := (*tPosition)(g.world.Get(a.entity, g.position))
	if a.visible {
		p.X = 10
		g.world.Add(a.entity, g.onStage)
		g.set.Add(a.entity)
	} else {
		p.X = -50
		g.world.Remove(a.entity, g.onStage)
		g.set.Remove(a.entity)
	}
}

// end removes an actor for ever.
func (g *stage) end(i int) {
	a := g.actors[i]
	g.world.RemoveEntity(a.entity)
	a.ended = g.server.Tick() + 1
	g.actors[i] = g.actors[len(g.actors)-1]
	g.actors = g.actors[:len(g.actors)-1]
}

// tick plays a tick and checks what all ends show.
func (g *stage) tick(t testing.TB) {
	t.Helper()
	g.server.Replicate()
	for _, a := range g.actors {
		if id, ok := g.server.NetID(a.entity); ok {
			g.known[id] = a
		}
	}
	for i, e := range g.ends {
		e.step(t)
		g.check(t, i, e)
	}
}

// check sees that everything an end shows was so, and could be seen, at the tick that it
// shows, and nothing goes back.
func (g *stage) check(t testing.TB, i int, e *end) {
	exact := ecs.ComponentID[tExact](e.world)
	e.client.Each(func(id NetID, entity ecs.Entity, tick uint32) {
		a := g.known[id]
		if last, ok := e.last[id]; ok && last == tick {
			return
		} else if ok {
			require.Greater(t, tick, last, "end %d: %v went back", i, id)
		}
		e.last[id] = tick
		v := (*tExact)(e.world.Get(entity, exact))
		if v.B != a.serial || v.A != float64(a.actBefore(tick)) || !a.visibleAt(tick) || a.ended != 0 && tick >= a.ended {
			require.FailNow(t, "wrong state", "end %d: %v shows actor %d of tick %v at tick %d, visible %v; is %d of tick %d, ended %d",
				i, id, v.B, v.A, tick, a.visibleAt(tick), a.serial, a.actBefore(tick), a.ended)
		}
	})
}

func (a *actor) actBefore(tick uint32) (at uint32) {
	for i := len(a.acts) - 1; i >= 0; i-- {
		if a.acts[i] <= tick {
			return a.acts[i]
		}
	}
	return 0
}

func (a *actor) visibleAt(tick uint32) bool {
	n := len(a.flips)
	for n > 0 && a.flips[n-1] > tick {
		n--
	}
	return n%2 == 1
}

// requireView sees that an end shows what is visible now, as it is now; and, if it keeps,
// besides that only what lives.
func (g *stage) requireView(t testing.TB, e *end, keep bool, msg string) (kept int) {
	t.Helper()
	exact := ecs.ComponentID[tExact](e.world)
	shown := 0
	e.client.Each(func(id NetID, entity ecs.Entity, _ uint32) {
		a := g.known[id]
		require.Zero(t, a.ended, "%s: %v has ended", msg, id)
		if !a.visible {
			require.True(t, keep, "%s: %v is not visible", msg, id)
			kept++
			return
		}
		shown++
		require.EqualValues(t, a.acts[len(a.acts)-1], (*tExact)(e.world.Get(entity, exact)).A, "%s: %v is outdated", msg, id)
	})
	want := 0
	for _, a := range g.actors {
		if a.visible {
			want++
		}
	}
	require.Equal(t, want, shown, "%s: %+v", msg, e.peer.Stats())
	return kept
}

// TestInterestFlips has a thousand entities come into view and go, hundreds in every
// tick, while they change and end and their slots go to others.
func TestInterestFlips(t *testing.T) {
	flips := 50_000
	if testing.Short() {
		flips = 10_000
	}
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep=%v", keep), func(t *testing.T) {
			g := newStage(t, 1000)
			bad := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.25, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 6}
			interests := g.interests(keep)
			for _, i := range interests {
				g.connect(i.Interest, bad)
			}
			for range 20 {
				g.tick(t)
			}
			for n := 0; n < flips; {
				for range g.rng.IntN(400) {
					g.flip(g.actors[g.rng.IntN(len(g.actors))])
					n++
				}
				for range g.rng.IntN(100) {
					g.act(g.actors[g.rng.IntN(len(g.actors))])
				}
				for range g.rng.IntN(8) {
					g.end(g.rng.IntN(len(g.actors)))
				}
				for len(g.actors) < 1000 && g.rng.IntN(8) > 0 {
					g.enter(g.rng)
				}
				g.tick(t)
			}
			calm := func() {
				for _, e := range g.ends {
					e.link.SetConfig(netsim.Config{Latency: 2})
				}
				for range 60 {
					g.tick(t)
				}
			}
			calm()
			for i, e := range g.ends {
				kept := g.requireView(t, e, keep, interests[i].name)
				require.Equal(t, keep, kept > 100, interests[i].name)
			}
			for _, a := range g.actors {
				if !a.visible {
					g.flip(a)
				}
			}
			calm()
			for i := range g.actors { // what was kept follows again
				if i%2 == 0 {
					g.act(g.actors[i])
				}
			}
			calm()
			for i, e := range g.ends {
				g.requireView(t, e, keep, interests[i].name+", all visible")
			}
			for len(g.actors) > 10 {
				g.end(0)
			}
			calm()
			for i, e := range g.ends {
				g.requireView(t, e, keep, interests[i].name+", most ended")
			}
		})
	}
}

// A secret is what the peer must not learn of: it makes what is hidden behave in another
// way.
type secret struct {
	rng *rand.Rand
	g   *stage
	ids []ecs.ID // components to have or not
}

// play does something to an actor that the peer does not see.
func (x *secret) play(a *actor) {
	g, r := x.g, x.rng
	p := (*tPosition)(g.world.Get(a.entity, g.position))
	switch r.IntN(8) {
	case 0, 1:
		p.X, p.Y = -40-50*r.Float32(), 100*r.Float32()
	case 2:
		p.Z = 100 * r.Float32()
		(*tExact)(g.world.Get(a.entity, g.exact)).F = r.Float32()
	case 3:
		if id := x.ids[r.IntN(len(x.ids))]; g.world.Has(a.entity, id) {
			g.world.Remove(a.entity, id)
		} else {
			g.world.Add(a.entity, id)
		}
	case 4:
		if _, ok := g.server.NetID(a.entity); ok {
			g.server.SetPriority(a.entity, 0.1+10*r.Float32())
		}
	}
}

// TestHiddenEntitiesLeaveNoTrace plays the same twice, but for what a peer does not see:
// it gets the same bytes. Hidden are entities that it never saw, in slots of their own and
// in those of others that it saw end, and such that went out of its view; they move, get
// and lose components, weigh much or little, and end earlier or later.
func TestHiddenEntitiesLeaveNoTrace(t *testing.T) {
	seed := seedOf(t)
	for kind, name := range []string{"filter", "grid", "set", "visible"} {
		for _, set := range []struct {
			name             string
			budget, interval int
			keep             bool
		}{
			{name: "all"},
			{name: "keep", keep: true},
			{name: "budget", budget: 6000},
			{name: "tight", budget: 1500},
			{name: "tight keep", budget: 1500, keep: true},
			{name: "interval", interval: 4, budget: 4000, keep: true},
		} {
			if name != "grid" && set.name != "all" && set.name != "tight keep" {
				continue // below that they are all the same
			}
			t.Run(name+"/"+set.name, func(t *testing.T) {
				play := func(variant uint64) (sent [][]byte, g *stage) {
					g = newStageOf(seed, 0)
					i := g.interests(set.keep)[kind].Interest
					peer := g.connect(i, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.15, Reorder: 0.1, ReorderBy: 5}).peer
					g.connect(Interest{}, netsim.Config{Latency: 2, Loss: 0.1}) // sees everything
					peer.SetBudget(set.budget)
					peer.SetSendInterval(max(set.interval, 1))
					peer.SetPriority(func(entities []ecs.Entity, weights []float32) {
						for i, e := range entities {
							require.True(t, g.entities[e].visible)
							weights[i] *= float32(1 + g.entities[e].serial%5)
						}
					})
					send := peer.send
					peer.send = func(p []byte) error {
						sent = append(sent, append([]byte{byte(g.server.Tick()), byte(g.server.Tick() >> 8)}, p...))
						return send(p)
					}
					g.playSecretly(t, variant, set.keep)
					return sent, g
				}
				first, g := play(1)
				second, h := play(2)
				for i := range min(len(first), len(second)) {
					require.True(t, bytes.Equal(first[i], second[i]), "packet %d, tick %d and %d", i,
						int(first[i][0])+int(first[i][1])<<8, int(second[i][0])+int(second[i][1])<<8)
				}
				require.Equal(t, len(first), len(second))
				require.Greater(t, len(first), 20)
				require.NotEqual(t, g.server.Stats().RawBits, h.server.Stats().RawBits, "the secrets differ")
				require.NotZero(t, g.ends[0].peer.Stats().Despawns)
			})
		}
	}
}

// playSecretly plays a piece of which all that is to be seen is the same whatever the
// variant is.
func (g *stage) playSecretly(t testing.TB, variant uint64, keep bool) {
	x := &secret{rng: rand.New(rand.NewPCG(variant, 3)), g: g}
	for _, i := range []int{1, 2, 4, 5} {
		x.ids = append(x.ids, ecs.TypeID(g.world, g.schema.components[i].typ))
	}
	w := g.world
	var seen, hidden []*actor // by turns in the slots
	var left []*actor         // out of view for good
	for i := range 120 {
		a := g.enter(g.rng)
		if i%2 == 0 {
			seen = append(seen, a)
			w.Add(a.entity, x.ids[i/2%2])
		} else {
			hidden = append(hidden, a)
		}
	}
	g.server.Replicate() // gives them their slots
	drop := func(list *[]*actor, i int) {
		a := (*list)[i]
		w.RemoveEntity(a.entity)
		(*list)[i] = (*list)[len(*list)-1]
		*list = (*list)[:len(*list)-1]
	}
	for tick := range 400 {
		for i, a := range seen {
			switch g.rng.IntN(12) {
			case 0, 1, 2:
				p := (*tPosition)(w.Get(a.entity, g.position))
				p.Z += 0.1
				p.Y = 3 * g.rng.Float32()
				g.act(a)
			case 3:
				if g.rng.IntN(3) == 0 {
					g.flip(a)
				}
			case 4:
				id := x.ids[g.rng.IntN(2)]
				if w.Has(a.entity, id) {
					w.Remove(a.entity, id)
				} else if i%8 == 0 {
					w.Add(a.entity, id)
				}
			}
		}
		for _, a := range hidden {
			x.play(a)
		}
		for _, a := range left {
			x.play(a)
		}
		if tick > 100 && !keep && x.rng.IntN(20) == 0 && len(left) > 0 {
			drop(&left, x.rng.IntN(len(left))) // with Keep, the peer learns of that
		}
		if i := g.rng.IntN(len(seen)); tick%10 == 5 && len(seen) > 12 {
			a := seen[i]
			switch {
			case tick%20 == 5 && a.visible: // goes out of view for good
				g.flip(a)
				left = append(left, a)
				seen = append(seen[:i], seen[i+1:]...)
			default: // ends, and what is hidden may get its slot
				drop(&seen, i)
			}
		}
		if tick == 100 { // from now on only what is hidden takes slots
			x.ids = append(x.ids, ecs.ComponentID[tVelvet](w))
		}
		if tick > 100 && x.rng.IntN(4) == 0 && len(hidden) > 20 {
			drop(&hidden, x.rng.IntN(len(hidden)))
		}
		if tick > 100 && x.rng.IntN(5) == 0 {
			hidden = append(hidden, g.enter(x.rng))
		}
		g.server.Replicate()
		for _, e := range g.ends {
			e.step(t)
		}
	}
}

// tVelvet is in no schema.
type tVelvet struct{}

// requireSeen compares what the client has with what it should have.
func (x *wire) requireSeen(want ...ecs.Entity) {
	x.t.Helper()
	var got, expected []NetID
	x.client.Each(func(id NetID, _ ecs.Entity, _ uint32) { got = append(got, id) })
	for _, e := range want {
		id, ok := x.server.NetID(e)
		require.True(x.t, ok)
		expected = append(expected, id)
		m, ok := x.client.Entity(id)
		require.True(x.t, ok, "%v is not mirrored", id)
		require.Equal(x.t, stateOf(x.server.schema, x.world, e), stateOf(x.server.schema, x.mirror, m))
	}
	require.ElementsMatch(x.t, expected, got)
}

func TestEntitySets(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, marker := ecs.ComponentID[tPosition](x.world), ReplicatedID(x.world)
	a, b, c := x.spawn(position), x.spawn(position), x.spawn(position)
	one, two := x.server.NewEntitySet(), x.server.NewEntitySet()
	x.peer.SetInterest(Interest{Sets: []*EntitySet{one, two}})
	twin := x.server.Connect(func([]byte) error { return nil })
	twin.SetInterest(Interest{Sets: []*EntitySet{two}}) // shares a set, never connects
	x.rounds(4)
	x.requireSeen()
	one.Add(a)
	one.Add(a)
	two.Add(a)
	two.Add(b)
	require.Equal(t, 1, one.Len())
	x.rounds(4)
	x.requireSeen(a, b)
	one.Remove(a)
	one.Remove(c)
	x.rounds(4)
	x.requireSeen(a, b) // still in the other
	two.Remove(b)
	two.Add(b) // within a tick: nothing happened
	despawns := x.client.Stats().Despawns
	x.rounds(4)
	x.requireSeen(a, b)
	require.Equal(t, despawns, x.client.Stats().Despawns)
	two.Remove(a)
	x.rounds(4)
	x.requireSeen(b)

	t.Run("an entity gets its marker later", func(t *testing.T) {
		e := x.world.NewEntity(position)
		one.Add(e)
		x.rounds(4)
		x.requireSeen(b)
		x.world.Add(e, marker)
		x.rounds(4)
		x.requireSeen(b, e)
		x.world.Remove(e, marker)
		x.rounds(4)
		x.requireSeen(b)
		require.Equal(t, 1, one.Len())
		x.world.Add(e, marker) // gets another slot or not
		x.rounds(4)
		x.requireSeen(b, e)
		one.Remove(e)
		require.Zero(t, one.Len())
	})
	t.Run("entities end", func(t *testing.T) {
		e, bare := x.spawn(position), x.world.NewEntity(position)
		one.Add(e)
		one.Add(bare)
		x.rounds(4)
		x.requireSeen(b, e)
		slot := x.slotOf(e)
		x.world.RemoveEntity(e)
		x.world.RemoveEntity(bare)
		again, anew := x.spawn(position), x.world.NewEntity(position) // recycle Arche's IDs
		require.True(t, again.ID() == bare.ID() || again.ID() == e.ID())
		x.rounds(4)
		require.Zero(t, one.Len())
		x.requireSeen(b)
		next := x.spawn(position)
		x.rounds(4)
		require.Equal(t, slot, x.slotOf(next), "of the slot that was a member's")
		x.requireSeen(b)
		one.Add(e) // dead
		x.rounds(2)
		require.Zero(t, one.Len())
		x.world.RemoveEntity(anew)
	})
	t.Run("the world is reset", func(t *testing.T) {
		one.Add(x.world.NewEntity(position)) // has no slot
		x.world.Reset()
		require.NotPanics(t, func() { x.rounds(4) })
		x.requireSeen()
		require.Zero(t, one.Len()+two.Len())
		e := x.spawn(position)
		x.rounds(4)
		x.requireSeen()
		two.Add(e)
		x.rounds(4)
		x.requireSeen(e)
	})
}

func TestInterestByFilterFollowsAllComponents(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	onStage, velvet := ecs.ComponentID[tOnStage](x.world), ecs.ComponentID[tVelvet](x.world)
	a, b, c := x.spawn(position), x.spawn(position, onStage), x.spawn(position, onStage, velvet)
	all := ecs.All(onStage)
	without := all.Without(velvet)
	x.peer.SetInterest(Interest{Filter: &all})
	x.rounds(4)
	x.requireSeen(b, c)
	x.peer.SetInterest(Interest{Filter: &without})
	x.rounds(4)
	x.requireSeen(b)
	x.world.Add(a, onStage)
	x.world.Add(b, velvet)
	x.world.Remove(c, velvet)
	x.rounds(4)
	x.requireSeen(a, c)
	x.world.Add(a, health) // another table, still on stage
	x.rounds(4)
	x.requireSeen(a, c)
	x.peer.SetInterest(Interest{Filter: &without, Visible: func(e ecs.Entity) bool { return e == c || e == b }})
	x.rounds(4)
	x.requireSeen(c)
	set := x.server.NewEntitySet()
	set.Add(a)
	set.Add(b)
	x.peer.SetInterest(Interest{Filter: &without, Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(a)
	x.peer.SetInterest(Interest{})
	x.rounds(4)
	x.requireSeen(a, b, c)
	require.Nil(t, x.peer.view.visible, "no more to look at")
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(a, b)
}

type tTroupe struct{ ecs.Relation }

// TestInterestInRelationTables has entities of one mask in several tables of Arche.
func TestInterestInRelationTables(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, troupe, onStage := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tTroupe](x.world), ecs.ComponentID[tOnStage](x.world)
	heads := []ecs.Entity{x.world.NewEntity(), x.world.NewEntity()}
	var on, off []ecs.Entity
	for i := range 20 {
		e := x.spawn(position, troupe)
		x.world.Relations().Set(e, troupe, heads[i%2])
		if i%3 == 0 {
			x.world.Add(e, onStage)
			on = append(on, e)
		} else {
			off = append(off, e)
		}
	}
	all := ecs.All(onStage, troupe)
	x.peer.SetInterest(Interest{Filter: &all})
	x.rounds(4)
	x.requireSeen(on...)
	for i, e := range on {
		x.world.Relations().Set(e, troupe, heads[(i+1)%2])
		(*tPosition)(x.world.Get(e, position)).X = float32(i)
	}
	x.world.Add(off[0], onStage)
	x.world.Remove(on[0], onStage)
	x.rounds(4)
	x.requireSeen(append(on[1:], off[0])...)
}

// TestInterestIsKeptWhenTheClientComesAgain has clients come late and come again.
func TestInterestIsKeptWhenTheClientComesAgain(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := newWire(t, testSchema())
		position := ecs.ComponentID[tPosition](x.world)
		a, b, c := x.spawn(position), x.spawn(position), x.spawn(position)
		set := x.server.NewEntitySet()
		set.Add(a)
		set.Add(b)
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		for range 10 { // nobody there
			x.replicate()
		}
		x.rounds(10)
		x.requireSeen(a, b)
		set.Remove(b)
		set.Add(c)
		x.rounds(4)
		if keep {
			x.requireSeen(a, b, c)
		} else {
			x.requireSeen(a, c)
		}
		x.restart(x.server.schema, 99)
		x.rounds(10)
		x.requireSeen(a, c) // of what it kept, the new one knows nothing
	}
}

// TestKeptEntitiesStayAsTheyWereSeen follows one that is kept: out of view, back, ended
// while its slot goes to another one, and let go.
func TestKeptEntitiesStayAsTheyWereSeen(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	set := x.server.NewEntitySet()
	move := func(e ecs.Entity, to float32) { (*tPosition)(x.world.Get(e, position)).X = to }
	e, other := x.spawn(position), x.spawn(position)
	set.Add(e)
	set.Add(other)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
	x.rounds(4)
	sent := x.peer.Stats()
	set.Remove(e)
	for i := range 300 { // longer than baselines are kept
		move(e, float32(i%90))
		x.round()
	}
	require.Zero(t, x.position(e).X)
	require.Equal(t, sent.Updates+sent.Wholes+sent.Jumps+sent.Despawns, x.peer.Stats().Updates+x.peer.Stats().Wholes+x.peer.Stats().Jumps+x.peer.Stats().Despawns)
	set.Add(e)
	x.rounds(4)
	x.requireSeen(e, other)
	move(e, 77)
	x.rounds(3)
	x.requireSeen(e, other)
	set.Remove(e)
	x.rounds(3)
	set.Add(e) // unchanged: there is nothing to say
	sent = x.peer.Stats()
	x.rounds(3)
	require.Equal(t, sent.Updates+sent.Wholes+sent.Jumps, x.peer.Stats().Updates+x.peer.Stats().Wholes+x.peer.Stats().Jumps)
	set.Remove(e)
	x.round()
	id, _ := x.server.NetID(e)
	x.world.RemoveEntity(e)
	x.replicate() // the word of its end is lost
	hidden := x.spawn(position)
	x.rounds(60)
	require.EqualValues(t, id.Slot, x.slotOf(hidden))
	x.requireSeen(other)

	set.Remove(other)
	x.rounds(4)
	x.requireSeen(other)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}}) // nothing is kept any more
	x.rounds(4)
	x.requireSeen()
	set.Add(hidden)
	x.rounds(4)
	x.requireSeen(hidden)
}

// TestLateAckOfADespawn arrives after the entity came back, was acknowledged and left
// again: it must not make the server believe that there is nothing.
func TestLateAckOfADespawn(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	set := x.server.NewEntitySet()
	e := x.spawn(position)
	set.Add(e)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(e)
	set.Remove(e)
	late := x.replicate()
	require.Len(t, late, 1)
	set.Add(e)
	x.rounds(4)
	x.requireSeen(e)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
	set.Remove(e)
	x.rounds(2)
	x.deliver(late...) // outdated, and acknowledged
	x.answer(x.apply()...)
	x.rounds(2)
	x.requireSeen(e)
	x.world.RemoveEntity(e)
	x.rounds(4)
	x.requireSeen()
}

// TestLargeEntitiesFlip has entities of several packets come and go while their parts are
// on the way.
func TestLargeEntitiesFlip(t *testing.T) {
	for _, keep := range []bool{false, true} {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		w := ecs.NewWorld()
		s := NewServer(&w, hugeSchema(), WithSeed(seed), WithMTU(300))
		huge, marker := ecs.ComponentID[tHuge](&w), ReplicatedID(&w)
		set := s.NewEntitySet()
		e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 1, Loss: 0.25, Duplicate: 0.1}, WithNonce(1))
		e.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		var big []ecs.Entity
		in := map[ecs.Entity]bool{}
		o := newTruth()
		for tick := range 500 {
			if tick == 400 {
				e.link.SetConfig(netsim.Config{Latency: 1})
			}
			for len(big) < 6 {
				big = append(big, w.NewEntity(huge, marker))
			}
			if i := rng.IntN(len(big)); tick < 400 {
				b := big[i]
				switch rng.IntN(12) {
				case 0, 1, 2, 3:
					if in[b] = !in[b]; in[b] {
						set.Add(b)
					} else {
						set.Remove(b)
					}
				case 4:
					(*tHuge)(w.Get(b, huge)).Cells[rng.IntN(512)] = rng.Uint64()
				case 5:
					w.RemoveEntity(b)
					delete(in, b)
					big[i] = big[len(big)-1]
					big = big[:len(big)-1]
				}
			}
			tickAll(t, s, o, []*end{e})
		}
		shown := 0
		e.client.Each(func(id NetID, m ecs.Entity, _ uint32) {
			entity := s.slots.info[id.Slot].entity
			require.Equal(t, s.slots.info[id.Slot].generation, id.Generation)
			if in[entity] {
				shown++
				require.Equal(t, o.at(id, s.Tick()), stateOf(s.schema, e.world, m))
			} else {
				require.True(t, keep)
			}
		})
		n := 0
		for _, b := range big {
			if in[b] {
				n++
			}
		}
		require.Equal(t, n, shown, "keep %v", keep)
		require.NotZero(t, e.peer.Stats().Parts)
	}
}

// TestInterestDoesNotAllocate has entities come into view and go by all kinds of
// interest.
func TestInterestDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	for kind, name := range []string{"filter", "grid", "set", "visible"} {
		t.Run(name, func(t *testing.T) {
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(1))
			position, marker, onStage := ecs.ComponentID[tPosition](&w), ReplicatedID(&w), ecs.ComponentID[tOnStage](&w)
			f := connectFake(t, s, 1, 5, 0)
			grid, set, all, tick := s.NewGrid(10, "tPosition.X", "tPosition.Y"), s.NewEntitySet(), ecs.All(onStage), 0
			phase := map[ecs.Entity]int{}
			visible := func(e ecs.Entity) bool { return (tick/8+phase[e])%3 == 0 }
			f.peer.SetInterest([]Interest{{Filter: &all}, {Grid: grid}, {Sets: []*EntitySet{set}}, {Visible: visible}}[kind])
			f.peer.LookFrom(20, 0, 0)
			var entities []ecs.Entity
			for i := range 500 {
				e := w.NewEntity(position, marker)
				phase[e] = i
				entities = append(entities, e)
			}
			play := func() {
				tick++
				for i, e := range entities {
					p := (*tPosition)(w.Get(e, position))
					p.X, p.Z = 80, float32((tick*i)%100)
					if visible(e) {
						p.X = float32(i % 20)
					}
					if visible(e) != w.Has(e, onStage) && name == "filter" {
						if visible(e) {
							w.Add(e, onStage)
						} else {
							w.Remove(e, onStage)
						}
					}
					if visible(e) {
						set.Add(e)
					} else {
						set.Remove(e)
					}
				}
				if packet := f.answer(tick); packet != nil {
					_ = f.peer.Receive(packet)
				}
			}
			for range 400 {
				play()
				s.Replicate()
			}
			before := f.peer.Stats()
			total := 0.0
			for range 50 {
				play()
				first := true
				total += testing.AllocsPerRun(1, func() {
					if !first { // the first of two runs is to warm up
						s.Replicate()
					}
					first = false
				})
			}
			now := f.peer.Stats()
			require.Greater(t, now.Despawns-before.Despawns, uint64(500))
			require.Greater(t, now.Wholes-before.Wholes, uint64(500))
			require.Greater(t, now.Updates-before.Updates, uint64(500))
			require.LessOrEqual(t, total/50, 0.1)
		})
	}
}
