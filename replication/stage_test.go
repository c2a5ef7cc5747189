package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// tOnStage is in no schema: it moves entities between Arche's tables, and filters use it.
type tOnStage struct{}

// A stage is a world in which every entity's state contains its identity and the tick of its last
// change, with a record of which entities were visible when.
type stage struct {
	world    *ecs.World
	server   *Server
	schema   *Schema
	rng      *rand.Rand
	actors   []*actor         // live ones
	known    map[NetID]*actor // every actor that ever had a slot
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
	acts    []uint32 // ticks in which it changed, ascending
	ended   uint32   // first tick after its end, 0 while it lives
}

func newStage(t testing.TB, actors int) *stage { return newStageOf(seedOf(t), actors) }

func newStageOf(seed uint64, actors int) *stage {
	w := ecs.NewWorld()
	g := &stage{world: &w, schema: testSchema(), rng: rand.New(rand.NewPCG(seed, 5)), known: map[NetID]*actor{}, entities: map[ecs.Entity]*actor{}}
	g.server = NewServer(g.world, g.schema, WithSeed(seed), replicationtest.FirstTick(1))
	g.position, g.exact = ecs.ComponentID[tPosition](g.world), ecs.ComponentID[tExact](g.world)
	g.onStage, g.marker = ecs.ComponentID[tOnStage](g.world), ReplicatedID(g.world)
	g.grid = g.server.NewGrid(10, "tPosition.X", "tPosition.Y")
	g.set = g.server.NewEntitySet()
	for range actors {
		g.enter(g.rng)
	}
	return g
}

// interests are the ways to make the entities on stage visible.
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
	e := connect(g.server, g.rng.Uint64(), cfg, WithSeed(n+1))
	e.peer.SetInterest(i)
	e.peer.LookFrom(20, 0, 0)
	g.ends = append(g.ends, e)
	return e
}

// enter adds an actor, which is not visible yet.
func (g *stage) enter(rng *rand.Rand) *actor {
	a := &actor{serial: int32(len(g.entities) + 1)}
	a.entity = g.world.NewEntity(g.position, g.exact, g.marker)
	g.entities[a.entity] = a
	(*tPosition)(g.world.Get(a.entity, g.position)).X = 50 + 40*rng.Float32()
	g.actors = append(g.actors, a)
	g.act(a)
	return a
}

// act writes the current tick into the actor's state.
func (g *stage) act(a *actor) {
	next := g.server.Tick() + 1
	v := (*tExact)(g.world.Get(a.entity, g.exact))
	v.A, v.B = float64(next), a.serial
	if n := len(a.acts); n == 0 || a.acts[n-1] != uint32(next) {
		a.acts = append(a.acts, uint32(next))
	}
}

// flip makes the actor visible or hidden.
func (g *stage) flip(a *actor) {
	a.visible = !a.visible
	a.flips = append(a.flips, uint32(g.server.Tick())+1)
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

// end removes an actor for good.
func (g *stage) end(i int) {
	a := g.actors[i]
	g.world.RemoveEntity(a.entity)
	a.ended = uint32(g.server.Tick() + 1)
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

// check verifies that everything an end shows existed and was visible at the tick that it shows,
// and that nothing goes back.
func (g *stage) check(t testing.TB, i int, e *end) {
	exact := ecs.ComponentID[tExact](e.world)
	for id, entity := range e.client.Entities() {
		tick, _ := e.client.StateTick(entity)
		a := g.known[id]
		if last, ok := e.last[id]; ok && Tick(last) == tick {
			continue
		} else if ok {
			require.Greater(t, tick, last, "end %d: %v went back", i, id)
		}
		e.last[id] = uint32(tick)
		v := (*tExact)(e.world.Get(entity, exact))
		if v.B != a.serial || v.A != float64(a.actBefore(uint32(tick))) || !a.visibleAt(uint32(tick)) || a.ended != 0 && tick >= Tick(a.ended) {
			require.FailNow(t, "wrong state", "end %d: %v shows actor %d of tick %v at tick %d, visible %v; is %d of tick %d, ended %d",
				i, id, v.B, v.A, tick, a.visibleAt(uint32(tick)), a.serial, a.actBefore(uint32(tick)), a.ended)
		}
	}
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

// requireView verifies that an end shows everything visible in its current state; and with keep,
// besides that only live entities.
func (g *stage) requireView(t testing.TB, e *end, keep bool, msg string) (kept int) {
	t.Helper()
	exact := ecs.ComponentID[tExact](e.world)
	shown := 0
	for id, entity := range e.client.Entities() {
		a := g.known[id]
		require.Zero(t, a.ended, "%s: %v has ended", msg, id)
		if !a.visible {
			require.True(t, keep, "%s: %v is not visible", msg, id)
			kept++
			continue
		}
		shown++
		require.EqualValues(t, a.acts[len(a.acts)-1], (*tExact)(e.world.Get(entity, exact)).A, "%s: %v is outdated", msg, id)
	}
	want := 0
	for _, a := range g.actors {
		if a.visible {
			want++
		}
	}
	require.Equal(t, want, shown, "%s: %+v", msg, e.peer.Stats())
	return kept
}
