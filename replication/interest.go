package replication

import (
	"fmt"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// Interest says what a peer may see. An entity is visible to it if Filter and Visible
// agree, and it is in the view of Grid or in one of Sets, where there is one of these. The
// zero value shows everything. Who sees one entity of a [Group] sees all of them.
//
// Of entities that it may not see, a peer is sent nothing: no byte that it gets depends
// on them, except that they take slots. Resources are no entities: every peer gets them.
type Interest struct {
	// Filter shows entities by their components. It is asked once for every set of
	// components, and costs nothing beyond that.
	Filter ecs.Filter

	// Grid shows entities that are near what [Peer.LookFrom] says, and those without a
	// position in the grid.
	Grid *Grid

	// Sets show their members.
	Sets []*EntitySet

	// Visible is asked for every entity that passes all of the above, on the caller's
	// goroutine, in every Replicate in which the peer may be sent state or has a new message. It must not
	// change the world.
	Visible func(e ecs.Entity) bool

	// Keep leaves entities that go out of view with the client, as it saw them last. It
	// learns of their end only. Without Keep they are despawned there. A [Group] that was
	// kept is despawned as a whole as soon as one of it ends, leaves it or comes into view.
	// What stands under a condition, as [OwnerOnly], is kept for as long as that holds.
	Keep bool
}

// SetInterest sets what the peer may see, from the next Replicate on. Any field can be
// changed at any tick.
//
// Panics if the grid or a set is of another server, if a set is nil, or the filter is a nil pointer.
func (p *Peer) SetInterest(i Interest) {
	p.mustExist()
	if i.Grid != nil && i.Grid.server != p.server {
		panic("replication: a grid of another server: make one with this server's NewGrid")
	}
	for n, set := range i.Sets {
		if set == nil {
			panic(fmt.Sprintf("replication: entity set %d is nil: leave it out, or make one with NewEntitySet", n+1))
		}
		if set.server != p.server {
			panic("replication: an entity set of another server: make one with this server's NewEntitySet")
		}
	}
	if i.Filter != nil && isNil(i.Filter) {
		panic(fmt.Sprintf("replication: the filter of the Interest is a nil %T: leave Filter out to show all", i.Filter))
	}
	p.sight.view.released = p.sight.view.released || p.sight.view.Keep && !i.Keep
	c := criteria{Filter: i.Filter, Visible: i.Visible, Keep: i.Keep}
	if i.Grid != nil {
		c.Grid = &i.Grid.in
	}
	for _, set := range i.Sets {
		c.Sets = append(c.Sets, &set.in)
	}
	p.sight.view.criteria = c
	p.sight.view.passes, p.sight.view.lastTable = nil, nil
}

// criteria are an Interest inside.
type criteria struct {
	Filter  ecs.Filter
	Grid    *grid
	Sets    []*entitySet
	Visible func(e ecs.Entity) bool
	Keep    bool
}

// A view is what a peer may see, as slots.
type view struct {
	criteria
	limited bool
	visible bitset.Set // nil: all
	next    bitset.Set // scratch memory
	seen    int        // live slots that were visible when look was called last, if limited

	room     int  // slots that the client takes, from 0 on; 0: all
	crowded  bool // the server has more
	withheld int  // live slots that would be visible, were there room

	kept *keptFacets // with Keep, if there are conditions

	released bool      // Keep ended: what was kept is gone
	picked   delta.Set // conditions, those of OnlyFor only if the peer is picked

	passes    map[*table]bool // what Filter says
	lastTable *table          // asked for last
	lastPass  bool
	eye       eye
}

// divide divides the live slots into those that are visible, and the others into those that are withheld and those that are hidden.
func (v *view) divide(live int) (seen, withheld, hidden int) {
	if !v.limited {
		return live, 0, 0
	}
	seen = min(v.seen, live) // some may have ended since look was called
	withheld = min(v.withheld, live-seen)
	return seen, withheld, live - seen - withheld
}

// sees returns those of the slots of a block that the peer may see, if they are alive.
func (v *view) sees(b int, mask uint64) uint64 {
	if v.visible == nil {
		return mask
	}
	if b >= len(v.visible) {
		return 0 // new, and not looked at yet
	}
	return mask & v.visible[b]
}

// gone returns the slots of a block that the client may show and shall not, because what
// it shows has ended or, without Keep, went out of view.
func (p *tracker) gone(b int) uint64 {
	gone := p.acks.shown[b] &^ p.sight.view.sees(b, p.snap.slots.alive[b])
	if gone != 0 {
		gone &= p.acks.severed(b) | ^p.sight.keeps(b) // else it shows the entity that the slot still holds
	}
	return gone
}

// unseen returns the slots of a block that the peer does not see, and where it is known
// or being told that there is nothing: what comes and goes there is none of its business.
func (p *tracker) unseen(b int) uint64 {
	if b >= len(p.sight.view.visible) {
		return 0
	}
	return p.acks.severed(b) &^ p.sight.view.visible[b]
}

// look finds out what the peer sees now, and deals with what enters or leaves its view.
// Afterwards, what is due is what it sees, or gone.
func (p *tracker) look() {
	v, s := &p.sight.view, &p.snap.slots
	if !v.limited && v.visible == nil {
		return
	}
	for len(v.visible) < len(s.alive) {
		v.visible = append(v.visible, ^uint64(0)) // all that is new is due, as if it were seen
	}
	v.next = v.next.Grown(s.len())
	v.find(s, p.snap.resources.any)
	p.interest.groups.show(v.next)
	p.sight.withhold()
	p.sight.findFacets()
	p.sight.withholdFacets()
	p.sight.hold()
	seen := 0
	for b, alive := range s.alive {
		now, was := v.next[b]&alive, v.visible[b]|v.lapsed(b)
		if now|was == 0 && !p.acks.owed.Has(b) && !v.released {
			continue
		}
		v.visible[b] = now
		seen += bits.OnesCount64(now)
		if entered := now &^ was; entered != 0 {
			p.enter(b, entered)
		}
		if v.released {
			was |= ^p.acks.severed(b) // of what is severed the client is being told already
		}
		if left := was &^ now; left != 0 {
			p.leave(b, left)
		}
		if news := s.news[b] & now; news != 0 {
			p.owe(b, news)
		}
		if p.due[b]&^now != 0 {
			p.due[b] &= now | p.gone(b)
		}
	}
	v.seen, v.released = seen, false
	if !v.limited {
		v.visible, v.next = nil, nil
	}
}

// find sets next to the slots that the view shows. That of the resources, if there is one, is
// always among them, and nobody is asked.
func (v *view) find(s *slotTable, resources bool) {
	if v.Grid == nil && len(v.Sets) == 0 {
		copy(v.next, s.alive)
	} else {
		clear(v.next)
		if v.Grid != nil {
			v.Grid.find(&v.eye, v.next)
		}
		for _, set := range v.Sets {
			set.find(v.next)
		}
	}
	if resources {
		v.next.Add(resourceSlot)
	}
	if v.Filter == nil && v.Visible == nil {
		return
	}
	for b, word := range v.next {
		if s.facets(b) {
			continue
		}
		if b == resourceSlot>>6 && resources {
			word &^= 1 << (resourceSlot & 63)
		}
		for slot := range bitset.Slots(b, word&s.alive[b]) {
			if v.Filter != nil && !v.pass(s.info[slot].table) || v.Visible != nil && !v.Visible(s.info[slot].entity) {
				v.next[b] &^= 1 << (slot & 63)
			}
		}
	}
}

// pass reports whether Filter lets the entities of a table through.
func (v *view) pass(t *table) bool {
	if v.lastTable == t {
		return v.lastPass
	}
	pass, known := v.passes[t]
	if !known {
		if v.passes == nil {
			v.passes = map[*table]bool{}
		}
		pass = v.Filter.Matches(&t.mask)
		v.passes[t] = pass
	}
	v.lastTable, v.lastPass = t, pass
	return pass
}

// enter notes that slots of a block came into view.
func (p *tracker) enter(b int, mask uint64) {
	mask &= p.acks.behind(b) | p.snap.slots.news[b] // else it was kept while it was out of view
	p.owe(b, mask)
	p.noteStructure(b, mask)
}

// leave notes that slots of a block went out of view.
func (p *tracker) leave(b int, mask uint64) {
	p.due[b] &^= mask
	mask &= p.acks.shown[b]
	if mask != 0 {
		// The client keeps what it has, unless that may be an entity that ended, or is less than an entity: it can't have many of
		// these, so it is told to drop them.
		mask &= p.acks.severed(b) | ^p.sight.keeps(b) | p.neverWhole(b, mask)
	}
	if mask != 0 {
		p.owe(b, mask)
		p.turn(b, mask)
		p.noteStructure(b, mask)
	}
}
