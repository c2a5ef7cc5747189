// What is dirty for a peer: the slots that it is to be sent, because they changed, came into its view or left it, or because
// a packet was lost.

package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// MarkDirty notes that slots of a block are dirty: they are to be sent.
func (p *Tracker) MarkDirty(b int, mask uint64) {
	if mask != 0 {
		p.Dirty[b] |= mask
		p.Acks.DirtyBlocks.Add(b)
	}
}

// DirtyIn returns the dirty slots of a block, if it is among those that may have some.
func (p *Tracker) DirtyIn(b int) uint64 {
	dirty := p.Dirty[b]
	if dirty == 0 {
		p.Acks.DirtyBlocks.Remove(b)
	}
	return dirty
}

// Needs returns how many entries the peer is to be sent.
func (p *Tracker) Needs() (n int) {
	for w, missing := range p.Acks.DirtyBlocks {
		for b := range bitset.Slots(w, missing) {
			n += bits.OnesCount64(p.Dirty[b])
		}
	}
	return n
}

// Grow makes room for the slots that are new. All of them are due.
func (p *Tracker) Grow() {
	s := &p.Snap.Slots
	if old := len(p.Dirty); len(s.Alive) > old {
		p.Dirty = p.Dirty.Grown(s.Len())
		p.Acks.Grow(s.Len(), p.Snap.Tick)
		for b, alive := range s.Alive[old:] {
			p.MarkDirty(old+b, alive)
			p.noteStructure(old+b, alive)
		}
	}
}

// MarkChanged makes due what changed now.
func (p *Tracker) MarkChanged() {
	s := &p.Snap.Slots
	for _, b := range s.Busy {
		p.MarkDirty(int(b), p.sight.View.Sees(int(b), s.Changed[b]))
	}
}

// NoteAllChurn ends what is known of slots that hold another entity now, or none.
func (p *Tracker) NoteAllChurn() {
	s := &p.Snap.Slots
	if p.Structure != nil {
		for _, b := range s.Busy {
			p.noteStructure(int(b), s.Churned[b]&^p.unseen(int(b))|p.sight.View.Sees(int(b), s.Reshaped[b])) // enter and leave note the others
		}
	}
	for _, b := range s.ChurnedBlocks {
		word := s.Churned[b] &^ p.unseen(int(b))
		p.NoteChurn(int(b), word)
		p.MarkDirty(int(b), word&p.Acks.Shown[b])
	}
}

// NoteChurn notes that slots of a block hold another entity than before, or none.
func (p *Tracker) NoteChurn(b int, mask uint64) {
	if large := mask & p.Acks.Large[b]; large != 0 {
		p.dropLarge(b, large)
	}
	p.Acks.EndHistory(b, mask, p.Snap.Tick)
}

// Refresh keeps the ticks of slots of a block within reach of serial arithmetic.
func (p *Tracker) Refresh(b int, slots uint64, limit delta.Tick) {
	if b >= len(p.Dirty) {
		return
	}
	p.MarkDirty(b, p.Acks.refresh(b, slots, limit, p.Snap.Tick)) // these are sent whole once
}

// Costly returns those of some slots of a block that are sent whole.
func (p *Tracker) Costly(b int, d uint64) uint64 {
	return d & p.sight.View.Sees(b, p.Snap.Slots.Alive[b]) & (p.Acks.None[b] | p.Acks.Large[b])
}

// MaySendNow reports whether the peer may be sent state in the present tick.
func (p *Tracker) MaySendNow() bool { return p.InInterval() && !p.Silence.Paused }

// InInterval reports whether the present tick is one of the peer's send interval.
func (p *Tracker) InInterval() bool {
	return p.Interval == 1 || (p.Snap.Tick+p.Phase)%p.Interval == 0
}

// EveryTick reports whether the peer may be sent state in every tick.
func (p *Tracker) EveryTick() bool { return p.Interval == 1 && p.Silence.Length == 0 }

// MayRest reports whether the peer needs nothing in the present tick but that changes are noted: it is sent no state.
// New messages may depend on what it sees now: with one of them it does not rest.
func (p *Tracker) MayRest() bool {
	return !p.MaySendNow() && p.sight.View.Limited == (p.sight.View.InView != nil)
}

// CanRelay reports whether the peer needs what changed now and nothing else, and nothing that it is to be
// encoded against is missing: a stream may be all that it is to be sent.
func (p *Tracker) CanRelay() bool {
	t, of := &p.Acks, p.Newest()
	if p.sight.View.InView != nil || p.Classes.Compact || len(p.Large) > 0 || !p.AnyAcked || !p.Near() || !p.holdsPair(of) || !p.Snap.Predicts(of) ||
		!t.LacksNothing(of.Base) || !t.LacksNothing(of.Second) {
		return false
	}
	for w, missing := range t.DirtyBlocks {
		for b := range bitset.Slots(w, missing) {
			if p.DirtyIn(b) != 0 {
				return false
			}
		}
	}
	return t.HoldsAll()
}

// Split returns which of the slots of a block the peer is to be shown, and which it is to
// be told the end of.
func (p *Tracker) Split(b int, d uint64) (live, gone uint64) {
	live = p.sight.View.Sees(b, d&p.Snap.Slots.Alive[b])
	if gone = d &^ live; gone != 0 {
		gone &= p.Gone(b)
	}
	return live, gone
}

// Gone returns the slots of a block that the client may show and shall not, because what
// it shows has ended or, without Keep, went out of view.
func (p *Tracker) Gone(b int) uint64 {
	gone := p.Acks.Shown[b] &^ p.sight.View.Sees(b, p.Snap.Slots.Alive[b])
	if gone != 0 {
		gone &= p.Acks.ended(b) | ^p.sight.Keeps(b) // else it shows the entity that the slot still holds
	}
	return gone
}

// unseen returns the slots of a block that the peer does not see, and where it is known
// or being told that there is nothing: what comes and goes there is none of its business.
func (p *Tracker) unseen(b int) uint64 {
	if b >= len(p.sight.View.InView) {
		return 0
	}
	return p.Acks.ended(b) &^ p.sight.View.InView[b]
}

// Look finds out what the peer sees now, and deals with what enters or leaves its view.
// Afterwards, what is due is what it sees, or gone.
func (p *Tracker) Look() {
	v, s := &p.sight.View, &p.Snap.Slots
	if !v.Limited && v.InView == nil {
		return
	}
	for len(v.InView) < len(s.Alive) {
		v.InView = append(v.InView, ^uint64(0)) // all that is new is due, as if it were seen
	}
	v.Next = v.Next.Grown(s.Len())
	v.Find(s, p.Snap.Resources.Any)
	p.interest.Groups.Show(v.Next)
	p.sight.Withhold()
	p.sight.FindSubEntities()
	p.sight.WithholdSubEntities()
	p.sight.Hold()
	seen := 0
	for b, alive := range s.Alive {
		now, was := v.Next[b]&alive, v.InView[b]|v.Lapsed(b)
		if now|was == 0 && !p.Acks.DirtyBlocks.Has(b) && !v.Released {
			continue
		}
		v.InView[b] = now
		seen += bits.OnesCount64(now)
		if entered := now &^ was; entered != 0 {
			p.enter(b, entered)
		}
		if v.Released {
			was |= ^p.Acks.ended(b) // of what is severed the client is being told already
		}
		if left := was &^ now; left != 0 {
			p.leave(b, left)
		}
		if changed := s.Changed[b] & now; changed != 0 {
			p.MarkDirty(b, changed)
		}
		if p.Dirty[b]&^now != 0 {
			p.Dirty[b] &= now | p.Gone(b)
		}
	}
	v.VisibleCount, v.Released = seen, false
	if !v.Limited {
		v.InView, v.Next = nil, nil
	}
}

// enter notes that slots of a block came into view.
func (p *Tracker) enter(b int, mask uint64) {
	mask &= p.Acks.Behind(b) | p.Snap.Slots.Changed[b] // else it was kept while it was out of view
	p.MarkDirty(b, mask)
	p.noteStructure(b, mask)
}

// leave notes that slots of a block went out of view.
func (p *Tracker) leave(b int, mask uint64) {
	p.Dirty[b] &^= mask
	mask &= p.Acks.Shown[b]
	if mask != 0 {
		// The client keeps what it has, unless that may be an entity that ended, or is less than an entity: it can't have many of
		// these, so it is told to drop them.
		mask &= p.Acks.ended(b) | ^p.sight.Keeps(b) | p.neverComplete(b, mask)
	}
	if mask != 0 {
		p.MarkDirty(b, mask)
		p.NoteChurn(b, mask)
		p.noteStructure(b, mask)
	}
}
