package delta

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Baselines names the one or two ticks that an update is taken against.
type Baselines struct {
	A1, A2 Tick
	// Two says whether there is a second baseline A2, 1 to 32 ticks before A1.
	Two bool
	// Old says that A1 lies 2^NameBits ticks back or more. There is no second baseline
	// then.
	Old bool
}

const (
	// NameBits is the number of low bits of a tick that name an old baseline, and the
	// width of the age of others. A receiver may hold one old tick of an entity at most.
	NameBits = 8
	// SpanBits is the width of A1-A2-1.
	SpanBits = 5
	// MaxSpan is the largest distance between two baselines.
	MaxSpan = 1 << SpanBits
	// SecondGrid is the grid of the second baselines that are cheapest to name, see
	// [Second].
	SecondGrid = 2

	recentNames = 5
	newcomer    = 2 // the place at which a pair enters the list
	ageOrder    = 3 // of the residual code of ages
)

// Second returns the second baseline that is cheapest to name with a1: the newest tick on
// the grid that is a grid step older, or more.
func Second(a1 Tick) Tick { return a1&^(SecondGrid-1) - SecondGrid }

// Names codes the baselines of one entity of a packet after the other. Most have those
// that most others have. So pairs are kept in a list, and those that are used often go to
// its front: a pair that is used changes places with the one before it, a new one enters
// the list behind two others. The user says in a bit, or less, whether that in front is
// meant. If it is not, and there are others,
//
//	0 i...     the pair at place 1+i, in as many bits as that takes
//	1 ...      a pair that follows
//
// and that is
//
//	age 0             A1 alone, and is old: its low 8 bits aaaaaaaa
//	age x  0  0       with A2 = Second(A1)
//	age x  1  0       A1 alone
//	age x  1  1 sssss A2 = A1-1-s
//
// the age of A1 being a residual of order ageOrder.
type Names struct {
	now    Tick
	n      int
	recent [recentNames]Baselines
}

// NamesAt returns the coder for a packet of tick now.
func NamesAt(now Tick) Names { return Names{now: now} }

// Leads reports whether b is the pair in front. If there is none, any is.
func (n *Names) Leads(b Baselines) bool { return n.n == 0 || n.Follows(b) }

// Follows reports whether b is the pair in front.
func (n *Names) Follows(b Baselines) bool { return n.n > 0 && n.recent[0] == b }

// Write appends the name of b to what tells whether it leads.
//
// Panics if b has a second baseline that is not 1 to [MaxSpan] ticks before the first, or
// that is not before the packet, and old if and only if it lies 2^NameBits ticks back.
func (n *Names) Write(w *bitbuf.Writer, b Baselines) {
	if n.Follows(b) {
		return
	}
	age := n.now - b.A1
	switch {
	case b.Two && (b.Old || b.A1-b.A2-1 >= MaxSpan):
		panic("delta: a second baseline must be 1 to 32 ticks before the first, and that not old: choose another, or set Two to false")
	case !n.now.After(b.A1) || b.Old != (age >= 1<<NameBits):
		panic("delta: a baseline must be before the packet, and Old if it is by 256 ticks or more")
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

// placeBits returns the width of a place in the list that is not the front.
func (n *Names) placeBits() uint { return uint(bits.Len(uint(n.n - 2))) }

// write appends a pair of its own whose first tick is of that age.
func (b *Baselines) write(w *bitbuf.Writer, age Tick) {
	if b.Old {
		age = 0
	}
	code, width := shortResidual(uint32(age), ageOrder, NameBits)
	w.WriteBits(code, width)
	switch {
	case b.Old:
		w.WriteBits(uint64(b.A1&(1<<NameBits-1)), NameBits)
	case !b.Two:
		w.WriteBits(0b01, 2)
	case b.A2 == Second(b.A1):
		w.WriteBits(0b0, 1)
	default:
		w.WriteBits(0b11|uint64(b.A1-b.A2-1)<<2, 2+SpanBits)
	}
}

// A Name is what stands in a packet: known baselines, or, of an old one, low bits that the
// receiver has to match with the ticks it holds and then to report with [Names.Resolve].
type Name struct {
	Baselines
	Known bool
	Low   uint32 // the low NameBits bits of A1, if it is not known
}

// Read reads a name, given whether it leads. One that stands for none of the names before
// it fails the Reader with [ErrCode].
func (n *Names) Read(r *bitbuf.Reader, leads bool) Name {
	if leads && n.n > 0 {
		return Name{Baselines: n.recent[0], Known: true}
	}
	if !leads && n.n == 0 {
		r.Fail(ErrCode)
		return Name{Known: true}
	}
	if n.n > 1 && !r.ReadBool() {
		i := 1 + int(r.ReadBits(n.placeBits()))
		if i >= n.n {
			r.Fail(ErrCode)
			return Name{Known: true}
		}
		b := n.recent[i]
		n.use(b, i)
		return Name{Baselines: b, Known: true}
	}
	age := Tick(readResidual(r, ageOrder, NameBits))
	if age == 0 {
		return Name{Baselines: Baselines{Old: true}, Low: uint32(r.ReadBits(NameBits))}
	}
	b := Baselines{A1: n.now - age}
	switch {
	case !r.ReadBool():
		b.Two, b.A2 = true, Second(b.A1)
	case r.ReadBool():
		b.Two, b.A2 = true, b.A1-Tick(r.ReadBits(SpanBits))-1
	}
	n.note(b)
	return Name{Baselines: b, Known: true}
}

// Resolve completes a name that is not known, a1 being the tick that its low bits
// stand for. It must follow Read before the next name is read.
func (n *Names) Resolve(name Name, a1 Tick) Baselines {
	b := Baselines{A1: a1, Old: name.Old}
	n.note(b)
	return b
}

// note uses b, wherever it stands.
func (n *Names) note(b Baselines) {
	i := 0
	for i < n.n && n.recent[i] != b {
		i++
	}
	n.use(b, i)
}

// use moves b, which stands at place i or nowhere (i = n.n), towards the front.
func (n *Names) use(b Baselines, i int) {
	switch {
	case i == n.n:
		n.n = min(n.n+1, recentNames)
		place := min(newcomer, n.n-1)
		copy(n.recent[place+1:n.n], n.recent[place:])
		n.recent[place] = b
	case i > 0:
		n.recent[i], n.recent[i-1] = n.recent[i-1], b
	}
}
