package delta

import "github.com/arche-replicate/arche-replicate/bitbuf"

// Baselines names the one or two ticks that an update is taken against.
type Baselines struct {
	A1, A2 Tick
	// Two says whether there is a second baseline A2, 1 to 32 ticks before A1.
	Two bool
	// Old says that A1 lies 2^NameBits ticks back or more, where its low bits could
	// be those of a later tick as well. There is no second baseline then.
	Old bool
}

const (
	// NameBits is the number of low bits of a tick that name a baseline. Of the ticks
	// that a receiver may hold of one entity, those that are not old differ in them,
	// and one is old at most.
	NameBits = 8
	// SpanBits is the width of A1-A2-1.
	SpanBits = 5
	// MaxSpan is the largest distance between two baselines.
	MaxSpan = 1 << SpanBits

	recentNames = 5
)

// Names codes the baselines of one entity of a packet after the other. Most have
// those of the entity before, or of one a little farther back:
//
//	0          as the entity before
//	10 ii      as the pair used 2+i different pairs ago
//	11 aaaaaaaa 1 sssss     a pair of its own: low bits of A1, and A2 = A1-1-s
//	11 aaaaaaaa 0 o         the same without a second; o: A1 is old
//
// The zero value begins a packet.
type Names struct {
	recent [recentNames]Baselines
	n      int
}

// Write appends the name b.
//
// Panics if b has a second baseline and is old, or the second baseline is not 1 to
// [MaxSpan] ticks before the first.
func (n *Names) Write(w *bitbuf.Writer, b Baselines) {
	if !b.Two {
		b.A2 = 0
	} else if b.Old || b.A1-b.A2-1 >= MaxSpan {
		panic("delta: a second baseline must be 1 to 32 ticks before the first, and that not old: choose another, or set Two to false")
	}
	i := 0
	for i < n.n && n.recent[i] != b {
		i++
	}
	switch i {
	case n.n:
		w.WriteBits(0b11|uint64(b.A1&(1<<NameBits-1))<<2, 2+NameBits)
		w.WriteBool(b.Two)
		if b.Two {
			w.WriteBits(uint64(b.A1-b.A2-1), SpanBits)
		} else {
			w.WriteBool(b.Old)
		}
	case 0:
		w.WriteBits(0b0, 1)
	default:
		w.WriteBits(0b01|uint64(i-1)<<2, 4)
	}
	n.use(b, i)
}

// Follows reports whether b was named last.
func (n *Names) Follows(b Baselines) bool { return n.n > 0 && n.recent[0] == b }

// A Name is what stands in a packet: known baselines, or low bits that the receiver
// has to match with the ticks it holds and then to report with [Names.Resolve].
type Name struct {
	Baselines
	Known bool
	Low   uint32 // the low NameBits bits of A1
	span  Tick
}

// Read reads a name. One that stands for none of the names before it fails the Reader
// with [ErrCode].
func (n *Names) Read(r *bitbuf.Reader) Name {
	i := 0
	if r.ReadBool() {
		if r.ReadBool() {
			name := Name{Low: uint32(r.ReadBits(NameBits))}
			if name.Two = r.ReadBool(); name.Two {
				name.span = Tick(r.ReadBits(SpanBits)) + 1
			} else {
				name.Old = r.ReadBool()
			}
			return name
		}
		i = 1 + int(r.ReadBits(2))
	}
	if i >= n.n {
		r.Fail(ErrCode)
		return Name{Known: true}
	}
	b := n.recent[i]
	n.use(b, i)
	return Name{Baselines: b, Known: true}
}

// Resolve completes a name that is not known, a1 being the tick that its low bits
// stand for. It must follow Read before the next name is read.
func (n *Names) Resolve(name Name, a1 Tick) Baselines {
	b := Baselines{A1: a1, Two: name.Two, Old: name.Old}
	if b.Two {
		b.A2 = a1 - name.span
	}
	i := 0
	for i < n.n && n.recent[i] != b {
		i++
	}
	n.use(b, i)
	return b
}

// use moves b, which stands at place i or nowhere (i = n.n), to the front.
func (n *Names) use(b Baselines, i int) {
	if i == n.n && n.n < recentNames {
		n.n++
	}
	i = min(i, recentNames-1)
	copy(n.recent[1:i+1], n.recent[:i])
	n.recent[0] = b
}
