package replication

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
	hintJump    fieldHint = "jump"
	hintLinear  fieldHint = "linear"
	hintWrap    fieldHint = "wrap"
	hintCounter fieldHint = "counter"
)

// hintKinds is what the delta coder calls them.
var hintKinds = map[fieldHint]delta.Kind{
	hintJump: delta.Plain, hintLinear: delta.Linear, hintWrap: delta.Wrap, hintCounter: delta.Counter,
}

func (t *fieldTag) setHint(h fieldHint) {
	if t.hint != hintNone {
		t.fail("%s and %s exclude each other: choose one", t.hint, h)
		return
	}
	t.hint = h
}

// usualKind returns how fields of the codec change unless a hint says otherwise.
func (q *codec) usualKind() delta.Kind {
	switch q.op {
	case opFixed, opUnit:
		return delta.Linear
	case opAngle:
		return delta.Wrap
	case opQuat:
		return delta.Quat
	case opFlags:
		return delta.Flags
	case opString, opBytes:
		return delta.Bytes
	}
	return delta.Plain
}

// setKind takes the hint of the tag, and writes it into the text if it says something.
func (q *codec) setKind(tag *fieldTag) error {
	q.moves = q.usualKind()
	h := tag.hint
	if h == hintNone {
		return nil
	}
	switch q.op {
	case opInt, opUint, opIntStep, opIntWrap:
		if tag.mode != modePlain {
			return fmt.Errorf("%s goes without %s", tag.mode, h)
		}
	case opFixed:
		if h == hintWrap {
			return fmt.Errorf("wrap is for integers: use angle for a float")
		}
	case opAngle:
		if h == hintLinear || h == hintCounter {
			return fmt.Errorf("angle goes without %s", h)
		}
	case opRaw, opFloat, opHalf:
		if h != hintJump {
			return fmt.Errorf("%s needs equal steps: range=MIN:MAX,step=S", h)
		}
	default:
		return fmt.Errorf("%s is for numbers", h)
	}
	if q.moves == hintKinds[h] {
		return nil // two ways to write the same
	}
	q.moves = hintKinds[h]
	if strings.Contains(q.text, " ") {
		q.text += "," + string(h)
	} else {
		q.text += " " + string(h)
	}
	return nil
}
