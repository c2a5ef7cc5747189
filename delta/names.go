package delta

// This file names the baselines of updates. Most entities of a packet have the same ones, so Names keeps a list of
// pairs, of which the first one of the packet stays in front. Of the others, a pair that is used changes places with
// the one before it; a new one enters the list at index 2. If the pair in front is not meant, and there are others,
// there follows
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
// where the age of A1, 1 to MaxAge, is a residual of order ageOrder.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Baselines has the ticks of one or two baselines. A tick stands for the state that the receiver holds of it, or else
// of the last tick before it.
type Baselines struct {
	A1, A2 Tick
	// Two reports whether there is a second baseline A2, 1 to 32 ticks before A1.
	Two bool
}

// Limits of what [Names] names, in ticks.
const (
	MaxAge     = 1<<ageBits - 1 // from A1 to the packet
	MaxSpan    = 1 << spanBits  // from A2 to A1
	SecondGrid = 2              // see [Second]
)

const (
	ageBits     = 8 // of the age of A1
	spanBits    = 5 // of A1-A2-1
	recentNames = 5
	newcomer    = 2 // the index at which a pair enters the list
	ageOrder    = 3 // order of the residual code of ages
)

// Second returns the second baseline that is cheapest to name with a1: the newest multiple of [SecondGrid] that is at
// least that much older.
func Second(a1 Tick) Tick { return a1&^(SecondGrid-1) - SecondGrid }

// Names codes the baselines of the entities of a packet, one after the other, in few bits where they are alike. The
// first pair of the packet is in front and stays there. The user codes whether that is meant; Write and Read code any
// other one.
type Names struct {
	now    Tick
	n      int
	recent [recentNames]pairKey
}

// A pairKey is a pair of baselines in one word, so that pairs are compared at once: the first tick, above it how many
// ticks the second one is before it, and on top whether there is one.
type pairKey uint64

const hasSecond pairKey = 1 << 63

// key returns the key of a pair.
func (b *Baselines) key() pairKey {
	k := pairKey(b.A1)
	if b.Two {
		k |= pairKey(b.A1-b.A2)<<32 | hasSecond
	}
	return k
}

// pair returns the pair of a key.
func (k pairKey) pair() Baselines {
	b := Baselines{A1: Tick(k)}
	if k&hasSecond != 0 {
		b.Two, b.A2 = true, b.A1-Tick(k&^hasSecond>>32)
	}
	return b
}

// NewNames returns the coder for a packet of tick now, with a pair in front if one is given. It panics on more.
func NewNames(now Tick, front ...Baselines) Names {
	n := Names{now: now, n: len(front)}
	if n.n > 1 {
		panic("delta: NewNames takes at most one pair that is in front")
	}
	for i := range front {
		n.recent[i] = front[i].key()
	}
	return n
}

// AtFront reports whether b is the pair in front, or will be because there is none yet.
func (n *Names) AtFront(b Baselines) bool { return n.n == 0 || n.recent[0] == b.key() }

// Write appends the name of b, after the user has written whether b is at the front.
//
// Panics if the first baseline is not 1 to [MaxAge] ticks before the packet, or the second
// one not 1 to [MaxSpan] ticks before the first.
func (n *Names) Write(w *bitbuf.Writer, b Baselines) {
	key := b.key()
	if n.n > 0 && n.recent[0] == key {
		return
	}
	age := n.now - b.A1
	switch {
	case b.Two && b.A1-b.A2-1 >= MaxSpan:
		panic("delta: a second baseline must be 1 to 32 ticks before the first: choose another, or set Two to false")
	case age-1 >= MaxAge:
		panic("delta: a baseline must be 1 to 255 ticks before the packet: " +
			"choose a newer tick at which it was valid, or send the full state")
	}
	i := n.find(key)
	var code uint64
	var width uint
	if i < n.n {
		code, width = uint64(i-1), n.placeBits()
	} else {
		code, width = b.code(age)
	}
	if n.n > 1 {
		code <<= 1
		if width++; i == n.n {
			code |= 1
		}
	}
	w.WriteBits(code, width)
	n.use(key, i)
}

// find returns the index of a pair, or n.n if it is not in the list.
func (n *Names) find(key pairKey) int {
	found := uint(1) << n.n
	for i, k := range n.recent { // without branches, since which pair it is can't be predicted
		x := k ^ key
		found |= uint((x|-x)>>63^1) << i
	}
	return min(bits.TrailingZeros(found), n.n)
}

// placeBits returns the width of the index of a pair that is not in front.
func (n *Names) placeBits() uint { return uint(bits.Len(uint(n.n - 2))) }

// code returns the code of a new pair, whose first tick has the given age.
func (b *Baselines) code(age Tick) (code uint64, width uint) {
	code, width = shortResidual(uint32(age), ageOrder, ageBits)
	switch {
	case !b.Two:
		return code | 0b01<<width, width + 2
	case b.A2 == Second(b.A1):
		return code, width + 1
	default:
		return code | (0b11|uint64(b.A1-b.A2-1)<<2)<<width, width + 2 + spanBits
	}
}

// Read reads what Write wrote. front reports whether the pair is at the front. A pair that is not in the list, or of
// age 0, fails the Reader with [ErrCode].
func (n *Names) Read(r *bitbuf.Reader, front bool) Baselines {
	if front && n.n > 0 {
		return n.recent[0].pair()
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
		key := n.recent[i]
		n.use(key, i)
		return key.pair()
	}
	age := Tick(readResidual(r, ageOrder, ageBits))
	if age == 0 {
		r.Fail(ErrCode)
		return Baselines{}
	}
	b := Baselines{A1: n.now - age}
	switch {
	case !r.ReadBool():
		b.Two, b.A2 = true, Second(b.A1)
	case r.ReadBool():
		b.Two, b.A2 = true, b.A1-Tick(r.ReadBits(spanBits))-1
	}
	key := b.key()
	n.use(key, n.find(key))
	return b
}

// use moves a pair, which is at index i or, if i = n.n, not in the list, towards the front.
func (n *Names) use(key pairKey, i int) {
	switch {
	case i == n.n:
		n.n = min(n.n+1, recentNames)
		for k := n.n - 1; k > newcomer; k-- {
			n.recent[k] = n.recent[k-1]
		}
		n.recent[min(newcomer, n.n-1)] = key
	case i > 1:
		n.recent[i], n.recent[i-1] = n.recent[i-1], n.recent[i]
	}
}
