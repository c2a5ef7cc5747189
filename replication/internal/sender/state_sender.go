package sender

import (
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
)

var (
	// errTooLarge means that an entry does not fit into a packet of its own.
	errTooLarge = errors.New("replication: entry larger than a packet")
	// errFull means that no more packets may be sent now.
	errFull = errors.New("replication: too many packets in flight")
)

// A stateSender sends the states of dirty slots in slot order, block by block, and then those that are larger than a
// packet, so that these do not keep others from their turn. If the larger ones had no turn then, they come first the
// next time. It stops when no more packets may be sent, and goes on from there in the next tick.
type stateSender struct {
	*peer
	packet     *packetWriter
	worker     *worker
	packetSet  int32 // of the worker, that the peer copies from in the present tick, or NoSet; void if it rests
	sources    encode.Sources
	partsFirst bool // the larger ones come first

	// Where to go on among states that fit into a packet, and among larger ones: 1 more than the slot, or 0.
	resume, parts int
}

// restart drops where to go on.
func (p *stateSender) restart() { p.resume, p.parts, p.partsFirst = 0, 0, false }

// stopped reports whether the last tick had to stop.
func (p *stateSender) stopped() bool { return p.resume != 0 || p.parts != 0 && p.acked.Large.Any() }

// send sends the dirty ones of some slots, except for slots in groups.
func (p *stateSender) send(of bitset.Set) {
	first, parts := p.acked.Log.Next, p.stats.Parts
	if p.partsFirst {
		p.sendFrom(&p.parts, of, true)
	}
	if p.sendFrom(&p.resume, of, false) && !p.partsFirst && p.acked.Large.Any() {
		p.sendFrom(&p.parts, of, true)
	}
	if p.stats.Parts != parts || p.acked.Log.Next != first {
		p.partsFirst = p.stats.Parts == parts && p.acked.LargeWaits()
	}
}

// sendFrom sends the dirty ones of some slots, from a place on: those that are larger than a packet, or the others. It
// returns false if it had to stop.
func (p *stateSender) sendFrom(at *int, of bitset.Set, large bool) bool {
	first := max(*at-1, 0)
	if *at = p.sendSlots(of, first, len(of)<<6, large); *at == 0 && first > 0 {
		p.packet.finish() // slots ascend within a packet
		*at = p.sendSlots(of, 0, first, large)
	}
	p.packet.finish()
	return *at == 0
}

// sendSlots is sendFrom for a range of slots. It returns the place where it had to stop, or 0.
func (p *stateSender) sendSlots(of bitset.Set, from, to int, large bool) int {
	var old bitset.Set
	if !large && p.packetSet == encode.NoSet { // else few are classified
		old = p.findOld(of, from, to)
	}
	for b := range p.acked.DirtyBlocks.Between(from>>6, (to+63)>>6) {
		d := of[b] & p.acked.DirtyIn(b) &^ p.acked.Grouped(b)
		if b<<6 < from {
			d &= ^uint64(0) << (from & 63)
		}
		if to < (b+1)<<6 {
			d &= 1<<(to&63) - 1
		}
		if d == 0 {
			continue
		}
		var err error
		if large {
			err = p.sendLarge(b, d)
		} else {
			err = p.sendBlock(b, d, old)
			d &^= p.acked.Large.In(b)
		}
		if err != nil {
			return b<<6 + bits.TrailingZeros64(p.acked.Dirty[b]&d) + 1
		}
	}
	return 0
}

// findOld finds the old ones of all slots that are to be sent, for Classify. What the table of acknowledgements has of
// them is far apart in memory: reading it for all of them at once, the processor waits for many at a time.
func (p *stateSender) findOld(of bitset.Set, from, to int) bitset.Set {
	old := p.worker.old.Grown(len(of) << 6)
	for b := range p.acked.DirtyBlocks.Between(from>>6, (to+63)>>6) {
		old[b] = p.acked.Old(b, of[b]&p.acked.Dirty[b])
	}
	p.worker.old = old
	return old
}

// classify classifies slots of a block. old is the result of findOld or nil.
func (p *stateSender) classify(b int, slots uint64, old bitset.Set) {
	if old != nil {
		p.acked.Classify(b, slots, old[b])
	} else {
		p.acked.Classify(b, slots, p.acked.Old(b, slots))
	}
}

// sendBlock sends what the peer needs of slots of a block. They are clean afterwards, until they change or what was
// sent is lost; but those that are larger than a packet stay dirty, for sendLarge. old is the result of findOld or
// nil.
func (p *stateSender) sendBlock(b int, d uint64, old bitset.Set) error {
	live, gone := p.acked.Split(b, d)
	p.acked.Dirty[b] &^= d &^ live &^ gone // gone before the peer was sent any of them
	live &^= p.acked.Large.In(b)
	d = live | gone
	var set *encode.PacketSet
	copies := uint64(0)
	if p.packetSet != encode.NoSet {
		set = &p.worker.Sets.List[p.packetSet]
		copies = p.copies(set, b, live)
	}
	if others := live &^ copies; others != 0 {
		p.classify(b, others, old)
	}
	for d != 0 {
		i := bits.TrailingZeros64(d)
		bit := uint64(1) << i
		if copies&bit != 0 {
			if put := p.packet.putCopies(set, b, d&copies, d); put != 0 {
				p.acked.Dirty[b] &^= put // the client shows them already, as it holds their baselines
				p.stats.Updates += uint64(bits.OnesCount64(put))
				d &^= put
				continue
			}
			copies = 0
			p.classify(b, d&live, old)
		}
		p.acked.Dirty[b] &^= bit // before it is sent: a lost part marks it again
		var err error
		if gone&bit == 0 {
			err = p.sendState(b<<6+i, baseline.ClassOf(p.acked.Classes.List, bit))
		} else if err = p.packet.despawn(b<<6 + i); err == nil {
			p.stats.Despawns++
			p.acked.Acks.Shown[b] |= bit
		}
		if err != nil {
			p.acked.MarkDirty(b, d)
			return err
		}
		d &^= bit
	}
	return nil
}

// sendState sends the state of a slot of the given class.
func (p *stateSender) sendState(slot int, c *baseline.Class) error {
	var err error
	var count *uint64
	if p.packet.Compact != nil {
		count, err = p.packet.putCompact(slot, c)
	} else if set := p.worker.Sets.Ready(slot, c); set != nil {
		count, err = &p.stats.Updates, p.packet.putShared(set, slot, c)
	} else {
		var r *encode.CachedEntry
		r, count = p.bestEntry(slot, c)
		if err = p.packet.put(slot, r); err == nil && count == &p.stats.FullStates {
			p.packet.budget.bookFull(r.Bits)
		}
	}
	switch err {
	case nil:
		*count++
		p.acked.Acks.Shown.Add(slot)
		return nil
	case errTooLarge:
		p.beginLarge(slot)
		return nil
	default:
		return err
	}
}

// bestEntry returns the entry to send of a slot, and the counter for its kind: an update against
// the baselines of its class, or the full state if there are no baselines or it is smaller.
func (p *stateSender) bestEntry(slot int, c *baseline.Class) (r *encode.CachedEntry, count *uint64) {
	if !c.Full {
		b := c.Baselines
		r := p.worker.Update(slot, b)
		if r == nil && b.Two {
			b.Two, b.A2 = false, 0
			r = p.worker.Update(slot, b)
		}
		switch {
		case r == nil:
		case encode.FullIsSmaller(p.snap, slot, int(r.Bits)):
			return p.worker.FullState(slot), &p.stats.KeyframeFallbacks
		default:
			return r, &p.stats.Updates
		}
	}
	return p.worker.FullState(slot), &p.stats.FullStates
}
