package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

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

// MarkChanged makes due what changed now.
func (p *Tracker) MarkChanged() {
	s := &p.Snap.Slots
	for _, b := range s.Busy {
		p.MarkDirty(int(b), p.sight.View.Sees(int(b), s.Changed[b]))
	}
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

// NoteChurn notes that slots of a block hold another entity than before, or none.
func (p *Tracker) NoteChurn(b int, mask uint64) {
	if large := mask & p.Acks.Large[b]; large != 0 {
		p.dropLarge(b, large)
	}
	p.Acks.EndHistory(b, mask, p.Snap.Tick)
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

// Refresh keeps the ticks of slots of a block within reach of serial arithmetic.
func (p *Tracker) Refresh(b int, slots uint64, limit delta.Tick) {
	if b >= len(p.Dirty) {
		return
	}
	p.MarkDirty(b, p.Acks.refresh(b, slots, limit, p.Snap.Tick)) // these are sent whole once
}
