package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
)

// A peer to which every change is sent at once, and from which nothing got lost of late,
// needs no state of its own: what it holds of a slot follows from when the slot changed
// and up to which tick the peer has acknowledged everything. Such slots are in step with
// the peer. All peers that acknowledged up to the same tick need the same of them, and
// an acknowledgement is a matter of one number. Only for slots that are not in step what
// the peer holds is kept in its ackTable.

const (
	// maxBehind is how many ticks behind the present the tick may be up to which a peer
	// has acknowledged everything: what it needs to know of ticks before that must be in
	// the log of changes still.
	maxBehind = 20
	// maxStep bounds how far second baselines lie before first ones.
	maxStep = 8
	// stepRest is for how many ticks a slot does not change to be at rest: not more than
	// are left of the log of changes before a tick maxBehind ago.
	stepRest = recentTicks - maxBehind
	// fallInEvery is how many ticks lie between attempts to bring slots into step.
	fallInEvery = 4
)

// canStep reports whether the peer's slots can be in step in this tick.
func (p *Peer) canStep() bool {
	return p.inOrder && !p.server.opts.noSteps && p.acks.ticks == recentTicks && p.server.tick-p.base() < maxBehind
}

// base returns the tick that peers in step are served from: the last one on the grid of
// baselines up to which they have acknowledged everything.
func (p *Peer) base() delta.Tick { return p.through - p.through%p.server.opts.grid }

// follow finds out up to which tick everything is acknowledged. What is not, though
// something later is, falls out of step.
func (p *Peer) follow() {
	for p.followed != p.log.next {
		at := p.log.at(p.followed).tick
		p.through = at - 1
		end, open := p.followed, false
		for ; end != p.log.next && p.log.at(end).tick == at; end++ {
			open = open || p.log.at(end).status == sentInFlight
		}
		if open && !(p.heard && p.recent.After(at)) {
			return
		}
		for ; p.followed != end; p.followed++ {
			if sent := p.log.at(p.followed); sent.status != sentAcked && sent.count > 0 {
				p.missed = p.server.tick
				for i := range sent.count {
					r := p.log.record(sent, i)
					p.fallOut(int(r.block), r.mask)
				}
			}
		}
	}
	p.through = p.server.tick - 1
}

// fallOutAll takes all slots out of step.
func (p *Peer) fallOutAll() {
	if !p.stepped {
		return
	}
	p.stepped = false
	for b, mask := range p.acks.inStep {
		if mask != 0 {
			p.fallOut(b, mask)
		}
	}
}

// fallOut takes those of the slots of a block that are in step out of it: from now on what
// the peer holds is in its ackTable.
func (p *Peer) fallOut(b int, mask uint64) {
	t, s := &p.acks, &p.server.slots
	if mask &= t.inStep[b]; mask == 0 {
		return
	}
	t.inStep[b] &^= mask
	t.strays.set(b)
	p.fell = p.log.next
	ch, i := &t.chunks[b/chunkBlocks], b%chunkBlocks
	blk, rare := &ch.blocks[i], &ch.rare[i]
	resting := mask
	for at := p.through; t.recent(at, p.server.tick); at-- {
		word := s.log[b/chunkBlocks][at%recentTicks][i] & mask
		if word != 0 {
			ch.rows[at%recentTicks][i] |= word
			t.marks[b/chunkBlocks].rows |= 1 << (at % recentTicks)
			resting &^= word
		}
	}
	t.mark(b, p.through)
	blk.acked |= mask
	blk.rest |= resting
	for slot := range slotsOf(b, resting) {
		bit := uint64(1) << (slot & 63)
		switch r, ok := s.restAt(slot, p.through); {
		case !s.changed[slot].After(p.through):
			rare.prompt |= bit
		case ok && r == s.rests[slot]:
			rare.prompt |= bit
			if !p.preparing || r.to != p.server.tick { // else wake is still to come
				rare.woken |= bit
			}
		case ok:
			rare.woken |= bit
			*t.rest(slot), t.since[slot] = r.from, uint16(r.to)
		default:
			blk.acked &^= bit
			blk.rest &^= bit
		}
	}
	t.fly(b, s.changedAfter(p.through, b, mask))
}

// fallIn brings slots of a chunk into step: those of which the peer holds what every peer
// in step holds, and that have nothing to wait for.
func (p *Peer) fallIn(k int) {
	t, s := &p.acks, &p.server.slots
	strays := t.strays[k*chunkBlocks/64] >> (k * chunkBlocks % 64)
	if strays&(1<<chunkBlocks-1) == 0 {
		return
	}
	if p.server.tick-t.marks[k].row > t.ticks+fallInEvery {
		return // nothing was acknowledged or came to rest since it was tried last
	}
	if m := &t.marks[k]; p.server.tick-m.entered < recentTicks && m.entered.After(p.through) {
		return // of what came into view, changes were not sent that are not settled yet
	}
	ch := &t.chunks[k]
	for i := range ch.blocks {
		b := k*chunkBlocks + i
		if b >= len(p.due) {
			return
		}
		if strays>>i&1 == 0 {
			continue
		}
		if p.endStraying(b) { // those that strayed are gone
			continue
		}
		can := p.view.sees(b, s.alive[b]) &^ (t.inStep[b] | p.due[b] | s.young(b))
		if can == 0 {
			continue
		}
		blk, rare := &ch.blocks[i], &ch.rare[i]
		if can &= blk.shown & blk.acked &^ (blk.lost | rare.again | rare.large); can == 0 {
			continue
		}
		in := can & blk.rest & rare.prompt &^ (rare.woken | blk.flight)
		if can &^= blk.rest; can|in == 0 {
			continue
		}
		// Of ticks after through nothing is acknowledged here, see arriveAll.
		// What changes often needs to be in order only where the peer is asked for a
		// baseline; anything else as far back as anybody remembers.
		var changed, lately, missed, missedLately uint64
		base := p.base()
		for at := p.through; t.recent(at, p.server.tick); at-- {
			word := s.log[k][at%recentTicks][i]
			miss := word ^ ch.rows[at%recentTicks][i] // what was sent again is as bad: it is the client's newest
			missed |= miss
			if !base.Before(at) {
				changed |= word
				if base-at < latelyTicks {
					lately |= word
				}
			}
			if base.Before(at) || mayServe(base-at, at) || p.session.compact && base-at < compactReach {
				missedLately |= miss
			}
		}
		in |= can & (changed&^missed | lately&^missedLately)
		if in == 0 {
			continue
		}
		t.forget(b, in)
		rare.prompt &^= in
		rare.woken &^= in
		rare.floor &^= in
		blk.rare = rare.again | rare.floor | rare.large
		t.inStep[b] |= in
		p.endStraying(b)
		p.stepped = true
	}
}

// endStraying takes a block out of strays if all entities in it are in step, and reports whether
// they are. Where something turned now, update has still to look.
func (p *Peer) endStraying(b int) bool {
	s := &p.server.slots
	if p.acks.inStep[b] != s.alive[b] {
		return false
	}
	if s.turned[b] == 0 {
		p.acks.strays.clear(b)
	}
	return true
}

// mayServe reports whether a state of tick at, so many ticks before base, may be a baseline
// of something that changed in the last latelyTicks up to base, now or later on: as the
// first one, as the second where none is on the grid, or as the second on the grid.
func mayServe(age, at delta.Tick) bool {
	return age < latelyTicks+2*delta.SecondGrid-2 || age < latelyTicks+maxStep && at%delta.SecondGrid == 0
}

// fallBehind takes slots of some blocks out of step that changed now and can't be sent.
func (p *Peer) fallBehind(from, to int) {
	for b := from; b < to; b++ {
		late := p.server.slots.news[b] & p.inStep(b) &^ p.carriedSlots(b)
		p.fallOut(b, late)
		p.owe(b, late)
	}
}

// inStep returns the slots of a block that are in step with the peer.
func (p *Peer) inStep(b int) uint64 {
	return p.acks.inStep[b]
}
