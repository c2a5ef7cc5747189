package schema

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// Integers that are not all of a range one by one: in steps, round a circle, one of some, a set of bits.

// isInteger reports whether a kind is an integer that can be replicated.
func isInteger(kind reflect.Kind) bool {
	return reflect.Int <= kind && kind <= reflect.Int64 || isUnsigned(kind)
}

func isUnsigned(kind reflect.Kind) bool { return reflect.Uint <= kind && kind <= reflect.Uint64 }

// initGrid is for an integer with a range and step or wrap; q.text has the range.
func (q *Codec) initGrid(low, high int64, tag *Tag) (err error) {
	switch {
	case tag.Step.Given && tag.Hint == HintWrap:
		return fmt.Errorf("step and wrap exclude each other: choose one")
	case tag.Step.Given:
		step := tag.Step.Value
		if !(step >= 1 && step <= 1<<53 && step == math.Trunc(step)) {
			return fmt.Errorf("a step of %v is not a whole number of 1 or more", step)
		}
		if step == 1 && isUnsigned(q.Kind) { // two ways to write the same
			q.Uint, err = quantize.NewUint(uint64(low), uint64(high))
			q.Op, q.Bits, q.Max = OpUint, q.Uint.Bits(), q.Uint.Max()
			return err
		}
		if step == 1 {
			q.Int, err = quantize.NewInt(low, high)
			q.Op, q.Bits, q.Max = OpInt, q.Int.Bits(), q.Int.Max()
			return err
		}
		q.step, err = quantize.NewIntStep(low, high, int64(step))
		q.Op, q.Bits, q.Max = OpIntStep, q.step.Bits(), q.step.Max()
		q.Text += fmt.Sprintf(",step=%d", int64(step))
	default:
		q.wrap, err = quantize.NewIntWrap(low, high)
		q.Op, q.Bits, q.Max = OpIntWrap, q.wrap.Bits(), q.wrap.Max()
	}
	return err
}

// initChoice is for an integer that is one of some, or a set of bits.
func (q *Codec) initChoice(t reflect.Type, tag *Tag) (err error) {
	n, width := tag.Count, fullWidth(t.Kind())
	if t.Kind() == reflect.Int || t.Kind() == reflect.Uint {
		width = 32 // here or elsewhere
	}
	unsigned := isUnsigned(t.Kind())
	q.Text = fmt.Sprintf("int%d %s=%d", fullWidth(t.Kind()), tag.Mode, n)
	if unsigned {
		q.Text = "u" + q.Text
	}
	switch {
	case !isInteger(t.Kind()):
		return fmt.Errorf("%s is for integers, not for %s", tag.Mode, t.Kind())
	case tag.Mode == ModeFlags:
		if n < 1 || int(n) > width {
			return fmt.Errorf("flags=%d: use 1 to %d for %s", n, width, t.Kind())
		}
		q.Op, q.Bits, q.Max = OpFlags, uint(n), 1<<n-1
	case n < 2:
		return fmt.Errorf("enum=%d leaves no choice: use 2 or more", n)
	case unsigned && t.OverflowUint(uint64(n-1)), !unsigned && t.OverflowInt(int64(n-1)):
		return fmt.Errorf("enum=%d has values that %s can't hold", n, t.Kind())
	case unsigned:
		q.Uint, err = quantize.NewUint(0, uint64(n-1))
		q.Op, q.Bits, q.Max = OpUint, q.Uint.Bits(), q.Uint.Max()
	default:
		q.Int, err = quantize.NewInt(0, int64(n-1))
		q.Op, q.Bits, q.Max = OpInt, q.Int.Bits(), q.Int.Max()
	}
	return err
}

// StepCode returns the code of a number in steps. One that is positive as its type has it and negative as an int64 is above
// all of them.
func (q *Codec) StepCode(v int64, positive bool) (code uint64, ok bool) {
	if v < 0 && positive {
		return q.Max, false
	}
	return q.step.Encode(v)
}

// WrapCode returns the code of a number that goes round. One that is positive as its type has it and negative as an int64 is
// of an uint64.
func (q *Codec) WrapCode(v int64, positive bool) (code uint64) {
	if v < 0 && positive {
		low, _ := q.wrap.Range() // not negative, so that there are fewer codes than 2^64
		return (uint64(v) - uint64(low)) % (q.Max + 1)
	}
	code, _ = q.wrap.Encode(v)
	return code
}

// IntegerValue returns the number that a code stands for, old being what it replaces.
func (q *Codec) IntegerValue(code uint64, old int64) (v int64) {
	switch q.Op {
	case OpIntStep:
		v, _ = q.step.Decode(code)
	case OpIntWrap:
		v, _ = q.wrap.Decode(code)
	default:
		v = old&^int64(q.Max) | int64(code&q.Max) // the other bits are not replicated
	}
	return v
}

// parseSigned parses a whole number, and where it has 64 bits also a duration such as 1m30s, in nanoseconds.
func parseSigned(text string, width int) (int64, bool) {
	if v, ok := parseInteger(text); ok {
		return v, true
	}
	d, err := time.ParseDuration(text)
	return int64(d), err == nil && width == 64
}
