// Package field replicates single fields of components: it parses the tag that a field has, chooses
// the codec that the tag asks for, and runs that codec over component memory. Package schema calls
// it for every leaf of a registered type. Tags and types go in; codes in row words come out, and
// the same codes turn back into values.
package field

// This file has tags: the text of a repl tag, as key by key settings.

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mode is the key of a tag that selects what a field is. A tag has at most one.
type mode string

const (
	modePlain mode = ""
	ModeSkip  mode = "-"
	ModeQuat  mode = "quat"
	modeAngle mode = "angle"
	ModeUnit  mode = "unit"
	modeHalf  mode = "half"
	modeRaw   mode = "raw"
	modeEnum  mode = "enum"
	modeFlags mode = "flags"
	ModeMax   mode = "max"
)

// hint is the key of a tag that selects how a field changes from tick to tick, where its type and
// mode don't imply it. It changes no value, only what changes cost.
type hint string

const (
	hintNone    hint = ""
	hintJump    hint = "jump"
	hintLinear  hint = "linear"
	hintWrap    hint = "wrap"
	hintCounter hint = "counter"
)

// Tag is a parsed tag.
type Tag struct {
	Mode mode

	// The bounds remain text until the field's type is known, since a float64 can't hold every
	// int64.
	low, high string
	ranged    bool

	step, precision, period, margin optionalNumber

	bits    uint
	hasBits bool

	count uint32 // the N of enum=N, flags=N and max=N
	hint  hint

	// How clients show the field between two states.
	hold  bool // it changes in one step, at the time of the next state
	cut   bool // a change of it is a discontinuity of the entity
	place bool // it is a coordinate

	err error // the first mistake, while it is parsed
}

// optionalNumber is a number that a tag may leave out.
type optionalNumber struct {
	value    float64
	given    bool
	duration bool // written as a duration, such as 1ms
}

// ParseTag parses the text of a repl tag. An empty text is the same as no tag. Blanks around keys and values do not
// count. [NewCodec] checks whether the keys suit each other and the field.
func ParseTag(text string) (Tag, error) {
	var t Tag
	if text == "" {
		return t, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		key, value, hasValue := strings.Cut(item, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "range", "step", "precision", "bits", "period", "margin", "enum", "flags", "max":
			if !hasValue {
				return Tag{}, fmt.Errorf("%s needs a value: %s=%s", key, key, valueHint(key))
			}
			t.setValue(key, value)
		case "-", "quat", "angle", "unit", "half", "raw":
			if hasValue {
				return Tag{}, fmt.Errorf("%s takes no value, but there is %.40q", key, item)
			}
			t.setMode(mode(key))
		case "jump", "linear", "wrap", "counter":
			if hasValue {
				return Tag{}, fmt.Errorf("%s takes no value, but there is %.40q", key, item)
			}
			t.setHint(hint(key))
		case "hold", "cut", "place":
			if hasValue {
				return Tag{}, fmt.Errorf("%s takes no value, but there is %.40q", key, item)
			}
			t.setWord(key)
		default:
			return Tag{}, fmt.Errorf("unknown key %.40q in the tag: known are range, step, precision, enum, "+
				"flags, max, angle, period, unit, quat, bits, half, raw, margin, jump, linear, wrap, "+
				"counter, hold, cut, place and -", key)
		}
		if t.err != nil {
			return Tag{}, t.err
		}
	}
	return t, nil
}

// valueHint returns the placeholder for the value of a key, for errors.
func valueHint(key string) string {
	switch key {
	case "range":
		return "MIN:MAX"
	case "bits", "enum", "flags", "max":
		return "N"
	}
	return strings.ToUpper(key[:1])
}

// setValue sets a key that has a value.
func (t *Tag) setValue(key, value string) {
	switch key {
	case "range":
		low, high, ok := strings.Cut(value, ":")
		if !ok {
			t.fail("range=%.40s has no colon: write range=MIN:MAX", value)
			return
		}
		t.setRange(strings.TrimSpace(low), strings.TrimSpace(high))
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
		t.setCount(mode(key), int(n))
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
		case "margin":
			t.setNumber(&t.margin, key, v)
		default:
			t.setNumber(&t.period, key, v)
		}
	}
}

// setMode sets the mode. It must not be set before.
func (t *Tag) setMode(m mode) {
	if t.Mode != modePlain {
		t.fail("%s and %s exclude each other: choose one", t.Mode, m)
		return
	}
	t.Mode = m
}

// setHint sets the hint. It must not be set before.
func (t *Tag) setHint(h hint) {
	if t.hint != hintNone {
		t.fail("%s and %s exclude each other: choose one", t.hint, h)
		return
	}
	t.hint = h
}

// setWord sets how the field is shown. The word must not be set before.
func (t *Tag) setWord(key string) {
	word := &t.hold
	switch key {
	case "cut":
		word = &t.cut
	case "place":
		word = &t.place
	}
	if *word {
		t.fail("%s is given twice", key)
	}
	*word = true
}

// setCount sets a mode that has a number.
func (t *Tag) setCount(m mode, n int) {
	t.setMode(m)
	t.count = uint32(n)
}

// setRange sets the bounds as text.
func (t *Tag) setRange(low, high string) {
	if t.ranged {
		t.fail("range is given twice")
		return
	}
	t.low, t.high, t.ranged = low, high, true
}

// setBits sets the number of bits.
func (t *Tag) setBits(bits uint) {
	if t.hasBits {
		t.fail("bits is given twice")
		return
	}
	t.bits, t.hasBits = bits, true
}

// setNumber sets n, the number of a key of the tag.
func (t *Tag) setNumber(n *optionalNumber, key string, v float64) {
	if n.given {
		t.fail("%s is given twice", key)
		return
	}
	*n = optionalNumber{value: v, given: true}
}

// fail keeps the first mistake.
func (t *Tag) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// Empty reports whether the tag has no key.
func (t *Tag) Empty() bool { return *t == Tag{} }

// Shown returns a key that selects how the field is shown, or an empty text if there is none.
func (t *Tag) Shown() string {
	switch {
	case t.hold:
		return "hold"
	case t.cut:
		return "cut"
	case t.place:
		return "place"
	}
	return ""
}

// OnlyCut reports whether the tag has no key but cut.
func (t *Tag) OnlyCut() bool { return *t == Tag{cut: t.cut} }

// Check returns an error if the keys don't suit each other.
func (t *Tag) Check() error {
	needsBits := t.Mode == ModeQuat || t.Mode == ModeUnit || t.Mode == modeAngle
	switch {
	case t.Mode == ModeSkip && (t.hold || t.cut || t.place):
		return fmt.Errorf("- goes without hold, cut and place: what is not replicated has no states")
	case t.hold && t.hint == hintLinear:
		return fmt.Errorf("hold and linear exclude each other: what is linear moves evenly, " +
			"and what is held changes in one step")
	case t.Mode != modePlain && (t.ranged || t.step.given || t.precision.given):
		return fmt.Errorf("%s goes without range, step and precision", t.Mode)
	case needsBits && !t.hasBits:
		return fmt.Errorf("%s needs bits=N", t.Mode)
	case t.hasBits && !needsBits:
		return fmt.Errorf("bits is for quat, unit and angle only")
	case t.period.given && t.Mode != modeAngle:
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
