package compact

import (
	"math/bits"
	"sort"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What stands before the rows of an entry in a packet of Compact: the slot, the kind, and the
// baselines or the generation and component set.
//
// Most slots are those that the packet carried whose model this one begins with, or one before
// it in the chain. They are listed, and gone through: whether a slot that is not listed comes
// first, and if not so, whether the next one of the list is carried again.

// Decisions, as indices of those that a model has for heads.
const (
	headSkip     = 0                            // the packet does not begin with the list
	headOther    = headSkip + 1                 // not the next of the list: by the room before it, and by whether the last one was new
	headEnd      = headOther + 4*2              // nothing more, else a new slot: by whether the list is at its end, and the last one new
	headRepeated = headEnd + 2*2                // carried again: by the packets that carried it, and whether the listed slot before it is
	headGap      = headRepeated + 2<<seenBits   // lengths of gaps before new slots: by whether the list is at its end
	HeadKind     = headGap + 2*gapLengths       // KindSteps in unary: by origin
	headName     = HeadKind + origins*KindSteps // those of the entry before of that origin: by origin, or that these are not likely
	headOwn      = headName + origins + 1       // the likely baselines
	headFirst    = headOwn + 1                  // A1 is the tick of the packet whose model this is: by origin
	headNewer    = headFirst + origins          // A1 is newer than that tick
	headTicks    = headNewer + 1                // lengths of how much it differs
	headTwo      = headTicks + tickLengths      // there is a second baseline: by origin
	headSpan     = headTwo + origins            // tree of how much older it is
	headThird    = headSpan + spanTree          // tree of the third
	HeadSet      = headThird + thirdTree        // the component set of the last whole
	HeadLife     = HeadSet + 1                  // lengths of generations
	headsInUse   = HeadLife + LifeLengths

	gapLengths  = 16
	tickLengths = 8
	LifeLengths = 6
	KindSteps   = int(wire.LastEntryKind) - 1 // without EntryNamed
	spanTree    = 1 << delta.SpanBits         // the first one is not in use
	thirdTree   = 1 << thirdBits
	thirdBits   = 2
)

var _ = [delta.HeadDecisions - headsInUse]struct{}{}

// The origin of an entry is what the list says of its slot.
const (
	ChainNew      = iota // it is not listed
	ChainListed          // listed, but the last packet of the chain did not carry it
	ChainRepeated        // the last packet of the chain carried it
	origins
)

const (
	gapBits  = 30 // of a slot that is behind the list
	tickBits = 32 // of how much ticks differ
	// AgeLow is how many low bits of a model's age, in packets, are in the first byte. The rest is in a code of this
	// order.
	AgeLow   = 2
	ModelRef = 1
	skipBits = 4 // order of the code of the first slot
)

// A Name is the baselines of an entry.
type Name struct {
	A1          delta.Tick
	Span, Third delta.Tick // how much older the others are; 0: there is none
}

// A Walk is how far a packet has come, at either end.
type Walk struct {
	before []ListedSlot // the list of the model that the packet begins with
	at     int          // the next one of it
	Next   int          // the slot after the last one
	begun  bool
	fresh  bool // the last slot was not listed
	again  bool // the last listed slot was carried
	ref    delta.Tick
	Names  [origins]Name
	own    Name // of an entry that is carried again: what is likely for it
	Set    delta.Set
}

// Begin starts a packet of tick now, with the model of a state or a new one.
func (w *Walk) Begin(from *State, now delta.Tick) {
	*w = Walk{ref: now - 1}
	if from != nil {
		w.before, w.ref = from.Slots, from.Tick
	}
	for i := range w.Names {
		w.Names[i] = Name{A1: w.ref}
	}
}

// room returns how many slots there are before the next listed one, or -1 if there is none.
func (w *Walk) room() int {
	if w.at == len(w.before) {
		return -1
	}
	return int(w.before[w.at].Slot) - w.Next
}

// skip goes to a slot without going through the list.
func (w *Walk) skip(slot int) {
	w.at = sort.Search(len(w.before), func(i int) bool { return int(w.before[i].Slot) >= slot })
	w.Next = slot
}

// pass notes whether the next listed slot is carried.
func (w *Walk) pass(s *State, carried bool) (chain int) {
	l := w.before[w.at]
	chain = ChainListed + int(l.Seen&1)
	l.Seen = l.Seen << 1 & (1<<seenBits - 1)
	if carried {
		l.Seen |= 1
		if chain == ChainRepeated {
			w.own = Name{A1: w.ref, Span: delta.Tick(l.span), Third: delta.Tick(l.third)}
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

// found notes that the next entry is of a slot that is not listed.
func (w *Walk) found(s *State, slot int) {
	s.list(ListedSlot{Slot: uint32(slot), Seen: 1})
	w.Next, w.fresh = slot+1, true
}

// end lists what is left for the next packet of the chain.
func (w *Walk) end(s *State) {
	for _, l := range w.before[w.at:] {
		l.Seen = l.Seen << 1 & (1<<seenBits - 1)
		s.list(l)
	}
}

func (w *Walk) otherContext(room int) int {
	return headOther + 2*min(bits.Len(uint(room)), 3) + toInt(w.fresh)
}

func (w *Walk) endContext(room int) int {
	return headEnd + 2*toInt(room < 0) + toInt(w.fresh)
}

func (w *Walk) repeatedContext() int {
	return headRepeated + int(w.before[w.at].Seen) + toInt(w.again)<<seenBits
}

// gapWidth returns the decisions of the gap before a new slot and the bits that it takes at most.
func (w *Walk) gapWidth(room int) (context int, width uint) {
	if room < 0 {
		return headGap + gapLengths, gapBits
	}
	return headGap, uint(bits.Len(uint(room - 1)))
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nameContext returns the decision whether an entry has the baselines of the one before.
func (w *Walk) nameContext(chain int) int {
	if chain == ChainRepeated && w.Names[chain] != w.own {
		return headName + origins
	}
	return headName + chain
}
