package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// What the server learns of the fate of its packets.

// receiveAck takes the body of a client's ack packet. Acks are advice: one for a packet
// that was never sent, or too long ago, is counted and otherwise ignored.
func (p *Peer) receiveAck(body []byte) error {
	if packetKind(body[0]) != kindAck {
		return ErrUnexpected
	}
	a := &p.server.ack
	if err := a.parse(body); err != nil {
		return err
	}
	p.silence.end(p.log.next)
	newest := a.sequence
	if a.count > 0 && p.log.find(newest) == nil {
		p.stats.RefusedAcks++ // never sent, or ancient
		if at, ok := p.log.sentAt(newest, p.server.tick); ok && a.words[0]&1 != 0 && (!p.heard || int32(newest-p.recentSequence) > 0) {
			// The round trip has become so long that all was taken for lost and
			// forgotten. If it were not noticed, that would never end.
			p.trip.sample(p.server.tick + 1 - at)
		}
		a.count = 0
	}
	if a.count > 0 && a.words[0]&1 != 0 {
		// This one came just before the ack left. The others may have come long ago,
		// and the ack that said so been lost: they tell nothing of the round trip.
		if sent := p.log.find(newest); sent.status != sentAcked {
			p.trip.sample(p.server.tick + 1 - sent.tick)
			p.budget.sample(sent, p.server.tick+1)
		}
	}
	for i, word := range a.words[:a.count] {
		for ; word != 0; word &= word - 1 {
			bit := uint32(i*32) + uint32(bits.TrailingZeros32(word))
			if sent := p.log.find(newest - bit); sent != nil {
				p.acknowledge(sent, newest-bit)
			} // else it is of the history that acks repeat, and was resolved long ago
		}
	}
	for _, m := range a.missing[:a.lacks] {
		p.forget(m)
	}
	return nil
}

// acknowledge notes that a packet came.
func (p *Peer) acknowledge(sent *sentPacket, sequence uint32) {
	if sent.status == sentAcked {
		return
	}
	p.budget.acknowledge(sent, p.server.tick+1)
	sent.status = sentAcked
	p.stats.Acked++
	if k := p.packet.compact; k != nil {
		k.kept.acknowledge(sequence)
	}
	if !p.heard || sent.tick.After(p.recent) {
		p.heard, p.recent, p.recentSequence = true, sent.tick, sequence
	}
	p.arrived = append(p.arrived, sequence)
	if int32(sequence-p.log.oldest) < 0 {
		p.arriveAll() // the records of a packet that was taken for lost may be overwritten soon
	}
}

// arriveAll goes through what the packets carried that are acknowledged. Those of a tick
// have their turn together, when follow is done with it.
func (p *Peer) arriveAll() {
	n := 0
	for _, sequence := range p.arrived {
		if int32(sequence-p.followed) >= 0 {
			p.arrived[n] = sequence
			n++
			continue
		}
		sent := p.log.at(sequence)
		if sent.stream && int32(sequence-p.fell) >= 0 {
			continue // it is in step still, and needs no word
		}
		for i := range sent.count {
			p.arriveRecord(sent, sequence, p.log.record(sent, i))
		}
	}
	p.arrived = p.arrived[:n]
}

// arriveRecord notes that something came. It covers exactly what the packet carried.
func (p *Peer) arriveRecord(sent *sentPacket, sequence uint32, r record) {
	b := int(r.block)
	if r.kind == recordState && !p.acks.strays.has(b) {
		return // what lives is in step, and of the dead no state counts
	}
	mask := r.mask &^ p.inStep(b)
	if mask == 0 {
		return
	}
	blk := p.acks.block(b)
	if mask&blk.rare != 0 {
		mask = p.acks.counts(b, mask, sent.tick)
	}
	switch r.kind {
	case recordState:
		mask &^= p.server.slots.bornAfter(sent.tick, b, mask) // also where there is no floor any more
		p.acknowledgeStates(b, mask, sent.tick, sequence)
	case recordDespawn:
		// Where the floor is gone, a state was acknowledged that is newer. What turns now is
		// still as it was, and this may be about a life long before.
		mask &= p.acks.severed(b)
		mask &^= p.view.sees(b, p.server.slots.alive[b]) | p.server.slots.turned[b]&^p.unseen(b)
		blk.shown &^= mask
		p.acks.land(b, mask)
	case recordPart:
		if mask != 0 {
			p.acknowledgePart(b<<6+bits.TrailingZeros64(mask), sent, sequence)
		}
	}
}

// acknowledgeStates notes that the peer holds states of tick at, that the packet with the
// given sequence completed, of slots of a block.
func (p *Peer) acknowledgeStates(b int, mask uint64, at delta.Tick, sequence uint32) {
	t := &p.acks
	blk := t.block(b)
	current := mask &^ t.slots.changedAfter(at, b, mask)
	if current != 0 { // the peer is up to date
		p.due[b] &^= current & blk.lost
		blk.lost &^= current
		if current&blk.rare != 0 {
			current = p.confirm(b, current, sequence)
		}
		t.land(b, current)
	}
	if !t.recent(at, p.server.tick) {
		t.acknowledgeLate(b, mask, at)
		return
	}
	*t.row(at, b) |= mask
	t.mark(b, at)
	blk.acked |= mask
	blk.rest &^= mask
}

// confirm returns those of the slots of a block, whose present state the peer holds from
// the packet with the given sequence, that no later packet carried.
func (p *Peer) confirm(b int, mask uint64, sequence uint32) uint64 {
	rare := p.acks.rare(b)
	mask &^= p.acks.sentAfter(b, mask&rare.again, sequence)
	rare.again &^= mask
	return mask
}

// overdue returns the first packet from the given sequence on that counts as lost, since one
// was acknowledged that was sent well after it, or for too long; or the next sequence.
func (p *Peer) overdue(from uint32) uint32 {
	now := p.server.tick
	timeout, slack := p.trip.timeout(), p.trip.slack()
	for q := from; q != p.log.next; q++ {
		sent := p.log.at(q)
		if sent.status != sentInFlight {
			continue
		}
		if p.heard && p.recent.After(sent.tick) && p.recent-sent.tick > slack || now-sent.tick > timeout {
			return q
		}
		break // as are those after it
	}
	return p.log.next
}

// expire takes packets for lost whose acknowledgement is overdue.
func (p *Peer) expire() {
	for q := p.overdue(p.log.oldest); q != p.log.next; q = p.overdue(q) {
		p.loseAt(q)
	}
}

// loseAt takes the packet with a sequence for lost.
func (p *Peer) loseAt(sequence uint32) {
	if k := p.packet.compact; k != nil {
		k.kept.lose(sequence)
	}
	p.lose(p.log.at(sequence))
}

// lose takes a packet for lost. That costs nothing: what it carried is due again and is
// still encoded against what was acknowledged.
func (p *Peer) lose(sent *sentPacket) {
	sent.status = sentLost
	p.stats.Lost++
	p.budget.lose()
	for i := range sent.count {
		r := p.log.record(sent, i)
		b := int(r.block)
		if fell := r.mask & p.inStep(b); fell != 0 {
			p.fallOut(b, fell)
			if sent.tick == p.server.tick {
				p.acks.fly(b, fell) // sent a moment ago
			}
		}
		mask := p.acks.counts(b, r.mask, sent.tick)
		if r.kind == recordPart {
			if mask != 0 {
				p.losePart(b<<6+bits.TrailingZeros64(mask), sent)
			}
			continue
		}
		if r.kind == recordDespawn {
			mask &= p.gone(b)
		} else { // what changed since is due already, or on its way
			mask &^= p.server.slots.changedAfter(sent.tick, b, mask)
		}
		blk := p.acks.block(b)
		for again := mask & p.acks.rare(b).again; again != 0; again &= again - 1 {
			slot := b<<6 + bits.TrailingZeros64(again)
			if at, ok := p.acks.newest(slot, p.recent, p.server.tick); ok && !p.server.slots.changed[slot].After(at) {
				mask &^= 1 << (slot & 63) // up to date: an earlier one came
				p.acks.land(b, 1<<(slot&63))
			}
		}
		if mask &= blk.flight; mask != 0 {
			p.acks.land(b, mask)
			blk.lost |= mask
			p.owe(b, mask)
		}
	}
}

// forget takes back an acknowledgement: the client says it lacks that state. Only this
// entity is sent whole, and only if the report is of the present baseline.
func (p *Peer) forget(m missingBaseline) {
	b, bit := int(m.slot>>6), uint64(1)<<(m.slot&63)
	if b >= len(p.due) {
		return
	}
	p.arriveAll()
	p.fallOut(b, bit)
	const names = 1<<delta.NameBits - 1
	at, ok := p.acks.newest(int(m.slot), p.recent, p.server.tick)
	if !ok || uint32(at)&names != m.low&names {
		return
	}
	p.stats.MissingBaselines++
	p.acks.disown(b, bit)
	if p.acks.rare(b).large&bit == 0 {
		p.acks.doubt(b, bit)
		p.owe(b, bit)
	}
}
