package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file sends states that are larger than a packet: in parts, each of which fills a packet.

// partOverhead exceeds the bytes that precede the payload of a part in a packet.
const partOverhead = 48

// beginLarge makes the state of a slot wait for sendLarge.
func (p *stateSender) beginLarge(slot int) {
	p.acked.Large.Begin(slot)
	p.acked.Acks.Shown.Add(slot)
	p.acked.MarkDirty(slot>>6, 1<<(slot&63))
}

// split splits the slot's present state into parts.
func (p *stateSender) split(slot int, l *ackstate.LargeState) {
	r := p.worker.FullState(slot)
	r.Copies++
	w := bitbuf.NewWriter(make([]byte, (int(r.Bits)+7)/8+4*delta.MaxComponents))
	encode.WriteFullHead(&w, p.snap, slot, &wire.ComponentSet{})
	p.worker.Copy(&w, r)
	l.Tick, l.Encoded, l.Size = p.snap.Tick, w.Bytes(), p.packet.budget.partSize()
	l.Parts = make([]ackstate.PartStatus, (len(l.Encoded)+l.Size-1)/l.Size)
	l.Missed = len(l.Parts)
}

// sendLarge sends those of the slots of a block whose states are larger than a packet. They are clean afterwards, until
// a part is lost.
func (p *stateSender) sendLarge(b int, d uint64) error {
	live, _ := p.acked.Split(b, d&p.acked.Large.In(b))
	for slot := range bitset.Slots(b, live) {
		p.acked.Dirty.Remove(slot) // before it is sent: a lost part marks it again
		if err := p.sendParts(slot); err != nil {
			p.acked.MarkDirty(b, 1<<(slot&63))
			return err
		}
	}
	return nil
}

// sendParts sends the parts of the slot's state that were not sent yet, or were lost.
func (p *stateSender) sendParts(slot int) error {
	l := p.acked.Large.Of(slot)
	if l.Encoded == nil {
		if p.packet.blocked() {
			return errFull
		}
		p.split(slot, l)
	}
	for i := range l.Parts {
		if l.Parts[i] != ackstate.PartUnsent {
			continue
		}
		k := p.packet
		k.finish()
		if err := k.putPart(slot, l, i); err != nil {
			return err
		}
		k.sent.SetPart(i, l.Tick)
		k.budget.parts += int32(8 * min(l.Size, len(l.Encoded)-i*l.Size))
		l.Parts[i] = ackstate.PartInFlight
		k.finish()
		p.stats.Parts++
	}
	return nil
}
