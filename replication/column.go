package replication

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

// column is a leaf of a component type: a number, or the three or four that make a unit vector or quaternion.
type column struct {
	path   string  // inside the component: "X", "Gun.Heat", "Cells[3]"; empty if the component is a number itself
	steps  []int   // indices of struct fields and array elements that lead to it
	offset uintptr // from the component's start
	word   int     // index of its first word in the row
	codec  *codec  // shared by the elements of an array

	standIn *standIn // nil, or what it belongs to: then it has no steps and no offset
}

// codecOp says which quantiser a codec uses.
type codecOp uint8

const (
	opBool codecOp = iota
	opInt
	opUint
	opRaw
	opFixed
	opFloat
	opHalf
	opAngle
	opUnit
	opQuat
	opEntity   // see references.go
	opRelation // see relations.go
	opIntStep
	opIntWrap
	opFlags
	opString
	opBytes
	opCode
)

// codec turns a Go value into codes and back.
type codec struct {
	op    codecOp
	kind  reflect.Kind // of the number, or of each number of a unit vector or quaternion
	bits  uint         // of each code; of a text's length
	max   uint64       // largest value of each code; of a text's length
	size  int          // of an array that is a text
	text  string       // canonical type and tag
	int   quantize.Int
	uint  quantize.Uint
	fixed quantize.Fixed
	float quantize.Float
	angle quantize.Angle
	unit  quantize.UnitVector
	quat  quantize.Quat
	step  quantize.IntStep
	wrap  quantize.IntWrap
	moves delta.Kind
}

// words returns the number of row words of a value.
func (q *codec) words() int {
	switch {
	case q.op == opQuat:
		return 4
	case q.isText():
		return 1 + (int(q.max)+3)/4
	case q.op == opUnit || q.bits > 32:
		return 2
	}
	return 1
}

// width returns the most bits that a value takes without a baseline.
func (q *codec) width() int {
	switch {
	case q.op == opQuat:
		return 2 + 3*int(q.bits)
	case q.op == opUnit:
		return 2 * int(q.bits)
	case q.isText():
		return int(q.bits) + 1 + 8*int(q.max)
	}
	return int(q.bits)
}

// code returns the code of the column in the row, low word first; not for unit vectors, quaternions and texts.
func (col *column) code(row []uint32) uint64 {
	if col.codec.bits > 32 {
		return uint64(row[col.word]) | uint64(row[col.word+1])<<32
	}
	return uint64(row[col.word])
}

// quatCode returns the code of a quaternion column in the row.
func (col *column) quatCode(row []uint32) quantize.QuatCode {
	w := row[col.word:][:4]
	return quantize.QuatCode{Largest: w[0], A: w[1], B: w[2], C: w[3]}
}

// appendFields appends what the delta coder knows about the column.
func (col *column) appendFields(fields []delta.Field) []delta.Field {
	q := col.codec
	f := delta.Field{Name: col.path, Kind: q.moves, Bits: q.bits, Max: q.max}
	if q.op == opUnit {
		u, v := f, f
		u.Name, v.Name = col.path+".u", col.path+".v"
		return append(fields, u, v)
	}
	return append(fields, f)
}

// validRow reports whether every code of the row is one that its quantiser produces.
func (c *component) validRow(row []uint32) bool {
	for i := range c.columns {
		col := &c.columns[i]
		q := col.codec
		var ok bool
		switch q.op {
		case opQuat:
			_, ok = q.quat.Decode(col.quatCode(row))
		case opUnit:
			_, ok = q.unit.Decode(uint64(row[col.word]), uint64(row[col.word+1]))
		case opHalf:
			_, ok = quantize.Half{}.Decode(col.code(row))
		case opInt:
			var v int64
			v, ok = q.int.Decode(col.code(row))
			ok = ok && (q.kind != reflect.Int || int64(int(v)) == v) // an int may have 32 bits here and 64 there
		case opUint:
			var v uint64
			v, ok = q.uint.Decode(col.code(row))
			ok = ok && (q.kind != reflect.Uint || uint64(uint(v)) == v)
		case opString, opBytes:
			ok = q.validText(row[col.word:][:q.words()])
		default:
			ok = col.code(row) <= q.max
		}
		if !ok {
			return false
		}
	}
	return true
}

// newCodec returns the codec of a leaf of type t with the given tag, which is not "skip". For unit vectors and quaternions t
// is the array or struct, which must have passed vectorElem; for texts it must have passed isText.
func newCodec(t reflect.Type, tag *fieldTag) (*codec, error) {
	if err := tag.check(); err != nil {
		return nil, err
	}
	q := &codec{kind: t.Kind()}
	var err error
	switch tag.mode {
	case modeQuat, modeUnit:
		err = q.initVector(t, tag)
	case modeMax:
		err = q.initText(t, tag)
	default:
		switch kind := t.Kind(); {
		case tag.mode == modeEnum || tag.mode == modeFlags:
			err = q.initChoice(t, tag)
		case kind == reflect.Float32 || kind == reflect.Float64:
			err = q.initFloat(tag)
		case tag.mode != modePlain:
			return nil, fmt.Errorf("%s is for floats, not for %s", tag.mode, kind)
		case tag.precision.given:
			return nil, fmt.Errorf("precision is for floats: a range of %s has steps of 1, or of S with step=S", kind)
		case kind == reflect.Bool:
			if tag.ranged || tag.hint != hintNone {
				return nil, errors.New("a bool has no range and but one way to change: remove the tag")
			}
			q.op, q.bits, q.max, q.text = opBool, 1, 1, "bool"
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

func (q *codec) initVector(t reflect.Type, tag *fieldTag) (err error) {
	count := 4
	if tag.mode == modeUnit {
		count = 3
	}
	q.kind = vectorElem(t, count)
	if count == 4 {
		q.op = opQuat
		q.quat, err = quantize.NewQuat(tag.bits)
	} else {
		q.op = opUnit
		q.unit, err = quantize.NewUnitVector(tag.bits)
	}
	if err != nil {
		return err
	}
	q.bits = tag.bits
	if q.op == opQuat {
		q.max = q.quat.Max()
	} else {
		q.max = q.unit.Max()
	}
	q.text = fmt.Sprintf("[%d]%s %s,bits=%d", count, q.kind, tag.mode, tag.bits)
	return nil
}

func (q *codec) initFloat(tag *fieldTag) (err error) {
	double := q.kind == reflect.Float64
	q.text = q.kind.String()
	switch {
	case tag.mode == modeHalf:
		q.op, q.bits, q.max = opHalf, quantize.Half{}.Bits(), quantize.Half{}.Max()
		q.text += " half"
		return nil
	case tag.mode == modeAngle:
		period := 2 * math.Pi
		if tag.period.given {
			period = tag.period.value
		}
		if double {
			q.angle, err = quantize.NewAngle(period, tag.bits)
		} else {
			q.angle, err = quantize.NewAngle32(period, tag.bits)
		}
		if err != nil {
			return err
		}
		q.op, q.bits, q.max = opAngle, q.angle.Bits(), q.angle.Max()
		q.text += fmt.Sprintf(" angle,bits=%d,period=%s", tag.bits, numberText(period))
		return nil
	case tag.mode == modeRaw || !tag.ranged:
		q.op, q.bits, q.max = opRaw, 32, math.MaxUint32
		if double {
			q.bits, q.max = 64, math.MaxUint64
		}
		return nil
	case !tag.step.given && !tag.precision.given:
		return errors.New("the range of a float needs step=S or precision=P beside it")
	}
	if tag.step.duration {
		return fmt.Errorf("a step of a duration is for integers: the field is a %s", q.kind)
	}
	low, err := strconv.ParseFloat(tag.low, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.low)
	}
	high, err := strconv.ParseFloat(tag.high, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.high)
	}
	q.text += fmt.Sprintf(" range=%s:%s,", numberText(low), numberText(high))
	if tag.precision.given {
		if double {
			q.float, err = quantize.NewFloat(low, high, tag.precision.value)
		} else {
			q.float, err = quantize.NewFloat32(low, high, tag.precision.value)
		}
		q.op, q.bits, q.max = opFloat, q.float.Bits(), q.float.Max()
		q.text += "precision=" + numberText(tag.precision.value)
		return err
	}
	if double {
		q.fixed, err = quantize.NewFixed(low, high, tag.step.value)
	} else {
		q.fixed, err = quantize.NewFixed32(low, high, tag.step.value)
	}
	q.op, q.bits, q.max = opFixed, q.fixed.Bits(), q.fixed.Max()
	q.text += "step=" + numberText(tag.step.value)
	return err
}

func (q *codec) initInt(t reflect.Type, tag *fieldTag) error {
	width := fullWidth(t.Kind())
	low, high := int64(-1)<<(width-1), int64(1)<<(width-1)-1
	q.text = "int" + strconv.Itoa(width)
	if tag.ranged {
		var okLow, okHigh bool
		low, okLow = parseSigned(tag.low, width)
		high, okHigh = parseSigned(tag.high, width)
		if err := checkWholeRange(t, tag, okLow && !t.OverflowInt(low), okHigh && !t.OverflowInt(high), low < high); err != nil {
			return err
		}
		q.text += fmt.Sprintf(" range=%d:%d", low, high)
		if tag.step.given || tag.hint == hintWrap {
			return q.initGrid(low, high, tag)
		}
	}
	var err error
	q.int, err = quantize.NewInt(low, high)
	q.op, q.bits, q.max = opInt, q.int.Bits(), q.int.Max()
	return err
}

func (q *codec) initUint(t reflect.Type, tag *fieldTag) error {
	width := fullWidth(t.Kind())
	low, high := uint64(0), uint64(math.MaxUint64)>>(64-width)
	q.text = "uint" + strconv.Itoa(width)
	if tag.ranged {
		var okLow, okHigh bool
		low, okLow = parseWholeUnsigned(tag.low)
		high, okHigh = parseWholeUnsigned(tag.high)
		if err := checkWholeRange(t, tag, okLow && !t.OverflowUint(low), okHigh && !t.OverflowUint(high), low < high); err != nil {
			return err
		}
		q.text += fmt.Sprintf(" range=%d:%d", low, high)
		if tag.step.given || tag.hint == hintWrap {
			if high > math.MaxInt64 {
				return fmt.Errorf("the range of step and wrap ends at %d", int64(math.MaxInt64))
			}
			return q.initGrid(int64(low), int64(high), tag)
		}
	}
	var err error
	q.uint, err = quantize.NewUint(low, high)
	q.op, q.bits, q.max = opUint, q.uint.Bits(), q.uint.Max()
	return err
}

func checkWholeRange(t reflect.Type, tag *fieldTag, okLow, okHigh, ordered bool) error {
	switch {
	case !okLow:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", tag.low, t.Kind())
	case !okHigh:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", tag.high, t.Kind())
	case !ordered:
		return fmt.Errorf("range=%s:%s is empty: the low bound must be less than the high one", tag.low, tag.high)
	}
	return nil
}

// parseWhole parses a whole number, also one written as a float such as 1e6.
func parseWhole(text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(f >= -1<<53 && f <= 1<<53) {
		return 0, false
	}
	return int64(f), true
}

// parseWholeUnsigned is parseWhole for numbers that may exceed an int64.
func parseWholeUnsigned(text string) (uint64, bool) {
	if v, err := strconv.ParseUint(text, 10, 64); err == nil {
		return v, true
	}
	v, ok := parseWhole(text)
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
