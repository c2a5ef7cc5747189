package replication

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An entity whose entry is larger than a packet is sent as its whole state at one tick,
// cut into parts that are each sent until acknowledged. The client shows it when all
// have come, so that it never shows a mixture of ticks, and the state is a baseline
// like any other from then on.

// A largeState is on its way in parts.
type largeState struct {
	tick   delta.Tick
	run    []byte // entryWhole's head and rows
	size   int    // bytes of a part; the last one may be shorter
	parts  []partStatus
	missed int // parts not acknowledged yet
}

type partStatus uint8

const (
	partDue partStatus = iota
	partInFlight
	partAcked
)

const (
	// partOverhead is more than what stands before a part's bytes in a packet.
	partOverhead = 48
	partOrder    = 3 // of the exp-Golomb codes of what describes a part
)

// beginLarge starts to send the slot's present state in parts.
func (p *sender) beginLarge(slot int) error {
	s := p.snap
	info := &s.slots.info[slot]
	r := p.runs.whole(slot)
	r.copies++
	buf := make([]byte, (int(r.bits)+7)/8+4*delta.MaxComponents)
	w := bitbuf.NewWriter(buf)
	w.WriteExpGolomb(uint64(info.generation), wire.GenerationOrder)
	delta.WriteSet(&w, &info.set, &delta.Set{})
	w.WriteRun(p.runs.bytes(r), int(r.bits))
	l := &largeState{tick: s.tick, run: w.Bytes(), size: s.opts.mtu - partOverhead}
	l.parts = make([]partStatus, (len(l.run)+l.size-1)/l.size)
	l.missed = len(l.parts)
	p.acked.large[slot] = l
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.acked.acks.shown[b] |= bit
	p.acked.acks.large[b] |= bit
	return p.sendParts(slot)
}

// sendParts sends the parts of the slot's state that are due.
func (p *sender) sendParts(slot int) error {
	l := p.acked.large[slot]
	for i := range l.parts {
		if l.parts[i] != partDue {
			continue
		}
		k := &p.packet
		if k.open {
			k.finish() // a part fills a packet
		}
		payload := l.run[i*l.size : min((i+1)*l.size, len(l.run))]
		if k.compact != nil {
			if err := k.addCompact(slot, recordPart, &compactEntry{
				kind: wire.EntryPart, payload: payload,
				part: [4]uint64{uint64(p.snap.tick - l.tick), uint64(len(l.run)), uint64(l.size), uint64(i)},
			}); err != nil {
				return err
			}
			k.sent.part, k.sent.partTick = uint32(i), l.tick
			l.parts[i] = partInFlight
			k.finish()
			p.stats.Parts++
			continue
		}
		err := k.add(slot, recordPart, 0, func() {
			k.head(slot, wire.EntryPart)
			k.w.WriteExpGolomb(uint64(p.snap.tick-l.tick), partOrder)
			k.w.WriteExpGolomb(uint64(len(l.run)), partOrder)
			k.w.WriteExpGolomb(uint64(l.size), partOrder)
			k.w.WriteExpGolomb(uint64(i), partOrder)
			k.w.WriteBytes(payload)
		})
		if err != nil {
			return err
		}
		k.sent.part, k.sent.partTick = uint32(i), l.tick
		l.parts[i] = partInFlight
		k.finish()
		p.stats.Parts++
	}
	return nil
}

// partOf returns the state that a packet's part belongs to, if it is still on its way.
func (p *tracker) partOf(slot int, sent *sentPacket) *largeState {
	if l := p.large[slot]; l != nil && l.tick == sent.partTick && int(sent.part) < len(l.parts) {
		return l
	}
	return nil
}

func (p *tracker) acknowledgePart(slot int, sent *sentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.parts[sent.part] == partAcked {
		return
	}
	l.parts[sent.part] = partAcked
	if l.missed--; l.missed == 0 {
		b, bit := slot>>6, uint64(1)<<(slot&63)
		p.dropLarge(b, bit)
		p.holdAt(b, bit, l.tick)
		p.owe(b, bit&p.snap.slots.changedAfter(l.tick, b, bit)) // the changes since were not sent
	}
}

func (p *tracker) losePart(slot int, sent *sentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.parts[sent.part] != partInFlight {
		return
	}
	l.parts[sent.part] = partDue
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.owe(b, bit)
	if out := bit &^ p.sight.view.sees(b, bit); p.neverWhole(b, out) != 0 { // with Keep
		p.turn(b, out)
		p.noteStructure(b, out)
	}
}

// neverWhole returns those of the slots of a block of which the client has parts, and lacks others that are not on their way,
// and had nothing before. It shows nothing of them.
func (p *tracker) neverWhole(b int, mask uint64) (never uint64) {
	for slot := range bitset.Slots(b, mask&p.acks.large[b]&p.acks.none[b]) {
		if slices.Contains(p.large[slot].parts, partDue) {
			never |= 1 << (slot & 63)
		}
	}
	return never
}

// dropLarge ends the sending of parts of the states of slots of a block.
func (p *tracker) dropLarge(b int, mask uint64) {
	p.acks.large[b] &^= mask
	for slot := range bitset.Slots(b, mask) {
		delete(p.large, slot)
	}
}
