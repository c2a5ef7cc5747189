package replication

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A game of entities that reference each other, and the checks of what clients may show of it,
// computed naively.

type rTarget struct{ Entity ecs.Entity }

type rSquad struct {
	Strength uint8
	Leader   ecs.Entity
	Men      [3]ecs.Entity
	Name     *int `repl:"-"`
	Gear     [2]struct {
		Heat  uint8
		Owner ecs.Entity
	}
}

type rChildOf struct {
	ecs.Relation
	Seat uint8
	Of   ecs.Entity
}

type rOrbits struct{ ecs.Relation }

// rSeldom is read in every third tick.
type rSeldom struct {
	Count uint8
	Who   ecs.Entity
}

// rDead is a relation whose target is not replicated.
type rDead struct {
	ecs.Relation `repl:"-"`
	Level        uint8
}

func referenceSchema() *Schema {
	s := NewSchema()
	Register[tPosition](s)
	Register[rTarget](s)
	Register[rSquad](s)
	Register[rChildOf](s)
	Register[rOrbits](s)
	Register[rSeldom](s, Every(3))
	Register[rDead](s)
	return s
}

// eachReference calls fn for every entity inside v, in order.
func eachReference(v reflect.Value, fn func(e *ecs.Entity)) {
	switch {
	case v.Type() == reflect.TypeFor[ecs.Entity]():
		fn(v.Addr().Interface().(*ecs.Entity))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachReference(v.Field(i), fn)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			eachReference(v.Index(i), fn)
		}
	}
}

// referrerState is the state of an entity, with references apart.
type referrerState struct {
	codes string
	refs  []ecs.Entity // in the entity's own world
}

// read fills the state with that of an entity in a world. Codes of references are left out.
func (x *referrerState) read(s *Schema, w *ecs.World, e ecs.Entity, skip func(component int) bool, server *Server) {
	var codes []uint64
	x.refs = x.refs[:0]
	for i := range s.raw.Components {
		c := &s.raw.Components[i]
		if c.Resource || c.Class > 0 || i == s.raw.Link { // not visible to everyone
			continue
		}
		id := ecs.TypeID(w, c.Typ)
		if !w.Has(e, id) {
			continue
		}
		codes = append(codes, uint64(1000+i))
		if skip != nil && skip(i) {
			continue
		}
		p := w.Get(e, id)
		row := make([]uint32, c.Words)
		c.ReadColumn(row, p, 1)
		if server != nil {
			holdRecorded(server, e, i, row, p)
		}
		if c.Typ.NumField() > 0 && c.Typ.Field(0).Type == reflect.TypeFor[ecs.Relation]() && c.Typ.Field(0).Tag == "" {
			x.refs = append(x.refs, w.Relations().Get(e, id))
			codes = append(codes, 1) // it has a target
		}
		before := len(x.refs)
		eachReference(reflect.NewAt(c.Typ, p).Elem(), func(e *ecs.Entity) { x.refs = append(x.refs, *e) })
		if before == len(x.refs) && len(c.Columns) > 0 && c.Columns[0].Codec.Op != field.OpRelation {
			for _, word := range row {
				codes = append(codes, uint64(word))
			}
			continue
		}
		for k := range c.Columns {
			if op := c.Columns[k].Codec.Op; op != field.OpEntity && op != field.OpRelation {
				codes = append(codes, c.Columns[k].Code(row))
			}
		}
	}
	x.codes = fmt.Sprint(codes)
}

// referenceTruth is the state of a server's world at every tick.
type referenceTruth struct {
	versions map[NetID][]referenceVersion
	live     map[NetID]ecs.Entity
}

type referenceVersion struct {
	tick  uint32
	gone  bool
	codes string
	ids   []NetID
}

func (o *referenceTruth) record(s *Server) {
	now := replicatedBy(s)
	for id, e := range now {
		var state referrerState
		state.read(faceOf(s.schema), s.snap.World, e, func(component int) bool { return s.schema.Components[component].Every > 1 }, s)
		v := referenceVersion{tick: uint32(s.Tick()), codes: state.codes}
		for _, e := range state.refs {
			id, _ := s.NetID(e)
			v.ids = append(v.ids, id)
		}
		o.note(id, v)
	}
	for id := range o.live {
		if _, ok := now[id]; !ok {
			o.note(id, referenceVersion{tick: uint32(s.Tick()), gone: true})
		}
	}
	o.live = now
}

func (o *referenceTruth) note(id NetID, v referenceVersion) {
	if o.versions == nil {
		o.versions = map[NetID][]referenceVersion{}
	}
	versions := o.versions[id]
	if n := len(versions); n == 0 || versions[n-1].gone != v.gone || versions[n-1].codes != v.codes || !reflect.DeepEqual(versions[n-1].ids, v.ids) {
		o.versions[id] = append(versions, v)
	}
}

func (o *referenceTruth) at(id NetID, tick uint32) referenceVersion {
	v := o.versions[id]
	for i := len(v) - 1; i >= 0; i-- {
		if int32(v[i].tick-tick) <= 0 {
			return v[i]
		}
	}
	return referenceVersion{gone: true}
}

// check compares everything that a client shows with the truth: a reference is to the replica of
// the entity, in the same generation, that the server's entity references, or zero if the client
// has no such replica.
func (o *referenceTruth) check(t testing.TB, s *Server, c *Client) {
	held := 0
	fail := func(id NetID, tick uint32, format string, args ...any) {
		t.Helper()
		require.FailNow(t, fmt.Sprintf(format, args...), "%v at tick %d (server at %d)", id, tick, s.Tick())
	}
	var got referrerState
	for id, e := range c.Entities() {
		tick, _ := c.StateTick(e)
		want := o.at(id, uint32(tick))
		got.read(faceOf(c.schema), c.apply.View.World, e, func(component int) bool { return c.schema.Components[component].Every > 1 }, nil)
		if want.gone || got.codes != want.codes || len(got.refs) != len(want.ids) {
			fail(id, uint32(tick), "shown %s with %d references, want %s with %d", got.codes, len(got.refs), want.codes, len(want.ids))
		}
		for i, target := range want.ids {
			here, _ := c.Entity(target)
			if (target == NetID{}) {
				here = ecs.Entity{}
			} else {
				held++
			}
			if got.refs[i] != here {
				name, ok := c.NetID(got.refs[i])
				fail(id, uint32(tick), "reference %d is to %v (%v, %v), want %v (%v)", i, got.refs[i], name, ok, here, target)
			}
		}
	}
	if c.session.Waited%16 == 0 {
		checkLinks(&c.apply, t, held)
	}
}

// checkLinks checks that the link lists are complete and not longer than the number of references;
// least is for schemas with components that are read seldom.
func checkLinks(c *apply.Applier, t testing.TB, least int) {
	t.Helper()
	r := &c.Referrers
	inUse := 0
	for i := 1; i < len(r.Links); i++ {
		if r.Links[i] != (apply.Link{Sibling: r.Links[i].Sibling}) {
			inUse++
		}
	}
	free := 0
	for i := r.Free; i != 0; i = r.Links[i].Sibling {
		free++
	}
	require.Equal(t, max(len(r.Links)-1, 0), inUse+free)
	byHolder, named := 0, 0
	for p, page := range c.View.Replicas.Pages {
		for i := range page {
			m := &page[i]
			for k := m.Links; k != 0; k = r.Links[k].Sibling {
				byHolder++
				if int(r.Links[k].Holder) != p*receive.ReplicaPage+i || !m.Shown && !m.SubEntity {
					require.FailNow(t, "a link in the list of another holder")
				}
			}
			if m.SubEntity {
				named++ // the link
			}
			if m.Shown && !m.Removed || m.SubEntity && !m.Entity.IsZero() {
				state := m.Held.At(m.Tick)
				if state == nil {
					continue
				}
				for k := range c.Schema.Components {
					comp := &c.Schema.Components[k]
					if k == c.Schema.Link {
						continue
					}
					if row := state.Row(k, comp.Words); row != nil {
						for _, column := range comp.References {
							if row[comp.Columns[column].Word] != 0 {
								named++
							}
						}
					}
				}
			}
		}
	}
	byTarget := 0
	for p, page := range r.Heads {
		for i, k := range page {
			prev := uint32(0)
			for ; k != 0; k = r.Links[k].Next {
				byTarget++
				if int(r.Links[k].Slot) != p*apply.HeadsPage+i || r.Links[k].Prev != prev {
					require.FailNow(t, "a link in the list of another target")
				}
				prev = k
			}
		}
	}
	require.Equal(t, inUse, byHolder)
	require.Equal(t, inUse, byTarget)
	require.Equal(t, named, inUse)
	require.GreaterOrEqual(t, inUse, least)
}

// referenceGame changes a world of referrers at random.
type referenceGame struct {
	rng      *rand.Rand
	world    *ecs.World
	marker   ecs.ID
	ids      []ecs.ID // in the order of the schema
	entities []ecs.Entity
	dead     []ecs.Entity
	limit    int
}

func newReferenceGame(seed uint64, w *ecs.World, s *Schema, limit int) *referenceGame {
	g := &referenceGame{rng: rand.New(rand.NewPCG(seed, 9)), world: w, marker: ReplicatedID(w), limit: limit}
	for i := range s.raw.Components {
		g.ids = append(g.ids, ecs.TypeID(w, s.raw.Components[i].Typ))
	}
	return g
}

// relation returns the relation that an entity has, if any.
func (g *referenceGame) relation(e ecs.Entity) (ecs.ID, bool) {
	for _, i := range []int{3, 4, 6} {
		if g.world.Has(e, g.ids[i]) {
			return g.ids[i], true
		}
	}
	return ecs.ID{}, false
}

// anyone returns an entity to refer to: alive, dead, or none.
func (g *referenceGame) anyone() ecs.Entity {
	switch n := g.rng.IntN(12); {
	case n == 0 && len(g.dead) > 0:
		return g.dead[g.rng.IntN(len(g.dead))]
	case n == 1 || len(g.entities) == 0:
		return ecs.Entity{}
	}
	return g.entities[g.rng.IntN(len(g.entities))]
}

// relative returns an entity that Arche accepts as a target.
func (g *referenceGame) relative(e ecs.Entity) ecs.Entity {
	for {
		if target := g.anyone(); target.IsZero() || g.world.Alive(target) && target != e {
			return target
		}
	}
}

func (g *referenceGame) spawn() ecs.Entity {
	var ids []ecs.ID
	for _, i := range []int{0, 1, 2, 5} {
		if g.rng.IntN(2) == 0 {
			ids = append(ids, g.ids[i])
		}
	}
	if k := g.rng.IntN(5); k < 3 {
		ids = append(ids, g.ids[[]int{3, 4, 6}[k]])
	}
	if g.rng.IntN(8) > 0 {
		ids = append(ids, g.marker)
	}
	e := g.world.NewEntity(ids...)
	g.entities = append(g.entities, e)
	return e
}

func (g *referenceGame) despawn(i int) {
	g.world.RemoveEntity(g.entities[i])
	g.dead = append(g.dead, g.entities[i])
	g.dead = g.dead[max(0, len(g.dead)-20):]
	g.entities[i] = g.entities[len(g.entities)-1]
	g.entities = g.entities[:len(g.entities)-1]
}

// mutate changes something in the entity, a reference more often than not.
func (g *referenceGame) mutate(e ecs.Entity) {
	r, w := g.rng, g.world
	id := g.ids[r.IntN(len(g.ids))]
	if !w.Has(e, id) {
		return
	}
	if own, ok := g.relation(e); ok && own == id && r.IntN(2) == 0 {
		w.Relations().Set(e, id, g.relative(e))
		return
	}
	switch p := w.Get(e, id); id {
	case g.ids[0]:
		(*tPosition)(p).X = r.Float32() * 100
	case g.ids[1]:
		(*rTarget)(p).Entity = g.anyone()
	case g.ids[2]:
		v := (*rSquad)(p)
		switch r.IntN(4) {
		case 0:
			v.Strength++
		case 1:
			v.Leader = g.anyone()
		case 2:
			v.Men[r.IntN(3)] = g.anyone()
		case 3:
			v.Gear[r.IntN(2)].Owner = g.anyone()
			v.Gear[1].Heat++
		}
	case g.ids[3]:
		v := (*rChildOf)(p)
		v.Seat++
		v.Of = g.anyone()
	case g.ids[5]:
		(*rSeldom)(p).Who = g.anyone()
	case g.ids[6]:
		(*rDead)(p).Level++
	}
}

func (g *referenceGame) step() {
	r, w := g.rng, g.world
	if len(g.entities) < g.limit && r.IntN(3) == 0 {
		for range 1 + r.IntN(3) { // together, so that they reference each other
			g.spawn()
		}
	}
	if len(g.entities) > 0 && r.IntN(3) == 0 {
		g.despawn(r.IntN(len(g.entities)))
	}
	for _, e := range g.entities {
		if r.IntN(3) == 0 {
			g.mutate(e)
		}
	}
	if len(g.entities) == 0 {
		return
	}
	e := g.entities[r.IntN(len(g.entities))]
	switch n := r.IntN(8); {
	case n == 0: // it enters or leaves replication
		if w.Has(e, g.marker) {
			w.Remove(e, g.marker)
		} else {
			w.Add(e, g.marker)
		}
	case n == 1: // another relation, or none
		own, has := g.relation(e)
		next := g.ids[[]int{3, 4, 6}[r.IntN(3)]]
		switch {
		case !has:
			w.Add(e, next)
		case own == next:
			w.Remove(e, own)
		default:
			w.Relations().Exchange(e, []ecs.ID{next}, []ecs.ID{own}, next, g.relative(e))
		}
	case n < 4: // another component
		id := g.ids[[]int{0, 1, 2, 5}[r.IntN(4)]]
		if w.Has(e, id) {
			w.Remove(e, id)
		} else {
			w.Add(e, id)
		}
	}
	if r.IntN(40) == 0 {
		for _, e := range g.entities { // all reference the same one
			if w.Has(e, g.ids[1]) {
				(*rTarget)(w.Get(e, g.ids[1])).Entity = g.entities[0]
			}
		}
	}
}

// tickReferences plays a tick of a game with references.
func tickReferences(t testing.TB, s *Server, o *referenceTruth, ends []*end) {
	s.Replicate()
	o.record(s)
	for _, e := range ends {
		e.step(t)
		o.check(t, s, e.client)
	}
}

// requireReferencesSettle lets the network settle and compares all worlds: every entity shows its
// current state.
func requireReferencesSettle(t testing.TB, s *Server, o *referenceTruth, ends []*end, ticks int) {
	t.Helper()
	for _, e := range ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	for range ticks {
		tickReferences(t, s, o, ends)
	}
	for i, e := range ends {
		n := 0
		for id, entity := range e.client.Entities() {
			n++
			want := o.at(id, uint32(s.Tick()))
			var got referrerState
			got.read(faceOf(s.schema), e.world, entity, nil, nil)
			own, ok := s.Entity(id)
			require.True(t, ok)
			var truth referrerState
			truth.read(faceOf(s.schema), s.snap.World, own, nil, s)
			require.Equal(t, truth.codes, got.codes, "link %d: %v", i, id)
			require.False(t, want.gone)
			for k, target := range truth.refs {
				here := ecs.Entity{}
				if name, ok := s.NetID(target); ok {
					here, ok = e.client.Entity(name)
					require.True(t, ok)
				}
				require.Equal(t, here, got.refs[k], "link %d: %v, reference %d", i, id, k)
			}
		}
		require.Equal(t, s.Stats().Entities, n, "link %d: %+v\n%+v", i, e.peer.Stats(), e.client.Stats())
	}
}
