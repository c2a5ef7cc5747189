package replication

import (
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// What a peer is sent in a tick: of all slots those that are due, block by block.

// errTooLarge means that an entry does not fit into a packet of its own.
var errTooLarge = errors.New("replication: entry larger than a packet")

// errFull means that no more packets may be sent now.
var errFull = errors.New("replication: too many packets in flight")

// prepare starts a tick. A peer that is to be sent all that is due is brought up to date
// when it is sent, unless there are things it may not see.
func (p *Peer) prepare(c *chooser) {
	p.grow()
	p.limit()
	p.earn()
	p.beginSilence()
	p.inOrder = p.everyTick() && p.resume == 0 && p.ample()
	p.planned = sendNothing
	if p.plain() {
		p.planned = sendInTurn
	}
	p.preparing = true
	if p.inOrder {
		p.follow()
	}
	if p.steps = p.canStep(); !p.steps {
		p.fallOutAll()
		p.followed = p.log.next
	}
	p.leaveStep()
	p.arriveAll()
	if p.planned == sendInTurn {
		p.expire()
		p.meet()
		p.preparing = false
		p.packet.begin(p)
		return
	}
	p.preparing = false
	p.update()
	p.expire()
	p.look()
	p.meet()
	if p.planned = p.plan(); p.planned == sendBest {
		p.press(c)
	} else if p.planned == sendAll && p.resume == 0 {
		p.planned = sendReady
		p.packet.begin(p)
	}
}

// plain reports whether the peer is to be sent all that is due, in the order of slots, and sees
// everything.
func (p *Peer) plain() bool { return p.inOrder && !p.view.limited && p.view.visible == nil }

// callsBack reports whether prepare calls functions of the user.
func (p *Peer) callsBack() bool { return p.view.Visible != nil || p.weigh != nil }

// update brings what is known of all slots up to the present tick.
func (p *Peer) update() {
	s, now := &p.server.slots, p.server.tick
	p.acks.advance(now)
	if p.server.waits {
		for _, b := range s.busy {
			p.noteStructure(int(b), s.turned[b]&^p.unseen(int(b))|p.view.sees(int(b), s.reshaped[b])) // enter and leave note the others
		}
	}
	for _, b := range s.turning {
		b := int(b)
		p.acks.strays.set(b)
		word := s.turned[b] &^ p.unseen(b)
		p.turn(b, word)
		p.owe(b, word&p.acks.block(b).shown)
	}
	for w, waking := range s.waking {
		for b := range slotsOf(w, waking&p.acks.strays[w]) { // what is in step needs no telling
			word := s.woke[b] &^ p.inStep(b)
			if !p.view.Keep && !p.view.released {
				word = p.view.sees(b, word) // of what is out of view nothing is known
			}
			if word != 0 {
				p.acks.wake(b, word, now)
			}
		}
	}
	if p.steps && now-p.acks.newRow <= p.acks.ticks+fallInEvery {
		for c := int(-now % fallInEvery); c < len(p.acks.marks); c += fallInEvery {
			p.fallIn(c)
		}
	}
	p.outNews = 0
	if p.view.visible != nil {
		return // look knows what is seen
	}
	for w, stirred := range s.stirred {
		for b := range slotsOf(w, stirred&p.acks.strays[w]) {
			if out := s.news[b] &^ p.inStep(b); out != 0 {
				p.outNews += bits.OnesCount64(out &^ s.inGroups(b))
				p.owe(b, out)
			}
		}
	}
}

// fewNews is how many slots may change in a tick so that all that is read for them stays
// in the processor's cache.
const fewNews = 1024

// encode fills the packets of the present tick for peers that are prepared, with runs from
// the cache. Where much has changed it goes chunk by chunk, for all peers: what one reads of
// the history is there for the others. Else it goes peer by peer. The packets are the same.
func (c *runCache) encode(peers []*Peer) {
	for _, p := range peers {
		if p.planned == sendInTurn {
			p.update()
		}
	}
	for _, p := range peers {
		p.runs, p.stream, p.carries, p.served = c, -1, false, false
		if p.planned == sendInTurn || p.planned == sendReady {
			p.served = p.sendGroups(p.due)
		}
	}
	c.reach(peers)
	c.beginStreams(peers)
	chunks := len(c.server.slots.log)
	if c.server.slots.changes <= fewNews {
		for _, p := range peers {
			c.takeStream(p)
			p.encode(0, chunks)
			c.end(p)
		}
		return
	}
	for _, p := range peers {
		c.takeStream(p)
	}
	busy := c.server.slots.busy
	for k := range chunks {
		n := 0
		for n < len(busy) && int(busy[n])/chunkBlocks == k {
			n++
		}
		if len(c.streams) == 0 {
			c.touch(busy[:n])
			c.touchPeers(k, peers)
		}
		busy = busy[n:]
		for _, p := range peers {
			p.encode(k, k+1)
		}
	}
	for _, p := range peers {
		c.end(p)
	}
}

// takeStream sends the peer what it can have of its stream.
func (c *runCache) takeStream(p *Peer) {
	if p.stream >= 0 {
		p.take(&c.streams[p.stream])
	}
}

// end ends the tick for a peer.
func (c *runCache) end(p *Peer) {
	p.runs = c
	switch p.planned {
	case sendInTurn, sendReady:
		p.packet.finish()
	case sendAll:
		p.sendDue(p.due)
	case sendBest:
		p.sendChosen()
	}
	if !p.steps {
		p.followed = p.log.next
	}
	p.log.trim(p.followed)
	if p.server.tick%resizeTicks == 0 {
		p.acks.shrink()
	}
	p.wait()
	p.learn()
	p.account()
}

// encode sends what is due of some chunks, if that is the peer's plan.
func (p *Peer) encode(chunk, end int) {
	if p.served || p.planned != sendInTurn && p.planned != sendReady {
		return
	}
	from, to := chunk*chunkBlocks, min(end*chunkBlocks, len(p.due))
	if p.resume == 0 {
		p.sendSlots(p.due, from<<6, to<<6)
		from = p.resume>>6 + 1
	}
	if p.steps && p.resume != 0 {
		p.fallBehind(max(from, chunk*chunkBlocks), to)
	}
}

// sendDue sends a part of what is due, beginning where the last tick had to stop.
func (p *Peer) sendDue(of bitset) {
	p.packet.begin(p)
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
func (p *Peer) sendRest(of bitset) {
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
func (p *Peer) grow() {
	s := p.server
	n := s.slots.len()
	if old := len(p.due); len(s.slots.alive) > old {
		p.due = p.due.grown(n)
		p.acks.grow(n)
		for b, alive := range s.slots.alive[old:] {
			p.acks.strays.set(old + b)
			p.owe(old+b, alive)
			p.noteStructure(old+b, alive)
		}
	}
}

// owe notes that slots of a block are due.
func (p *Peer) owe(b int, mask uint64) {
	if mask != 0 {
		p.due[b] |= mask
		p.acks.owed.set(b)
	}
}

// owing returns the slots of a block that are due, if it is among those that may owe some.
func (p *Peer) owing(b int) uint64 {
	due := p.due[b]
	if due == 0 {
		p.acks.owed.clear(b)
	}
	return due
}

// nextWanted returns the first block from b on of which the peer may need something.
func (p *Peer) nextWanted(b int) int {
	stirred := p.server.slots.stirred
	if p.view.visible != nil {
		stirred = p.view.stirred
	}
	return min(p.acks.owed.next(b), stirred.next(b))
}

// turn notes that slots of a block hold another entity than before, or none.
func (p *Peer) turn(b int, mask uint64) {
	if large := mask & p.acks.rare(b).large; large != 0 {
		p.dropLarge(b, large)
	}
	p.fallOut(b, mask)
	p.acks.sever(b, mask, p.server.tick)
}

// sendSlots goes through those of a part of what is due that are in a range, and returns
// false if it had to stop.
func (p *Peer) sendSlots(of bitset, from, to int) bool {
	stream := p.planned == sendInTurn && p.stream >= 0
	for b := from >> 6; b<<6 < to; b++ {
		if b = p.nextWanted(b); b<<6 >= to {
			break
		}
		if stream {
			if b = p.copyStretch(b, to>>6); b<<6 >= to {
				break
			}
		}
		d := of[b] &^ p.server.slots.inGroups(b)
		if d == 0 && p.server.slots.news[b] == 0 {
			continue
		}
		if p.steps {
			d |= p.server.slots.news[b] & p.inStep(b) &^ p.carriedSlots(b)
		}
		if d == 0 {
			continue
		}
		if b<<6 < from {
			d &= ^uint64(0) << (from & 63)
		}
		if to < (b+1)<<6 {
			d &= 1<<(to&63) - 1
		}
		if d != 0 && p.sendBlock(b, d) != nil {
			p.resume = max(b<<6+bits.TrailingZeros64(p.due[b]&d), 1) // 0: nowhere
			return false
		}
	}
	return true
}

// sendBlock sends what the peer needs of slots of a block. Afterwards there is nothing to
// do for a slot until it changes or what was sent is lost.
func (p *Peer) sendBlock(b int, d uint64) error {
	p.runs.bound()
	s := p.server
	step := d & p.inStep(b)
	if step == d && (p.view.visible == nil || bits.OnesCount64(d) >= minShared) && p.packet.putBlock(b, d, step) {
		p.stats.Updates += uint64(bits.OnesCount64(d))
		return nil
	}
	live, gone, large := d, uint64(0), uint64(0)
	p.classes.list = p.classes.list[:0]
	if step != d { // of what is in step, all that follows is known
		live, gone = p.split(b, d)
		p.due[b] &^= d &^ live &^ gone // gone before the peer heard of them
		d = live | gone
		if large = live & p.acks.block(b).rare; large != 0 {
			large &= p.acks.rare(b).large
		}
		p.classify(b, live&^large&^step)
	}
	if step != 0 {
		p.classes.addInStep(b, step, p.base())
	}
	if step != d && bits.OnesCount64(d) >= minShared && p.packet.putBlock(b, d, step) {
		p.due[b] &^= d
		p.acks.send(b, d&^step, s.tick, p.log.next)
		p.stats.Updates += uint64(bits.OnesCount64(d))
		return nil
	}
	for ; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		p.due.clear(b<<6 + i) // a part that is lost sets it again
		var err error
		switch {
		case live>>i&1 == 0:
			err = p.sendDespawn(b<<6 + i)
		case large>>i&1 != 0:
			err = p.sendParts(b<<6 + i)
		default:
			err = p.sendState(b<<6+i, classOf(p.classes.list, 1<<i))
		}
		if err != nil {
			p.fallOut(b, d)
			p.owe(b, d)
			return err
		}
	}
	return nil
}

// split returns which of the slots of a block the peer is to be shown, and which it is to
// be told the end of.
func (p *Peer) split(b int, d uint64) (live, gone uint64) {
	live = p.view.sees(b, d&p.server.slots.alive[b])
	if gone = d &^ live; gone != 0 {
		gone &= p.gone(b)
	}
	return live, gone
}

// minShared is how many slots of a block make it worth to keep their entries together
// for other peers.
const minShared = 4

// shareable reports whether the due slots of the block in hand, d, are updates all and
// their entries worth to be kept for other peers.
func (p *Peer) shareable(d uint64) bool {
	if len(p.classes.list) > maxShared {
		return false
	}
	for i := range p.classes.list {
		c := &p.classes.list[i]
		if c.whole {
			return false
		}
		d &^= c.mask
	}
	return d == 0
}

// sendState sends the state of a slot.
func (p *Peer) sendState(slot int, c *class) error {
	var err error
	var count *uint64
	if p.packet.compact != nil {
		count, err = p.packet.putCompact(slot, c)
	} else {
		var r *run
		r, count = p.bestRun(slot, c)
		err = p.packet.put(slot, r)
	}
	switch err {
	case nil:
		*count++
		if bit := uint64(1) << (slot & 63); p.inStep(slot>>6)&bit == 0 {
			p.acks.send(slot>>6, bit, p.server.tick, p.log.next)
		}
		return nil
	case errTooLarge:
		p.fallOut(slot>>6, 1<<(slot&63))
		return p.beginLarge(slot)
	default:
		return err
	}
}

// bestRun returns the bits to send of a slot, and the counter of their kind.
func (p *Peer) bestRun(slot int, c *class) (r *run, count *uint64) {
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

func (p *Peer) sendDespawn(slot int) error {
	if err := p.packet.despawn(slot); err != nil {
		return err
	}
	p.stats.Despawns++
	p.acks.send(slot>>6, 1<<(slot&63), p.server.tick, p.log.next)
	return nil
}

// refresh keeps the ticks of slots of a block within reach of serial arithmetic. Those in
// old changed before the limit.
func (p *Peer) refresh(b int, slots, old uint64, limit delta.Tick) {
	if b >= len(p.due) {
		return
	}
	p.fallOut(b, slots&old)
	if slots &^= p.inStep(b); slots == 0 {
		return
	}
	blk := p.acks.block(b)
	for slot := range slotsOf(b, slots&(blk.rest|blk.rare)) {
		if !p.acks.refresh(slot, limit, p.server.tick, delta.Tick(p.server.opts.window)) {
			p.owe(b, 1<<(slot&63)) // the state is sent whole once
		}
	}
}
