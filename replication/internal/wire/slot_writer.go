package wire

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Write appends the lists, which are not empty, and returns the range.
//
//	1 | 01 from 1, to 1, from, to | 00 apart 1      all slots of the reference, a range, or no reference
//	inverse 1 | number | gaps ...           within the range, the slots without update or those with one
//	number | order | gap, kind | gap, kind ...
func (l *SlotLists) Write(w *bitbuf.Writer) SlotRange {
	var x slotWriter
	x.begin(l)
	x.writeRange(w)
	if x.n > 0 {
		x.writeKept(w)
	}
	x.writeListed(w)
	return x.SlotRange
}

// A slotWriter writes slot lists.
type slotWriter struct {
	*SlotLists
	SlotRange
	n   int // slots of the reference in the range
	top int // the slot behind the last of these, or the end of the range
}

// begin chooses the range. Its ends are at ends of blocks if that makes no difference.
func (x *slotWriter) begin(l *SlotLists) {
	x.SlotLists, x.SlotRange, x.n = l, SlotRange{To: noEnd}, l.total
	before, after := uint64(0), uint64(0) // slots of the reference beside the first and the last entry, in their blocks
	if l.begun < len(l.ref) && int(l.ref[l.begun].Block) == l.first>>6 {
		before = l.ref[l.begun].Mask & (1<<(l.first&63) - 1)
	}
	if l.at > 0 && int(l.ref[l.at-1].Block) == l.last>>6 {
		after = l.ref[l.at-1].Mask >> (l.last & 63) >> 1
	}
	below := l.below + bits.OnesCount64(before)
	above := l.total - l.below - l.passed + bits.OnesCount64(after)
	if below > mostOutside || below > 0 && x.within.From > 0 {
		x.n -= below
		if x.From = l.first; before == 0 {
			x.From &^= 63
		}
	}
	if above > mostOutside || above > 0 && x.within.To < noEnd {
		x.n -= above
		if x.To = l.last + 1; after == 0 {
			x.To = l.last | 63 + 1
		}
	}
	if x.top = x.To; x.To == noEnd {
		x.top = 0
		if n := len(l.ref); n > 0 {
			x.top = max(x.From, int(l.ref[n-1].Block)<<6+bits.Len64(l.ref[n-1].Mask))
		}
	}
}

// writeRange writes the range.
func (x *slotWriter) writeRange(w *bitbuf.Writer) {
	switch {
	case len(x.ref) == 0:
		w.WriteBits(0b00, 2)
		w.WriteBool(x.apart)
		return
	case x.From == 0 && x.To == noEnd:
		w.WriteBool(true)
		return
	}
	w.WriteBits(0b10, 2)
	w.WriteBool(x.From > 0)
	w.WriteBool(x.To < noEnd)
	if x.From > 0 {
		writeEnd(w, x.From, 0, fromOrder)
	}
	if x.To < noEnd {
		writeEnd(w, x.To, x.From>>6, toOrder)
	}
}

// writeEnd writes an end of a range, by its block, counted from another one, and its place in the block.
func writeEnd(w *bitbuf.Writer, slot, block int, order uint) {
	w.WriteExpGolomb(uint64(slot>>6-block), order)
	if w.WriteBool(slot&63 != 0); slot&63 != 0 {
		w.WriteBits(uint64(slot&63), 6)
	}
}

// referred returns the blocks of the range.
func (x *slotWriter) referred() refRange {
	r := refRange{ref: x.ref, SlotRange: x.SlotRange}
	if x.From > 0 {
		r.i = x.begun
	}
	return r
}

// writeKept writes which slots of the range have an update.
func (x *slotWriter) writeKept(w *bitbuf.Writer) {
	listed := x.n - x.kept
	inverse := 2*listed > x.n
	flip := ^uint64(0)
	if inverse {
		listed, flip = x.kept, 0
	}
	w.WriteBool(inverse)
	w.WriteExpGolomb(uint64(listed), countOrder(x.n))
	order := gapOrder(x.n-listed, listed)
	var out codes
	at, gap := 0, 0
	for r := x.referred(); listed > 0 && r.next(); {
		for at < len(x.blocks) && x.blocks[at].block < r.block {
			at++
		}
		list := flip
		if at < len(x.blocks) && x.blocks[at].block == r.block {
			list ^= x.blocks[at].kept
		}
		rest := r.mask
		for list &= rest; list != 0; list &= list - 1 {
			below := list&-list - 1
			gap += bits.OnesCount64(rest & below)
			code, n := bitbuf.RiceCode(uint64(gap), order)
			if out.room(w, n); n == 0 {
				writeCodes(w, &out)
				w.WriteRice(uint64(gap), order)
			}
			out.add(code, n)
			rest &^= below<<1 | 1
			gap = 0
			listed--
		}
		gap += bits.OnesCount64(rest)
	}
	writeCodes(w, &out)
}

// writeListed writes the other entries. Their gaps leave out the slots that have been written.
func (x *slotWriter) writeListed(w *bitbuf.Writer) {
	w.WriteExpGolomb(uint64(x.listed), 0)
	if x.listed == 0 {
		return
	}
	order := x.writeOrder(w)
	var out codes
	kinds, next, kept := x.kinds, x.From, 0 // kept counts those in blocks before
	for i := range x.blocks {
		at := &x.blocks[i]
		free := int(at.block)<<6 - kept
		for list := at.updates | at.others; list != 0; list &= list - 1 {
			bit := list & -list
			slot := free + bits.OnesCount64((bit-1)&^at.kept)
			code, n := bitbuf.RiceCode(uint64(slot-next), order)
			if n == 0 {
				writeCodes(w, &out)
				w.WriteRice(uint64(slot-next), order)
			}
			next = slot + 1
			kind := EntryUpdate
			if at.others&bit != 0 {
				kind, kinds = kinds[0], kinds[1:]
			}
			width := n + uint(kind) // the kind is in truncated unary code
			if kind < LastEntryKind {
				code |= 1 << width
				width++
			}
			out.room(w, width)
			out.add(code, width)
		}
		kept += bits.OnesCount64(at.kept)
	}
	writeCodes(w, &out)
}

// writeOrder writes the order of the gaps between the listed entries, and returns it. The one that follows
// from the reference takes a bit.
func (x *slotWriter) writeOrder(w *bitbuf.Writer) uint {
	n := x.listed
	order := gapOrder(x.lastFree+1-x.From-n, n)
	if len(x.ref) == 0 && n > 1 {
		order = gapOrder(x.lastFree-x.free-(n-1), n-1)
	}
	if len(x.ref) > 0 {
		implied := impliedOrder(x.From, x.top, x.kept, n)
		near := order-implied+1 <= 2
		if w.WriteBool(!near); near {
			return implied
		}
	}
	w.WriteBits(uint64(order), orderBits)
	return order
}

// impliedOrder returns the order of the gaps between n listed entries, if they are evenly spread over the
// slots of the range that are left.
func impliedOrder(start, top, kept, n int) uint { return gapOrder(top-start-kept-n, n) }

// codes are short codes that are collected, so that a Writer takes several at once.
type codes struct {
	acc uint64
	n   uint
}

// add appends a code of n bits, for which there is room.
func (c *codes) add(code uint64, n uint) {
	c.acc |= code << c.n
	c.n += n
}

// room flushes what was collected if there is no room for n more bits, 64 at most.
func (c *codes) room(w *bitbuf.Writer, n uint) {
	if c.n+n > 64 {
		writeCodes(w, c)
	}
}

// writeCodes writes what was collected. It is not inlined, so that room is.
//
//go:noinline
func writeCodes(w *bitbuf.Writer, c *codes) {
	w.WriteBits(c.acc, c.n)
	*c = codes{}
}
