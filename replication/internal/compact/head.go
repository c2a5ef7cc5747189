package compact

import (
	"math/bits"
	"sort"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// This file describes the head of an entry of Compact, which precedes its rows: the slot, the kind,
// and the baselines or the generation and component set.
//
// A packet begins with the model of an earlier one, which began with the model of one before it:
// these packets are a chain. Most slots of a packet were carried by the last few packets of its
// chain. The model lists these slots, and the packet walks through the list: it codes whether a
// slot that is not listed comes first, and if not, whether the next slot of the list is carried
// again.

// Decisions of heads, as indices into those of a model. Behind a colon: the context that selects
// one of several decisions.
const (
	headSkip     = 0                                   // the packet skips the beginning of the list
	headOther    = headSkip + 1                        // not the next of the list: room before it, last slot was new
	headEnd      = headOther + 4*2                     // no more entries: list is at its end, last slot was new
	headRepeated = headEnd + 2*2                       // carried again: packets that carried it, listed slot before was
	headGap      = headRepeated + 2<<seenBits          // lengths of gaps before new slots: list is at its end
	HeadKind     = headGap + 2*gapLengths              // KindSteps in unary: chain state
	headName     = HeadKind + chainStates*KindSteps    // the baselines guessed first, see names.first
	headOwn      = headName + 2*chainStates + 1        // the likely baselines
	headRecent   = headOwn + 1                         // those of another entry: chain state, such entries before it
	headFirst    = headRecent + chainStates*mostRecent // A1 is the tick of the packet whose model this is: chain state
	headNewer    = headFirst + chainStates             // A1 is newer than that tick
	headTicks    = headNewer + 1                       // lengths of the difference to that tick
	headTwo      = headTicks + tickLengths             // there is a second baseline: chain state
	headSpan     = headTwo + chainStates               // tree of the age of the second baseline, from A1
	headThird    = headSpan + spanTree                 // tree of the age of the third, from A1
	headFourth   = headThird + nearTree                // and of the fourth
	HeadSet      = headFourth + nearTree               // the component set of the last full state
	HeadLife     = HeadSet + 1                         // lengths of generations
	HeadLeft     = HeadLife + LifeLengths              // the entity of a despawn lives on
	headsInUse   = HeadLeft + 1

	gapLengths  = 16
	tickLengths = 8
	LifeLengths = 6
	KindSteps   = int(wire.LastEntryKind) - 1 // without EntryNamed
	spanTree    = 1 << spanBits               // decision 0 is not in use
	nearTree    = 1 << nearBits
	nearBits    = 4
	spanBits    = 5
)

var _ = [delta.HeadDecisions - headsInUse]struct{}{}

var _ = [1]struct{}{}[delta.MaxSpan-1<<spanBits] // they are equal

// The chain state of a slot: whether the packets of the chain carried it.
const (
	ChainNew      = iota // not listed
	ChainListed          // listed, but not carried by the last packet
	ChainRepeated        // carried by the last packet
	chainStates
)

const (
	gapBits  = 30 // of a slot after the list
	tickBits = 32 // of the difference of two ticks
	// AgeLow is the number of low bits of a model's age, in packets, in the first byte of a packet.
	AgeLow   = 2
	ModelRef = 1 // order of the code of the other bits of the age
	skipBits = 4 // order of the code of the first slot
)

// A Walk is the position of a packet in the list of its model, at either end.
type Walk struct {
	before []ListedSlot // the list of the model that the packet begins with
	at     int          // index of the next listed slot
	Next   int          // the slot after the last one
	begun  bool
	fresh  bool // the last slot was not listed
	again  bool // the last listed slot was carried
	names  names
	Set    wire.ComponentSet
}

// Begin starts a packet of tick now, with the model of a state or a new one.
func (w *Walk) Begin(from *State, now delta.Tick) {
	*w = Walk{}
	if from == nil {
		w.names.begin(now - 1)
	} else {
		w.before = from.Slots
		w.names.begin(from.Tick)
	}
}

// room returns the number of slots before the next listed one, or -1 at the end of the list.
func (w *Walk) room() int {
	if w.at == len(w.before) {
		return -1
	}
	return int(w.before[w.at].Slot) - w.Next
}

// skip goes to a slot without passing the listed slots before it.
func (w *Walk) skip(slot int) {
	w.at = sort.Search(len(w.before), func(i int) bool { return int(w.before[i].Slot) >= slot })
	w.Next = slot
}

// pass goes past the next listed slot, which is carried or not, and returns its chain state.
func (w *Walk) pass(s *State, carried bool) (chain int) {
	l := w.before[w.at]
	chain = ChainListed + int(l.Seen&1)
	l.Seen = l.Seen << 1 & (1<<seenBits - 1)
	if carried {
		l.Seen |= 1
		if chain == ChainRepeated {
			w.names.likely = Name{w.names.ref, delta.Tick(l.span), delta.Tick(l.third), delta.Tick(l.fourth)}
		}
	}
	s.list(l)
	w.at++
	w.Next, w.again = int(l.Slot)+1, carried
	if carried {
		w.fresh = false
	}
	return chain
}

// found goes past a slot that is carried but not listed.
func (w *Walk) found(s *State, slot int) {
	s.list(ListedSlot{Slot: uint32(slot), Seen: 1})
	w.Next, w.fresh = slot+1, true
}

// end lists the remaining slots for the next packet of the chain.
func (w *Walk) end(s *State) {
	for _, l := range w.before[w.at:] {
		l.Seen = l.Seen << 1 & (1<<seenBits - 1)
		s.list(l)
	}
}

// otherContext returns the decision whether the next entry is not the next listed slot.
func (w *Walk) otherContext(room int) int {
	return headOther + 2*min(bits.Len(uint(room)), 3) + toInt(w.fresh)
}

// endContext returns the decision whether there are no more entries.
func (w *Walk) endContext(room int) int {
	return headEnd + 2*toInt(room < 0) + toInt(w.fresh)
}

// repeatedContext returns the decision whether the next listed slot is carried again.
func (w *Walk) repeatedContext() int {
	return headRepeated + int(w.before[w.at].Seen) + toInt(w.again)<<seenBits
}

// gapWidth returns the decisions of the gap before a new slot, and the largest width of the gap.
func (w *Walk) gapWidth(room int) (context int, width uint) {
	if room < 0 {
		return headGap + gapLengths, gapBits
	}
	return headGap, uint(bits.Len(uint(room - 1)))
}

// toInt returns 1 for true.
func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
