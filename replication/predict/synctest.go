package predict

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/flat"
	"github.com/mlange-42/arche/ecs"
)

// TB is what [SyncTest] needs of a testing.TB. Fatalf ends the goroutine.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// SyncTest tests that the step of a model does the same whenever a tick is simulated again. It needs no network: in a
// world of its own it simulates so many ticks, and after each of them it goes depth ticks back and simulates them again
// with the same inputs, as a client does, but with the rows of all tables in another order. The first difference ends
// the test, with its tick, entity, component, field and likely causes. Everything in the world is compared, also
// components that are no [State] or not in the schema, and resources. [Tick.Seconds] is 1/60.
//
// setup fills the world as the server does, and returns the entities that players control, in the order of players, to
// which SyncTest adds what [Host.Own] does. All that have [replication.Replicated] are simulated. input returns what a
// player does in a tick; it is called once for each.
//
// Use several depths, such as 1, 7 and 24. Panics unless depth is 1 to 63 and ticks at least 1, if a function is nil,
// and as [Attach] does.
func SyncTest[I any](
	tb TB, m *Model[I], depth, ticks int,
	setup func(w *ecs.World) (players []ecs.Entity), input func(player int, tick replication.Tick) I,
) {
	tb.Helper()
	switch {
	case depth < 1 || depth > maxSyncDepth:
		panic(fmt.Sprintf("predict: SyncTest with depth %d: use 1 to %d ticks", depth, maxSyncDepth))
	case ticks < 1:
		panic(fmt.Sprintf("predict: SyncTest of %d ticks: use at least 1", ticks))
	case setup == nil || input == nil:
		panic("predict: SyncTest needs a function that fills the world and one that returns inputs")
	}
	w := ecs.NewWorld()
	m.mustExist("SyncTest")
	client := replication.NewClient(&w, m.schema)
	p := Attach(client, m, func() (in I) { return in })
	x := &syncTest{
		tb: tb, world: &w, sim: p.sim, rng: rand.New(rand.NewPCG(1, 1)), pictures: make([]picture, depth+1),
		moved: ecs.ComponentID[reordered](&w), replicated: ecs.ComponentID[replication.Replicated](&w),
	}
	x.players = setup(&w)
	controls := make([]*typedInputs[I], len(x.players))
	for i, e := range x.players {
		controls[i] = newInputs(m, p.inside.Schema.Input)
		for _, id := range []ecs.ID{p.sim.ids.mine, p.sim.ids.input, x.replicated} {
			p.sim.addComponent(e, id)
		}
	}
	repeatable := m.model
	repeatable.step = func(t *Tick) {
		for i, e := range x.players {
			controls[i].advance(t.Number)
			if x.has(e, p.sim.ids.predicted) {
				controls[i].write(t.Number, w.Get(e, p.sim.ids.input))
			}
		}
		m.step(t)
	}
	p.sim.model = &repeatable
	p.sim.run.end, p.sim.run.Seconds = syncEnd{p}, 1./60
	x.begin()
	for tick := replication.Tick(1); tick <= replication.Tick(ticks); tick++ {
		for i := range controls {
			controls[i].give(tick, input(i, tick))
		}
		x.play(tick, min(replication.Tick(depth), tick))
	}
}

const maxSyncDepth = depth - 1

// syncEnd is a client without a server, so that entities have no numbers of the server's.
type syncEnd struct{ *Predictor }

func (syncEnd) identity(e ecs.Entity) uint64 { return uint64(e.ID())<<32 | uint64(e.Generation()) }

// reordered is a component that changes the places of entities.
type reordered struct{}

type syncTest struct {
	tb         TB
	world      *ecs.World
	sim        *simulation
	rng        *rand.Rand
	moved      ecs.ID
	replicated ecs.ID
	players    []ecs.Entity
	types      []syncType // of components
	pictures   []picture  // by tick, of the first run
	second     picture
	list       []ecs.Entity   // scratch memory
	flat       flat.Flattener // the same
}

type syncType struct {
	id       ecs.ID
	typ      reflect.Type
	relation bool
	ours     bool // not compared
	known    bool // when a tick is simulated again
}

// begin makes everything that is replicated predicted, from tick 0 on.
func (x *syncTest) begin() {
	s := x.sim
	s.newest, s.running = 0, true
	for q := x.world.Query(ecs.All(x.replicated)); q.Next(); {
		s.scratch.list = append(s.scratch.list, q.Entity())
	}
	if len(s.scratch.list) == 0 {
		x.tb.Fatalf("predict: SyncTest: setup has made no entity with replication.Replicated, so nothing is simulated")
	}
	for _, e := range s.scratch.list {
		s.rows[s.add(e)].unowned = true // their inputs are not the client's
	}
	s.scratch.list = s.scratch.list[:0]
	s.save(0)
	x.take(x.picture(0))
}

func (x *syncTest) picture(tick replication.Tick) *picture {
	return &x.pictures[int(tick)%len(x.pictures)]
}

// play simulates a tick, and it and those before it again.
func (x *syncTest) play(tick, depth replication.Tick) {
	s := x.sim
	s.simulate(tick)
	x.take(x.picture(tick))
	x.judgeStep(tick)
	s.rewind(tick - depth)
	x.reorder()
	for again := tick - depth + 1; again <= tick; again++ {
		s.simulate(again)
		x.take(&x.second)
		x.compare(again, tick)
	}
	for i := range s.rows {
		if r := &s.rows[i]; !r.entity.IsZero() && r.parked && !r.gone.After(tick-depth) {
			s.remove(uint32(i))
		}
	}
}

// reorder changes the order in which queries return entities: of the rows in each table, and of tables, since half of
// the entities keep the component.
func (x *syncTest) reorder() {
	x.find(ecs.All())
	x.rng.Shuffle(len(x.list), func(i, j int) { x.list[i], x.list[j] = x.list[j], x.list[i] })
	for _, e := range x.list {
		x.sim.removeComponent(e, x.moved)
		x.sim.addComponent(e, x.moved)
	}
	for _, e := range x.list[:len(x.list)/2] {
		x.sim.removeComponent(e, x.moved)
	}
}

func (x *syncTest) find(filter ecs.Filter) {
	x.list = x.list[:0]
	for q := x.world.Query(filter); q.Next(); {
		x.list = append(x.list, q.Entity())
	}
}

// A picture is a world at the end of a tick, without what is parked.
type picture struct {
	items []item // resources, then entities in their order with their components
	words []uint64
}

// An item is an entity, a component or a resource.
type item struct {
	entity ecs.Entity // zero: a resource
	part   int        // the index of the component or the resource; -1: the entity
	from   int        // in the words
}

func (x *syncTest) take(p *picture) {
	w := x.world
	ids := ecs.ComponentIDs(w)
	for _, id := range ids[len(x.types):] {
		info, _ := ecs.ComponentInfo(w, id)
		x.types = append(x.types, syncType{
			id: id, typ: info.Type, relation: info.IsRelation,
			ours: id == x.moved || id == x.sim.ids.predicted || id == x.sim.ids.parked,
			known: id == x.sim.ids.input || id == x.sim.ids.born ||
				slices.ContainsFunc(x.sim.columns, func(c column) bool { return c.inside().id == id }),
		})
	}
	p.words = append(p.words[:0], 0) // never nil
	x.flat = flat.Flattener{Words: p.words, Target: -1, Opaque: opaque}
	p.items = p.items[:0]
	for i, id := range ecs.ResourceIDs(w) {
		if w.Resources().Has(id) {
			x.add(p, item{part: i})
		}
	}
	there := ecs.All().Without(x.sim.ids.parked)
	x.find(&there)
	slices.SortFunc(x.list, func(a, b ecs.Entity) int { return compareItems(item{entity: a}, item{entity: b}) })
	for _, e := range x.list {
		x.add(p, item{entity: e, part: -1})
		mask := w.Mask(e)
		for i := range x.types {
			if !x.types[i].ours && mask.Get(x.types[i].id) {
				x.add(p, item{entity: e, part: i})
			}
		}
	}
	p.words = x.flat.Words
}

func (x *syncTest) add(p *picture, at item) {
	at.from = len(x.flat.Words)
	p.items = append(p.items, at)
	x.flatten(at)
}

// flatten appends the words of an item.
func (x *syncTest) flatten(at item) {
	switch x.flat.Start = len(x.flat.Words); {
	case at.entity.IsZero():
		x.flat.Add(reflect.ValueOf(x.world.Resources().Get(ecs.ResourceIDs(x.world)[at.part])).Elem())
		return
	case at.part < 0:
		return
	}
	t := &x.types[at.part]
	if t.typ.Size() > 0 {
		x.flat.Add(reflect.NewAt(t.typ, x.world.Get(at.entity, t.id)).Elem())
	}
	if t.relation {
		from := len(x.flat.Words)
		if x.flat.Add(reflect.ValueOf(x.world.Relations().Get(at.entity, t.id))); x.flat.Hits(from) {
			x.flat.Path, x.flat.Kind = "'s target", reflect.Struct
		}
	}
}

func compareItems(a, b item) int {
	return cmp.Or(
		cmp.Compare(a.entity.ID(), b.entity.ID()), cmp.Compare(a.entity.Generation(), b.entity.Generation()),
		cmp.Compare(a.part, b.part))
}

// find returns the words of an item, or nil.
func (p *picture) find(at item) []uint64 {
	i, ok := slices.BinarySearchFunc(p.items, at, compareItems)
	if !ok {
		return nil
	}
	end := len(p.words)
	if i+1 < len(p.items) {
		end = p.items[i+1].from
	}
	return p.words[p.items[i].from:end]
}

// differences calls fn for the items that differ, with their words in each picture, nil where there is none. Components
// of an entity that only one of them has are left out.
func differences(a, b *picture, fn func(at item, a, b []uint64)) {
	all := slices.Concat(a.items, b.items)
	slices.SortFunc(all, compareItems)
	for _, at := range slices.CompactFunc(all, func(a, b item) bool { return compareItems(a, b) == 0 }) {
		entity := item{entity: at.entity, part: -1}
		was, is := a.find(at), b.find(at)
		switch {
		case was != nil && is != nil && slices.Equal(was, is):
		case at.part >= 0 && !at.entity.IsZero() && (a.find(entity) == nil) != (b.find(entity) == nil):
		default:
			fn(at, was, is)
		}
	}
}

// judgeStep looks for changes of a tick that can't be taken back.
func (x *syncTest) judgeStep(tick replication.Tick) {
	x.tb.Helper()
	was, is := x.picture(tick-1), x.picture(tick)
	if slices.EqualFunc(was.items, is.items, func(a, b item) bool { return compareItems(a, b) == 0 }) {
		return
	}
	differences(was, is, func(at item, before, after []uint64) {
		x.tb.Helper()
		verb := " was removed by the step"
		if before == nil {
			verb = " was added by the step"
		}
		switch {
		case before != nil && after != nil:
		case at.entity.IsZero():
			x.fail(tick, at, "", verb+", which a rollback does not take back. Add it in setup.")
		case at.part >= 0:
			x.fail(tick, at, "", verb+". A rollback restores values and not which components there are: have it "+
				"from the beginning, with a field that turns it on.")
		case before == nil && !x.has(at.entity, x.sim.ids.predicted):
			x.fail(tick, at, "", verb+" past Tick.Spawn, so each rollback makes another one.")
		case after == nil && !x.world.Alive(at.entity):
			x.fail(tick, at, "", verb+" past Tick.Despawn, so no rollback brings it back.")
		}
	})
}

// compare compares the second run of a tick with the first one.
func (x *syncTest) compare(tick, last replication.Tick) {
	x.tb.Helper()
	first := x.picture(tick)
	if slices.Equal(first.items, x.second.items) && slices.Equal(first.words, x.second.words) {
		return
	}
	var worst item
	var of [2][]uint64
	rank, others := 0, []string(nil)
	differences(first, &x.second, func(at item, a, b []uint64) {
		r := 1 // what is not restored is a cause of what follows
		if a == nil || b == nil {
			r = 2
		} else if x.unrestored(at) == "" {
			r = 3
		}
		others = append(others, x.nameOf(at, ""))
		if rank == 0 || r < rank {
			worst, of, rank = at, [2][]uint64{a, b}, r
		}
	})
	why := x.unrestored(worst)
	if why == "" {
		why = likely
	}
	others = slices.DeleteFunc(others, func(o string) bool { return o == x.nameOf(worst, "") })
	if len(others) > 0 {
		why += " Also different: " + strings.Join(others[:min(len(others), 3)], "; ") + "."
	}
	switch {
	case of[0] == nil:
		x.fail(tick, worst, "", " is there only after the second run."+why)
	case of[1] == nil:
		x.fail(tick, worst, "", " is there only after the first run."+why)
	}
	for t := tick; rank == 1 && !t.After(last); t++ { // in which tick was it changed?
		if a, b := x.picture(t-1).find(worst), x.picture(t).find(worst); a != nil && b != nil && !slices.Equal(a, b) {
			path, was, is := x.field(worst, a, b)
			x.fail(t, worst, path, " was changed by the step from "+was+" to "+is+"."+why)
		}
	}
	path, was, is := x.field(worst, of[0], of[1])
	x.fail(tick, worst, path, " was "+was+" at first, and "+is+" when the tick was simulated again."+why)
}

const likely = " Likely causes: the order of a map, the order of rows (sums of floats, who comes first), the clock, " +
	"random numbers that are not Tick.Rand's, global variables, or something that the step keeps outside of the world."

// unrestored returns why a component or resource isn't as it was after a rollback, or nothing if it is.
func (x *syncTest) unrestored(at item) string {
	switch {
	case at.entity.IsZero():
		return " Resources are not restored by rollbacks: keep what the step changes in a component that is a State."
	case at.part < 0:
		return ""
	case !x.has(at.entity, x.sim.ids.predicted):
		return " This entity is not simulated, so rollbacks don't restore it: use only what Tick.Query returns, or " +
			"mark it with replication.Replicated."
	case x.types[at.part].relation:
		return " Relations are not restored by rollbacks: use a State with a field of type ecs.Entity."
	case !x.types[at.part].known:
		return " It is no State of the model, so rollbacks don't restore it: declare it with State, or change it " +
			"outside of the step."
	}
	return ""
}

func (x *syncTest) has(e ecs.Entity, id ecs.ID) bool { return x.world.Alive(e) && x.world.Has(e, id) }

// field returns the path of the first difference of an item, and the two values there.
func (x *syncTest) field(at item, a, b []uint64) (path, was, is string) {
	k := 0
	for k < min(len(a), len(b))-1 && a[k] == b[k] {
		k++
	}
	x.flat = flat.Flattener{Target: k, Opaque: opaque}
	x.flatten(at)
	if was, is = flat.Show(x.flat.Kind, a[k]), flat.Show(x.flat.Kind, b[k]); was == is {
		was, is = "one value", "another"
	}
	return x.flat.Path, was, is
}

// nameOf returns the name of what an item is.
func (x *syncTest) nameOf(at item, path string) string {
	if at.entity.IsZero() {
		t, _ := ecs.ResourceType(x.world, ecs.ResourceIDs(x.world)[at.part])
		return "resource " + t.String() + path
	}
	name := fmt.Sprintf("entity %v", at.entity)
	if i := slices.Index(x.players, at.entity); i >= 0 {
		name += fmt.Sprintf(" (player %d)", i)
	} else if x.has(at.entity, x.sim.ids.born) {
		b := (*Born)(x.world.Get(at.entity, x.sim.ids.born))
		name += fmt.Sprintf(" (spawned by %v in tick %d with key %d)", b.By, b.Tick, b.Key)
	}
	if at.part >= 0 {
		name += ": " + x.types[at.part].typ.String() + path
	}
	return name
}

func (x *syncTest) fail(tick replication.Tick, at item, path, what string) {
	x.tb.Helper()
	x.tb.Fatalf("predict: SyncTest: tick %d, %s%s", tick, x.nameOf(at, path), what)
}

// opaque reports what SyncTest does not look into.
func opaque(t reflect.Type) bool {
	return t == reflect.TypeFor[ecs.World]() || t == reflect.TypeFor[replication.Client]() ||
		t == reflect.TypeFor[replication.Server]()
}
