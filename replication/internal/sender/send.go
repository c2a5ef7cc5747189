package sender

import (
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// What a peer is sent in a tick: of all slots those that are due, block by block.

// errTooLarge means that an entry does not fit into a packet of its own.
var errTooLarge = errors.New("replication: entry larger than a packet")

// errFull means that no more packets may be sent now.
var errFull = errors.New("replication: too many packets in flight")

// prepare starts a tick.
func (p *Sender) prepare(c *Chooser) {
	p.acked.Grow()
	p.sight.Limit()
	p.earn()
	p.beginSilence()
	p.acked.Follow()
	p.acked.NoteAllChurn()
	p.planned, p.Relays = sendNothing, false
	if p.Rests = !p.Speaks && p.acked.MayRest(); p.Rests {
		p.rest()
		return
	}
	p.acked.Expire()
	p.inOrder = p.acked.EveryTick() && p.resume == 0 && p.ample()
	p.acked.Look()
	p.meet()
	if p.Sending {
		p.markLacking()
	}
	if p.inOrder && p.acked.CanRelay() {
		p.planned, p.Relays = sendAll, true
	} else {
		p.acked.FindPairs()
		if p.sight.View.InView == nil { // else look has done so
			p.acked.MarkChanged()
		}
		if p.planned = p.plan(); p.planned == sendBest {
			p.press(c)
		}
	}
	p.Packet.begin(p)
}

// callsBack reports whether prepare calls functions of the user.
func (p *Sender) callsBack() bool { return p.sight.View.Visible != nil || p.Weigh != nil }

// rest is what a tick is for a peer that needs nothing in it: what it sees stays as it was, but for what turned.
func (p *Sender) rest() {
	s := &p.snap.Slots
	for _, b := range s.ChurnedBlocks {
		if int(b) < len(p.sight.View.InView) {
			p.sight.View.InView[b] &^= s.Churned[b]
		}
		if int(b) < len(p.Met) {
			p.Met[b] &^= s.Churned[b]
		}
	}
	p.acked.Expire()
	p.acked.MarkChanged()
}

// markLacking makes due all that the peer is not known to hold: a send function panicked while it was being sent, and
// what was taken from due by then need not be in a packet.
func (p *Sender) markLacking() {
	for b := range p.acked.Dirty {
		p.acked.MarkDirty(b, p.sight.View.Sees(b, p.snap.Slots.Alive[b])&(p.acked.Acks.Behind(b)|p.acked.Acks.Large[b])|p.acked.Gone(b))
	}
	p.Sending = false
}

// encode fills the packets of the present tick for peers that are prepared, with runs and streams from
// the cache.
func (c *worker) encode(peers []*Sender) {
	c.beginPacketSets(peers)
	for _, p := range peers {
		if !p.Rests {
			p.Worker, p.Sending = c, true
			p.sendPlanned()
		}
		c.end(p)
	}
}

// sendPlanned sends what the peer is to get in the present tick.
func (p *Sender) sendPlanned() {
	switch p.planned {
	case sendAll:
		if p.Relays && p.takeAll() {
			return
		}
		if p.Relays {
			p.Relays = false
			p.acked.FindPairs()
			p.acked.MarkChanged()
		}
		p.sendDirty(p.acked.Dirty)
	case sendBest:
		p.sendChosen()
	}
}

// end ends the tick for a peer.
func (c *worker) end(p *Sender) {
	if p.Relays {
		p.acked.Full[p.snap.Tick%snapshot.RecentTicks] = p.snap.Tick
	}
	p.acked.Log.Trim(p.acked.Followed)
	if !p.Rests {
		p.Sending = false
		p.wait()
		p.learn()
	}
	p.account()
}

// sendDirty sends a part of what is due, beginning where the last tick had to stop.
func (p *Sender) sendDirty(of bitset.Set) {
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
func (p *Sender) sendRest(of bitset.Set) {
	p.yields = p.yields && p.blocked() // it has its turn now
	first := p.resume
	p.resume = 0
	if p.sendSlots(of, first, len(of)<<6) && first > 0 {
		p.Packet.finish() // slots rise within a packet
		p.sendSlots(of, 0, first)
	}
	p.Packet.finish()
}

// sendSlots goes through those of a part of what is due that are in a range, and returns
// false if it had to stop.
func (p *Sender) sendSlots(of bitset.Set, from, to int) bool {
	for b := p.acked.Acks.DirtyBlocks.Next(from >> 6); b<<6 < to; b = p.acked.Acks.DirtyBlocks.Next(b + 1) {
		d := of[b] & p.acked.DirtyIn(b) &^ p.snap.Slots.InGroups(b)
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
			p.resume = max(b<<6+bits.TrailingZeros64(p.acked.Dirty[b]&d), 1) // 0: nowhere
			return false
		}
	}
	return true
}

// sendBlock sends what the peer needs of slots of a block. Afterwards there is nothing to
// do for a slot until it changes or what was sent is lost.
func (p *Sender) sendBlock(b int, d uint64) error {
	p.Worker.Bound()
	live, gone := p.acked.Split(b, d)
	p.acked.Dirty[b] &^= d &^ live &^ gone // gone before the peer heard of them
	d = live | gone
	var set *encode.PacketSet
	copies := uint64(0)
	if p.packetSet >= 0 {
		set = &p.Worker.Sets.List[p.packetSet]
		copies = p.copies(set, b, live)
	}
	large := live & p.acked.Acks.Large[b]
	if others := live &^ (large | copies); others != 0 {
		p.acked.Classify(b, others)
	}
	for d != 0 {
		i := bits.TrailingZeros64(d)
		bit := uint64(1) << i
		if copies&bit != 0 {
			if put := p.Packet.putStretch(set, b, d&copies, d); put != 0 {
				p.acked.Dirty[b] &^= put // they are shown, as the peer holds their baselines
				p.stats.Updates += uint64(bits.OnesCount64(put))
				d &^= put
				continue
			}
			copies = 0
			p.acked.Classify(b, d&live&^large)
		}
		p.acked.Dirty[b] &^= bit // a part that is lost sets it again
		var err error
		switch {
		case gone&bit != 0:
			err = p.sendDespawn(b<<6 + i)
		case large&bit != 0:
			err = p.sendParts(b<<6 + i)
		default:
			err = p.sendState(b<<6+i, baseline.ClassOf(p.acked.Classes.List, bit))
		}
		if err != nil {
			p.acked.MarkDirty(b, d)
			return err
		}
		d &^= bit
	}
	return nil
}

// sendState sends the state of a slot.
func (p *Sender) sendState(slot int, c *baseline.Class) error {
	var err error
	var count *uint64
	if p.Packet.Compact != nil {
		count, err = p.Packet.putCompact(slot, c)
	} else if set := p.Worker.Sets.Ready(slot, c); set != nil && p.Packet.putReady(set, slot, c) {
		count = &p.stats.Updates
	} else {
		var r *encode.CachedEntry
		r, count = p.bestEntry(slot, c)
		err = p.Packet.put(slot, r)
	}
	switch err {
	case nil:
		*count++
		p.acked.Acks.Shown.Add(slot)
		return nil
	case errTooLarge:
		return p.beginLarge(slot)
	default:
		return err
	}
}

// bestEntry returns the bits to send of a slot, and the counter of their kind.
func (p *Sender) bestEntry(slot int, c *baseline.Class) (r *encode.CachedEntry, count *uint64) {
	if !c.Full {
		b := c.Baselines
		r := p.Worker.Update(slot, b)
		if r == nil && b.Two {
			b.Two, b.A2 = false, 0
			r = p.Worker.Update(slot, b)
		}
		switch {
		case r == nil:
		case encode.FullIsSmaller(p.snap, slot, int(r.Bits)):
			return p.Worker.FullState(slot), &p.stats.KeyframeFallbacks
		default:
			return r, &p.stats.Updates
		}
	}
	return p.Worker.FullState(slot), &p.stats.FullStates
}

func (p *Sender) sendDespawn(slot int) error {
	if err := p.Packet.despawn(slot); err != nil {
		return err
	}
	p.stats.Despawns++
	p.acked.Acks.Shown.Add(slot)
	return nil
}
