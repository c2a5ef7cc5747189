package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What the server learns of the fate of its packets.

// receiveAck takes the body of a client's ack packet. Acks are advice: one for a packet
// that was never sent, or too long ago, is counted and otherwise ignored.
func (p *Peer) receiveAck(body []byte) error {
	if wire.PacketKind(body[0]) != wire.KindAck {
		return ErrUnexpected
	}
	a := &p.server.sessions.ack
	if err := a.Parse(body); err != nil {
		return err
	}
	p.acked.resolve(a)
	return nil
}

// resolve finds out what became of the packets that an ack tells of.
func (p *tracker) resolve(a *wire.Ack) {
	p.silence.end(p.log.next)
	newest := a.Sequence
	if a.Count > 0 && p.log.find(newest) == nil {
		p.stats.RefusedAcks++ // never sent, or ancient
		if at, ok := p.log.sentAt(newest, p.snap.tick); ok && a.Words[0]&1 != 0 && (!p.heard || int32(newest-p.recentSequence) > 0) {
			// The round trip has become so long that all was taken for lost and
			// forgotten. If it were not noticed, that would never end.
			p.trip.Sample(p.snap.tick + 1 - at)
		}
		a.Count = 0
	}
	if a.Count > 0 && a.Words[0]&1 != 0 {
		// This one came just before the ack left. The others may have come long ago,
		// and the ack that said so been lost: they tell nothing of the round trip.
		if sent := p.log.find(newest); sent.status != sentAcked {
			p.trip.Sample(p.snap.tick + 1 - sent.tick)
			p.outcome.timed(sent)
		}
	}
	for i, word := range a.Words[:a.Count] {
		for ; word != 0; word &= word - 1 {
			bit := uint32(i*32) + uint32(bits.TrailingZeros32(word))
			if sent := p.log.find(newest - bit); sent != nil {
				p.acknowledge(sent, newest-bit)
			} // else it is of the history that acks repeat, and was resolved long ago
		}
	}
	for _, m := range a.Missing[:a.Lacks] {
		p.forget(m)
	}
}

// acknowledge notes that a packet came.
func (p *tracker) acknowledge(sent *sentPacket, sequence uint32) {
	if sent.status == sentAcked {
		return
	}
	p.outcome.arrived(sent, sequence)
	sent.status = sentAcked
	p.stats.Acked++
	if !p.heard || sent.tick.After(p.recent) {
		p.heard, p.recent, p.recentSequence = true, sent.tick, sequence
	}
	if int32(sequence-p.followed) < 0 { // it was taken for lost; its records may be overwritten soon
		for i := range sent.count {
			p.arriveLate(sent, p.log.record(sent, i))
		}
	}
}

// follow finds out up to which tick the fate of every packet is known: it came, is taken for lost,
// or something that was sent later came.
func (p *tracker) follow() {
	t, last := &p.acks, p.snap.slots.recent.now // the tick that has ended
	for t.through != last {
		if to, end := p.silentUntil(last); to != t.through {
			t.leap(to)
			p.followed = end
			continue
		}
		at, ended := p.nextSend(last)
		if !ended {
			return
		}
		end, known := p.knownIn(at, p.followed)
		if !known {
			return
		}
		p.pass(at, end)
	}
}

// nextSend returns the first tick after through in which the peer was sent something, or could have been, and
// whether that is not after the last one.
func (p *tracker) nextSend(last delta.Tick) (at delta.Tick, ended bool) {
	at = p.acks.through + 1
	if p.interval > maxSpan { // or too little is known of the ticks between
		return at, true
	}
	for (at+p.phase)%p.interval != 0 && (p.followed == p.log.next || p.log.at(p.followed).tick != at) {
		if at == last {
			return at, false
		}
		at++
	}
	return at, true
}

// knownIn returns the sequence after the packets of a tick, which begin with the given one, and whether
// it is known what became of all of them.
func (p *tracker) knownIn(at delta.Tick, from uint32) (end uint32, known bool) {
	open := false
	for end = from; end != p.log.next && p.log.at(end).tick == at; end++ {
		open = open || p.log.at(end).status == sentInFlight
	}
	return end, !open || p.heard && p.recent.After(at)
}

// silentUntil returns the last tick up to which nothing came of what was sent after through, and the
// sequence after the packets of it, if that is so long ago that it is not known any more what changed
// in which tick. There may be many of these at once: when an outage lasts, or if there were no ticks.
func (p *tracker) silentUntil(last delta.Tick) (to delta.Tick, end uint32) {
	to, end = p.acks.through, p.followed
	for last-to > recentTicks {
		if end == p.log.next {
			return last - recentTicks, end
		}
		next, known := p.knownIn(to+1, end)
		if !known {
			break
		}
		for q := end; q != next; q++ {
			if p.log.at(q).status == sentAcked {
				return to, end
			}
		}
		to, end = to+1, next
	}
	return to, end
}

// pass takes note of what came of the packets up to a tick, those up to sequence end.
func (p *tracker) pass(at delta.Tick, end uint32) {
	t, before := &p.acks, p.acks.through
	if at == before+1 && t.lacksNothing(before) && p.sentAll(at) && p.allArrived(end) {
		t.skip()
		p.followed = end
		return
	}
	t.pass(at, p.snap.tick)
	for ; p.followed != end; p.followed++ {
		sent := p.log.at(p.followed)
		if sent.status != sentAcked {
			continue
		}
		for i := range sent.count {
			r := p.log.record(sent, i)
			if r.kind != recordState {
				p.arriveLate(sent, r)
				continue
			}
			b := int(r.block)
			if mask := t.arrive(b, r.mask) & p.due[b]; mask != 0 { // taken for lost too early
				p.due[b] &^= mask &^ t.slots.changedAfter(at, b, mask)
			}
		}
	}
	t.settle(before)
}

// sentAll reports whether the peer was sent all that changed in a tick, in packets of a stream.
func (p *tracker) sentAll(at delta.Tick) bool {
	return p.full[at%recentTicks] == at
}

// allArrived reports whether the packets up to a sequence came that nothing is known of yet.
func (p *tracker) allArrived(end uint32) bool {
	for q := p.followed; q != end; q++ {
		if sent := p.log.at(q); sent.count > 0 && (sent.status != sentAcked || !sent.stream) {
			return false
		}
	}
	return true
}

// arriveLate notes that something came that a packet carried, which may be long ago. It covers
// exactly what the packet carried.
func (p *tracker) arriveLate(sent *sentPacket, r record) {
	b := int(r.block)
	switch r.kind {
	case recordState:
		p.holdAt(b, r.mask, sent.tick)
	case recordDespawn:
		// Where it was not severed, a state was acknowledged that is newer. What turns now is
		// still as it was, and this may be about a life long before.
		mask := p.acks.counts(b, r.mask&p.acks.severed(b), sent.tick)
		mask &^= p.sight.view.sees(b, p.snap.slots.alive[b]) | p.snap.slots.turned[b]&^p.unseen(b)
		p.acks.shown[b] &^= mask
	case recordPart:
		if mask := p.acks.counts(b, r.mask, sent.tick); mask != 0 {
			p.acknowledgePart(b<<6+bits.TrailingZeros64(mask), sent)
		}
	}
}

// holdAt notes that the peer holds what slots of a block were at a tick. What is like that still is
// not due any more.
func (p *tracker) holdAt(b int, mask uint64, at delta.Tick) {
	now := p.acks.arriveLate(b, mask, at, p.snap.tick)
	if now &= p.due[b]; now != 0 {
		p.due[b] &^= now &^ p.snap.slots.changedAfter(p.acks.through, b, now)
	}
}

// overdue returns the first packet from the given sequence on that counts as lost, since one
// was acknowledged that was sent well after it, or for too long; or the next sequence.
func (p *tracker) overdue(from uint32) uint32 {
	now := p.snap.tick
	timeout, slack := p.trip.Timeout(), p.trip.Slack()
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
func (p *tracker) expire() {
	for q := p.overdue(p.log.oldest); q != p.log.next; q = p.overdue(q) {
		p.loseAt(q)
	}
}

// loseAt takes the packet with a sequence for lost.
func (p *tracker) loseAt(sequence uint32) {
	p.outcome.lost(sequence)
	p.lose(p.log.at(sequence))
}

// lose takes a packet for lost. That costs nothing: what it carried is due again and is
// still encoded against what was acknowledged.
func (p *tracker) lose(sent *sentPacket) {
	sent.status = sentLost
	p.stats.Lost++
	t := &p.acks
	for i := range sent.count {
		r := p.log.record(sent, i)
		b := int(r.block)
		mask := t.counts(b, r.mask, sent.tick)
		switch r.kind {
		case recordPart:
			if mask != 0 {
				p.losePart(b<<6+bits.TrailingZeros64(mask), sent)
			}
			continue
		case recordDespawn:
			mask &= p.gone(b)
		default: // what changed since is due already, or on its way
			mask &^= t.slots.changedAfter(sent.tick, b, mask) | t.large[b]
			mask &= t.behind(b) | t.slots.news[b]
		}
		p.owe(b, mask)
	}
}

// forget takes back an acknowledgement: the client says it lacks that state. Only this
// entity is sent whole, and only if the report is of what it is known to hold.
func (p *tracker) forget(m wire.MissingBaseline) {
	b, bit := int(m.Slot>>6), uint64(1)<<(m.Slot&63)
	if b >= len(p.due) {
		return
	}
	p.follow()
	at, ok := p.acks.holds(int(m.Slot))
	if !ok {
		return
	}
	now := p.snap.tick
	named := now - (now-delta.Tick(m.Low))&delta.MaxAge
	if began, known := p.snap.slots.changedBy(int(m.Slot), at); known && named.Before(began) {
		return // it has got something newer since
	}
	p.stats.MissingBaselines++
	since := p.snap.tick + 1
	if l := p.large[int(m.Slot)]; l != nil {
		since = l.tick // what is on its way is whole
	} else {
		p.owe(b, bit)
	}
	p.acks.forget(b, bit, since)
}
