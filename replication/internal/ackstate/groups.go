package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
)

// LeftFor reports whether a slot has left the group, and the peer knows it.
func (p *Tracker) LeftFor(g *interest.Group, slot int32) bool {
	for _, f := range g.Former {
		if f.Slot == slot {
			return p.Released(g, f)
		}
	}
	return false
}

// Released reports whether the client is known to show the group as of a tick at which a
// former member had left it, so that this one goes its own way: the client has what was
// sent of the slot itself or of a member since then, or all that there is to know; or it
// shows nothing of the slot.
func (p *Tracker) Released(g *interest.Group, f interest.FormerMember) bool {
	if int(f.Slot)>>6 >= len(p.Dirty) {
		return true // it was never sent
	}
	if !p.Acks.Shown.Has(int(f.Slot)) || p.holdsSince(f.Slot, f.Ended, f.Ended) {
		return true
	}
	settled := !p.LacksAny(f.Slot)
	for _, m := range g.Members {
		if m.Slot < 0 {
			continue
		}
		if p.holdsSince(m.Slot, f.Ended, m.Since) {
			return true
		}
		settled = settled && !p.LacksAny(m.Slot)
	}
	for _, o := range g.Former {
		settled = settled && !p.LacksAny(o.Slot)
	}
	return settled
}

// holdsSince reports whether the peer has acknowledged a state of the slot, as it lives now,
// of two ticks or later.
func (p *Tracker) holdsSince(slot int32, t, t2 delta.Tick) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.Dirty) || p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 || p.Snap.Slots.Churned[b]&bit != 0 {
		return false
	}
	at, ok := p.Acks.Holds(int(slot))
	if ok {
		at, ok = p.Snap.Slots.ChangedBy(int(slot), at)
	}
	return ok && !at.Before(t) && !at.Before(t2)
}

// LacksAny reports whether the client may show something else of a slot than there is.
func (p *Tracker) LacksAny(slot int32) bool {
	b, bit := int(slot)>>6, uint64(1)<<(slot&63)
	if b >= len(p.Dirty) {
		return true
	}
	if p.sight.View.Sees(b, p.Snap.Slots.Alive[b])&bit == 0 {
		return p.Acks.Shown[b]&bit != 0
	}
	return p.Lacks(b, bit)
}

// Lacks reports whether the peer is not known to hold the present state of a slot that it
// sees.
func (p *Tracker) Lacks(b int, bit uint64) bool {
	return (p.Dirty[b]|p.Acks.None[b]|p.Acks.Behind(b))&bit != 0
}
