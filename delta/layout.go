package delta

// This file has the layout of rows, on which both ends agree.

import (
	"fmt"
	"math/bits"
	"slices"
)

// Kind selects how a field's codes are predicted from tick to tick. It changes no meaning: every
// kind carries every code exactly.
type Kind uint8

const (
	// Plain codes jump: enums, raw bit patterns. They are predicted to stay.
	Plain Kind = iota
	// Linear codes move: positions, velocities. They are extrapolated.
	Linear
	// Wrap codes move on a circle: angles, hours. They are extrapolated, and the
	// distance from the largest code to 0 is one.
	Wrap
	// Quat is a rotation in smallest-three form: four words, the index of the
	// dropped component (0..3) and the three others of Bits each. It is
	// extrapolated as a rotation.
	Quat
	// Reference names something, or nothing: two words, see reference.go. It takes
	// ReferenceBits at most, usually far fewer, and is predicted to stay.
	Reference
	// Counter codes stay or grow by a little: scores, shots fired. They are predicted to
	// stay. Growing by one is cheap whatever the width; shrinking is expensive.
	Counter
	// Flags codes are sets of bits, of which few change at a time. They are predicted to
	// stay.
	Flags
	// Bytes is a text of up to Max bytes: a word for its length, then its bytes, four to
	// a word, the first in the lowest bits, and zeros behind the last one. It is predicted
	// to stay. A change sends only the bytes between the equal beginning and the equal end.
	Bytes
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Plain:
		return "plain"
	case Linear:
		return "linear"
	case Wrap:
		return "wrap"
	case Quat:
		return "quat"
	case Reference:
		return "reference"
	case Counter:
		return "counter"
	case Flags:
		return "flags"
	case Bytes:
		return "bytes"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// maxQuatBits is the largest width of a quaternion component: prediction works in
// 64-bit integers and needs the room.
const maxQuatBits = 20

// MaxBytes is the largest length of a Bytes field, in bytes.
const MaxBytes = 4096

// MaxOrders is the number of orders that [Field.Orders] can replace, and replace them by.
const MaxOrders = 16

// quatWork is the share of a Quat field in [Component.Work].
const quatWork = 8

// A Field is one quantised value of a component.
type Field struct {
	// Name is the field's path inside its component, for statistics and messages.
	Name string
	Kind Kind
	// Bits is the width of the code, 0..64, or of each of the three components of
	// a Quat, 2..20. A Reference has ReferenceBits; that of a Bytes field follows from Max.
	Bits uint
	// Max is the largest valid code, except of a Quat, and one less than the circle of a
	// Wrap has. 0 stands for 2^Bits-1. Of a Bytes field it is the largest length, 1..MaxBytes.
	Max uint64
	// Orders replaces the codes of residuals of a Linear, Wrap or Quat field in [Packed]: where the code
	// would be of order i, it is of order Orders[i]. It has up to MaxOrders orders, each below MaxOrders.
	Orders []uint8

	word   int    // index of the first word in the component's row
	circle uint64 // number of codes on a Wrap's circle if that is not 2^Bits, else 0
	beside bool   // the field may turn together with the one before it, see turning.go
}

// Words returns the number of row words of the field: 1, or 2 for more than 32 bits (low word first) and for a
// Reference; 4 for a Quat; for Bytes, 1 and as many as Max bytes need.
func (f *Field) Words() int {
	switch {
	case f.Kind == Quat:
		return 4
	case f.Kind == Bytes:
		return 1 + (int(f.Max)+3)/4
	case f.Bits > 32:
		return 2
	}
	return 1
}

// Width returns the bits of the field without a baseline, for a Reference or Bytes the largest number.
func (f *Field) Width() uint {
	switch f.Kind {
	case Quat:
		return 2 + 3*f.Bits
	case Bytes:
		return f.Bits + 1 + 8*uint(f.Max)
	}
	return f.Bits
}

// Word returns the index of the field's first word in the row.
func (f *Field) Word() int { return f.word }

// number reports whether a field is extrapolated.
func (f *Field) number() bool { return f.Kind == Linear || f.Kind == Wrap || f.Kind == Quat }

// code returns the field's code in the row; not for a Quat or Bytes.
func (f *Field) code(row []uint32) uint64 {
	if f.Bits > 32 {
		return uint64(row[f.word]) | uint64(row[f.word+1])<<32
	}
	return uint64(row[f.word])
}

// setCode stores the field's code into the row; not for a Quat or Bytes.
func (f *Field) setCode(row []uint32, code uint64) {
	row[f.word] = uint32(code)
	if f.Bits > 32 {
		row[f.word+1] = uint32(code >> 32)
	}
}

// A Component is the layout of one component's row: the codes of its fields, in words of 32 bits.
type Component struct {
	Name   string
	Fields []Field

	words int
	width int
	least int  // bits of the shortest row without baseline
	work  int  // see Work
	first int  // index of the first field among all fields of the layout
	last  int  // index of the last field that is wider than 0 bits
	moves bool // whether a field may be extrapolated
	quats int  // Quat fields

	numbers []numberWord
}

// Words returns the length of the component's row; 0 for a tag.
func (c *Component) Words() int { return c.words }

// Width returns the bits of the longest row without a baseline. Only Reference and Bytes fields make rows shorter.
func (c *Component) Width() int { return c.width }

// MinWidth returns the bits of the shortest row without a baseline.
func (c *Component) MinWidth() int { return c.least }

// Work returns an estimate of the time to decode a row of the component, and of its memory: 1 for every word, 8 for a
// Quat field. It does not depend on the bits of the row, since a field that is as predicted costs next to none.
func (c *Component) Work() int { return c.work }

// Moves reports whether the component has a field that may be extrapolated.
func (c *Component) Moves() bool { return c.moves }

// Valid reports whether every code of the row is within its field's range.
func (c *Component) Valid(row []uint32) bool {
	for i := range c.Fields {
		if !c.Fields[i].valid(row) {
			return false
		}
	}
	return true
}

// valid reports whether the field's code in the row is within its range.
func (f *Field) valid(row []uint32) bool {
	switch f.Kind {
	case Reference:
		return validReference(row[f.word:][:2])
	case Quat:
		q := row[f.word:][:4]
		return q[0] <= 3 && (q[1]|q[2]|q[3])>>f.Bits == 0
	case Bytes:
		return f.validBytes(row)
	}
	return f.code(row) <= f.Max
}

// MaxComponents is the largest number of components of a layout.
const MaxComponents = 256

// A Layout is the ordered list of components that both ends agree on.
type Layout struct {
	Components []Component

	fields int
}

// NewLayout returns the layout of the given components. It keeps them and their fields, and completes each Max of 0 and
// the Bits of Bytes.
//
// Panics on more than [MaxComponents] components, an unknown kind, or a field outside its limits.
func NewLayout(components ...Component) *Layout {
	if len(components) > MaxComponents {
		panic(fmt.Sprintf("delta: %d components in a layout: the limit is %d", len(components), MaxComponents))
	}
	l := &Layout{Components: components}
	for i := range components {
		c := &components[i]
		*c = Component{Name: c.Name, Fields: c.Fields, first: l.fields}
		for j := range c.Fields {
			f := &c.Fields[j]
			f.complete(c.Name)
			c.add(j, f)
		}
		l.fields += len(c.Fields)
	}
	return l
}

// complete checks the field's limits and sets what follows from them.
func (f *Field) complete(component string) {
	refuse := func(format string, args ...any) {
		panic(fmt.Sprintf("delta: %s.%s %s", component, f.Name, fmt.Sprintf(format, args...)))
	}
	switch {
	case f.Kind > Bytes:
		refuse("is of no known kind: use Plain, Linear, Wrap, Quat, Reference, Counter, Flags or Bytes, not %v", f.Kind)
	case f.Kind == Reference && f.Bits != ReferenceBits:
		refuse("has %d bits: a reference has %d", f.Bits, ReferenceBits)
	case f.Kind == Bytes && (f.Max < 1 || f.Max > MaxBytes):
		refuse("has room for %d bytes: use 1 to %d", f.Max, MaxBytes)
	case f.Kind == Bytes:
		f.Bits = uint(bits.Len64(f.Max))
	case f.Kind == Quat && (f.Bits < 2 || f.Bits > maxQuatBits) || f.Bits > 64:
		refuse("has %d bits: a quaternion takes 2 to %d a component, other fields 0 to 64", f.Bits, maxQuatBits)
	}
	if f.Max == 0 {
		f.Max = lowBits(f.Bits)
	}
	if f.Kind != Quat && f.Max > lowBits(f.Bits) {
		refuse("has a largest code of %d, which takes more than its %d bits", f.Max, f.Bits)
	}
	if f.Orders != nil && !f.Kind.predicted() {
		refuse("has replaced orders: only Linear, Wrap and Quat fields have residuals")
	}
	if len(f.Orders) > MaxOrders || slices.ContainsFunc(f.Orders, func(k uint8) bool { return k >= MaxOrders }) {
		refuse("has the orders %v: use up to %d, each below that", f.Orders, MaxOrders)
	}
	if f.Kind == Wrap && f.Max != lowBits(f.Bits) {
		f.circle = f.Max + 1
	}
}

// predicted reports whether codes of the kind are extrapolated.
func (k Kind) predicted() bool { return k == Linear || k == Wrap || k == Quat }

// order returns the order of the code of a residual instead of the usual one.
func (f *Field) order(k uint) uint { return replaced(f.Orders, k) }

// replaced returns what stands for order k.
func replaced(orders []uint8, k uint) uint {
	if k < uint(len(orders)) {
		return uint(orders[k])
	}
	return k
}

// add appends the i-th field to the row.
func (c *Component) add(i int, f *Field) {
	if f.Bits > 0 {
		c.last = i
		c.moves = c.moves || f.Kind.predicted()
	}
	f.beside = i > 0 && f.mayTurnWith(&c.Fields[i-1])
	f.word = c.words
	c.addNumbers(f)
	c.words += f.Words()
	c.width += int(f.Width())
	switch f.Kind {
	case Quat:
		c.quats++
		c.work += quatWork
		c.least += int(f.Width())
	case Reference:
		c.work += f.Words()
		c.least++
	case Bytes:
		c.work += f.Words()
		c.least += int(f.Bits)
	default:
		c.work += f.Words()
		c.least += int(f.Width())
	}
}

// Fields returns the number of fields of all components together.
func (l *Layout) Fields() int { return l.fields }

// lowBits returns the number whose low n bits are set, n <= 64.
func lowBits(n uint) uint64 { return 1<<n - 1 }
