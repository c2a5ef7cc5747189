package replication

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fieldMode is the part of a tag that says what a field is: at most one of them.
type fieldMode string

const (
	modePlain fieldMode = ""
	modeSkip  fieldMode = "-"
	modeQuat  fieldMode = "quat"
	modeAngle fieldMode = "angle"
	modeUnit  fieldMode = "unit"
	modeHalf  fieldMode = "half"
	modeRaw   fieldMode = "raw"
	modeEnum  fieldMode = "enum"
	modeFlags fieldMode = "flags"
	modeMax   fieldMode = "max"
)

// fieldTag is a parsed tag, or options that stand for one. The first mistake is kept in err, so that options, which cannot
// fail, report theirs when the component is registered.
type fieldTag struct {
	mode fieldMode

	// The bounds stay text until the field's type is known: a float64 cannot hold every int64.
	low, high string
	ranged    bool

	step, precision, period optionalNumber

	bits    uint
	hasBits bool

	count uint32 // of enum, flags and max
	hint  fieldHint

	err error
}

type optionalNumber struct {
	value    float64
	given    bool
	duration bool // written as such: 1ms
}

// parseFieldTag parses the text of a repl tag. An empty text is the same as no tag. Whether the keys suit each other and the
// field is for newCodec to say.
func parseFieldTag(text string) (fieldTag, error) {
	var t fieldTag
	if text == "" {
		return t, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		key, value, hasValue := strings.Cut(item, "=")
		switch key {
		case "range", "step", "precision", "bits", "period", "enum", "flags", "max":
			if !hasValue {
				return fieldTag{}, fmt.Errorf("%s needs a value: %s=%s", key, key, valueHint(key))
			}
			t.setValue(key, value)
		case "-", "quat", "angle", "unit", "half", "raw":
			if hasValue {
				return fieldTag{}, fmt.Errorf("%s takes no value, but there is %.40q", key, item)
			}
			t.setMode(fieldMode(key))
		case "jump", "linear", "wrap", "counter":
			if hasValue {
				return fieldTag{}, fmt.Errorf("%s takes no value, but there is %.40q", key, item)
			}
			t.setHint(fieldHint(key))
		default:
			return fieldTag{}, fmt.Errorf("unknown key %.40q in the tag: known are range, step, precision, enum, flags, max, "+
				"angle, period, unit, quat, bits, half, raw, jump, linear, wrap, counter and -", key)
		}
		if t.err != nil {
			return fieldTag{}, t.err
		}
	}
	return t, nil
}

func valueHint(key string) string {
	switch key {
	case "range":
		return "MIN:MAX"
	case "bits", "enum", "flags", "max":
		return "N"
	}
	return strings.ToUpper(key[:1])
}

func (t *fieldTag) setValue(key, value string) {
	switch key {
	case "range":
		low, high, ok := strings.Cut(value, ":")
		if !ok {
			t.fail("range=%.40s has no colon: write range=MIN:MAX", value)
			return
		}
		t.setRange(low, high)
	case "bits":
		n, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			t.fail("bits=%.40s is not a small whole number", value)
			return
		}
		t.setBits(uint(n))
	case "enum", "flags", "max":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			t.fail("%s=%.40s is not a small whole number", key, value)
			return
		}
		t.setCount(fieldMode(key), int(n))
	default:
		v, err := strconv.ParseFloat(value, 64)
		if d, notDuration := time.ParseDuration(value); err != nil && key == "step" && notDuration == nil {
			t.setNumber(&t.step, key, float64(d))
			t.step.duration = true
			return
		}
		if err != nil {
			t.fail("%s=%.40s is not a number", key, value)
			return
		}
		switch key {
		case "step":
			t.setNumber(&t.step, key, v)
		case "precision":
			t.setNumber(&t.precision, key, v)
		default:
			t.setNumber(&t.period, key, v)
		}
	}
}

func (t *fieldTag) setMode(m fieldMode) {
	if t.mode != modePlain {
		t.fail("%s and %s exclude each other: choose one", t.mode, m)
		return
	}
	t.mode = m
}

// setCount is for the modes that have a number.
func (t *fieldTag) setCount(m fieldMode, n int) {
	if n < 0 || n > math.MaxInt32 {
		t.fail("%s=%d is not a small whole number", m, n)
		return
	}
	t.setMode(m)
	t.count = uint32(n)
}

func (t *fieldTag) setRange(low, high string) {
	if t.ranged {
		t.fail("range is given twice")
		return
	}
	t.low, t.high, t.ranged = low, high, true
}

func (t *fieldTag) setBits(bits uint) {
	if t.hasBits {
		t.fail("bits is given twice")
		return
	}
	t.bits, t.hasBits = bits, true
}

func (t *fieldTag) setNumber(n *optionalNumber, key string, v float64) {
	if n.given {
		t.fail("%s is given twice", key)
		return
	}
	*n = optionalNumber{value: v, given: true}
}

func (t *fieldTag) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// empty reports whether the tag says nothing.
func (t *fieldTag) empty() bool { return *t == fieldTag{} }

// check returns an error unless the keys suit each other.
func (t *fieldTag) check() error {
	if t.err != nil {
		return t.err
	}
	needsBits := t.mode == modeQuat || t.mode == modeUnit || t.mode == modeAngle
	switch {
	case t.mode != modePlain && (t.ranged || t.step.given || t.precision.given):
		return fmt.Errorf("%s goes without range, step and precision", t.mode)
	case needsBits && !t.hasBits:
		return fmt.Errorf("%s needs bits=N", t.mode)
	case t.hasBits && !needsBits:
		return fmt.Errorf("bits is for quat, unit and angle only")
	case t.period.given && t.mode != modeAngle:
		return fmt.Errorf("period is for angle only")
	case t.step.given && t.precision.given:
		return fmt.Errorf("step and precision exclude each other: choose one")
	case t.step.given && !t.ranged:
		return fmt.Errorf("step needs a range: range=MIN:MAX,step=S")
	case t.precision.given && !t.ranged:
		return fmt.Errorf("precision needs a range: range=MIN:MAX,precision=P")
	}
	return nil
}
