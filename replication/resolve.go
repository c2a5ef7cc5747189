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
	a := &p.ack
	if err := a.parse(body); err != nil {
		return err
	}
	newest := a.sequence
	if a.count > 0 && p.log.find(newest) == nil {
		p.stats.RefusedAcks++ // never sent, or ancient
		a.count = 0
	}
	if a.count > 0 && a.words[0]&1 != 0 {
		// This one came just before the ack left. The others may have come long ago,
		// and the ack that said so been lost: they tell nothing of the round trip.
		if sent := p.log.find(newest); sent.status != sentAcked {
			p.trip.sample(p.server.tick + 1 - sent.tick)
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
	p.log.trim()
	for _, m := range a.missing[:a.lacks] {
		p.forget(m)
	}
	return nil
}

// acknowledge notes that a packet came. It covers exactly what the packet carried.
func (p *Peer) acknowledge(sent *sentPacket, sequence uint32) {
	if sent.status == sentAcked {
		return
	}
	sent.status = sentAcked
	p.stats.Acked++
	if !p.heard || sent.tick.After(p.recent) {
		p.heard, p.recent, p.recentSequence = true, sent.tick, sequence
	}
	s := p.server
	for _, r := range sent.records {
		slot := r.slot()
		st := &p.slots[slot]
		if st.flags&wasSent == 0 || sent.tick.Before(s.slots.info[slot].born) {
			continue // of an entity that is gone
		}
		switch r.kind() {
		case recordState:
			if s.slots.alive[slot] {
				p.acknowledgeState(st, sent.tick)
			}
		case recordDespawn:
			if !s.slots.alive[slot] {
				*st = peerSlot{}
			}
		case recordPart:
			p.acknowledgePart(slot, st, sent)
		}
	}
}

// acknowledgeState notes that the peer holds the slot's state of tick t.
func (p *Peer) acknowledgeState(st *peerSlot, t delta.Tick) {
	if st.sent == t {
		st.flags &^= isInFlight
	}
	switch {
	case st.flags&isAcked == 0:
		st.ack, st.acked, st.since, st.flags = t, 0, uint16(t), st.flags|isAcked
	case t.After(st.ack):
		d := t - st.ack
		if d <= delta.MaxSpan {
			st.acked = st.acked<<d | 1<<(d-1)
		} else {
			st.acked = 0
		}
		st.ack, st.since = t, uint16(t)
	case t != st.ack && st.ack-t <= delta.MaxSpan:
		st.acked |= 1 << (st.ack - t - 1)
	}
}

// expire takes packets for lost whose acknowledgement is overdue: since one was
// acknowledged that was sent well after them, or for too long.
func (p *Peer) expire() {
	now := p.server.tick
	timeout, slack := p.trip.timeout(), p.trip.slack()
	for q := p.log.oldest; q != p.log.next; q++ {
		sent := p.log.at(q)
		if sent.status != sentInFlight {
			continue
		}
		overtaken := p.heard && p.recent.After(sent.tick) && p.recent-sent.tick > slack
		if !overtaken && now-sent.tick <= timeout {
			break
		}
		p.lose(sent)
	}
	p.log.trim()
}

// lose takes a packet for lost. That costs nothing: what it carried is due again and is
// still encoded against what was acknowledged.
func (p *Peer) lose(sent *sentPacket) {
	sent.status = sentLost
	p.stats.Lost++
	for _, r := range sent.records {
		slot := r.slot()
		if r.kind() == recordPart {
			p.losePart(slot, sent)
		} else if st := &p.slots[slot]; st.sent == sent.tick {
			st.flags &^= isInFlight
			p.due.set(slot)
		}
	}
}

// forget takes back an acknowledgement: the client says it lacks that state. Only this
// entity is sent whole, and only if the report is of the present baseline.
func (p *Peer) forget(m missingBaseline) {
	if int64(m.slot) >= int64(len(p.slots)) {
		return
	}
	st := &p.slots[m.slot]
	const names = 1<<delta.NameBits - 1
	if st.flags&isAcked == 0 || uint32(st.ack)&names != m.low&names {
		return
	}
	p.stats.MissingBaselines++
	st.flags &^= isAcked | isInFlight
	st.acked = 0
	p.due.set(int(m.slot))
}
