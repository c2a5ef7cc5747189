package delta

// This file names the baselines of updates.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Baselines has the one or two ticks against which an update is taken. A tick stands for the
// state that the receiver holds of it, or else of the last tick before it.
type Baselines struct {
	A1, A2 Tick
	// Two reports whether there is a second baseline A2, 1 to 32 ticks before A1.
	Two bool
}

const (
	// NameBits is the width of the age of A1.
	NameBits = 8
	// MaxAge is the largest age of A1.
	MaxAge = 1<<NameBits - 1
	// SpanBits is the width of A1-A2-1.
	SpanBits = 5
	// MaxSpan is the largest distance between two baselines.
	MaxSpan = 1 << SpanBits
	// SecondGrid is the grid of the second baselines that are cheapest to name, see [Second].
	SecondGrid = 2

	recentNames = 5
	newcomer    = 2 // the index at which a pair enters the list
	ageOrder    = 3 // order of the residual code of ages
)

// Second returns the second baseline that is cheapest to name with a1: the newest tick on
// the grid that is at least a grid step older.
func Second(a1 Tick) Tick { return a1&^(SecondGrid-1) - SecondGrid }

// Names codes the baselines of the entities of a packet, one entity after the other. Most
// entities have the same baselines. So Names keeps a list of pairs: the first pair of the
// packet is in front and stays there. Of the others, a pair that is used changes places with
// the one before it; a new one enters the list at index 2. The user codes in a bit, or less,
// whether the pair in front is meant. If it is not, and there are others, there follows
//
//	0 i...     the pair at index 1+i, in as many bits as an index takes
//	1 ...      a new pair
//
// A new pair is
//
//	age x  0         with A2 = Second(A1)
//	age x  1 0       without A2
//	age x  1 1 sssss with A2 = A1-1-s
//
// where the age of A1, 1 to [MaxAge], is a residual of order ageOrder.
type Names struct {
	now    Tick
	n      int
	recent [recentNames]Baselines
}

// NamesAt returns the coder for a packet of tick now.
func NamesAt(now Tick) Names { return Names{now: now} }

// NamesFrom returns the coder for a packet of tick now in which the given pair is in front already.
func NamesFrom(now Tick, front Baselines) Names {
	if !front.Two {
		front.A2 = 0
	}
	return Names{now: now, n: 1, recent: [recentNames]Baselines{front}}
}

// AtFront reports whether b is the pair in front, or will be because there is none yet.
func (n *Names) AtFront(b Baselines) bool { return n.n == 0 || n.isFront(b) }

// isFront reports whether b is the pair in front.
func (n *Names) isFront(b Baselines) bool { return n.n > 0 && n.recent[0] == b }

// Write appends the name of b, after the user has written whether b is at the front.
//
// Panics if the first baseline is not 1 to [MaxAge] ticks before the packet, or the second
// one not 1 to [MaxSpan] ticks before the first.
func (n *Names) Write(w *bitbuf.Writer, b Baselines) {
	if n.isFront(b) {
		return
	}
	age := n.now - b.A1
	switch {
	case b.Two && b.A1-b.A2-1 >= MaxSpan:
		panic("delta: a second baseline must be 1 to 32 ticks before the first: choose another, or set Two to false")
	case age-1 >= MaxAge:
		panic("delta: a baseline must be 1 to 255 ticks before the packet: " +
			"choose a newer tick at which it was valid, or send the full state")
	case !b.Two:
		b.A2 = 0
	}
	i := 0
	for i < n.n && n.recent[i] != b {
		i++
	}
	if n.n > 1 {
		w.WriteBool(i == n.n)
	}
	if i < n.n {
		w.WriteBits(uint64(i-1), n.placeBits())
	} else {
		b.write(w, age)
	}
	n.use(b, i)
}

// placeBits returns the width of the index of a pair that is not in front.
func (n *Names) placeBits() uint { return uint(bits.Len(uint(n.n - 2))) }

// write appends a new pair, whose first tick has the given age.
func (b *Baselines) write(w *bitbuf.Writer, age Tick) {
	code, width := shortResidual(uint32(age), ageOrder, NameBits)
	w.WriteBits(code, width)
	switch {
	case !b.Two:
		w.WriteBits(0b01, 2)
	case b.A2 == Second(b.A1):
		w.WriteBits(0b0, 1)
	default:
		w.WriteBits(0b11|uint64(b.A1-b.A2-1)<<2, 2+SpanBits)
	}
}

// Read reads what Write wrote. front reports whether the pair is at the front. A pair that is not
// in the list, or of age 0, fails the Reader with [ErrCode].
func (n *Names) Read(r *bitbuf.Reader, front bool) Baselines {
	if front && n.n > 0 {
		return n.recent[0]
	}
	if !front && n.n == 0 {
		r.Fail(ErrCode)
		return Baselines{}
	}
	if n.n > 1 && !r.ReadBool() {
		i := 1 + int(r.ReadBits(n.placeBits()))
		if i >= n.n {
			r.Fail(ErrCode)
			return Baselines{}
		}
		b := n.recent[i]
		n.use(b, i)
		return b
	}
	age := Tick(readResidual(r, ageOrder, NameBits))
	if age == 0 {
		r.Fail(ErrCode)
		return Baselines{}
	}
	b := Baselines{A1: n.now - age}
	switch {
	case !r.ReadBool():
		b.Two, b.A2 = true, Second(b.A1)
	case r.ReadBool():
		b.Two, b.A2 = true, b.A1-Tick(r.ReadBits(SpanBits))-1
	}
	i := 0
	for i < n.n && n.recent[i] != b {
		i++
	}
	n.use(b, i)
	return b
}

// use moves b, which is at index i or, if i = n.n, not in the list, towards the front.
func (n *Names) use(b Baselines, i int) {
	switch {
	case i == n.n:
		n.n = min(n.n+1, recentNames)
		place := min(newcomer, n.n-1)
		copy(n.recent[place+1:n.n], n.recent[place:])
		n.recent[place] = b
	case i > 1:
		n.recent[i], n.recent[i-1] = n.recent[i-1], n.recent[i]
	}
}
