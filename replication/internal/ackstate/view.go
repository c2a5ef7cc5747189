package ackstate

import "math/bits"

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
