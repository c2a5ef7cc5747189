// Package blend computes component values between two states. Package interpolation shows them at the client, and
// rewind finds out at the server what a client showed, so both use the kernels and the fractions of this package: what
// was seen is what is judged. Rows of codes or values in memory go in, values in memory come out.
package blend

import (
	"math"
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A Kernel blends values of one component. It is not for concurrent use.
type Kernel struct {
	comp *schema.Component

	singles []uintptr        // offsets of float32 fields that move linearly
	doubles []uintptr        // the same of float64
	others  []part           // all other fields
	fixed   []*schema.Column // all columns, if they are float32 fields in fixed steps that move linearly; or none
	second  unsafe.Pointer
	refers  Cut // of the references
	moves   bool
	words   []int // of a row: those of fields that move and are no integers
}

// A part is a field that is not simply a float that moves linearly.
type part struct {
	offset uintptr
	size   uintptr
	codec  *field.Codec
	mix    mixFunc
	// prepare turns the second value into what mix needs; nil: mix needs the value itself.
	prepare prepareFunc
	// Of an integer that moves linearly: its range, as the bits of an int64 if it is signed, and how far it goes.
	low, high uint64
	way       wayFunc
	fading    fading
}

type (
	mixFunc     func(p *part, dst, from, second unsafe.Pointer, f float32)
	prepareFunc func(p *part, from, second unsafe.Pointer)
	wayFunc     func(from, second unsafe.Pointer) float64
)

// New returns the kernel of a component.
func New(c *schema.Component) *Kernel {
	k := &Kernel{comp: c, second: reflect.New(c.Typ).UnsafePointer()}
	for i := range c.Columns {
		if c.Columns[i].StandIn == nil {
			k.add(&c.Columns[i])
		}
	}
	k.fixed = k.allFixed()
	return k
}

// allFixed returns all columns if they are float32 fields in fixed steps that move linearly, or none.
func (k *Kernel) allFixed() (columns []*schema.Column) {
	if len(k.singles) != len(k.comp.Columns) || len(k.others) > 0 {
		return nil
	}
	for i := range k.comp.Columns {
		c := &k.comp.Columns[i]
		if !c.Codec.IsFixed() {
			return nil
		}
		columns = append(columns, c)
	}
	return columns
}

// add adds a column. Floats move linearly, and so do integers with the tag linear. Angles and integers with the tag
// wrap go the shorter way round. Quaternions and unit vectors rotate at constant speed. All other fields step, and so
// do those with the tags hold and jump.
func (k *Kernel) add(col *schema.Column) {
	q := col.Codec
	p := part{offset: col.Offset(), size: sizeOf(q), codec: q, mix: copyBytes}
	motion := q.Motion()
	numbers, isInteger := integers(q.Kind)
	switch {
	case q.Op == field.OpEntity || q.Op == field.OpRelation:
		k.refers.add(col)
		return
	case q.Op == field.OpString:
		p.mix = copyString
	case q.Op == field.OpFlags:
		p.mix = numbers.flags
	case motion == delta.Plain:
	case q.Op == field.OpQuat:
		p.prepare, p.mix = rotation(q.Kind, 4)
		p.fading = fadingRotation(q.Kind, 4)
	case q.Op == field.OpUnit:
		p.prepare, p.mix = rotation(q.Kind, 3)
		p.fading = fadingRotation(q.Kind, 3)
	case q.Op == field.OpAngle && q.Kind == reflect.Float32:
		p.prepare, p.mix, p.fading = turn[float32], mixAngle[float32], fadingAngle[float32]()
	case q.Op == field.OpAngle:
		p.prepare, p.mix, p.fading = turn[float64], mixAngle[float64], fadingAngle[float64]()
	case q.Op == field.OpIntWrap:
		p.mix, p.fading = numbers.circle, numbers.fadingCircle
	case isInteger && motion == delta.Wrap:
		p.mix, p.fading = numbers.round, numbers.fadingRound
	case isInteger:
		p.mix, p.way, p.fading = numbers.linear, numbers.way, numbers.fadingLinear
		p.low, p.high = q.IntegerRange(numbers.low, numbers.high)
	case q.Kind == reflect.Float32:
		k.singles, k.moves = append(k.singles, p.offset), true
		k.addWords(col)
		return
	default:
		k.doubles, k.moves = append(k.doubles, p.offset), true
		k.addWords(col)
		return
	}
	k.moves = k.moves || motion != delta.Plain
	if motion != delta.Plain && !isInteger {
		k.addWords(col)
	}
	k.others = append(k.others, p)
}

func (k *Kernel) addWords(col *schema.Column) {
	for w := range col.Codec.Words() {
		k.words = append(k.words, col.Word+w)
	}
}

// Steps returns how many steps of their precision the fields that move and are no integers go at most from one row to
// another, and which of the first 64 codes grow and shrink.
func (k *Kernel) Steps(from, to []uint32) (most uint32, up, down uint64) {
	for i, w := range k.words {
		switch d := to[w] - from[w]; {
		case d == 0:
		case int32(d) > 0:
			most, up = max(most, d), up|1<<i
		default:
			most, down = max(most, -d), down|1<<i
		}
	}
	return most, up, down
}

// sizeOf returns the bytes that a value has in memory.
func sizeOf(q *field.Codec) uintptr {
	size := uintptr(q.Size)
	switch q.Kind {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		size = 1
	case reflect.Int16, reflect.Uint16:
		size = 2
	case reflect.Int32, reflect.Uint32, reflect.Float32:
		size = 4
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		size = 8
	case reflect.Int, reflect.Uint:
		size = unsafe.Sizeof(0)
	}
	switch q.Op {
	case field.OpUnit:
		size *= 3
	case field.OpQuat:
		size *= 4
	}
	return size
}

// Moves reports whether any field has values between those of two rows.
func (k *Kernel) Moves() bool { return k.moves }

// CutBetween reports whether a reference differs between two rows. Then nothing of the component is blended: what is
// relative to one entity does not lie on a way to what is relative to another.
func (k *Kernel) CutBetween(a, b []uint32) bool { return k.refers.Between(a, b) }

// Prepare turns the second of two values, in place, into what [Kernel.Mix] needs to go there from the first.
func (k *Kernel) Prepare(from, second unsafe.Pointer) {
	for _, o := range k.singles {
		p := (*float32)(unsafe.Add(second, o))
		*p = finite(*p - *(*float32)(unsafe.Add(from, o)))
	}
	for _, o := range k.doubles {
		p := (*float64)(unsafe.Add(second, o))
		*p = finite(*p - *(*float64)(unsafe.Add(from, o)))
	}
	for i := range k.others {
		if p := &k.others[i]; p.prepare != nil {
			p.prepare(p, unsafe.Add(from, p.offset), unsafe.Add(second, p.offset))
		}
	}
}

// finite returns a difference, or 0 if it is infinite or not a number. So a number steps from and to infinities, and
// across more than its type holds.
func finite[T float32 | float64](d T) T {
	if v := float64(d); math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return d
}

// Mix stores at dst the value a fraction f of the way from one value to a second one, which Prepare has prepared. It
// leaves references, fields that are not replicated and values that the user's functions convert alone. A fraction
// above 1 goes on beyond the second value. dst may be from. All three point to values of the component's type.
func (k *Kernel) Mix(dst, from, second unsafe.Pointer, f float32) {
	for _, o := range k.singles {
		// The conversion keeps every machine from fusing the product and the sum, so all get the same number.
		*(*float32)(unsafe.Add(dst, o)) = *(*float32)(unsafe.Add(from, o)) +
			float32(*(*float32)(unsafe.Add(second, o))*f)
	}
	for _, o := range k.doubles {
		*(*float64)(unsafe.Add(dst, o)) = *(*float64)(unsafe.Add(from, o)) +
			float64(*(*float64)(unsafe.Add(second, o))*float64(f))
	}
	for i := range k.others {
		p := &k.others[i]
		p.mix(p, unsafe.Add(dst, p.offset), unsafe.Add(from, p.offset), unsafe.Add(second, p.offset), f)
	}
}

// Blend stores at p the value a fraction f of the way from row a to row b. It leaves references and fields that are not
// replicated alone. b may be nil if f is 0.
func (k *Kernel) Blend(p unsafe.Pointer, a, b []uint32, f float32) {
	if f == 0 {
		k.comp.Write(p, a)
		return
	}
	for _, c := range k.fixed { // does what the rest does, with less effort
		from, _ := c.Codec.Fixed.Decode(c.Code(a))
		second, _ := c.Codec.Fixed.Decode(c.Code(b))
		*(*float32)(unsafe.Add(p, c.Offset())) = float32(from) + float32((float32(second)-float32(from))*f)
	}
	if len(k.fixed) > 0 {
		return
	}
	k.comp.Write(p, a)
	k.comp.Write(k.second, b)
	k.Prepare(p, k.second)
	k.Mix(p, p, k.second, f)
}

// Run returns the place of float32 fields that lie side by side and move linearly, if the component has no other fields
// to blend: then [Floats] does all that Mix does, with less effort. Otherwise n is 0.
func (k *Kernel) Run() (offset uintptr, n int) {
	if len(k.singles) == 0 || len(k.doubles)+len(k.others) > 0 {
		return 0, 0
	}
	for i, o := range k.singles {
		if o != k.singles[0]+uintptr(i)*unsafe.Sizeof(float32(0)) {
			return 0, 0
		}
	}
	return k.singles[0], len(k.singles)
}

// Floats is Mix for n float32 fields that lie side by side and move linearly, by their addresses.
func Floats(dst, from, second unsafe.Pointer, n int, f float32) {
	v, a, b := unsafe.Slice((*float32)(dst), n), unsafe.Slice((*float32)(from), n), unsafe.Slice((*float32)(second), n)
	for i := range v {
		v[i] = a[i] + float32(b[i]*f)
	}
}

// Three is Floats for 3 fields.
func Three(dst, from, second unsafe.Pointer, f float32) {
	v, a, b := (*[3]float32)(dst), (*[3]float32)(from), (*[3]float32)(second)
	v[0], v[1], v[2] = a[0]+float32(b[0]*f), a[1]+float32(b[1]*f), a[2]+float32(b[2]*f)
}

// Snaps reports whether the way between two values is a teleport: longer than the distance of Snap in each of so many
// ticks. second is prepared.
func (k *Kernel) Snaps(from, second unsafe.Pointer, ticks delta.Tick) bool {
	far := k.comp.Shown.Snap * float64(ticks)
	return k.comp.Shown.Snap > 0 && k.distance(from, second) > far*far
}

// distance returns how far the fields that move linearly go between two values: the square of the length of the vector
// that they make. second is prepared.
func (k *Kernel) distance(from, second unsafe.Pointer) (squared float64) {
	for _, o := range k.singles {
		d := float64(*(*float32)(unsafe.Add(second, o)))
		squared += d * d
	}
	for _, o := range k.doubles {
		d := *(*float64)(unsafe.Add(second, o))
		squared += d * d
	}
	for i := range k.others {
		if p := &k.others[i]; p.way != nil {
			d := p.way(unsafe.Add(from, p.offset), unsafe.Add(second, p.offset))
			squared += d * d
		}
	}
	return squared
}
