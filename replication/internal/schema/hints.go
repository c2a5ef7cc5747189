package schema

import (
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
)

// fieldHint is the part of a tag that says how a field changes from tick to tick, where that does not follow from what it is.
// It changes no value, only what a change costs.
type fieldHint string

const (
	hintNone    fieldHint = ""
	HintJump    fieldHint = "jump"
	HintLinear  fieldHint = "linear"
	HintWrap    fieldHint = "wrap"
	HintCounter fieldHint = "counter"
)

// hintKinds is what the delta coder calls them.
var hintKinds = map[fieldHint]delta.Kind{
	HintJump: delta.Plain, HintLinear: delta.Linear, HintWrap: delta.Wrap, HintCounter: delta.Counter,
}

func (t *Tag) SetHint(h fieldHint) {
	if t.Hint != hintNone {
		t.fail("%s and %s exclude each other: choose one", t.Hint, h)
		return
	}
	t.Hint = h
}

// usualKind returns how fields of the codec change unless a hint says otherwise.
func (q *Codec) usualKind() delta.Kind {
	switch q.Op {
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

// setKind takes the hint of the tag, and writes it into the text if it says something.
func (q *Codec) setKind(tag *Tag) error {
	q.moves = q.usualKind()
	h := tag.Hint
	if h == hintNone {
		return nil
	}
	switch q.Op {
	case OpInt, OpUint, OpIntStep, OpIntWrap:
		if tag.Mode != modePlain {
			return fmt.Errorf("%s goes without %s", tag.Mode, h)
		}
	case OpFixed:
		if h == HintWrap {
			return fmt.Errorf("wrap is for integers: use angle for a float")
		}
	case OpAngle:
		if h == HintLinear || h == HintCounter {
			return fmt.Errorf("angle goes without %s", h)
		}
	case OpRaw, OpFloat, OpHalf:
		if h != HintJump {
			return fmt.Errorf("%s needs equal steps: range=MIN:MAX,step=S", h)
		}
	default:
		return fmt.Errorf("%s is for numbers", h)
	}
	if q.moves == hintKinds[h] {
		return nil // two ways to write the same
	}
	q.moves = hintKinds[h]
	if strings.Contains(q.Text, " ") {
		q.Text += "," + string(h)
	} else {
		q.Text += " " + string(h)
	}
	return nil
}
