package wire

// This file has the heads of entries in packets of Packed: which slots a packet has entries of, and of
// which kind. They precede the contents of all entries.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A SlotBlock is some slots of a block of 64.
type SlotBlock struct {
	Block uint32
	Mask  uint64
}

// A ListedSlot is the slot of an entry and its kind.
type ListedSlot struct {
	Slot uint32
	Kind EntryKind
}

// SlotLists are the slots of a packet's entries, as its writer collects them in ascending order.
//
// Games move much the same entities from tick to tick. So the updates are written as the difference
// from a reference: the slots of the packets of an earlier tick, all of which the receiver has. That is
// a range of the reference, the slots in this range that have no update, and a list of the entries
// that are left: updates of other slots and entries of other kinds.
type SlotLists struct {
	ref     []SlotBlock  // ascending; empty: there is none
	updates []SlotBlock  // ascending: entries of kind EntryUpdate
	others  []ListedSlot // ascending: those of other kinds
	gaps    []listedGap  // scratch memory
	slotCounts
}

// slotCounts are what is known of slot lists while they are collected.
type slotCounts struct {
	first, last int // slots of the first and the last entry
	begun       int // in ref: the first block not before that of the first entry
	below       int // slots of ref before it
	at          int // in ref: the first block after that of the last entry
	passed      int // slots of ref before at, from begun on
	total       int // slots of ref
	kept        int // updates of ref
	listed      int // other entries
	kinds       int // bits of their kinds
}

const (
	refOrder    = 2  // a shift: the order of the number of slots without update, by the length of the reference
	orderBits   = 4  // of the order of the gaps in the list, where it is explicit
	mostOrder   = 15 // of gaps
	mostOutside = 8  // slots of the reference before the first entry, or after the last one, without a range
	fewBlocks   = 4  // so few blocks and other entries are measured exactly
)

// Begin empties the lists for a packet with a reference of so many slots.
func (l *SlotLists) Begin(ref []SlotBlock, slots int) {
	*l = SlotLists{ref: ref, updates: l.updates[:0], others: l.others[:0], gaps: l.gaps[:0]}
	l.first, l.total = -1, slots
}

// CountSlots returns the number of slots in blocks.
func CountSlots(blocks []SlotBlock) (n int) {
	for i := range blocks {
		n += bits.OnesCount64(blocks[i].Mask)
	}
	return n
}

// AddUpdates adds updates of slots of a block, which are above all slots before.
func (l *SlotLists) AddUpdates(block int, mask uint64) {
	known := l.pass(block, block<<6+bits.TrailingZeros64(mask))
	l.last = block<<6 + bits.Len64(mask) - 1
	n := bits.OnesCount64(mask &^ known)
	l.listed += n
	l.kinds += n
	l.kept += bits.OnesCount64(mask & known)
	if n := len(l.updates); n > 0 && int(l.updates[n-1].Block) == block {
		l.updates[n-1].Mask |= mask
		return
	}
	l.updates = append(l.updates, SlotBlock{uint32(block), mask})
}

// AddOther adds an entry of another kind, above all slots before.
func (l *SlotLists) AddOther(slot int, kind EntryKind) {
	l.pass(slot>>6, slot)
	l.last = slot
	l.listed++
	l.kinds += int(kind) + 1
	l.others = append(l.others, ListedSlot{uint32(slot), kind})
}

// pass moves on to the block of the next entry, and returns the reference's slots of that block.
func (l *SlotLists) pass(block, slot int) (known uint64) {
	if l.first < 0 {
		l.first = slot
		for l.at < len(l.ref) && int(l.ref[l.at].Block) < block {
			l.below += bits.OnesCount64(l.ref[l.at].Mask)
			l.at++
		}
		l.begun = l.at
	}
	for l.at < len(l.ref) && int(l.ref[l.at].Block) <= block {
		l.passed += bits.OnesCount64(l.ref[l.at].Mask)
		l.at++
	}
	if l.at > 0 && int(l.ref[l.at-1].Block) == block {
		return l.ref[l.at-1].Mask
	}
	return 0
}

// A SlotMark is a position to go back to.
type SlotMark struct {
	counts          slotCounts
	updates, others int
	mask            uint64 // of the last block of updates
}

// Mark returns the present position.
func (l *SlotLists) Mark() SlotMark {
	m := SlotMark{counts: l.slotCounts, updates: len(l.updates), others: len(l.others)}
	if m.updates > 0 {
		m.mask = l.updates[m.updates-1].Mask
	}
	return m
}

// Rollback removes what was added since the mark.
func (l *SlotLists) Rollback(m *SlotMark) {
	l.slotCounts = m.counts
	l.updates, l.others = l.updates[:m.updates], l.others[:m.others]
	if m.updates > 0 {
		l.updates[m.updates-1].Mask = m.mask
	}
}

// Fits reports whether Write is sure to take so many bits at most. If there are few entries, it measures.
func (l *SlotLists) Fits(most int) bool {
	if l.MaxLen() <= most {
		return true
	}
	if most < 0 || len(l.updates)+len(l.others) > fewBlocks {
		return false
	}
	var room [128]byte
	w := bitbuf.NewWriter(room[:])
	l.Write(&w)
	return w.Err() == nil && w.Len() <= most
}

// nearGrowth and nearOf bound what one more entry of a near slot adds to MaxLen: nearGrowth, and nearOf for each entry
// listed before.
const (
	nearGrowth = 300
	nearOf     = 2
)

// FitsNext reports whether Fits(most) is sure to hold with an entry of the given slot, the next one. It holds
// only for slots in the block of the last entry, or in the block after that.
func (l *SlotLists) FitsNext(slot, most int) bool {
	return l.first >= 0 && slot>>6-l.last>>6 <= 1 && l.MaxLen()+nearGrowth+nearOf*l.listed <= most
}

// MaxLen returns a number of bits that Write does not exceed.
func (l *SlotLists) MaxLen() int {
	n := 2 + expGolombLen(l.listed)
	if l.total > 0 {
		n += 2 + 2*bits.Len(uint(l.total)) + expGolombLen(l.total) + 2*mostOutside + 2 + l.passed + l.passed/8
	}
	if l.listed > 0 {
		// The sum of the gaps takes less than three bits for each, and the order is one too high at most.
		n += 5 + l.kinds + l.listed*(bits.Len(uint(l.last/l.listed))+5)
		if l.last >= bitbuf.RiceEscape<<mostOrder { // a gap may be escaped
			n += l.listed * 2 * bits.Len(uint(l.last))
		}
		if l.total == 0 {
			n += min(l.first, 32+2*bits.Len(uint(l.first)))
		}
	}
	return n
}

// expGolombLen returns the length of a number in exp-Golomb code of order 0.
func expGolombLen(n int) int { return 2*bits.Len(uint(n+1)) - 1 }

// gapOrder returns the order of the Rice code of gaps with the given sum before so many entries.
func gapOrder(gaps, entries int) uint {
	return min(uint(bits.Len64(uint64(max(gaps, 0))*7/10/uint64(max(entries, 1)))), mostOrder)
}

// countOrder returns the order of the number of slots of a reference of n slots that have no update.
func countOrder(n int) uint { return uint(bits.Len(uint(n))-1) >> refOrder }

// Write appends the lists, which are not empty.
//
//	1 | 01 from 1, to 1, from, to | 00      all slots of the reference, a range, or no reference
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

// blocks returns the blocks of the range.
func (x *slotWriter) blocks() refRange {
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
	flip := uint64(0)
	if inverse {
		listed, flip = x.kept, ^uint64(0)
	}
	w.WriteBool(inverse)
	w.WriteExpGolomb(uint64(listed), countOrder(x.n))
	order := gapOrder(x.n-listed, listed)
	u, gap := 0, 0
	for r := x.blocks(); listed > 0 && r.next(); {
		for u < len(x.updates) && x.updates[u].Block < r.block {
			u++
		}
		var with uint64
		if u < len(x.updates) && x.updates[u].Block == r.block {
			with = x.updates[u].Mask
		}
		rest := r.mask
		for list := r.mask & (^with ^ flip); list != 0; list &= list - 1 {
			below := list&-list - 1
			gap += bits.OnesCount64(rest & below)
			w.WriteRice(uint64(gap), order)
			rest &^= below<<1 | 1
			gap = 0
			listed--
		}
		gap += bits.OnesCount64(rest)
	}
}

// A listedGap is a listed entry: the number of slots before it that are not kept, and its kind.
type listedGap struct {
	free uint32
	kind EntryKind
}

// writeListed writes the other entries. Their gaps leave out the slots that have been written.
func (x *slotWriter) writeListed(w *bitbuf.Writer) {
	w.WriteExpGolomb(uint64(x.listed), 0)
	if x.listed == 0 {
		return
	}
	x.gaps = x.gaps[:0]
	for e := x.entries(); e.next(); {
		for list := e.list; list != 0; list &= list - 1 {
			i := bits.TrailingZeros64(list)
			x.gaps = append(x.gaps, listedGap{uint32(e.free(i)), e.kind(i)})
		}
	}
	order := x.writeOrder(w, int(x.gaps[0].free), int(x.gaps[x.listed-1].free))
	next := uint32(x.start)
	for _, g := range x.gaps {
		w.WriteRice(uint64(g.free-next), order)
		next = g.free + 1
		w.WriteUnary(uint(g.kind), uint(LastEntryKind))
	}
}

// writeOrder writes the order of the gaps between the listed entries, given what is free before the first
// and the last of them, and returns it. The one that follows from the reference takes a bit.
func (x *slotWriter) writeOrder(w *bitbuf.Writer, first, last int) uint {
	n := x.listed
	order := gapOrder(last+1-x.start-n, n)
	if len(x.ref) == 0 && n > 1 {
		order = gapOrder(last-first-(n-1), n-1)
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

// A refRange goes through the blocks of a range of a reference.
type refRange struct {
	ref      []SlotBlock
	from, to int
	i, count int
	block    uint32
	mask     uint64
}

func (r *refRange) next() bool {
	for r.i < len(r.ref) && r.count < r.to {
		b := &r.ref[r.i]
		r.i++
		n := bits.OnesCount64(b.Mask)
		before := r.count
		r.count += n
		if r.count <= r.from {
			continue
		}
		r.block, r.mask = b.Block, b.Mask
		for ; before < r.from; before++ {
			r.mask &= r.mask - 1
		}
		for end := r.count; end > r.to; end-- {
			r.mask &^= 1 << (bits.Len64(r.mask) - 1)
		}
		return true
	}
	return false
}

// rangeSlots returns the slot after the one before a range that is at its beginning, and the slot after the
// range, or else the same.
func rangeSlots(r refRange) (start, top int) {
	if r.from > 0 {
		for i, count := r.i, r.count; ; i++ {
			if count >= r.from { // the slot is the last one of the block before
				start = int(r.ref[i-1].Block)<<6 + bits.Len64(r.ref[i-1].Mask)
				break
			}
			if n := bits.OnesCount64(r.ref[i].Mask); count+n >= r.from {
				mask := r.ref[i].Mask
				for n += count; n > r.from; n-- {
					mask &^= 1 << (bits.Len64(mask) - 1)
				}
				start = int(r.ref[i].Block)<<6 + bits.Len64(mask)
				break
			}
			count += bits.OnesCount64(r.ref[i].Mask)
		}
	}
	for top = start; r.next(); {
		top = int(r.block)<<6 + bits.Len64(r.mask)
	}
	return start, top
}

// entries returns the blocks with entries.
func (x *slotWriter) entries() entryBlocks { return entryBlocks{slotWriter: x, in: x.blocks()} }

// entryBlocks goes through the blocks with entries.
type entryBlocks struct {
	*slotWriter
	in     refRange
	inside bool // in is at a block
	ended  bool
	u, o   int

	block  uint32
	list   uint64 // slots that are listed
	kept   uint64 // slots that are not
	before int    // slots that are not, in blocks before
	first  int    // index of the first one of others in the block
}

func (e *entryBlocks) next() bool {
	e.before += bits.OnesCount64(e.kept)
	e.list, e.kept, e.first = 0, 0, e.o
	if e.u == len(e.updates) && e.o == len(e.others) {
		return false
	}
	e.block = ^uint32(0)
	if e.u < len(e.updates) {
		e.block = e.updates[e.u].Block
	}
	if e.o < len(e.others) {
		e.block = min(e.block, e.others[e.o].Slot>>6)
	}
	for !e.ended && (!e.inside || e.in.block < e.block) {
		e.inside = e.in.next()
		e.ended = !e.inside
	}
	if e.u < len(e.updates) && e.updates[e.u].Block == e.block {
		e.list = e.updates[e.u].Mask
		e.u++
		if e.inside && e.in.block == e.block {
			e.kept = e.list & e.in.mask
			e.list &^= e.kept
		}
	}
	for e.o < len(e.others) && e.others[e.o].Slot>>6 == e.block {
		e.list |= 1 << (e.others[e.o].Slot & 63)
		e.o++
	}
	return true
}

// free returns how many slots before slot i of the block are not kept.
func (e *entryBlocks) free(i int) int {
	return int(e.block)<<6 + i - e.before - bits.OnesCount64(e.kept&(1<<i-1))
}

// kind returns the kind of the entry of slot i of the block, which is listed. They are asked for in order.
func (e *entryBlocks) kind(i int) EntryKind {
	if e.first < e.o && e.others[e.first].Slot == e.block<<6+uint32(i) {
		e.first++
		return e.others[e.first-1].Kind
	}
	return EntryUpdate
}
