package wire

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Write appends the lists, which are not empty.
//
//	1 | 01 from 1, to 1, from, to | 00 apart 1      all slots of the reference, a range, or no reference
//	inverse 1 | number | gaps ...           within the range, the slots without update or those with one
//	number | order | gap, kind | gap, kind ...
func (l *SlotLists) Write(w *bitbuf.Writer) {
	var x slotWriter
	x.begin(l)
	x.writeRange(w)
	if x.n > 0 {
		x.writeKept(w)
	}
	x.writeListed(w)
}

// A slotWriter writes slot lists.
type slotWriter struct {
	*SlotLists
	from, to int // the range, as numbers of its slots
	n        int // slots in it
	start    int // the slot after that before the range
	top      int // the slot after the range
}

// begin chooses the range.
func (x *slotWriter) begin(l *SlotLists) {
	x.SlotLists = l
	below, upTo := l.below, l.below+l.passed
	if l.begun < len(l.ref) && int(l.ref[l.begun].Block) == l.first>>6 {
		below += bits.OnesCount64(l.ref[l.begun].Mask & (1<<(l.first&63) - 1))
	}
	if l.at > 0 && int(l.ref[l.at-1].Block) == l.last>>6 {
		upTo -= bits.OnesCount64(l.ref[l.at-1].Mask >> (l.last & 63) >> 1)
	}
	x.to = l.total
	if below > mostOutside {
		x.from = below
	}
	if l.total-upTo > mostOutside {
		x.to = upTo
	}
	x.n = x.to - x.from
}

// writeRange writes the range and finds the slots of the reference there.
func (x *slotWriter) writeRange(w *bitbuf.Writer) {
	if len(x.ref) == 0 {
		w.WriteBits(0b00, 2)
		w.WriteBool(x.apart)
		return
	}
	if x.n == x.total {
		w.WriteBool(true)
	} else {
		w.WriteBits(0b10, 2)
		width := uint(bits.Len(uint(x.total)))
		w.WriteBool(x.from > 0)
		w.WriteBool(x.to < x.total)
		if x.from > 0 {
			w.WriteBits(uint64(x.from), width)
		}
		if x.to < x.total {
			w.WriteBits(uint64(x.to), width)
		}
	}
	x.findEnds()
}

// findEnds finds the slots at the ends of the range, as rangeSlots does from the numbers of its slots.
func (x *slotWriter) findEnds() {
	if x.from > 0 { // the range begins at or after the first entry
		i, mask := x.begun, uint64(0)
		if i < len(x.ref) && int(x.ref[i].Block) == x.first>>6 {
			mask = x.ref[i].Mask & (1<<(x.first&63) - 1)
		}
		if mask == 0 {
			i--
			mask = x.ref[i].Mask
		}
		x.start = int(x.ref[i].Block)<<6 + bits.Len64(mask)
	}
	x.top = x.start
	if x.n == 0 {
		return
	}
	i, mask := len(x.ref)-1, ^uint64(0)
	if x.to < x.total { // it ends at or before the last entry
		if i = x.at - 1; int(x.ref[i].Block) == x.last>>6 {
			mask = 1<<(x.last&63)<<1 - 1
		}
		if x.ref[i].Mask&mask == 0 {
			i, mask = i-1, ^uint64(0)
		}
	}
	x.top = int(x.ref[i].Block)<<6 + bits.Len64(x.ref[i].Mask&mask)
}

// referred returns the blocks of the range.
func (x *slotWriter) referred() refRange {
	i, count := x.begun, x.below
	for count > x.from {
		i--
		count -= bits.OnesCount64(x.ref[i].Mask)
	}
	return refRange{ref: x.ref, from: x.from, to: x.to, i: i, count: count}
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
	kinds, next, kept := x.kinds, x.start, 0 // kept counts those in blocks before
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
			if at.others&bit == 0 {
				out.room(w, n+1)
				out.add(code|1<<n, n+1) // the kind is EntryUpdate
				continue
			}
			out.room(w, n)
			out.add(code, n)
			writeCodes(w, &out)
			w.WriteUnary(uint(kinds[0]), uint(LastEntryKind))
			kinds = kinds[1:]
		}
		kept += bits.OnesCount64(at.kept)
	}
	writeCodes(w, &out)
}

// writeOrder writes the order of the gaps between the listed entries, and returns it. The one that follows
// from the reference takes a bit.
func (x *slotWriter) writeOrder(w *bitbuf.Writer) uint {
	n := x.listed
	order := gapOrder(x.lastFree+1-x.start-n, n)
	if len(x.ref) == 0 && n > 1 {
		order = gapOrder(x.lastFree-x.free-(n-1), n-1)
	}
	if len(x.ref) > 0 {
		implied := impliedOrder(x.start, x.top, x.kept, n)
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
