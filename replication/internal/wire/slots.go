package wire

// This file has the heads of entries in packets of Packed: which slots a packet has entries of, and of
// which kind. They precede the contents of all entries.

import (
	"math"
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
// from a reference: the slots of the packets of an earlier tick. That is a range of slots in which the receiver
// knows all of the reference, the slots of the reference there that have no update, and a list of the entries
// that are left: updates of other slots and entries of other kinds.
type SlotLists struct {
	ref    []SlotBlock  // ascending; empty: there is none
	blocks []entryBlock // ascending
	kinds  []EntryKind  // of entries that are not updates, in their order
	within SlotRange    // to which the range is limited
	apart  bool
	slotCounts
}

// An entryBlock is the entries of a block.
type entryBlock struct {
	block   uint32
	kept    uint64 // updates of slots of the reference
	updates uint64 // other updates
	others  uint64 // entries of other kinds
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
	kindBits    int // of these
	free        int // slots before the first listed entry that are not kept
	lastFree    int // those before the last one
}

const (
	refOrder    = 2  // a shift: the order of the number of slots without update, by the length of the reference
	orderBits   = 4  // of the order of the gaps in the list, where it is explicit
	mostOrder   = 15 // of gaps
	mostOutside = 8  // slots of the reference before the first entry, or after the last one, without a range
	fromOrder   = 6  // of the block of the first slot of a range
	toOrder     = 4  // of the blocks up to the end of a range
	fewBlocks   = 4  // so few blocks and other entries are measured exactly
)

// Begin empties the lists for a packet with a reference of so many slots.
func (l *SlotLists) Begin(ref []SlotBlock, slots int) {
	*l = SlotLists{ref: ref, blocks: l.blocks[:0], kinds: l.kinds[:0], within: SlotRange{To: math.MaxInt}}
	l.first, l.total = -1, slots
}

// Within keeps the range of the lists, which are empty, from having slots of the reference outside of another one.
func (l *SlotLists) Within(r SlotRange) { l.within = r }

// BeginApart empties the lists for a packet whose slots are not in the reference of later packets.
func (l *SlotLists) BeginApart() {
	l.Begin(nil, 0)
	l.apart = true
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
	known := mask & l.pass(block, block<<6+bits.TrailingZeros64(mask))
	l.last = block<<6 + bits.Len64(mask) - 1
	at := l.block(block)
	at.kept |= known
	if list := mask &^ known; list != 0 {
		at.updates |= list
		first, last := bits.TrailingZeros64(list), bits.Len64(list)-1
		if l.listed == 0 {
			l.free = block<<6 + first - l.kept - bits.OnesCount64(known&(1<<first-1))
		}
		l.lastFree = block<<6 + last - l.kept - bits.OnesCount64(known&(1<<last-1))
		n := bits.OnesCount64(list)
		l.listed += n
		l.kindBits += n
	}
	l.kept += bits.OnesCount64(known)
}

// AddOther adds an entry of another kind, above all slots before.
func (l *SlotLists) AddOther(slot int, kind EntryKind) {
	l.pass(slot>>6, slot)
	l.last, l.lastFree = slot, slot-l.kept
	if l.listed == 0 {
		l.free = l.lastFree
	}
	l.listed++
	l.kindBits += int(kind) + 1
	l.block(slot >> 6).others |= 1 << (slot & 63)
	l.kinds = append(l.kinds, kind)
}

// block returns the entries of a block, which is the last one or comes after it.
func (l *SlotLists) block(block int) *entryBlock {
	n := len(l.blocks)
	if n == 0 || int(l.blocks[n-1].block) != block {
		l.blocks = append(l.blocks, entryBlock{block: uint32(block)})
		return &l.blocks[n]
	}
	return &l.blocks[n-1]
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
	counts        slotCounts
	blocks, kinds int
	at            entryBlock // the last one
}

// Mark returns the present position.
func (l *SlotLists) Mark() SlotMark {
	m := SlotMark{counts: l.slotCounts, blocks: len(l.blocks), kinds: len(l.kinds)}
	if m.blocks > 0 {
		m.at = l.blocks[m.blocks-1]
	}
	return m
}

// Rollback removes what was added since the mark.
func (l *SlotLists) Rollback(m *SlotMark) {
	l.slotCounts = m.counts
	l.blocks, l.kinds = l.blocks[:m.blocks], l.kinds[:m.kinds]
	if m.blocks > 0 {
		l.blocks[m.blocks-1] = m.at
	}
}

// Fits reports whether Write is sure to take so many bits at most. If there are few entries, it measures.
func (l *SlotLists) Fits(most int) bool {
	if l.MaxLen() <= most {
		return true
	}
	if most < 0 || len(l.blocks) > fewBlocks || len(l.kinds) > fewBlocks {
		return false
	}
	var room [128]byte
	w := bitbuf.NewWriter(room[:])
	l.Write(&w)
	return w.Err() == nil && w.Len() <= most
}

// FitsNext reports whether Fits(most) is sure to hold with n more entries, the last of which has the given slot.
func (l *SlotLists) FitsNext(slot, n, most int) bool {
	if l.first < 0 {
		return false
	}
	passed := 0
	for i := l.at; i < len(l.ref) && int(l.ref[i].Block) <= slot>>6; i++ {
		passed += bits.OnesCount64(l.ref[i].Mask)
	}
	if l.roughLen(slot, n, passed) <= most {
		return true
	}
	c := l.slotCounts
	c.passed += passed
	c.last = slot
	c.listed += n
	c.kindBits += n * (int(LastEntryKind) + 1)
	return c.maxLen(l.listed, passed+n) <= most // updates of the reference are not listed
}

// roughLen returns a number of bits that is not below maxLen with n more entries, the last of which has the given slot,
// and so many more slots of the reference. It takes a fraction of the time, since it does not divide.
func (c *slotCounts) roughLen(slot, n, passed int) int {
	if slot >= bitbuf.RiceEscape<<mostOrder {
		return math.MaxInt
	}
	each := bits.Len(uint(slot)) + 5 // of a listed entry, besides its kind
	return roughMost + 5*(c.passed+passed)/4 + c.kindBits + c.listed*each + n*(each+int(LastEntryKind)+1)
}

// roughMost is the most of maxLen that does not grow with the entries and the slots of the reference that were passed:
// two numbers below 2^32, the ends of a range, what maxKept adds to the slots that were passed, and some bits.
const roughMost = 2*65 + fromOrder + toOrder + 14 + 4*11 + 5*2*mostOutside/4 + 2 + 12

// MaxLen returns a number of bits that Write does not exceed.
func (l *SlotLists) MaxLen() int { return l.maxLen(l.listed, 0) }

// maxLen is MaxLen for lists with these counts, of which at least so many entries are listed. Of so many slots and
// entries it is not known yet whether they are kept.
func (c *slotCounts) maxLen(least, unsure int) int {
	n := 3 + expGolombLen(c.listed)
	if c.total > 0 {
		ends := fromOrder + toOrder + 14 + 4*bits.Len(uint(c.last>>(6+toOrder)+1))
		n += 2 + ends + expGolombLen(c.total) + 2 + c.maxKept(unsure)
	}
	if c.listed > 0 {
		span := c.last
		if c.below > mostOutside { // the range begins with the block of the first entry or later
			span -= c.first &^ 63
		}
		// The sum of the gaps takes less than three bits for each, and the order is one too high at most.
		n += 5 + c.kindBits + c.listed*(bits.Len(uint(span/max(least, 1)))+5)
		if c.last >= bitbuf.RiceEscape<<mostOrder { // a gap may be escaped
			n += c.listed * 2 * bits.Len(uint(c.last))
		}
		if c.total == 0 {
			n += min(c.first, 32+2*bits.Len(uint(c.first)))
		}
	}
	return n
}

// maxKept returns a number of bits that the list of slots with or without update does not exceed, whichever of so many
// slots of the reference are kept. It does not fall when slots are added.
//
// Codes of order k take at most listed*(1+k) + gaps/2^k*37/32 bits, as an escape takes up to 5 bits more than 32 zeros.
// The order before may take less, by a sixteenth at most.
func (c *slotCounts) maxKept(unsure int) int {
	n := c.passed + 2*mostOutside
	listed := min(min(c.kept, n-c.kept)+unsure, n/2)
	if listed == 0 {
		return 0
	}
	gaps := 37 * (n - listed)
	k := gapOrder(n-listed, listed)
	most := listed*int(1+k) + gaps>>(5+k)
	switch {
	case k > 1:
		most = min(most, listed*int(k)+gaps>>(4+k))
	case k == 1:
		most = min(most, 37*n>>5)
	default:
		most = 37 * n >> 5
	}
	return most + most>>4 + 2
}

// expGolombLen returns the length of a number in exp-Golomb code of order 0.
func expGolombLen(n int) int { return 2*bits.Len(uint(n+1)) - 1 }

// gapOrder returns the order of the Rice code of gaps with the given sum before so many entries.
func gapOrder(gaps, entries int) uint {
	return min(uint(bits.Len64(uint64(max(gaps, 0))*7/10/uint64(max(entries, 1)))), mostOrder)
}

// countOrder returns the order of the number of slots of a reference of n slots that have no update.
func countOrder(n int) uint { return uint(bits.Len(uint(n))-1) >> refOrder }

// A SlotRange is the slots from From on, up to but not including To.
type SlotRange struct{ From, To int }

// noEnd is the end of a range that has all slots from its beginning on.
const noEnd = math.MaxInt

// A refRange goes through the blocks of a range of a reference.
type refRange struct {
	ref []SlotBlock
	SlotRange
	i     int
	block uint32
	mask  uint64
}

// next moves on to the next block, and reports whether there is one.
func (r *refRange) next() bool {
	for r.i < len(r.ref) {
		b := &r.ref[r.i]
		first := int(b.Block) << 6
		if first >= r.To {
			return false
		}
		r.i++
		r.block, r.mask = b.Block, b.Mask
		if r.From > first {
			r.mask &= ^uint64(0) << min(uint(r.From-first), 64)
		}
		if left := r.To - first; left < 64 {
			r.mask &= 1<<uint(left) - 1
		}
		if r.mask != 0 {
			return true
		}
	}
	return false
}
