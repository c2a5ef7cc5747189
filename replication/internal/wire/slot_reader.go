package wire

// This file reads what slots.go writes.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A SlotReader has the slots of a packet's entries, as its receiver reads them.
type SlotReader struct {
	kept   []SlotBlock  // updates of slots of the reference
	listed []ListedSlot // other entries

	at   int    // in kept
	rest uint64 // what Next has not returned of that block
	next int    // in listed
}

// freeKept is how many more updates of the reference than bits a packet may have. An update may take no bits.
const freeKept = 4096

// Reset empties the lists.
func (s *SlotReader) Reset() {
	s.kept, s.listed, s.at, s.rest, s.next = s.kept[:0], s.listed[:0], 0, 0, 0
}

// HasReference reads whether the lists refer to a reference. Without one it reads whether the packet is apart:
// then its slots are not in the reference of later packets.
func (s *SlotReader) HasReference(r *bitbuf.Reader) (complete, ok, apart bool) {
	if r.ReadBool() {
		return true, true, false
	}
	if r.ReadBool() {
		return false, true, false
	}
	return false, false, r.ReadBool()
}

// Read reads the rest, given the reference and whether it is used completely. Slots are below limit. It
// fails the Reader with [ErrMalformed].
func (s *SlotReader) Read(r *bitbuf.Reader, ref []SlotBlock, complete bool, limit uint64) {
	s.Reset()
	in := refRange{ref: ref, SlotRange: SlotRange{To: noEnd}}
	if len(ref) > 0 && !complete {
		from, to := r.ReadBool(), r.ReadBool()
		if from {
			in.From = readEnd(r, 0, fromOrder, limit)
		}
		if to {
			in.To = readEnd(r, in.From>>6, toOrder, limit)
		}
		if in.From > in.To {
			r.Fail(ErrMalformed)
			return
		}
	}
	n, top := 0, in.From
	for x := in; x.next(); {
		n += bits.OnesCount64(x.mask)
		top = int(x.block)<<6 + bits.Len64(x.mask)
	}
	if in.To < noEnd {
		top = in.To
	}
	kept := 0
	if n > 0 {
		kept = s.readKept(r, in, n)
	}
	if kept > freeKept+r.Remaining() {
		r.Fail(ErrMalformed)
	}
	if r.Err() == nil {
		s.readListed(r, &in, top, kept, limit)
	}
	if len(s.kept) > 0 {
		s.rest = s.kept[0].Mask
	}
}

// readEnd reads what writeEnd wrote.
func readEnd(r *bitbuf.Reader, block int, order uint, limit uint64) (slot int) {
	n := r.ReadExpGolomb(order)
	if uint64(block)+n > limit>>6+1 { // if the sum wraps around, the range ends before it begins
		r.Fail(ErrMalformed)
		return 0
	}
	slot = (block + int(n)) << 6
	if r.ReadBool() {
		slot += int(r.ReadBits(6))
	}
	return slot
}

// readKept reads which of the n slots of the range have an update, and returns how many.
func (s *SlotReader) readKept(r *bitbuf.Reader, in refRange, n int) (kept int) {
	inverse := r.ReadBool()
	count := r.ReadExpGolomb(countOrder(n))
	if r.Err() != nil {
		return 0
	}
	listed := int(count)
	order := gapOrder(n-listed, listed)
	gap := n // to the next one in the list
	read := func() {
		if gap = n; listed > 0 {
			listed--
			gap = int(min(r.ReadRice(order), uint64(n)))
		}
	}
	read()
	left := n
	for in.next() {
		var list uint64
		rest := in.mask
		for {
			c := bits.OnesCount64(rest)
			if gap >= c {
				gap -= c
				break
			}
			for ; gap > 0; gap-- {
				rest &= rest - 1
			}
			list |= rest & -rest
			rest &= rest - 1
			left--
			read()
		}
		if !inverse {
			list = in.mask &^ list
		}
		if list != 0 {
			s.kept = append(s.kept, SlotBlock{in.block, list})
			kept += bits.OnesCount64(list)
		}
	}
	if uint64(n-left) != count {
		r.Fail(ErrMalformed) // the list goes beyond the range
	}
	return kept
}

// readListed reads the other entries. top is the end of the range, or the slot behind the last one of the reference.
func (s *SlotReader) readListed(r *bitbuf.Reader, in *refRange, top, kept int, limit uint64) {
	count := r.ReadExpGolomb(0)
	if r.Err() != nil || count > uint64(r.Remaining())/2 { // each takes two bits at least
		r.Fail(ErrMalformed)
		return
	}
	if count == 0 {
		return
	}
	n := int(count)
	order := uint(0)
	if len(in.ref) > 0 && !r.ReadBool() {
		order = impliedOrder(in.From, top, kept, n)
	} else {
		order = uint(r.ReadBits(orderBits))
	}
	free, before, at := uint64(in.From), 0, 0 // before counts kept slots up to the block at
	for range n {
		gap := r.ReadRice(order)
		if r.Err() != nil || gap >= limit { // or it wraps around
			r.Fail(ErrMalformed)
			return
		}
		free += gap
		slot := free + uint64(before)
		for ; at < len(s.kept); at++ {
			b := &s.kept[at]
			first := uint64(b.Block) << 6
			if slot < first {
				break
			}
			c := bits.OnesCount64(b.Mask)
			if slot+uint64(c) < first+64 { // in this block: the free slots of it up to that one
				i := int(slot - first)
				open := ^b.Mask
				for ; i > 0; i-- {
					open &= open - 1
				}
				slot = first + uint64(bits.TrailingZeros64(open))
				break
			}
			before += c
			slot += uint64(c)
		}
		if slot >= limit {
			r.Fail(ErrMalformed)
			return
		}
		kind := EntryKind(r.ReadUnary(uint(LastEntryKind)))
		s.listed = append(s.listed, ListedSlot{uint32(slot), kind})
		free++
	}
}

// Next returns the next entry in ascending order of slots, or false after the last one.
func (s *SlotReader) Next() (slot uint32, kind EntryKind, ok bool) {
	if s.at < len(s.kept) {
		slot = s.kept[s.at].Block<<6 + uint32(bits.TrailingZeros64(s.rest))
		if s.next == len(s.listed) || slot < s.listed[s.next].Slot {
			if s.rest &= s.rest - 1; s.rest == 0 {
				if s.at++; s.at < len(s.kept) {
					s.rest = s.kept[s.at].Mask
				}
			}
			return slot, EntryUpdate, true
		}
	}
	if s.next == len(s.listed) {
		return 0, 0, false
	}
	l := &s.listed[s.next]
	s.next++
	return l.Slot, l.Kind, true
}
