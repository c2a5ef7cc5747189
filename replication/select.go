package replication

import (
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// What a peer is sent in a tick: of all slots those that are due, block by block.

// errTooLarge means that an entry does not fit into a packet of its own.
var errTooLarge = errors.New("replication: entry larger than a packet")

// errFull means that no more packets may be sent now.
var errFull = errors.New("replication: too many packets in flight")

// prepare starts a tick.
func (p *sender) prepare(c *chooser) {
	p.acked.grow()
	p.sight.limit()
	p.earn()
	p.beginSilence()
	p.acked.follow()
	p.acked.turnAll()
	p.planned, p.relays = sendNothing, false
	if p.rests = !p.speaks && p.acked.mayRest(); p.rests {
		p.rest()
		return
	}
	p.acked.expire()
	p.inOrder = p.acked.everyTick() && p.resume == 0 && p.ample()
	p.acked.look()
	p.meet()
	if p.sending {
		p.oweLacking()
	}
	if p.inOrder && p.acked.canRelay() {
		p.planned, p.relays = sendAll, true
	} else {
		p.acked.findPairs()
		if p.sight.view.visible == nil { // else look has done so
			p.acked.oweNews()
		}
		if p.planned = p.plan(); p.planned == sendBest {
			p.press(c)
		}
	}
	p.packet.begin(p)
}

// mayRest reports whether the peer needs nothing in the present tick but that changes are noted: it is sent no state.
// New messages may depend on what it sees now: with one of them it does not rest.
func (p *tracker) mayRest() bool {
	return !p.itsTurn() && p.sight.view.limited == (p.sight.view.visible != nil)
}

// canRelay reports whether the peer needs what changed now and nothing else, and nothing that it is to be
// encoded against is missing: a stream may be all that it is to be sent.
func (p *tracker) canRelay() bool {
	t, of := &p.acks, p.newest()
	if p.sight.view.visible != nil || p.classes.compact || len(p.large) > 0 || !p.heard || !p.near() || !p.holdsPair(of) || !p.snap.predicts(of) ||
		!t.lacksNothing(of.base) || !t.lacksNothing(of.second) {
		return false
	}
	for w, owed := range t.owed {
		for b := range bitset.Slots(w, owed) {
			if p.owing(b) != 0 {
				return false
			}
		}
	}
	return t.holdsAll()
}

// callsBack reports whether prepare calls functions of the user.
func (p *sender) callsBack() bool { return p.sight.view.Visible != nil || p.weigh != nil }

// rest is what a tick is for a peer that needs nothing in it: what it sees stays as it was, but for what turned.
func (p *sender) rest() {
	s := &p.snap.slots
	for _, b := range s.turning {
		if int(b) < len(p.sight.view.visible) {
			p.sight.view.visible[b] &^= s.turned[b]
		}
		if int(b) < len(p.met) {
			p.met[b] &^= s.turned[b]
		}
	}
	p.acked.expire()
	p.acked.oweNews()
}

// turnAll ends what is known of slots that hold another entity now, or none.
func (p *tracker) turnAll() {
	s := &p.snap.slots
	if p.structure != nil {
		for _, b := range s.busy {
			p.noteStructure(int(b), s.turned[b]&^p.unseen(int(b))|p.sight.view.sees(int(b), s.reshaped[b])) // enter and leave note the others
		}
	}
	for _, b := range s.turning {
		word := s.turned[b] &^ p.unseen(int(b))
		p.turn(int(b), word)
		p.owe(int(b), word&p.acks.shown[b])
	}
}

// oweLacking makes due all that the peer is not known to hold: a send function panicked while it was being sent, and
// what was taken from due by then need not be in a packet.
func (p *sender) oweLacking() {
	for b := range p.acked.due {
		p.acked.owe(b, p.sight.view.sees(b, p.snap.slots.alive[b])&(p.acked.acks.behind(b)|p.acked.acks.large[b])|p.acked.gone(b))
	}
	p.sending = false
}

// oweNews makes due what changed now.
func (p *tracker) oweNews() {
	s := &p.snap.slots
	for _, b := range s.busy {
		p.owe(int(b), p.sight.view.sees(int(b), s.news[b]))
	}
}

// encode fills the packets of the present tick for peers that are prepared, with runs and streams from
// the cache.
func (c *worker) encode(peers []*sender) {
	c.beginStreams(peers)
	for _, p := range peers {
		if !p.rests {
			p.runs, p.sending = c, true
			p.sendPlanned()
		}
		c.end(p)
	}
}

// sendPlanned sends what the peer is to get in the present tick.
func (p *sender) sendPlanned() {
	switch p.planned {
	case sendAll:
		if p.relays && p.takeAll() {
			return
		}
		if p.relays {
			p.relays = false
			p.acked.findPairs()
			p.acked.oweNews()
		}
		p.sendDue(p.acked.due)
	case sendBest:
		p.sendChosen()
	}
}

// end ends the tick for a peer.
func (c *worker) end(p *sender) {
	if p.relays {
		p.acked.full[p.snap.tick%recentTicks] = p.snap.tick
	}
	p.acked.log.trim(p.acked.followed)
	if !p.rests {
		p.sending = false
		p.wait()
		p.learn()
	}
	p.account()
}

// sendDue sends a part of what is due, beginning where the last tick had to stop.
func (p *sender) sendDue(of bitset.Set) {
	switch {
	case p.yields:
		p.sendRest(of)
		p.sendGroups(of)
	case p.sendGroups(of):
		p.resume = 0
	default:
		p.sendRest(of)
	}
}

// sendRest sends what is not in groups of a part of what is due.
func (p *sender) sendRest(of bitset.Set) {
	p.yields = p.yields && p.blocked() // it has its turn now
	first := p.resume
	p.resume = 0
	if p.sendSlots(of, first, len(of)<<6) && first > 0 {
		p.packet.finish() // slots rise within a packet
		p.sendSlots(of, 0, first)
	}
	p.packet.finish()
}

// grow makes room for the slots that are new. All of them are due.
func (p *tracker) grow() {
	s := &p.snap.slots
	if old := len(p.due); len(s.alive) > old {
		p.due = p.due.Grown(s.len())
		p.acks.grow(s.len(), p.snap.tick)
		for b, alive := range s.alive[old:] {
			p.owe(old+b, alive)
			p.noteStructure(old+b, alive)
		}
	}
}

// owe notes that slots of a block are due.
func (p *tracker) owe(b int, mask uint64) {
	if mask != 0 {
		p.due[b] |= mask
		p.acks.owed.Add(b)
	}
}

// owing returns the slots of a block that are due, if it is among those that may owe some.
func (p *tracker) owing(b int) uint64 {
	due := p.due[b]
	if due == 0 {
		p.acks.owed.Remove(b)
	}
	return due
}

// turn notes that slots of a block hold another entity than before, or none.
func (p *tracker) turn(b int, mask uint64) {
	if large := mask & p.acks.large[b]; large != 0 {
		p.dropLarge(b, large)
	}
	p.acks.sever(b, mask, p.snap.tick)
}

// sendSlots goes through those of a part of what is due that are in a range, and returns
// false if it had to stop.
func (p *sender) sendSlots(of bitset.Set, from, to int) bool {
	for b := p.acked.acks.owed.Next(from >> 6); b<<6 < to; b = p.acked.acks.owed.Next(b + 1) {
		d := of[b] & p.acked.owing(b) &^ p.snap.slots.inGroups(b)
		if b<<6 < from {
			d &= ^uint64(0) << (from & 63)
		}
		if to < (b+1)<<6 {
			d &= 1<<(to&63) - 1
		}
		if d == 0 {
			continue
		}
		if last := p.copyBlocks(of, b, d); last >= 0 {
			b = last
			continue
		}
		if p.sendBlock(b, d) != nil {
			p.resume = max(b<<6+bits.TrailingZeros64(p.acked.due[b]&d), 1) // 0: nowhere
			return false
		}
	}
	return true
}

// sendBlock sends what the peer needs of slots of a block. Afterwards there is nothing to
// do for a slot until it changes or what was sent is lost.
func (p *sender) sendBlock(b int, d uint64) error {
	p.runs.bound()
	live, gone := p.acked.split(b, d)
	p.acked.due[b] &^= d &^ live &^ gone // gone before the peer heard of them
	d = live | gone
	var st *stream
	copies := uint64(0)
	if p.stream >= 0 {
		st = &p.runs.streams[p.stream]
		copies = p.copies(st, b, live)
	}
	large := live & p.acked.acks.large[b]
	if others := live &^ (large | copies); others != 0 {
		p.acked.classify(b, others)
	}
	for d != 0 {
		i := bits.TrailingZeros64(d)
		bit := uint64(1) << i
		if copies&bit != 0 {
			if put := p.packet.putStretch(st, b, d&copies, d); put != 0 {
				p.acked.due[b] &^= put // they are shown, as the peer holds their baselines
				p.stats.Updates += uint64(bits.OnesCount64(put))
				d &^= put
				continue
			}
			copies = 0
			p.acked.classify(b, d&live&^large)
		}
		p.acked.due[b] &^= bit // a part that is lost sets it again
		var err error
		switch {
		case gone&bit != 0:
			err = p.sendDespawn(b<<6 + i)
		case large&bit != 0:
			err = p.sendParts(b<<6 + i)
		default:
			err = p.sendState(b<<6+i, classOf(p.acked.classes.list, bit))
		}
		if err != nil {
			p.acked.owe(b, d)
			return err
		}
		d &^= bit
	}
	return nil
}

// split returns which of the slots of a block the peer is to be shown, and which it is to
// be told the end of.
func (p *tracker) split(b int, d uint64) (live, gone uint64) {
	live = p.sight.view.sees(b, d&p.snap.slots.alive[b])
	if gone = d &^ live; gone != 0 {
		gone &= p.gone(b)
	}
	return live, gone
}

// sendState sends the state of a slot.
func (p *sender) sendState(slot int, c *class) error {
	var err error
	var count *uint64
	if p.packet.compact != nil {
		count, err = p.packet.putCompact(slot, c)
	} else if st := p.runs.ready(slot, c); st != nil && p.packet.putReady(st, slot, c) {
		count = &p.stats.Updates
	} else {
		var r *run
		r, count = p.bestRun(slot, c)
		err = p.packet.put(slot, r)
	}
	switch err {
	case nil:
		*count++
		p.acked.acks.shown.Add(slot)
		return nil
	case errTooLarge:
		return p.beginLarge(slot)
	default:
		return err
	}
}

// bestRun returns the bits to send of a slot, and the counter of their kind.
func (p *sender) bestRun(slot int, c *class) (r *run, count *uint64) {
	if !c.whole {
		b := c.Baselines
		r := p.runs.update(slot, b)
		if r == nil && b.Two {
			b.Two, b.A2 = false, 0
			r = p.runs.update(slot, b)
		}
		switch {
		case r == nil:
		case p.runs.jumped(slot, int(r.bits)):
			return p.runs.whole(slot), &p.stats.Jumps
		default:
			return r, &p.stats.Updates
		}
	}
	return p.runs.whole(slot), &p.stats.Wholes
}

func (p *sender) sendDespawn(slot int) error {
	if err := p.packet.despawn(slot); err != nil {
		return err
	}
	p.stats.Despawns++
	p.acked.acks.shown.Add(slot)
	return nil
}

// refresh keeps the ticks of slots of a block within reach of serial arithmetic.
func (p *tracker) refresh(b int, slots uint64, limit delta.Tick) {
	if b >= len(p.due) {
		return
	}
	p.owe(b, p.acks.refresh(b, slots, limit, p.snap.tick)) // these are sent whole once
}
