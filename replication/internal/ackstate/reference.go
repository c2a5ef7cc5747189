package ackstate

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The slots of a packet refer to those of the packets of its base tick, in a range in which the client has all of
// these. The log knows them for a while.

// packetsOf returns the sequences of the first packet of a tick and of the first one after it, which is not
// after the given one. It returns false if they may be forgotten.
func (l *SentLog) packetsOf(at delta.Tick, before uint32) (first, end uint32, known bool) {
	end = l.firstFrom(at+1, before)
	for first = end; ; first-- {
		if sent := l.findEarlier(first - 1); sent == nil || sent.Tick != at {
			return first, end, sent != nil
		}
	}
}

// leavesGap reports whether later packets can't refer to the slots of a packet, though it counts.
func (p *SentPacket) leavesGap() bool { return p.Status != SentAcked && p.Count > 0 && !p.Apart }

// anyGap reports whether one of some packets leaves a gap.
func (l *SentLog) anyGap(first, end uint32) bool {
	for q := first; q != end; q++ {
		if l.At(q).leavesGap() {
			return true
		}
	}
	return false
}

// hasStates reports whether a packet has a state of any slot.
func (l *SentLog) hasStates(p *SentPacket) bool {
	for i := range p.Count {
		if l.Record(p, i).Kind == baseline.RecordState {
			return true
		}
	}
	return false
}

// Gaps are ranges of slots of packets of a base tick that did not arrive. Slots there can't refer to it.
type Gaps []wire.SlotRange

// touch reports whether there is a gap in a range of slots.
func (g Gaps) touch(r wire.SlotRange) bool {
	for _, gap := range g {
		if gap.From < r.To && r.From < gap.To {
			return true
		}
	}
	return false
}

// findGaps finds the gaps in a tick, and reports whether slots can refer to it elsewhere. They are valid until the next
// call. before is the argument of packetsOf.
func (l *SentLog) findGaps(at delta.Tick, before uint32) (gaps Gaps, ok bool) {
	first, end, known := l.packetsOf(at, before)
	others := false // packets with states
	l.gaps = l.gaps[:0]
	for q := first; q != end; q++ {
		sent := l.At(q)
		if !sent.leavesGap() {
			others = others || !sent.Apart && l.hasStates(sent)
			continue
		}
		from, to := math.MaxInt, 0
		for i := range sent.Count {
			block := int(l.Record(sent, i).Block) << 6
			from, to = min(from, block), max(to, block+64)
		}
		l.gaps = append(l.gaps, wire.SlotRange{From: from, To: to})
	}
	return l.gaps, known && (others || len(l.gaps) == 0)
}

// appendStates appends the slots of which packets had states, in their order.
func (l *SentLog) appendStates(ref []wire.SlotBlock, first, end uint32) []wire.SlotBlock {
	ordered := true
	for q := first; q != end; q++ {
		sent := l.At(q)
		if sent.Apart {
			continue
		}
		for i := range sent.Count {
			r := l.Record(sent, i)
			if r.Kind != baseline.RecordState {
				continue
			}
			n := len(ref)
			if n > 0 && ref[n-1].Block == r.Block {
				ref[n-1].Mask |= r.Mask
				continue
			}
			ordered = ordered && (n == 0 || ref[n-1].Block < r.Block)
			ref = append(ref, wire.SlotBlock{Block: r.Block, Mask: r.Mask})
		}
	}
	if !ordered {
		ref = sortBlocks(ref)
	}
	return ref
}

// sortBlocks brings blocks into their order, and joins those of one number.
func sortBlocks(ref []wire.SlotBlock) []wire.SlotBlock {
	slices.SortFunc(ref, func(a, b wire.SlotBlock) int { return cmp.Compare(a.Block, b.Block) })
	n := 0
	for _, b := range ref[1:] {
		if b.Block == ref[n].Block {
			ref[n].Mask |= b.Mask
			continue
		}
		n++
		ref[n] = b
	}
	return ref[:n+1]
}

// hasAll reports whether the packets of tick now, but for those that are apart, have states of exactly the live
// slots that changed in the period up to it, given that they have each slot once at most.
func (l *SentLog) hasAll(s *snapshot.Period, alive bitset.Set, now delta.Tick) bool {
	n := 0
	for q := l.Next; q != l.Oldest && l.At(q-1).Tick == now; q-- {
		sent := l.At(q - 1)
		if sent.Apart {
			continue
		}
		for i := range sent.Count {
			r := l.Record(sent, i)
			switch {
			case r.Kind != baseline.RecordState:
			case r.Mask&^(s.Changed[r.Block]&alive[r.Block]) != 0:
				return false
			default:
				n += bits.OnesCount64(r.Mask)
			}
		}
	}
	for b := range s.Blocks.All() {
		n -= bits.OnesCount64(s.Changed[b] & alive[b])
	}
	return n == 0
}

// firstFrom returns the sequence of the first packet that is not forgotten and not from before a tick. If there is none
// before the given sequence, it returns that. Copies of shared packets may be remembered longer than later packets:
// then it may return a later one, after one that is forgotten.
func (l *SentLog) firstFrom(at delta.Tick, end uint32) uint32 {
	n := len(l.Ring)
	oldest := end - uint32(n)
	return oldest + uint32(sort.Search(n, func(i int) bool {
		sent := l.findEarlier(oldest + uint32(i))
		return sent != nil && !sent.Tick.Before(at)
	}))
}
