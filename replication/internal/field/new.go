package field

// This file makes the codec of a field from its type and its tag.

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/quantize"
)

// builder makes the codec of one field.
type builder struct {
	Codec
	typ reflect.Type
	tag *Tag
}

// NewCodec returns the codec of a field of type t with the given tag, which must not skip it. For
// unit vectors and quaternions t is an array or struct that passed [IsVector]; for texts it must
// have passed [IsText].
func NewCodec(t reflect.Type, tag *Tag) (*Codec, error) {
	if err := tag.Check(); err != nil {
		return nil, err
	}
	b := &builder{Codec: Codec{Kind: t.Kind()}, typ: t, tag: tag}
	err := b.quantiser()
	if err == nil {
		err = b.applyHint()
	}
	if err == nil {
		err = b.setMargin()
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "quantize: "))
	}
	q := b.Codec // without what it was made from
	q.show(tag)
	single := q.Kind == reflect.Float32 || q.Kind == reflect.Float64
	if q.Place && (!single || q.Op == OpAngle || q.Op == OpUnit || q.Op == OpQuat) {
		return nil, errors.New("place is for coordinates: " +
			"floats that are neither angles nor parts of a rotation or direction")
	}
	return &q, nil
}

// quantiser selects the quantiser that suits the type and the tag.
func (b *builder) quantiser() error {
	tag, kind := b.tag, b.typ.Kind()
	switch {
	case tag.Mode == ModeQuat:
		return b.quat()
	case tag.Mode == ModeUnit:
		return b.unit()
	case tag.Mode == ModeMax:
		return b.text()
	case tag.Mode == modeEnum || tag.Mode == modeFlags:
		return b.choice()
	case kind == reflect.Float32 || kind == reflect.Float64:
		return b.float()
	case tag.Mode != modePlain:
		return fmt.Errorf("%s is for floats, not for %s", tag.Mode, kind)
	case tag.precision.given:
		return fmt.Errorf("precision is for floats: a range of %s has steps of 1, or of S with step=S", kind)
	case kind == reflect.Bool:
		if tag.ranged || tag.hint != hintNone {
			return errors.New("a bool has no range and but one way to change: remove the tag")
		}
		b.Op, b.Bits, b.Max, b.Text = OpBool, 1, 1, "bool"
		return nil
	case isUnsigned(kind):
		return b.unsigned()
	}
	return b.signed()
}

func (b *builder) quat() (err error) {
	b.Kind = vectorElem(b.typ, 4)
	if b.Quat, err = quantize.NewQuat(b.tag.bits); err != nil {
		return err
	}
	b.Op, b.Bits, b.Max = OpQuat, b.tag.bits, b.Quat.Max()
	b.Text = fmt.Sprintf("[4]%s quat,bits=%d", b.Kind, b.Bits)
	return nil
}

func (b *builder) unit() (err error) {
	b.Kind = vectorElem(b.typ, 3)
	if b.Unit, err = quantize.NewUnitVector(b.tag.bits); err != nil {
		return err
	}
	b.Op, b.Bits, b.Max = OpUnit, b.tag.bits, b.Unit.Max()
	b.Text = fmt.Sprintf("[3]%s unit,bits=%d", b.Kind, b.Bits)
	return nil
}

func (b *builder) text() error {
	n := b.tag.count
	if n < 1 || n > delta.MaxBytes {
		return fmt.Errorf("max=%d: use 1 to %d bytes", n, delta.MaxBytes)
	}
	b.Op, b.Bits, b.Max = OpString, uint(bits.Len32(n)), uint64(n)
	b.Text = fmt.Sprintf("string max=%d", n)
	if b.typ.Kind() == reflect.Array {
		if int(n) > b.typ.Len() {
			return fmt.Errorf("max=%d is more than the %d bytes of %v", n, b.typ.Len(), b.typ)
		}
		b.Op, b.Size = OpBytes, b.typ.Len()
		b.Text = fmt.Sprintf("bytes max=%d", n)
	}
	return nil
}

// float is for floats that are no part of a vector.
func (b *builder) float() error {
	tag := b.tag
	b.Text = b.Kind.String()
	switch {
	case tag.Mode == modeHalf:
		b.Op, b.Bits, b.Max = OpHalf, quantize.Half{}.Bits(), quantize.Half{}.Max()
		b.Text += " half"
		return nil
	case tag.Mode == modeAngle:
		return b.angle()
	case tag.Mode == modeRaw || !tag.ranged:
		b.Op, b.Bits, b.Max = OpRaw, 32, math.MaxUint32
		if b.Kind == reflect.Float64 {
			b.Bits, b.Max = 64, math.MaxUint64
		}
		return nil
	case !tag.step.given && !tag.precision.given:
		return errors.New("the range of a float needs step=S or precision=P beside it")
	case tag.step.duration:
		return fmt.Errorf("a step of a duration is for integers: the field is a %s", b.Kind)
	}
	low, err := strconv.ParseFloat(tag.low, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.low)
	}
	high, err := strconv.ParseFloat(tag.high, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not a number", tag.high)
	}
	b.Text += fmt.Sprintf(" range=%s:%s,", NumberText(low), NumberText(high))
	if tag.precision.given {
		return b.precise(low, high)
	}
	return b.fixed(low, high)
}

func (b *builder) angle() (err error) {
	period := 2 * math.Pi
	if b.tag.period.given {
		period = b.tag.period.value
	}
	if b.Kind == reflect.Float64 {
		b.Angle, err = quantize.NewAngle(period, b.tag.bits)
	} else {
		b.Angle, err = quantize.NewAngle32(period, b.tag.bits)
	}
	b.Op, b.Bits, b.Max = OpAngle, b.Angle.Bits(), b.Angle.Max()
	b.Text += fmt.Sprintf(" angle,bits=%d,period=%s", b.tag.bits, NumberText(period))
	return err
}

// precise is for floats with a range and a precision.
func (b *builder) precise(low, high float64) (err error) {
	precision := b.tag.precision.value
	if b.Kind == reflect.Float64 {
		b.Float, err = quantize.NewFloat(low, high, precision)
	} else {
		b.Float, err = quantize.NewFloat32(low, high, precision)
	}
	b.Op, b.Bits, b.Max = OpFloat, b.Float.Bits(), b.Float.Max()
	b.Text += "precision=" + NumberText(precision)
	return err
}

// fixed is for floats with a range and a step.
func (b *builder) fixed(low, high float64) (err error) {
	step := b.tag.step.value
	if b.Kind == reflect.Float64 {
		b.Fixed, err = quantize.NewFixed(low, high, step)
	} else {
		b.Fixed, err = quantize.NewFixed32(low, high, step)
	}
	b.Op, b.Bits, b.Max = OpFixed, b.Fixed.Bits(), b.Fixed.Max()
	b.Text += "step=" + NumberText(step)
	return err
}

// signed is for signed integers.
func (b *builder) signed() error {
	width := fullWidth(b.Kind)
	low, high := int64(-1)<<(width-1), int64(1)<<(width-1)-1
	b.Text = "int" + strconv.Itoa(width)
	if b.tag.ranged {
		var okLow, okHigh bool
		low, okLow = parseSigned(b.tag.low, width)
		high, okHigh = parseSigned(b.tag.high, width)
		okLow, okHigh = okLow && !b.typ.OverflowInt(low), okHigh && !b.typ.OverflowInt(high)
		if err := b.checkRange(okLow, okHigh, low < high); err != nil {
			return err
		}
		b.Text += fmt.Sprintf(" range=%d:%d", low, high)
		if b.tag.step.given || b.tag.hint == hintWrap {
			return b.grid(low, high)
		}
	}
	return b.int(low, high)
}

// unsigned is for unsigned integers.
func (b *builder) unsigned() error {
	width := fullWidth(b.Kind)
	low, high := uint64(0), uint64(math.MaxUint64)>>(64-width)
	b.Text = "uint" + strconv.Itoa(width)
	if b.tag.ranged {
		var okLow, okHigh bool
		low, okLow = parseUnsigned(b.tag.low)
		high, okHigh = parseUnsigned(b.tag.high)
		okLow, okHigh = okLow && !b.typ.OverflowUint(low), okHigh && !b.typ.OverflowUint(high)
		if err := b.checkRange(okLow, okHigh, low < high); err != nil {
			return err
		}
		b.Text += fmt.Sprintf(" range=%d:%d", low, high)
		if b.tag.step.given || b.tag.hint == hintWrap {
			if high > math.MaxInt64 {
				return fmt.Errorf("the range of step and wrap ends at %d", int64(math.MaxInt64))
			}
			return b.grid(int64(low), int64(high))
		}
	}
	return b.uint(low, high)
}

func (b *builder) int(low, high int64) (err error) {
	b.Int, err = quantize.NewInt(low, high, 1)
	b.Op, b.Bits, b.Max = OpInt, b.Int.Bits(), b.Int.Max()
	return err
}

func (b *builder) uint(low, high uint64) (err error) {
	b.Uint, err = quantize.NewInt(low, high, 1)
	b.Op, b.Bits, b.Max = OpUint, b.Uint.Bits(), b.Uint.Max()
	return err
}

// checkRange returns an error about the bounds of an integer's range.
func (b *builder) checkRange(okLow, okHigh, ordered bool) error {
	switch {
	case !okLow:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", b.tag.low, b.Kind)
	case !okHigh:
		return fmt.Errorf("%.40q is not a whole number that %s can hold", b.tag.high, b.Kind)
	case !ordered:
		return fmt.Errorf("range=%s:%s is empty: the low bound must be less than the high one", b.tag.low, b.tag.high)
	}
	return nil
}

// grid is for an integer with a range and step or wrap.
func (b *builder) grid(low, high int64) (err error) {
	if !b.tag.step.given {
		b.Int, err = quantize.NewInt(low, high, 1)
		b.Op, b.Bits, b.Max = OpIntWrap, b.Int.Bits(), b.Int.Max()
		return err
	}
	step := b.tag.step.value
	switch {
	case b.tag.hint == hintWrap:
		return fmt.Errorf("step and wrap exclude each other: choose one")
	case !(step >= 1 && step <= 1<<53 && step == math.Trunc(step)):
		return fmt.Errorf("a step of %v is not a whole number of 1 or more", step)
	case step == 1 && isUnsigned(b.Kind): // the same as no step
		return b.uint(uint64(low), uint64(high))
	case step == 1:
		return b.int(low, high)
	}
	b.Int, err = quantize.NewInt(low, high, int64(step))
	b.Op, b.Bits, b.Max = OpIntStep, b.Int.Bits(), b.Int.Max()
	b.Text += fmt.Sprintf(",step=%d", int64(step))
	return err
}

// choice is for an integer that is one of some, or a set of bits.
func (b *builder) choice() error {
	t, kind, mode, n := b.typ, b.Kind, b.tag.Mode, b.tag.count
	width, unsigned := fullWidth(kind), isUnsigned(kind)
	b.Text = fmt.Sprintf("int%d %s=%d", width, mode, n)
	if unsigned {
		b.Text = "u" + b.Text
	}
	if kind == reflect.Int || kind == reflect.Uint {
		width = 32 // on the smallest machine
	}
	switch {
	case !isInteger(kind):
		return fmt.Errorf("%s is for integers, not for %s", mode, kind)
	case mode == modeFlags:
		if n < 1 || int(n) > width {
			return fmt.Errorf("flags=%d: use 1 to %d for %s", n, width, kind)
		}
		b.Op, b.Bits, b.Max = OpFlags, uint(n), 1<<n-1
		return nil
	case n < 2:
		return fmt.Errorf("enum=%d leaves no choice: use 2 or more", n)
	case unsigned && t.OverflowUint(uint64(n-1)), !unsigned && t.OverflowInt(int64(n-1)):
		return fmt.Errorf("enum=%d has values that %s can't hold", n, kind)
	case unsigned:
		return b.uint(0, uint64(n-1))
	}
	return b.int(0, int64(n-1))
}

// usualKind returns how fields of the codec change unless a hint overrides it.
func (b *builder) usualKind() delta.Kind {
	switch b.Op {
	case OpFixed, OpUnit:
		return delta.Linear
	case OpAngle:
		return delta.Wrap
	case OpQuat:
		return delta.Quat
	case OpFlags:
		return delta.Flags
	case OpString, OpBytes:
		return delta.Bytes
	}
	return delta.Plain
}

// hintKinds are the delta coder's names for hints.
var hintKinds = map[hint]delta.Kind{
	hintJump: delta.Plain, hintLinear: delta.Linear, hintWrap: delta.Wrap, hintCounter: delta.Counter,
}

// applyHint sets how the field's codes change. A hint that differs from the usual one goes into the
// text.
func (b *builder) applyHint() error {
	b.kind = b.usualKind()
	h := b.tag.hint
	if h == hintNone {
		return nil
	}
	b.holds = h == hintJump
	switch b.Op {
	case OpInt, OpUint, OpIntStep, OpIntWrap:
		if b.tag.Mode != modePlain {
			return fmt.Errorf("%s goes without %s", b.tag.Mode, h)
		}
	case OpFixed:
		if h == hintWrap {
			return fmt.Errorf("wrap is for integers: use angle for a float")
		}
	case OpAngle:
		if h == hintLinear || h == hintCounter {
			return fmt.Errorf("angle goes without %s", h)
		}
	case OpRaw, OpFloat, OpHalf:
		if h != hintJump {
			return fmt.Errorf("%s needs equal steps: range=MIN:MAX,step=S", h)
		}
	default:
		return fmt.Errorf("%s is for numbers", h)
	}
	if b.kind == hintKinds[h] {
		return nil // as usual: the text is the same as without the hint
	}
	b.kind = hintKinds[h]
	b.addKey(string(h))
	return nil
}

// IsText reports whether the tag makes one value of the bytes in t.
func IsText(t reflect.Type, tag *Tag) bool {
	isBytes := t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8
	return tag.Mode == ModeMax && (t.Kind() == reflect.String || isBytes)
}

// IsVector reports whether the tag makes one value of the numbers in t.
func IsVector(t reflect.Type, tag *Tag) bool {
	switch tag.Mode {
	case ModeQuat:
		return vectorElem(t, 4) != reflect.Invalid
	case ModeUnit:
		return vectorElem(t, 3) != reflect.Invalid
	}
	return false
}

// vectorElem returns the kind of the floats if t is an array or struct of exactly count floats of
// one type, all exported. Either way they lie side by side in memory.
func vectorElem(t reflect.Type, count int) reflect.Kind {
	var elem reflect.Type
	switch {
	case t.Kind() == reflect.Array && t.Len() == count:
		elem = t.Elem()
	case t.Kind() == reflect.Struct && t.NumField() == count:
		elem = t.Field(0).Type
		for i := range count {
			if f := t.Field(i); f.Type != elem || !f.IsExported() {
				return reflect.Invalid
			}
		}
	default:
		return reflect.Invalid
	}
	if kind := elem.Kind(); kind == reflect.Float32 || kind == reflect.Float64 {
		return kind
	}
	return reflect.Invalid
}
