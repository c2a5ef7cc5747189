package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// partOf returns the state that a packet's part belongs to, if it is still on its way.
func (p *Tracker) partOf(slot int, sent *SentPacket) *LargeState {
	if l := p.Large[slot]; l != nil && l.Tick == sent.PartTick && int(sent.Part) < len(l.Parts) {
		return l
	}
	return nil
}

func (p *Tracker) acknowledgePart(slot int, sent *SentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.Parts[sent.Part] == partAcked {
		return
	}
	l.Parts[sent.Part] = partAcked
	if l.Missed--; l.Missed == 0 {
		b, bit := slot>>6, uint64(1)<<(slot&63)
		p.dropLarge(b, bit)
		p.holdAt(b, bit, l.Tick)
		p.MarkDirty(b, bit&p.Snap.Slots.ChangedAfter(l.Tick, b, bit)) // the changes since were not sent
	}
}

func (p *Tracker) losePart(slot int, sent *SentPacket) {
	l := p.partOf(slot, sent)
	if l == nil || l.Parts[sent.Part] != PartInFlight {
		return
	}
	l.Parts[sent.Part] = PartUnsent
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.MarkDirty(b, bit)
	if out := bit &^ p.sight.View.Sees(b, bit); p.neverComplete(b, out) != 0 { // with Keep
		p.NoteChurn(b, out)
		p.noteStructure(b, out)
	}
}

// neverComplete returns those of the slots of a block of which the client has parts, and lacks others that are not on their way,
// and had nothing before. It shows nothing of them.
func (p *Tracker) neverComplete(b int, mask uint64) (never uint64) {
	for slot := range bitset.Slots(b, mask&p.Acks.Large[b]&p.Acks.None[b]) {
		if slices.Contains(p.Large[slot].Parts, PartUnsent) {
			never |= 1 << (slot & 63)
		}
	}
	return never
}

// dropLarge ends the sending of parts of the states of slots of a block.
func (p *Tracker) dropLarge(b int, mask uint64) {
	p.Acks.Large[b] &^= mask
	for slot := range bitset.Slots(b, mask) {
		delete(p.Large, slot)
	}
}

// An entity whose entry is larger than a packet is sent as its whole state at one tick,
// cut into parts that are each sent until acknowledged. The client shows it when all
// have come, so that it never shows a mixture of ticks, and the state is a baseline
// like any other from then on.

// A LargeState is on its way in parts.
type LargeState struct {
	Tick    delta.Tick
	Encoded []byte // wire.EntryFull's head and rows
	Size    int    // bytes of a part; the last one may be shorter
	Parts   []PartStatus
	Missed  int // parts not acknowledged yet
}

// PartStatus is what became of a part of a large state.
type PartStatus uint8

const (
	PartUnsent PartStatus = iota
	PartInFlight
	partAcked
)
