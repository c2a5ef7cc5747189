package apply

import (
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Expected entities. A client may create an entity before the server's arrives: a shot that it
// predicts, a crate of a level that it loaded. It then expects the server's entity, and when that
// arrives the client adopts its own entity for it instead of spawning another. Two entities are the
// same if a component, the signature, has the same codes at both ends.

// expectations are the local entities that wait to be adopted.
type expectations struct {
	schema *schema.Schema
	stats  *counters.ClientCounters
	view   *worldView

	items    []expectation
	free     []int32
	BySign   map[uint64]waiters // by the hash of their signature
	ByEntity map[ecs.Entity]int32
	now      uint64 // ticks
	nextEnd  uint64 // no expectation ends before this tick
	timed    int    // how many have an end
	swept    int    // items checked so far for entities that were removed
}

// waiters are the first and the last item whose signatures have the same hash.
type waiters struct{ first, last int32 }

// expectation is an entity that waits to be adopted.
type expectation struct {
	entity    ecs.Entity // zero if the item is not in use
	component int
	codes     []uint32 // its signature
	hash      uint64
	until     uint64 // the last tick in which it may be adopted; 0: no end
	next      int32  // with the same hash; -1 for the last
}

// Expects reports whether an entity waits to be adopted.
func (x *expectations) Expects(e ecs.Entity) bool {
	_, ok := x.ByEntity[e]
	return ok && x.view.Intact() && archeutil.Alive(x.view.World, e)
}

// Expect makes an entity wait, with component k as its signature, for so many ticks; 0 means without end.
func (x *expectations) Expect(k int, e ecs.Entity, ticks int) {
	comp := &x.schema.Components[k]
	switch {
	case comp.Resource:
		panic(fmt.Sprintf("replication: Expect: %s is a resource, which no entity has: "+
			"expect by a component", comp.Name))
	case !archeutil.Alive(x.view.World, e):
		panic("replication: Expect: the entity is dead: expect one that is in the client's world")
	case !x.view.World.Has(e, x.view.Components[k]):
		panic(fmt.Sprintf("replication: Expect: the entity has no %s: "+
			"add the component, its value is what the server's entity is known by", comp.Name))
	case x.view.World.Has(e, x.view.Marker):
		panic("replication: Expect: the entity is a replica already: expect a local one")
	}
	if old, ok := x.ByEntity[e]; ok {
		x.remove(old)
	}
	if x.ByEntity == nil {
		x.BySign, x.ByEntity = map[uint64]waiters{}, map[ecs.Entity]int32{}
	}
	var i int32
	if n := len(x.free); n > 0 {
		i, x.free = x.free[n-1], x.free[:n-1]
	} else {
		i = int32(len(x.items))
		x.items = append(x.items, expectation{})
	}
	item := &x.items[i]
	item.entity, item.component, item.next, item.until = e, k, -1, 0
	item.codes = x.view.sign(k, e, item.codes)
	item.hash = hashRow(k, item.codes)
	if ticks > 0 {
		item.until = x.now + uint64(ticks)
		if x.timed == 0 || item.until < x.nextEnd {
			x.nextEnd = item.until
		}
		x.timed++
	}
	x.ByEntity[e] = i
	w, ok := x.BySign[item.hash]
	if ok {
		x.items[w.last].next = i
		w.last = i
	} else {
		w = waiters{i, i}
	}
	x.BySign[item.hash] = w
}

// hashRow returns a hash of a component's row.
func hashRow(k int, row []uint32) uint64 {
	h := wire.Mix64(uint64(k) + wire.Golden64)
	for _, w := range row {
		h = wire.Mix64((h ^ uint64(w)) + wire.Golden64)
	}
	return h
}

// remove removes an item.
func (x *expectations) remove(i int32) {
	item := &x.items[i]
	w := x.BySign[item.hash]
	prev := int32(-1)
	for at := w.first; at != i; at = x.items[at].next {
		prev = at
	}
	switch {
	case prev >= 0:
		x.items[prev].next = item.next
		if w.last == i {
			w.last = prev
		}
		x.BySign[item.hash] = w
	case item.next >= 0:
		w.first = item.next
		x.BySign[item.hash] = w
	default:
		delete(x.BySign, item.hash)
	}
	if item.until > 0 {
		x.timed--
	}
	delete(x.ByEntity, item.entity)
	*item = expectation{codes: item.codes[:0]}
	x.free = append(x.free, i)
}

// reset removes all expectations.
func (x *expectations) reset() {
	*x = expectations{schema: x.schema, stats: x.stats, view: x.view, now: x.now}
}

// Expire lets ticks pass: it ends the expectations whose time is over, and finds those of removed
// entities a few at a time.
func (x *expectations) Expire(ticks uint32) {
	x.now += uint64(ticks)
	if len(x.ByEntity) == 0 {
		return
	}
	if x.timed > 0 && x.now > x.nextEnd {
		x.nextEnd = ^uint64(0)
		for i := range x.items {
			switch item := &x.items[i]; {
			case item.until == 0:
			case item.until >= x.now:
				x.nextEnd = min(x.nextEnd, item.until)
			default:
				if archeutil.Alive(x.view.World, item.entity) {
					x.stats.Unconfirmed++
				}
				x.remove(int32(i))
			}
		}
	}
	for range len(x.items)/sweeps + 1 {
		i := x.swept % len(x.items)
		x.swept = i + 1
		if e := x.items[i].entity; !e.IsZero() && !archeutil.Alive(x.view.World, e) {
			x.remove(int32(i))
		}
	}
}

// sweeps is the number of calls in which Expire checks all items, so that what a game expects and removes in so many
// calls is all that accumulates.
const sweeps = 64

// match removes and returns the local entity that waits for one with the given state. It returns
// the zero entity if there is none.
func (x *expectations) match(state *receive.HeldState) ecs.Entity {
	if len(x.ByEntity) == 0 {
		return ecs.Entity{}
	}
	set := &state.Layout.Set
	for k := range set.All() {
		row := state.Row(k, x.schema.Components[k].Words)
		w, ok := x.BySign[hashRow(k, row)]
		if !ok {
			continue
		}
		for i := w.first; i >= 0; {
			item := &x.items[i]
			next, e := item.next, item.entity
			if item.component == k && slices.Equal(item.codes, row) {
				x.remove(i)
				if archeutil.Alive(x.view.World, e) && !x.view.World.Has(e, x.view.Marker) {
					return e
				}
			}
			i = next
		}
	}
	return ecs.Entity{}
}
