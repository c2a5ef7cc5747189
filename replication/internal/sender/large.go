package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file sends states that are larger than a packet: in parts, each of which fills a packet.

// partOverhead exceeds the bytes that precede the payload of a part in a packet.
const partOverhead = 48

// beginLarge splits the slot's present state into parts and sends them.
func (p *stateSender) beginLarge(slot int) error {
	s := p.snap
	info := &s.Slots.Info[slot]
	r := p.worker.FullState(slot)
	r.Copies++
	buf := make([]byte, (int(r.Bits)+7)/8+4*delta.MaxComponents)
	w := bitbuf.NewWriter(buf)
	w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	delta.WriteSet(&w, &info.Set, &delta.Set{})
	w.WriteRun(p.worker.Bytes(r), int(r.Bits))
	l := &ackstate.LargeState{Tick: s.Tick, Encoded: w.Bytes(), Size: s.Opts.MTU - partOverhead}
	l.Parts = make([]ackstate.PartStatus, (len(l.Encoded)+l.Size-1)/l.Size)
	l.Missed = len(l.Parts)
	p.acked.Large[slot] = l
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.acked.Acks.Shown[b] |= bit
	p.acked.Acks.Large[b] |= bit
	return p.sendParts(slot)
}

// sendParts sends the parts of the slot's state that were not sent yet, or were lost.
func (p *stateSender) sendParts(slot int) error {
	l := p.acked.Large[slot]
	for i := range l.Parts {
		if l.Parts[i] != ackstate.PartUnsent {
			continue
		}
		k := p.packet
		k.finish()
		if err := k.putPart(slot, l, i); err != nil {
			return err
		}
		k.sent.Part, k.sent.PartTick = uint16(i), l.Tick
		l.Parts[i] = ackstate.PartInFlight
		k.finish()
		p.stats.Parts++
	}
	return nil
}
