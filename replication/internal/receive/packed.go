package receive

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// packedEntries reads entries of Packed.
type packedEntries struct {
	coder      *delta.Packed
	components int // of the schema

	r       bitbuf.Reader
	slots   wire.SlotReader
	base    delta.Tick // of the packet, see wire.StateHeader
	apart   bool       // the packet is, see wire.SlotReader.HasReference
	context wire.Context
	ratio   int64         // of the entry's baselines
	symbols delta.Symbols // of the entry
}

// begin starts a packet whose entries end at bit end. Their slots refer to those of former packets.
func (p *packedEntries) begin(body []byte, end int, limit uint32, tick delta.Tick, former *slotHistory) error {
	p.r, p.base, p.apart = bitbuf.NewReader(body), tick-1, false
	p.context = wire.Context{Names: delta.NewNames(tick)}
	if end == 0 {
		p.slots.Reset()
		return nil
	}
	front := wire.ReadFront(&p.r, &p.context.Names)
	p.base = front.A1
	p.coder.SetShift(front.Shift)
	var ref []wire.SlotBlock
	complete, refers, apart := p.slots.HasReference(&p.r)
	p.apart = apart
	if p.r.Err() != nil {
		return wire.ErrMalformed
	}
	if refers {
		if ref = former.at(p.base); ref == nil {
			return wire.ErrMissingBaseline
		}
	}
	if p.slots.Read(&p.r, ref, complete, uint64(limit)); p.r.Err() != nil {
		return wire.ErrMalformed
	}
	return nil
}

// beginState starts a state that was sent in parts. It is in Packed in every session.
func (p *packedEntries) beginState(state []byte, e *entryHead) {
	p.r, p.context.Set = bitbuf.NewReader(state), wire.ComponentSet{}
	p.full(e)
}

func (p *packedEntries) failed() bool { return p.r.Err() != nil }

func (p *packedEntries) next(e *entryHead) bool {
	r, x := &p.r, &p.context
	if r.Err() != nil {
		return false
	}
	var more bool
	if e.slot, e.kind, more = p.slots.Next(); !more {
		return false
	}
	switch e.kind {
	case wire.EntryUpdate, wire.EntryNamed, wire.EntrySetChange:
		front := e.kind == wire.EntryUpdate // with the baselines in front of the list
		if e.kind == wire.EntrySetChange {
			front = r.ReadBool()
		}
		b := x.Names.Read(r, front)
		e.baselines = compact.Name{A1: b.A1}
		if b.Two {
			e.baselines.Span = b.A1 - b.A2
		}
	case wire.EntryFull:
		p.full(e)
	case wire.EntryDespawn:
		e.left = r.ReadBool()
	}
	return r.Err() == nil
}

// full reads the generation and the component set of an EntryFull.
func (p *packedEntries) full(e *entryHead) {
	generation := p.r.ReadExpGolomb(wire.GenerationOrder)
	if generation > 1<<16-1 {
		p.r.Fail(wire.ErrMalformed)
	}
	p.context.Set = p.set(&p.context.Set)
	e.generation, e.full = uint16(generation), p.context.Set
}

func (p *packedEntries) set(ref *wire.ComponentSet) wire.ComponentSet {
	return wire.ReadComponentSet(&p.r, ref, p.components)
}

func (p *packedEntries) beginFull(minBits int) {
	if minBits > p.r.Remaining() {
		p.r.Fail(wire.ErrMalformed)
	}
	p.symbols = delta.Symbols{}
}

func (p *packedEntries) beginUpdate(changeable int, ratio, _, _ int64) (onlyMoving bool) {
	p.symbols, p.ratio = delta.ReadSymbols(&p.r, changeable), ratio
	return p.symbols.AllUsual()
}

func (p *packedEntries) row(k int, dst, base, base2, _, _ []uint32) (changed, ok bool) {
	changed = p.coder.DecodeChange(&p.r, k, &p.symbols, dst, base, base2, p.ratio)
	return changed, p.r.Err() == nil
}

func (p *packedEntries) alike(places []Place, rows []uint32, b *baselines) (work int, ok bool) {
	words1, words2 := b.first.Words, []uint32(nil)
	if b.second != nil {
		words2 = b.second.Words
	}
	var row2 []uint32
	for i := range places {
		at := &places[i]
		from, to := at.offset, at.offset+at.words
		if words2 != nil {
			row2 = words2[from:to:to]
		}
		row := rows[from:to:to]
		if !p.coder.DecodeChange(&p.r, at.Number, &p.symbols, row, words1[from:to:to], row2, p.ratio) {
			work++
			continue
		}
		if work += at.work; !at.Comp.ValidDecoded(row) {
			return work, false
		}
	}
	return work, true
}

func (p *packedEntries) number() uint64 { return p.r.ReadExpGolomb(wire.PartOrder) }

func (p *packedEntries) bytes(dst []byte) { p.r.ReadBytes(dst) }

func (p *packedEntries) spent() uint64 { return uint64(p.r.Pos()) * delta.CostUnit }
