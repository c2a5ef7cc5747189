package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A game whose entities have owners and components under all conditions, and the checks of what
// clients may show of it.

type cPlace struct {
	X, Y int32 `repl:"range=-1000:1000"`
}

type cAmmo struct{ Rounds uint16 }

type cAim struct {
	At ecs.Entity
	Up uint8
}

type cGhost struct{ Seen uint32 }

type cRank struct{ Points int16 }

type cCard struct{}

type cHoard struct{ Cells [60]uint64 }

type cSeed struct{ N uint32 }

type cDeal struct{ N uint32 }

// conditionPlay plays a game whose entities have owners and components under all conditions, and
// knows what every peer should see.
type conditionPlay struct {
	rng      *rand.Rand
	world    *ecs.World
	server   *Server
	entities []ecs.Entity
	ids      []ecs.ID
	marker   ecs.ID
	picked   map[*Peer]bool
	hidden   map[*Peer]int // entities whose ID this divides are hidden; 0: none is
	ends     []*end
	limit    int

	versions map[conditionKey][]conditionVersion
	live     map[NetID]ecs.Entity
	noted    func() // called after every tick, if set
}

// conditionKey names an entity, or its components under one condition.
type conditionKey struct {
	id    NetID
	class int
}

type conditionVersion struct {
	tick  uint32
	state string // "" if there is none
	owner *Peer
}

// schema returns a schema with functions of this play, so each play has its own.
func (g *conditionPlay) schema() *Schema {
	s := NewSchema()
	Register[cPlace](s)
	Register[cAmmo](s, OwnerOnly())
	Register[cAim](s, OwnerOnly())
	Register[cGhost](s, ExceptOwner())
	picked := OnlyFor(func(p *Peer) bool { return g.picked[p] })
	Register[cRank](s, picked)
	Register[cCard](s, picked)
	Register[cHoard](s, OnlyFor(func(p *Peer) bool { return !g.picked[p] }))
	Register[cSeed](s, Once())
	Register[cDeal](s, Once(), OwnerOnly())
	Register[rChildOf](s)
	return s
}

const conditionComponents = 10 // in that schema

func newConditionPlay(seed uint64, limit int, opts ...ServerOption) *conditionPlay {
	g := newConditionGame(seed, limit)
	g.serve(g.schema(), append(opts, WithSeed(seed))...)
	return g
}

// newConditionGame returns a play without a server.
func newConditionGame(seed uint64, limit int) *conditionPlay {
	w := ecs.NewWorld()
	return &conditionPlay{
		rng: rand.New(rand.NewPCG(seed, 7)), world: &w, limit: limit, picked: map[*Peer]bool{}, hidden: map[*Peer]int{},
		versions: map[conditionKey][]conditionVersion{}, live: map[NetID]ecs.Entity{},
	}
}

// serve makes the server, with a schema that begins with that of the play.
func (g *conditionPlay) serve(schema *Schema, opts ...ServerOption) {
	g.server = NewServer(g.world, schema, opts...)
	for i := range schema.raw.Components[:conditionComponents] {
		g.ids = append(g.ids, ecs.TypeID(g.world, schema.raw.Components[i].Typ))
	}
	g.marker = ReplicatedID(g.world)
}

func (g *conditionPlay) connect(cfg netsim.Config) *end {
	n := uint64(len(g.ends)) + 1
	e := connect(g.server, g.rng.Uint64(), cfg, WithSeed(n))
	g.ends = append(g.ends, e)
	return e
}

// holds reports whether the peer may see components under the condition of a class.
func (g *conditionPlay) holds(p *Peer, class int, owner *Peer) bool {
	switch class {
	case 0:
		return true
	case 1:
		return owner == p
	case 2:
		return owner != p
	case 3:
		return g.picked[p]
	}
	return !g.picked[p]
}

func (g *conditionPlay) spawn() {
	ids := []ecs.ID{g.marker}
	for i, id := range g.ids {
		if i != 6 && g.rng.IntN(2) == 0 || g.rng.IntN(12) == 0 {
			ids = append(ids, id)
		}
	}
	e := g.world.NewEntity(ids...)
	for i := range g.ids {
		g.mutate(e, i)
	}
	if g.rng.IntN(2) == 0 {
		g.server.SetOwner(e, g.anybody()) // before the first Replicate with this entity
	}
	g.entities = append(g.entities, e)
}

func (g *conditionPlay) anybody() *Peer {
	if i := g.rng.IntN(len(g.ends) + 1); i < len(g.ends) {
		return g.ends[i].peer
	}
	return nil
}

func (g *conditionPlay) mutate(e ecs.Entity, i int) {
	if !g.world.Has(e, g.ids[i]) {
		return
	}
	r, p := g.rng, g.world.Get(e, g.ids[i])
	switch i {
	case 0:
		v := (*cPlace)(p)
		v.X, v.Y = v.X+int32(r.IntN(5))-2, int32(r.IntN(100))
	case 1:
		(*cAmmo)(p).Rounds = uint16(r.IntN(100))
	case 2:
		v := (*cAim)(p)
		v.Up, v.At = uint8(r.IntN(10)), ecs.Entity{}
		if n := len(g.entities); n > 0 {
			v.At = g.entities[r.IntN(n)]
		}
	case 3:
		(*cGhost)(p).Seen++
	case 4:
		(*cRank)(p).Points += int16(r.IntN(7))
	case 6:
		(*cHoard)(p).Cells[r.IntN(60)] = r.Uint64()
	case 7:
		(*cSeed)(p).N = r.Uint32()
	case 8:
		(*cDeal)(p).N = r.Uint32()
	}
}

func (g *conditionPlay) step() {
	r := g.rng
	if len(g.entities) < g.limit && r.IntN(3) == 0 {
		g.spawn()
	}
	if n := len(g.entities); n > 0 {
		if r.IntN(8) == 0 {
			i := r.IntN(n)
			g.world.RemoveEntity(g.entities[i])
			g.entities[i] = g.entities[n-1]
			g.entities = g.entities[:n-1]
		} else if e := g.entities[r.IntN(n)]; r.IntN(20) == 0 {
			g.world.Remove(e, g.marker) // not replicated for one tick, after which it has no owner
			g.tick()
			g.world.Add(e, g.marker)
		}
	}
	if n := len(g.entities); n > 0 {
		if r.IntN(3) == 0 {
			g.server.SetOwner(g.entities[r.IntN(n)], g.anybody())
		}
		if i, e := r.IntN(7), g.entities[r.IntN(n)]; r.IntN(3) == 0 {
			if id := g.ids[i]; g.world.Has(e, id) {
				g.world.Remove(e, id)
			} else if i != 6 || r.IntN(6) == 0 {
				g.world.Add(e, id)
			}
		}
	}
	if r.IntN(25) == 0 {
		p := g.ends[r.IntN(len(g.ends))].peer
		g.picked[p] = !g.picked[p]
	}
	for _, e := range g.entities {
		if r.IntN(3) == 0 {
			g.mutate(e, r.IntN(7))
		}
	}
	g.tick()
}

// tick replicates and records the state of this tick.
func (g *conditionPlay) tick() {
	s := g.server
	s.Replicate()
	now := replicatedBy(s)
	for id := range g.live {
		if _, ok := now[id]; !ok {
			for class := range 5 {
				g.note(conditionKey{id, class}, "", nil)
			}
		}
	}
	for id, e := range now {
		for class := range 5 {
			g.note(conditionKey{id, class}, g.state(g.world, e, class), s.Owner(e))
		}
	}
	g.live = now
	if g.noted != nil {
		g.noted()
	}
}

func (g *conditionPlay) note(k conditionKey, state string, owner *Peer) {
	v := g.versions[k]
	if n := len(v); n == 0 || v[n-1].state != state || v[n-1].owner != owner {
		g.versions[k] = append(v, conditionVersion{uint32(g.server.Tick()), state, owner})
	}
}

func (g *conditionPlay) at(k conditionKey, tick uint32) (v conditionVersion) {
	list := g.versions[k]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].tick <= tick {
			return list[i]
		}
	}
	return v
}

// state returns an entity's components under the condition of a class, without references.
func (g *conditionPlay) state(w *ecs.World, e ecs.Entity, class int) (text string) {
	for i := range g.ids {
		c := &g.server.schema.Components[i]
		id := ecs.TypeID(w, c.Typ)
		if c.Class != class || !w.Has(e, id) {
			continue
		}
		switch p := w.Get(e, id); i {
		case 2:
			text += fmt.Sprint("aim ", (*cAim)(p).Up, " ")
		case 9: // a relation
			text += "child "
		default:
			row := make([]uint32, c.Words)
			c.ReadColumn(row, p, 1)
			if w == g.world {
				holdRecorded(g.server, e, i, row, p)
			}
			text += fmt.Sprint(c.Name, row, " ")
		}
	}
	if class == 0 {
		text += "."
	}
	return text
}

// check verifies, slot by slot, that everything an end shows existed at a tick at which the end
// could see it.
func (g *conditionPlay) check(t *testing.T, n int, e *end) {
	attached := map[conditionKey]bool{}
	for i, page := range e.client.apply.View.Replicas.Pages {
		for j := range page {
			m := &page[j]
			if !m.SubEntity || m.Entity.IsZero() {
				continue
			}
			slot := i*receive.ReplicaPage + j
			id, ok := e.client.NetID(m.Entity)
			require.True(t, ok, "a sub-entity without an entity")
			k := conditionKey{id, g.server.snap.Slots.Class(slot >> 6)}
			require.NotZero(t, k.class)
			require.False(t, attached[k], "two sub-entities for a condition")
			attached[k] = true
			v := g.at(k, uint32(m.Tick))
			require.Equal(t, v.state, g.state(e.world, m.Entity, k.class), "end %d: class %d of %v at tick %d", n, k.class, id, m.Tick)
			if k.class <= 2 {
				require.True(t, g.holds(e.peer, k.class, v.owner), "end %d: class %d of %v at tick %d", n, k.class, id, m.Tick)
			}
		}
	}
	for id, entity := range e.client.Entities() {
		tick, _ := e.client.StateTick(entity)
		require.Equal(t, g.at(conditionKey{id, 0}, uint32(tick)).state, g.state(e.world, entity, 0), "end %d: %v at tick %d", n, id, tick)
		require.GreaterOrEqual(t, int32(tick-Tick(e.last[id])), int32(0))
		e.last[id] = uint32(tick)
		for class := 1; class < 5; class++ {
			if !attached[conditionKey{id, class}] {
				require.Empty(t, g.state(e.world, entity, class), "end %d: class %d of %v without a sub-entity", n, class, id)
			}
		}
	}
}

// requireRight verifies that all ends show exactly what they may see.
func (g *conditionPlay) requireRight(t *testing.T) {
	t.Helper()
	for n, e := range g.ends {
		shown := 0
		for id := range e.client.Entities() {
			shown++
			require.Contains(t, g.live, id, "end %d", n)
		}
		for id, entity := range g.live {
			mirror, ok := e.client.Entity(id)
			if d := g.hidden[e.peer]; d > 0 && int(entity.ID())%d == 0 {
				require.False(t, ok, "end %d: %v is not visible", n, id)
				continue
			}
			shown--
			require.True(t, ok, "end %d: %v is not here", n, id)
			for class := range 5 {
				want := ""
				if g.holds(e.peer, class, g.server.Owner(entity)) {
					want = g.at(conditionKey{id, class}, uint32(g.server.Tick())).state
				}
				require.Equal(t, want, g.state(e.world, mirror, class), "end %d: class %d of %v", n, class, id)
			}
			if aim := ecs.ComponentID[cAim](e.world); e.world.Has(mirror, aim) {
				var want ecs.Entity
				if at := (*cAim)(g.world.Get(entity, g.ids[2])).At; g.world.Alive(at) {
					if id, ok := g.server.NetID(at); ok {
						want, _ = e.client.Entity(id)
					}
				}
				require.Equal(t, want, (*cAim)(e.world.Get(mirror, aim)).At, "end %d: %v", n, id)
			}
		}
		require.Zero(t, shown, "end %d", n)
	}
}

// requireNothingLapsed verifies that an end with Keep retains nothing whose condition has ended.
func (g *conditionPlay) requireNothingLapsed(t *testing.T, e *end) {
	t.Helper()
	kept := 0
	for id, mirror := range e.client.Entities() {
		entity, live := g.live[id]
		require.True(t, live)
		for class := 1; class < 5; class++ {
			switch shown := g.state(e.world, mirror, class); {
			case !g.holds(e.peer, class, g.server.Owner(entity)):
				require.Empty(t, shown, "class %d of %v", class, id)
			case shown != "" && g.hidden[e.peer] > 0 && int(entity.ID())%g.hidden[e.peer] == 0:
				kept++
			}
		}
	}
	t.Logf("%d sub-entities are kept out of view", kept)
}
