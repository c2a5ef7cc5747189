package replication

import (
	"math/bits"

	"github.com/mlange-42/arche/ecs"
)

// Interest says what a peer may see. An entity is visible to it if Filter and Visible
// agree, and it is in the view of Grid or in one of Sets, where there is one of these. The
// zero value shows everything.
//
// Of entities that it may not see, a peer is sent nothing: no byte that it gets depends
// on them, except that they take slots.
type Interest struct {
	// Filter shows entities by their components. It is asked once for every set of
	// components, and costs nothing beyond that.
	Filter ecs.Filter

	// Grid shows entities that are near what [Peer.LookFrom] says, and those without a
	// position in the grid.
	Grid *Grid

	// Sets show their members.
	Sets []*EntitySet

	// Visible is asked for every entity that passes all of the above, in every
	// Replicate, on the caller's goroutine. It must not change the world.
	Visible func(e ecs.Entity) bool

	// Keep leaves entities that go out of view with the client, as it saw them last. It
	// learns of their end only. Without Keep they are despawned there.
	Keep bool
}

// SetInterest sets what the peer may see, from the next Replicate on. Any field can be
// changed at any tick.
//
// Panics if the grid or a set is of another server.
func (p *Peer) SetInterest(i Interest) {
	if i.Grid != nil && i.Grid.server != p.server {
		panic("replication: a grid of another server: make one with this server's NewGrid")
	}
	for _, set := range i.Sets {
		if set.server != p.server {
			panic("replication: an entity set of another server: make one with this server's NewEntitySet")
		}
	}
	p.view.Interest = i
	p.view.limited = i.Filter != nil || i.Grid != nil || len(i.Sets) > 0 || i.Visible != nil
	p.view.passes, p.view.lastTable = nil, nil
}

// A view is what a peer may see, as slots.
type view struct {
	Interest
	limited bool
	visible bitset // nil: all
	next    bitset // scratch memory
	hidden  int    // live slots that are not visible

	passes    map[*table]bool // what Filter says
	lastTable *table          // asked for last
	lastPass  bool
	eye       eye
}

// sees returns those of the slots of a block that the peer may see, if they are alive.
func (v *view) sees(b int, mask uint64) uint64 {
	if v.visible == nil {
		return mask
	}
	return mask & v.visible[b]
}

// look finds out what the peer sees now, and deals with what enters or leaves its view.
func (p *Peer) look() {
	v, s := &p.view, &p.server.slots
	if !v.limited && v.visible == nil {
		return
	}
	for len(v.visible) < len(s.alive) {
		grown := ^uint64(0) // it saw everything so far, or else nothing of the new
		if v.visible != nil && v.next != nil {
			grown = 0
		}
		v.visible = append(v.visible, grown)
	}
	v.next = v.next.grown(s.len())
	v.find(s)
	v.hidden = 0
	for b, alive := range s.alive {
		now := v.next[b] & alive
		was := v.visible[b]
		v.visible[b] = now
		v.hidden += bits.OnesCount64(alive &^ now)
		if entered := now &^ was; entered != 0 {
			p.enter(b, entered)
		}
		if left := was &^ now & (p.acks.blocks[b].shown | p.due[b]); left != 0 {
			p.leave(b, left)
		}
	}
	if !v.limited {
		v.visible, v.next = nil, nil
	}
}

// find sets next to the slots that the view shows.
func (v *view) find(s *slotTable) {
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
	if v.Filter == nil && v.Visible == nil {
		return
	}
	for b, word := range v.next {
		for slot := range slotsOf(b, word&s.alive[b]) {
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
func (p *Peer) enter(b int, mask uint64) {
	t := &p.acks
	for held := mask & t.blocks[b].acked; held != 0; held &= held - 1 {
		slot := b<<6 + bits.TrailingZeros64(held) // kept while it was out of view
		if at, ok := t.newest(slot, p.recent, p.server.tick); ok && !p.server.slots.changed[slot].After(at) {
			mask &^= 1 << (slot & 63)
		}
	}
	p.due[b] |= mask
}

// leave notes that slots of a block went out of view.
func (p *Peer) leave(b int, mask uint64) {
	blk := &p.acks.blocks[b]
	if p.view.Keep {
		p.due[b] &^= mask & p.server.slots.alive[b]
		return
	}
	p.due[b] = p.due[b]&^mask | mask&blk.shown
	p.turn(b, mask)
}
