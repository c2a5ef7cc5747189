package sender

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// partOverhead is more than what stands before a part's bytes in a packet.
const partOverhead = 48

// beginLarge starts to send the slot's present state in parts.
func (p *Sender) beginLarge(slot int) error {
	s := p.snap
	info := &s.Slots.Info[slot]
	r := p.Worker.FullState(slot)
	r.Copies++
	buf := make([]byte, (int(r.Bits)+7)/8+4*delta.MaxComponents)
	w := bitbuf.NewWriter(buf)
	w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	delta.WriteSet(&w, &info.Set, &delta.Set{})
	w.WriteRun(p.Worker.Bytes(r), int(r.Bits))
	l := &ackstate.LargeState{Tick: s.Tick, Encoded: w.Bytes(), Size: s.Opts.MTU - partOverhead}
	l.Parts = make([]ackstate.PartStatus, (len(l.Encoded)+l.Size-1)/l.Size)
	l.Missed = len(l.Parts)
	p.acked.Large[slot] = l
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.acked.Acks.Shown[b] |= bit
	p.acked.Acks.Large[b] |= bit
	return p.sendParts(slot)
}

// sendParts sends the parts of the slot's state that are due.
func (p *Sender) sendParts(slot int) error {
	l := p.acked.Large[slot]
	for i := range l.Parts {
		if l.Parts[i] != ackstate.PartUnsent {
			continue
		}
		k := &p.Packet
		if k.open {
			k.finish() // a part fills a packet
		}
		payload := l.Encoded[i*l.Size : min((i+1)*l.Size, len(l.Encoded))]
		if k.Compact != nil {
			if err := k.addCompact(slot, baseline.RecordPart, &compact.Entry{
				Kind: wire.EntryPart, Payload: payload,
				Part: [4]uint64{uint64(p.snap.Tick - l.Tick), uint64(len(l.Encoded)), uint64(l.Size), uint64(i)},
			}); err != nil {
				return err
			}
			k.sent.Part, k.sent.PartTick = uint32(i), l.Tick
			l.Parts[i] = ackstate.PartInFlight
			k.finish()
			p.stats.Parts++
			continue
		}
		err := k.add(slot, baseline.RecordPart, 0, func() {
			k.head(slot, wire.EntryPart)
			k.w.WriteExpGolomb(uint64(p.snap.Tick-l.Tick), wire.PartOrder)
			k.w.WriteExpGolomb(uint64(len(l.Encoded)), wire.PartOrder)
			k.w.WriteExpGolomb(uint64(l.Size), wire.PartOrder)
			k.w.WriteExpGolomb(uint64(i), wire.PartOrder)
			k.w.WriteBytes(payload)
		})
		if err != nil {
			return err
		}
		k.sent.Part, k.sent.PartTick = uint32(i), l.Tick
		l.Parts[i] = ackstate.PartInFlight
		k.finish()
		p.stats.Parts++
	}
	return nil
}
