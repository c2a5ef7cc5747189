package replication

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A client may have an entity before the server's word of it comes: a shot that it predicts,
// a crate of a level that it loaded. It expects the server's entity then, and when that
// comes the client adopts its own for it, in place of spawning another. What tells that the
// two are the same is a component with the same codes at both ends, the signature.

// expectations are the local entities that wait to be adopted.
type expectations struct {
	schema *schema.Schema
	stats  *clientCounters
	view   *worldView

	items    []expectation
	free     []int32
	bySign   map[uint64]waiters // by the hash of their signature
	byEntity map[ecs.Entity]int32
	now      uint64 // calls of Apply
	nextEnd  uint64 // when the first of them ends, or before
	timed    int    // how many end at all
	swept    int    // items looked at so far, for entities that are no more
}

// waiters are the first and the last of those whose signatures have the same hash.
type waiters struct{ first, last int32 }

type expectation struct {
	entity    ecs.Entity // zero if the item is not in use
	component int
	codes     []uint32 // its signature
	hash      uint64
	until     uint64 // the last Apply in which it may be adopted, or 0
	next      int32  // -1 for the last
}

// Expect makes a local entity wait for the server's: when an entity comes from the server
// whose component T has the same codes as this one's has now, the client adopts the local
// one for it. From then on the local entity is the mirror: it has the server's components,
// in place of its own where it has the same, and keeps all others. Hooks are called for it
// as for one that is spawned.
//
//	type Shot struct { // the signature
//		Owner  ecs.Entity
//		Number uint16
//	}
//
//	e := world.NewEntity(positionID, shotID) // predicted
//	*(*Shot)(world.Get(e, shotID)) = Shot{Owner: me, Number: next}
//	replication.Expect[Shot](client, e, 60)
//
// applies is in how many calls of Apply it may be adopted, 0 for as long as it takes. The
// one after them ends its waiting, and so does that the entity is removed, or the world is
// reset; see [Client.Expects]. The library never removes it: what the server never confirms is the
// user's to remove.
//
// The signature's fields that refer to entities mean what those mirror; those that mirror
// nothing count as none. Where several entities wait with the same signature, the one that
// was expected first is adopted first, and one that comes when none waits is spawned. T
// must be with the entity when it comes; that it gets T later does not count. An entity
// that came before it was expected is not looked at.
//
// An entity waits with one signature: to expect it again replaces what was before.
//
// Panics if T is not in the schema, the entity is dead, has no T or is mirrored already, or
// if applies is negative.
func Expect[T any](c *Client, e ecs.Entity, applies int) {
	c.mustExist()
	k := c.apply.view.number("Expect", reflect.TypeFor[T]())
	c.apply.noticeReset()
	c.apply.expected.expect(k, e, applies)
}

// Expects reports whether a local entity waits for the server's; see [Expect]. It does not
// any more when it was adopted: then [Client.NetID] tells what it mirrors.
func (c *Client) Expects(e ecs.Entity) bool {
	c.mustExist()
	return c.apply.expected.expects(e)
}

func (x *expectations) expects(e ecs.Entity) bool {
	_, ok := x.byEntity[e]
	return ok && x.view.intact() && archeutil.Alive(x.view.world, e)
}

func (x *expectations) expect(k int, e ecs.Entity, applies int) {
	comp := &x.schema.Components[k]
	switch {
	case comp.Resource:
		panic(fmt.Sprintf("replication: Expect: %s is a resource, which no entity has: expect by a component", comp.Name))
	case applies < 0:
		panic(fmt.Sprintf("replication: Expect: %d calls of Apply: use 0 for as long as it takes, or more", applies))
	case !archeutil.Alive(x.view.world, e):
		panic("replication: Expect: the entity is dead: expect one that is in the client's world")
	case !x.view.world.Has(e, x.view.components[k]):
		panic(fmt.Sprintf("replication: Expect: the entity has no %s: add the component, its value is what the server's entity is known by", comp.Name))
	case x.view.world.Has(e, x.view.marker):
		panic("replication: Expect: the entity is mirrored already: expect a local one")
	}
	if old, ok := x.byEntity[e]; ok {
		x.remove(old)
	}
	if x.byEntity == nil {
		x.bySign, x.byEntity = map[uint64]waiters{}, map[ecs.Entity]int32{}
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
	if applies > 0 {
		item.until = x.now + uint64(applies)
		if x.timed == 0 || item.until < x.nextEnd {
			x.nextEnd = item.until
		}
		x.timed++
	}
	x.byEntity[e] = i
	w, ok := x.bySign[item.hash]
	if ok {
		x.items[w.last].next = i
		w.last = i
	} else {
		w = waiters{i, i}
	}
	x.bySign[item.hash] = w
}

// hashRow returns a hash of a component's row.
func hashRow(k int, row []uint32) uint64 {
	h := wire.Mix64(uint64(k) + wire.Golden64)
	for _, w := range row {
		h = wire.Mix64((h ^ uint64(w)) + wire.Golden64)
	}
	return h
}

// remove takes an item out.
func (x *expectations) remove(i int32) {
	item := &x.items[i]
	w := x.bySign[item.hash]
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
		x.bySign[item.hash] = w
	case item.next >= 0:
		w.first = item.next
		x.bySign[item.hash] = w
	default:
		delete(x.bySign, item.hash)
	}
	if item.until > 0 {
		x.timed--
	}
	delete(x.byEntity, item.entity)
	*item = expectation{codes: item.codes[:0]}
	x.free = append(x.free, i)
}

// reset makes nothing be expected any more.
func (x *expectations) reset() {
	*x = expectations{schema: x.schema, stats: x.stats, view: x.view, now: x.now}
}

// expire ends the expectations whose time is over, and finds those of entities that are no
// more one by one. It is called at the beginning of Apply.
func (x *expectations) expire() {
	x.now++
	if len(x.byEntity) == 0 {
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
				if archeutil.Alive(x.view.world, item.entity) {
					x.stats.Unconfirmed++
				}
				x.remove(int32(i))
			}
		}
	}
	i := x.swept % len(x.items)
	x.swept = i + 1
	if e := x.items[i].entity; !e.IsZero() && !archeutil.Alive(x.view.world, e) {
		x.remove(int32(i))
	}
}

// match returns the local entity that waits for one of the given state, and takes it from
// those that wait; or the zero entity.
func (x *expectations) match(state *heldState) ecs.Entity {
	if len(x.byEntity) == 0 {
		return ecs.Entity{}
	}
	set := &state.shape.set
	for k := set.Next(0); k >= 0; k = set.Next(k + 1) {
		row := state.row(k, x.schema.Components[k].Words)
		w, ok := x.bySign[hashRow(k, row)]
		if !ok {
			continue
		}
		for i := w.first; i >= 0; {
			item := &x.items[i]
			next, e := item.next, item.entity
			if item.component == k && slices.Equal(item.codes, row) {
				x.remove(i)
				if archeutil.Alive(x.view.world, e) && !x.view.world.Has(e, x.view.marker) {
					return e
				}
			}
			i = next
		}
	}
	return ecs.Entity{}
}
