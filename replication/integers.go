package replication

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// Integers that are not all of a range one by one: in steps, round a circle, one of some, a set of bits.

// isWhole reports whether a kind is an integer that can be replicated.
func isWhole(kind reflect.Kind) bool {
	return reflect.Int <= kind && kind <= reflect.Int64 || isUnsigned(kind)
}

func isUnsigned(kind reflect.Kind) bool { return reflect.Uint <= kind && kind <= reflect.Uint64 }

// initGrid is for an integer with a range and step or wrap; q.text has the range.
func (q *codec) initGrid(low, high int64, tag *fieldTag) (err error) {
	switch {
	case tag.step.given && tag.hint == hintWrap:
		return fmt.Errorf("step and wrap exclude each other: choose one")
	case tag.step.given:
		step := tag.step.value
		if !(step >= 1 && step <= 1<<53 && step == math.Trunc(step)) {
			return fmt.Errorf("a step of %v is not a whole number of 1 or more", step)
		}
		if step == 1 && isUnsigned(q.kind) { // two ways to write the same
			q.uint, err = quantize.NewUint(uint64(low), uint64(high))
			q.op, q.bits, q.max = opUint, q.uint.Bits(), q.uint.Max()
			return err
		}
		if step == 1 {
			q.int, err = quantize.NewInt(low, high)
			q.op, q.bits, q.max = opInt, q.int.Bits(), q.int.Max()
			return err
		}
		q.step, err = quantize.NewIntStep(low, high, int64(step))
		q.op, q.bits, q.max = opIntStep, q.step.Bits(), q.step.Max()
		q.text += fmt.Sprintf(",step=%d", int64(step))
	default:
		q.wrap, err = quantize.NewIntWrap(low, high)
		q.op, q.bits, q.max = opIntWrap, q.wrap.Bits(), q.wrap.Max()
	}
	return err
}

// initChoice is for an integer that is one of some, or a set of bits.
func (q *codec) initChoice(t reflect.Type, tag *fieldTag) (err error) {
	n, width := tag.count, fullWidth(t.Kind())
	if t.Kind() == reflect.Int || t.Kind() == reflect.Uint {
		width = 32 // here or elsewhere
	}
	unsigned := isUnsigned(t.Kind())
	q.text = fmt.Sprintf("int%d %s=%d", fullWidth(t.Kind()), tag.mode, n)
	if unsigned {
		q.text = "u" + q.text
	}
	switch {
	case !isWhole(t.Kind()):
		return fmt.Errorf("%s is for integers, not for %s", tag.mode, t.Kind())
	case tag.mode == modeFlags:
		if n < 1 || int(n) > width {
			return fmt.Errorf("flags=%d: use 1 to %d for %s", n, width, t.Kind())
		}
		q.op, q.bits, q.max = opFlags, uint(n), 1<<n-1
	case n < 2:
		return fmt.Errorf("enum=%d leaves no choice: use 2 or more", n)
	case unsigned && t.OverflowUint(uint64(n-1)), !unsigned && t.OverflowInt(int64(n-1)):
		return fmt.Errorf("enum=%d has values that %s can't hold", n, t.Kind())
	case unsigned:
		q.uint, err = quantize.NewUint(0, uint64(n-1))
		q.op, q.bits, q.max = opUint, q.uint.Bits(), q.uint.Max()
	default:
		q.int, err = quantize.NewInt(0, int64(n-1))
		q.op, q.bits, q.max = opInt, q.int.Bits(), q.int.Max()
	}
	return err
}

// stepCode returns the code of a number in steps. One that is positive as its type has it and negative as an int64 is above
// all of them.
func (q *codec) stepCode(v int64, positive bool) (code uint64, ok bool) {
	if v < 0 && positive {
		return q.max, false
	}
	return q.step.Encode(v)
}

// turnCode returns the code of a number that goes round. One that is positive as its type has it and negative as an int64 is
// of an uint64.
func (q *codec) turnCode(v int64, positive bool) (code uint64) {
	if v < 0 && positive {
		low, _ := q.wrap.Range() // not negative, so that there are fewer codes than 2^64
		return (uint64(v) - uint64(low)) % (q.max + 1)
	}
	code, _ = q.wrap.Encode(v)
	return code
}

// wholeValue returns the number that a code stands for, old being what it replaces.
func (q *codec) wholeValue(code uint64, old int64) (v int64) {
	switch q.op {
	case opIntStep:
		v, _ = q.step.Decode(code)
	case opIntWrap:
		v, _ = q.wrap.Decode(code)
	default:
		v = old&^int64(q.max) | int64(code&q.max) // the other bits are not replicated
	}
	return v
}

// parseSigned parses a whole number, and where it has 64 bits also a duration such as 1m30s, in nanoseconds.
func parseSigned(text string, width int) (int64, bool) {
	if v, ok := parseWhole(text); ok {
		return v, true
	}
	d, err := time.ParseDuration(text)
	return int64(d), err == nil && width == 64
}
