package field

// This file has the codec of a field: what it quantises, how wide its codes are, and which codes
// are valid.

import (
	"math/bits"
	"reflect"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/quantize"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Op selects the quantiser of a codec.
type Op uint8

const (
	OpBool Op = iota
	OpInt
	OpUint
	OpRaw
	OpFixed
	OpFloat
	OpHalf
	OpAngle
	OpUnit
	OpQuat
	OpEntity   // a reference to an entity
	OpRelation // the target of an Arche relation
	OpIntStep
	OpIntWrap
	OpFlags
	OpString
	OpBytes
	OpCode // the user's own codec makes the codes
)

// Codec converts between Go values and codes.
type Codec struct {
	Op    Op
	Kind  reflect.Kind // of the number, or of each number of a unit vector or quaternion
	Bits  uint         // width of each code; of a text's length
	Max   uint64       // largest value of each code; longest text in bytes
	Size  int          // bytes of an array that holds a text
	Text  string       // canonical type and tag, as the schema text has them
	Int   quantize.Int[int64]
	Uint  quantize.Int[uint64]
	Fixed quantize.Fixed
	Float quantize.Float
	Angle quantize.Angle
	Unit  quantize.UnitVector
	Quat  quantize.Quat
	kind  delta.Kind // how the codes change from tick to tick
	holds bool       // the field does not move between two states: the tag has jump or hold
	reach float64    // from how far a recorded code is held, in steps; 0 if none is

	Cut   bool // a change of the field is a discontinuity of the entity
	Place bool // the field is a coordinate

	Orders []uint8 // set by Schema.Tune, see delta.Field
}

// NewReference returns the codec of a field that refers to an entity. Of the tag, only cut counts.
func NewReference(op Op, text string, tag *Tag) *Codec {
	q := &Codec{
		Op: op, Kind: reflect.Struct, Text: text, kind: delta.Reference,
		Bits: delta.ReferenceBits, Max: 1<<delta.ReferenceBits - 1,
	}
	return q.show(tag)
}

// NewCode returns the codec of a code that the user's own codec makes. Of the tag, only cut counts.
func NewCode(bits uint, largest uint64, kind delta.Kind, text string, tag *Tag) *Codec {
	q := &Codec{Op: OpCode, Bits: bits, Max: largest, Text: text, kind: kind}
	return q.show(tag)
}

// show sets how the field is shown, and returns the codec. hold goes into the text where it makes a difference, and for
// jump where that selects no other kind.
func (q *Codec) show(tag *Tag) *Codec {
	jumps := q.holds && (q.Op == OpRaw || q.Op == OpFloat || q.Op == OpHalf)
	if jumps || tag.hold && q.Motion() != delta.Plain {
		q.holds = true
		q.addKey("hold")
	}
	if q.Cut = tag.cut; q.Cut {
		q.addKey("cut")
	}
	if q.Place = tag.place; q.Place {
		q.addKey("place")
	}
	return q
}

// addKey adds a key to the text.
func (q *Codec) addKey(key string) {
	if strings.Contains(q.Text, " ") {
		q.Text += "," + key
	} else {
		q.Text += " " + key
	}
}

// IsDistance reports whether the field moves in a straight line: all that does so makes a vector, which has a length.
func (q *Codec) IsDistance() bool {
	return q.Motion() == delta.Linear && q.Op != OpUnit && q.Op != OpCode
}

// IsFloat reports whether the field is one number, a float, that moves in a straight line.
func (q *Codec) IsFloat() bool {
	return q.IsDistance() && (q.Kind == reflect.Float32 || q.Kind == reflect.Float64)
}

// IsText reports whether the field is a string or an array of bytes of bounded length.
func (q *Codec) IsText() bool { return q.Op == OpString || q.Op == OpBytes }

// IsFixed reports whether the field is a number in equal steps, such as a grid needs.
func (q *Codec) IsFixed() bool { return q.Op == OpFixed }

// Motion returns how the field moves between two values: delta.Linear, delta.Wrap for the shorter way round,
// delta.Quat, or delta.Plain if it does not move but changes at once.
func (q *Codec) Motion() delta.Kind {
	switch {
	case q.holds:
		return delta.Plain
	case q.Op == OpRaw || q.Op == OpFloat || q.Op == OpHalf:
		return delta.Linear
	case q.kind == delta.Linear || q.kind == delta.Wrap || q.kind == delta.Quat:
		return q.kind
	}
	return delta.Plain
}

// Words returns the number of row words of a value.
func (q *Codec) Words() int {
	switch {
	case q.Op == OpQuat:
		return 4
	case q.IsText():
		return 1 + (int(q.Max)+3)/4
	case q.Op == OpUnit || q.Bits > 32:
		return 2
	}
	return 1
}

// Width returns the largest number of bits that a value takes without a baseline.
func (q *Codec) Width() int {
	switch {
	case q.Op == OpQuat:
		return 2 + 3*int(q.Bits)
	case q.Op == OpUnit:
		return 2 * int(q.Bits)
	case q.IsText():
		return int(q.Bits) + 1 + 8*int(q.Max)
	}
	return int(q.Bits)
}

// Code returns the code in the words of a value, low word first. Unit vectors, quaternions and
// texts have no single code.
func (q *Codec) Code(words []uint32) uint64 {
	if q.Bits > 32 {
		return uint64(words[0]) | uint64(words[1])<<32
	}
	return uint64(words[0])
}

// QuatCode returns the code in the words of a quaternion.
func QuatCode(words []uint32) quantize.QuatCode {
	w := words[:4]
	return quantize.QuatCode{Largest: w[0], A: w[1], B: w[2], C: w[3]}
}

// Valid reports whether the quantiser can have produced the words of a value.
func (q *Codec) Valid(words []uint32) (ok bool) {
	switch q.Op {
	case OpQuat:
		ok = q.Quat.Valid(QuatCode(words))
	case OpUnit:
		_, ok = q.Unit.Decode(uint64(words[0]), uint64(words[1]))
	case OpHalf:
		_, ok = quantize.Half{}.Decode(q.Code(words))
	case OpInt:
		var v int64
		v, ok = q.Int.Decode(q.Code(words))
		ok = ok && (q.Kind != reflect.Int || int64(int(v)) == v) // an int may have 32 bits here and 64 there
	case OpUint:
		var v uint64
		v, ok = q.Uint.Decode(q.Code(words))
		ok = ok && (q.Kind != reflect.Uint || uint64(uint(v)) == v)
	case OpString, OpBytes:
		ok = validText(words[:q.Words()], q.Max, q.Op == OpBytes)
	default:
		ok = q.Code(words) <= q.Max
	}
	return ok
}

// Extrapolated reports whether the codes of a value are extrapolated.
func (q *Codec) Extrapolated() bool {
	return q.kind == delta.Linear || q.kind == delta.Wrap || q.kind == delta.Quat
}

// HasGaps reports whether a value can be invalid although each of its codes is at most Max.
func (q *Codec) HasGaps() bool {
	switch q.Op {
	case OpBool, OpRaw, OpFixed, OpFloat, OpAngle, OpEntity, OpRelation, OpIntStep, OpIntWrap, OpFlags, OpCode:
		return false
	case OpInt, OpUint: // an int may have 32 bits here and 64 there
		return bits.UintSize == 32 && (q.Kind == reflect.Int || q.Kind == reflect.Uint)
	}
	return true
}

// AppendLayout appends the fields that the delta coder makes of a value.
func (q *Codec) AppendLayout(fields []delta.Field, name string) []delta.Field {
	f := delta.Field{Name: name, Kind: q.kind, Bits: q.Bits, Max: q.Max, Orders: q.Orders}
	if q.Op == OpUnit {
		u, v := f, f
		u.Name, v.Name = name+".u", name+".v"
		return append(fields, u, v)
	}
	return append(fields, f)
}

// Holds reports whether recorded codes of the field may be held.
func (q *Codec) Holds() bool { return q.reach > 0 }

// AppendNear appends the masks of a value's words for [history.Rows.Keep].
func (q *Codec) AppendNear(masks []uint32) []uint32 {
	first, usual := len(masks), history.KeepEqual
	if q.reach > 0 {
		usual = history.KeepOne
	}
	for range q.Words() {
		masks = append(masks, usual)
	}
	switch {
	case q.reach == 0:
	case q.Op == OpQuat:
		masks[first] = history.KeepQuat
	case q.Op == OpUnit:
		masks[first] = history.KeepPair // the other one changes its sign at the edges of the square
	case q.Op == OpAngle && q.Bits > 32:
		masks[first+1] &= uint32(q.Max >> 32)
	case q.Op == OpAngle:
		masks[first] &= uint32(q.Max)
	}
	return masks
}

// DigestBits is the width of the largest digest.
const DigestBits = 8

// Digest returns the digest by which both ends compare the words of a value, and its width in bits.
// A short code is its own digest; of other values it is a hash that differs from tick to tick.
func (q *Codec) Digest(words []uint32, tick uint32) (digest uint64, bits uint) {
	words = words[:q.Words()]
	if len(words) == 1 && q.Bits <= DigestBits {
		return uint64(words[0]), q.Bits
	}
	h := wire.Mix64(uint64(tick) + wire.Golden64)
	for _, w := range words {
		h = wire.Mix64((h ^ uint64(w)) + wire.Golden64)
	}
	return h >> (64 - DigestBits), DigestBits
}

// StepCode returns the code of an integer in steps. v is the integer's bits as an int64, and
// positive reports whether the integer itself is above zero: a large uint64 is positive while v is
// negative, and is above every step.
func (q *Codec) StepCode(v int64, positive bool) (code uint64, ok bool) {
	if v < 0 && positive {
		return q.Max, false
	}
	return q.Int.Encode(v)
}

// WrapCode returns the code of an integer that wraps round, given like that of [Codec.StepCode].
func (q *Codec) WrapCode(v int64, positive bool) (code uint64) {
	if v < 0 && positive {
		low, _ := q.Int.Range() // not negative, so that there are fewer codes than 2^64
		return (uint64(v) - uint64(low)) % (q.Max + 1)
	}
	return q.Int.EncodeWrap(v)
}

// IntegerRange returns the least and the largest value of an integer, as the bits of an int64 if it is signed. low and
// high are those of its type.
func (q *Codec) IntegerRange(low, high uint64) (least, most uint64) {
	var from, to int64
	switch q.Op {
	case OpInt, OpIntWrap, OpIntStep:
		from, to = q.Int.Range()
	case OpUint:
		return q.Uint.Range()
	default:
		return low, high
	}
	return uint64(from), uint64(to)
}

// IntegerValue returns the integer of a code of steps, of a wrapping range or of flags. old is the
// integer that it replaces: flags keep its bits that are not replicated.
func (q *Codec) IntegerValue(code uint64, old int64) (v int64) {
	switch q.Op {
	case OpIntStep, OpIntWrap:
		v, _ = q.Int.Decode(code)
	default:
		v = old&^int64(q.Max) | int64(code&q.Max)
	}
	return v
}
