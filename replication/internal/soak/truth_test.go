package soak

import (
	"unsafe"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A timeline is the history of a value, by tick.
type timeline[T comparable] struct {
	marks []mark[T]
}

type mark[T comparable] struct {
	tick uint32
	v    T
}

func (l *timeline[T]) set(tick uint32, v T) {
	if n := len(l.marks); n == 0 || l.marks[n-1].v != v {
		l.marks = append(l.marks, mark[T]{tick, v})
	}
}

// at returns the value at a tick, zero before the first.
func (l *timeline[T]) at(tick uint32) T {
	for i := len(l.marks) - 1; i >= 0; i-- {
		if !after(l.marks[i].tick, tick) {
			return l.marks[i].v
		}
	}
	var none T
	return none
}

func (l *timeline[T]) last() T {
	if len(l.marks) == 0 {
		var none T
		return none
	}
	return l.marks[len(l.marks)-1].v
}

// A version is the value of a component from a tick on.
type version struct {
	tick  uint32
	there bool
	cells []cell
}

// A life is an entity from the tick that found it to the first tick without it; or the resources of
// a world.
type life struct {
	id          replication.NetID
	e           ecs.Entity
	born, ended uint32 // ended is the first tick without it
	over        bool
	found       uint32
	versions    [][]version // by component
	group       timeline[int]
}

func (l *life) lives(tick uint32) bool {
	return !after(l.born, tick) && (!l.over || after(l.ended, tick))
}

// at returns a component at a tick, nil if it was not there.
func (l *life) at(component int, tick uint32) *version {
	all := l.versions[component]
	for i := len(all) - 1; i >= 0; i-- {
		if !after(all[i].tick, tick) {
			if all[i].there {
				return &all[i]
			}
			return nil
		}
	}
	return nil
}

// A truth is the state of a server's world in every tick that it replicated.
type truth struct {
	fail   func(format string, args ...any)
	world  *ecs.World
	server *replication.Server
	plan   *plan
	marker ecs.ID
	ids    []ecs.ID // by component; those of resources are not used
	resIDs []ecs.ResID
	exact  bool // the world holds values that were quantised before

	first, now uint32
	ticks      int
	lives      map[replication.NetID]*life
	here       []*life
	byEntity   map[ecs.Entity]*life
	resources  *life
	scratch    []cell
}

func newTruth(world *ecs.World, p *plan, server *replication.Server, marker ecs.ID) *truth {
	t := &truth{
		world: world, server: server, plan: p, marker: marker, lives: map[replication.NetID]*life{},
		byEntity: map[ecs.Entity]*life{}, resources: &life{versions: make([][]version, len(p.components))},
	}
	t.ids, t.resIDs = idsOf(world, p, false)
	for _, c := range p.components {
		t.scratch = append(t.scratch, make([]cell, max(0, c.cells-len(t.scratch)))...)
	}
	return t
}

// idsOf returns the IDs of a plan's types in a world.
func idsOf(world *ecs.World, p *plan, client bool) (ids []ecs.ID, resources []ecs.ResID) {
	ids, resources = make([]ecs.ID, len(p.components)), make([]ecs.ResID, len(p.components))
	for i, c := range p.components {
		typ := c.server.typ
		if client {
			typ = c.client.typ
		}
		if c.resource {
			resources[i] = ecs.ResourceTypeID(world, typ)
		} else {
			ids[i] = ecs.TypeID(world, typ)
		}
	}
	return ids, resources
}

// pack packs a reference into a number, 0 being no entity.
func pack(id replication.NetID) uint64 { return uint64(id.Slot)<<17 | uint64(id.Generation)<<1 | 1 }

func unpack(u uint64) replication.NetID {
	return replication.NetID{Slot: uint32(u >> 17), Generation: uint16(u >> 1)}
}

// record is called after every Replicate.
func (t *truth) record() {
	tick := t.server.Tick()
	if t.ticks == 0 {
		t.first = uint32(tick)
		t.resources.born = uint32(tick)
	}
	t.ticks++
	t.now = uint32(tick)
	t.here = t.here[:0]
	clear(t.byEntity)
	query := t.world.Query(ecs.All(t.marker))
	for query.Next() {
		e := query.Entity()
		id, ok := t.server.NetID(e)
		if !ok {
			t.fail("the server has not found %v", e)
		}
		l := t.lives[id]
		switch {
		case l == nil:
			l = &life{id: id, e: e, born: uint32(tick), versions: make([][]version, len(t.plan.components))}
			t.lives[id] = l
		case l.over || l.e != e || replication.Tick(l.found) == tick:
			t.fail("%v names %v and then %v", id, l.e, e)
		}
		if back, ok := t.server.Entity(id); !ok || back != e {
			t.fail("Server.Entity of %v is %v, not %v", id, back, e)
		}
		l.found = uint32(tick)
		t.byEntity[e] = l
		t.here = append(t.here, l)
	}
	for _, l := range t.lives {
		if !l.over && replication.Tick(l.found) != tick {
			l.over, l.ended = true, uint32(tick)
		}
	}
	for _, l := range t.here {
		for i, c := range t.plan.components {
			if !c.resource {
				t.capture(l, c, t.world.Has(l.e, t.ids[i]), func() unsafe.Pointer { return t.world.Get(l.e, t.ids[i]) })
			}
		}
	}
	for i, c := range t.plan.components {
		if c.resource {
			t.capture(t.resources, c, t.world.Resources().Has(t.resIDs[i]), func() unsafe.Pointer {
				return pointerIn(t.world.Resources().Get(t.resIDs[i]))
			})
		}
	}
	if n := t.server.Stats().Entities; n != len(t.here) {
		t.fail("the server has %d entities, not %d", n, len(t.here))
	}
}

// capture records a component if it has changed.
func (t *truth) capture(l *life, c *component, there bool, get func() unsafe.Pointer) {
	all := l.versions[c.index]
	var last *version
	if len(all) > 0 {
		last = &all[len(all)-1]
	}
	if !there {
		if last != nil && last.there {
			l.versions[c.index] = append(all, version{tick: t.now})
		}
		return
	}
	if last != nil && last.there && c.once {
		return // read when it was added
	}
	now := t.scratch[:c.cells]
	clear(now)
	readAll(&c.server, get(), now)
	if c.relation {
		now[c.cells-1] = cell{e: t.world.Relations().Get(l.e, t.ids[c.index])}
	}
	for i := range now {
		if now[i].e != (ecs.Entity{}) {
			if other := t.byEntity[now[i].e]; other != nil {
				now[i].u = pack(other.id)
			}
			now[i].e = ecs.Entity{}
		}
	}
	if last == nil || !last.there || !sameCells(last.cells, now) {
		l.versions[c.index] = append(all, version{t.now, true, append([]cell(nil), now...)})
	}
}

func readAll(v *view, p unsafe.Pointer, out []cell) {
	for i := range v.leaves {
		l := &v.leaves[i]
		l.read(p, out[l.at:l.at+l.n])
	}
}
