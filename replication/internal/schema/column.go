package schema

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/quantize"
)

// Column is a leaf of a component type: a number, or the three or four that make a unit vector or quaternion.
type Column struct {
	Path   string  // inside the component: "X", "Gun.Heat", "Cells[3]"; empty if the component is a number itself
	Steps  []int   // indices of struct fields and array elements that lead to it
	offset uintptr // from the component's start
	Word   int     // index of its first word in the row
	Codec  *Codec  // shared by the elements of an array

	StandIn *StandIn // nil, or what it belongs to: then it has no steps and no offset
}

// CodecOp says which quantiser a codec uses.
type CodecOp uint8

const (
	OpBool CodecOp = iota
	OpInt
	OpUint
	OpRaw
	OpFixed
	OpFloat
	OpHalf
	OpAngle
	OpUnit
	OpQuat
	OpEntity   // see references.go
	OpRelation // see relations.go
	OpIntStep
	OpIntWrap
	OpFlags
	OpString
	OpBytes
	OpCode
)

// Codec turns a Go value into codes and back.
type Codec struct {
	Op    CodecOp
	Kind  reflect.Kind // of the number, or of each number of a unit vector or quaternion
	Bits  uint         // of each code; of a text's length
	Max   uint64       // largest value of each code; of a text's length
	size  int          // of an array that is a text
	Text  string       // canonical type and tag
	Int   quantize.Int
	Uint  quantize.Uint
	Fixed quantize.Fixed
	Float quantize.Float
	Angle quantize.Angle
	Unit  quantize.UnitVector
	Quat  quantize.Quat
	step  quantize.IntStep
	wrap  quantize.IntWrap
	moves delta.Kind
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

// width returns the most bits that a value takes without a baseline.
func (q *Codec) width() int {
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

// Code returns the code of the column in the row, low word first; not for unit vectors, quaternions and texts.
func (col *Column) Code(row []uint32) uint64 {
	if col.Codec.Bits > 32 {
		return uint64(row[col.Word]) | uint64(row[col.Word+1])<<32
	}
	return uint64(row[col.Word])
}

// QuatCode returns the code of a quaternion column in the row.
func (col *Column) QuatCode(row []uint32) quantize.QuatCode {
	w := row[col.Word:][:4]
	return quantize.QuatCode{Largest: w[0], A: w[1], B: w[2], C: w[3]}
}

// appendFields appends what the delta coder knows about the column.
func (col *Column) appendFields(fields []delta.Field) []delta.Field {
	q := col.Codec
	f := delta.Field{Name: col.Path, Kind: q.moves, Bits: q.Bits, Max: q.Max}
	if q.Op == OpUnit {
		u, v := f, f
		u.Name, v.Name = col.Path+".u", col.Path+".v"
		return append(fields, u, v)
	}
	return append(fields, f)
}

// ValidRow reports whether every code of the row is one that its quantiser produces.
func (c *Component) ValidRow(row []uint32) bool {
	for i := range c.Columns {
		col := &c.Columns[i]
		q := col.Codec
		var ok bool
		switch q.Op {
		case OpQuat:
			_, ok = q.Quat.Decode(col.QuatCode(row))
		case OpUnit:
			_, ok = q.Unit.Decode(uint64(row[col.Word]), uint64(row[col.Word+1]))
		case OpHalf:
			_, ok = quantize.Half{}.Decode(col.Code(row))
		case OpInt:
			var v int64
			v, ok = q.Int.Decode(col.Code(row))
			ok = ok && (q.Kind != reflect.Int || int64(int(v)) == v) // an int may have 32 bits here and 64 there
		case OpUint:
			var v uint64
			v, ok = q.Uint.Decode(col.Code(row))
			ok = ok && (q.Kind != reflect.Uint || uint64(uint(v)) == v)
		case OpString, OpBytes:
			ok = q.validText(row[col.Word:][:q.Words()])
		default:
			ok = col.Code(row) <= q.Max
		}
		if !ok {
			return false
		}
	}
	return true
}

// newCodec returns the codec of a leaf of type t with the given tag, which is not "skip". For unit vectors and quaternions t
// is the array or struct, which must have passed vectorElem; for texts it must have passed isText.
func newCodec(t reflect.Type, tag *Tag) (*Codec, error) {
	if err := tag.check(); err != nil {
		return nil, err
	}
	q := &Codec{Kind: t.Kind()}
	var err error
	switch tag.Mode {
	case ModeQuat, ModeUnit:
		err = q.initVector(t, tag)
	case ModeMax:
		err = q.initText(t, tag)
	default:
		switch kind := t.Kind(); {
		case tag.Mode == ModeEnum || tag.Mode == ModeFlags:
			err = q.initChoice(t, tag)
		case kind == reflect.Float32 || kind == reflect.Float64:
			err = q.initFloat(tag)
		case tag.Mode != modePlain:
			return nil, fmt.Errorf("%s is for floats, not for %s", tag.Mode, kind)
		case tag.Precision.Given:
			return nil, fmt.Errorf("precision is for floats: a range of %s has steps of 1, or of S with step=S", kind)
		case kind == reflect.Bool:
			if tag.Ranged || tag.Hint != hintNone {
				return nil, errors.New("a bool has no range and but one way to change: remove the tag")
			}
			q.Op, q.Bits, q.Max, q.Text = OpBool, 1, 1, "bool"
		case reflect.Int <= kind && kind <= reflect.Int64:
			err = q.initInt(t, tag)
		default:
			err = q.initUint(t, tag)
		}
	}
	if err == nil {
		err = q.setKind(tag)
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "quantize: "))
	}
	return q, nil
}

func (q *Codec) initVector(t reflect.Type, tag *Tag) (err error) {
	count := 4
	if tag.Mode == ModeUnit {
		count = 3
	}
	q.Kind = vectorElem(t, count)
	if count == 4 {
		q.Op = OpQuat
		q.Quat, err = quantize.NewQuat(tag.Bits)
	} else {
		q.Op = OpUnit
		q.Unit, err = quantize.NewUnitVector(tag.Bits)
	}
	if err != nil {
		return err
	}
	q.Bits = tag.Bits
	if q.Op == OpQuat {
		q.Max = q.Quat.Max()
	} else {
		q.Max = q.Unit.Max()
	}
	q.Text = fmt.Sprintf("[%d]%s %s,bits=%d", count, q.Kind, tag.Mode, tag.Bits)
	return nil
}

func (q *Codec) initFloat(tag *Tag) (err error) {
	double := q.Kind == reflect.Float64
	q.Text = q.Kind.String()
	switch {
	case tag.Mode == ModeHalf:
		q.Op, q.Bits, q.Max = OpHalf, quantize.Half{}.Bits(), quantize.Half{}.Max()
		q.Text += " half"
		return nil
	case tag.Mode == ModeAngle:
		period := 2 * math.Pi
		if tag.Period.Given {
			period = tag.Period.Value
		}
		if double {
			q.Angle, err = quantize.NewAngle(period, tag.Bits)
		} else {
			q.Angle, err = quantize.NewAngle32(period, tag.Bits)
		}
		if err != nil {
			return err
		}
		q.Op, q.Bits, q.Max = OpAngle, q.Angle.Bits(), q.Angle.Max()
		q.Text += fmt.Sprintf(" angle,bits=%d,period=%s", tag.Bits, numberText(period))
		return nil
	case tag.Mode == ModeRaw || !tag.Ranged:
		q.Op, q.Bits, q.Max = OpRaw, 32, math.MaxUint32
		if double {
			q.Bits, q.Max = 64, math.MaxUint64
		}
		return nil
	case !tag.Step.Given && !tag.Precision.Given:
		return errors.New("the range of a float needs step=S or precision=P beside it")
	}
	if tag.Step.Duration {
		return fmt.Errorf("a step of a duration is for integers: the field is a %s", q.Kind)
	}
	low, err := strconv.ParseFloat(tag.Low, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.Low)
	}
	high, err := strconv.ParseFloat(tag.High, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.High)
	}
	q.Text += fmt.Sprintf(" range=%s:%s,", numberText(low), numberText(high))
	if tag.Precision.Given {
		if double {
			q.Float, err = quantize.NewFloat(low, high, tag.Precision.Value)
		} else {
			q.Float, err = quantize.NewFloat32(low, high, tag.Precision.Value)
		}
		q.Op, q.Bits, q.Max = OpFloat, q.Float.Bits(), q.Float.Max()
		q.Text += "precision=" + numberText(tag.Precision.Value)
		return err
	}
	if double {
		q.Fixed, err = quantize.NewFixed(low, high, tag.Step.Value)
	} else {
		q.Fixed, err = quantize.NewFixed32(low, high, tag.Step.Value)
	}
	q.Op, q.Bits, q.Max = OpFixed, q.Fixed.Bits(), q.Fixed.Max()
	q.Text += "step=" + numberText(tag.Step.Value)
	return err
}

func (q *Codec) initInt(t reflect.Type, tag *Tag) error {
	width := fullWidth(t.Kind())
	low, high := int64(-1)<<(width-1), int64(1)<<(width-1)-1
	q.Text = "int" + strconv.Itoa(width)
	if tag.Ranged {
		var okLow, okHigh bool
		low, okLow = parseSigned(tag.Low, width)
		high, okHigh = parseSigned(tag.High, width)
		if err := checkIntegerRange(t, tag, okLow && !t.OverflowInt(low), okHigh && !t.OverflowInt(high), low < high); err != nil {
			return err
		}
		q.Text += fmt.Sprintf(" range=%d:%d", low, high)
		if tag.Step.Given || tag.Hint == HintWrap {
			return q.initGrid(low, high, tag)
		}
	}
	var err error
	q.Int, err = quantize.NewInt(low, high)
	q.Op, q.Bits, q.Max = OpInt, q.Int.Bits(), q.Int.Max()
	return err
}

func (q *Codec) initUint(t reflect.Type, tag *Tag) error {
	width := fullWidth(t.Kind())
	low, high := uint64(0), uint64(math.MaxUint64)>>(64-width)
	q.Text = "uint" + strconv.Itoa(width)
	if tag.Ranged {
		var okLow, okHigh bool
		low, okLow = parseUnsigned(tag.Low)
		high, okHigh = parseUnsigned(tag.High)
		if err := checkIntegerRange(t, tag, okLow && !t.OverflowUint(low), okHigh && !t.OverflowUint(high), low < high); err != nil {
			return err
		}
		q.Text += fmt.Sprintf(" range=%d:%d", low, high)
		if tag.Step.Given || tag.Hint == HintWrap {
			if high > math.MaxInt64 {
				return fmt.Errorf("the range of step and wrap ends at %d", int64(math.MaxInt64))
			}
			return q.initGrid(int64(low), int64(high), tag)
		}
	}
	var err error
	q.Uint, err = quantize.NewUint(low, high)
	q.Op, q.Bits, q.Max = OpUint, q.Uint.Bits(), q.Uint.Max()
	return err
}

func checkIntegerRange(t reflect.Type, tag *Tag, okLow, okHigh, ordered bool) error {
	switch {
	case !okLow:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", tag.Low, t.Kind())
	case !okHigh:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", tag.High, t.Kind())
	case !ordered:
		return fmt.Errorf("range=%s:%s is empty: the low bound must be less than the high one", tag.Low, tag.High)
	}
	return nil
}

// parseInteger parses a whole number, also one written as a float such as 1e6.
func parseInteger(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(f >= -1<<53 && f <= 1<<53) {
		return 0, false
	}
	return int64(f), true
}

// parseUnsigned is parseInteger for numbers that may exceed an int64.
func parseUnsigned(text string) (uint64, bool) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return v, true
	}
	v, ok := parseInteger(text)
	return uint64(v), ok && v >= 0
}

// fullWidth returns the bits of a number without range. int and uint have the same on every machine.
func fullWidth(kind reflect.Kind) int {
	switch kind {
	case reflect.Int8, reflect.Uint8:
		return 8
	case reflect.Int16, reflect.Uint16:
		return 16
	case reflect.Int32, reflect.Uint32:
		return 32
	}
	return 64
}

// numberText is the one way a float is written in a schema text.
func numberText(v float64) string { return strconv.FormatFloat(v+0, 'g', -1, 64) }
