package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A ComponentOption changes how [Register] takes a component type.
type ComponentOption func(*schema.Options)

// A FieldOption says how a field is coded, as one key of a tag does; see [Field].
type FieldOption func(*schema.Tag)

// Name gives the component a name other than that of its Go type. Both ends must use the same one.
func Name(name string) ComponentOption {
	return func(o *schema.Options) { o.Name, o.Named = name, true }
}

// Every makes the server look at the component on every n-th tick only, in turns that
// spread the entities over the ticks: what changes all the time is sent that often at
// most. An entity that is new, or gets the component, is looked at at once, as is one that
// enters or leaves a [Group]. So what is sent is at most n-1 ticks old.
//
// Panics if n is not 1 to 60.
func Every(n int) ComponentOption {
	if n < 1 || n > maxInterval {
		panic(fmt.Sprintf("replication: Every(%d): use 1 to %d ticks", n, maxInterval))
	}
	return func(o *schema.Options) { o.Every = n }
}

// Priority gives entities that have the component a weight of at least w, 1 being that of
// all others. Where a peer's budget does not suffice, the weights added up over the ticks
// that it waited say what is sent first; see [Peer.SetBudget].
//
// Panics if w is less than 1.
func Priority(w float32) ComponentOption {
	if !(w >= 1) {
		panic(fmt.Sprintf("replication: Priority(%v): use 1 or more", w))
	}
	return func(o *schema.Options) { o.Priority = w }
}

// Field says how a field of a type that one does not own is coded. The options replace the field's tag as a whole; without
// options the field is coded as if it had no tag.
//
// The path is the field's name, for a field of a nested struct preceded by the names that lead to it and dots: "Gun.Heat".
// It has no indices: options for an array, or for a field of the structs in an array, hold for every element. The empty path
// is the component itself, if its type is a number or an array.
func Field(path string, opts ...FieldOption) ComponentOption {
	var tag schema.Tag
	applyOptions("Field", &tag, opts)
	return func(o *schema.Options) { o.Fields = append(o.Fields, schema.FieldOverride{Path: path, Tag: tag}) }
}

// Range is the tag range=MIN:MAX. Bounds of integers beyond ±2^53 need a tag to be exact. A [time.Duration] counts in
// nanoseconds: Range(0, float64(time.Hour)).
func Range(low, high float64) FieldOption {
	return func(t *schema.Tag) { t.SetRange(schema.BoundText(low), schema.BoundText(high)) }
}

// Step is the tag step=S. It needs a [Range].
func Step(step float64) FieldOption {
	return func(t *schema.Tag) { t.SetNumber(&t.Step, "step", step) }
}

// Precision is the tag precision=P. It needs a [Range].
func Precision(precision float64) FieldOption {
	return func(t *schema.Tag) { t.SetNumber(&t.Precision, "precision", precision) }
}

// Angle is the tag angle,bits=N; the period is 2π unless there is a [Period].
func Angle(bits uint) FieldOption {
	return func(t *schema.Tag) { t.SetMode(schema.ModeAngle); t.SetBits(bits) }
}

// Period is the tag period=P: 360 for an [Angle] in degrees.
func Period(period float64) FieldOption {
	return func(t *schema.Tag) { t.SetNumber(&t.Period, "period", period) }
}

// UnitVector is the tag unit,bits=N.
func UnitVector(bits uint) FieldOption {
	return func(t *schema.Tag) { t.SetMode(schema.ModeUnit); t.SetBits(bits) }
}

// Quat is the tag quat,bits=N.
func Quat(bits uint) FieldOption {
	return func(t *schema.Tag) { t.SetMode(schema.ModeQuat); t.SetBits(bits) }
}

// Enum is the tag enum=N: an integer of 0 to n-1.
func Enum(n int) FieldOption { return func(t *schema.Tag) { t.SetCount(schema.ModeEnum, n) } }

// Flags is the tag flags=N: the n low bits of an integer.
func Flags(n int) FieldOption { return func(t *schema.Tag) { t.SetCount(schema.ModeFlags, n) } }

// Max is the tag max=N: a string, or an array of bytes as one value, of up to n bytes.
func Max(n int) FieldOption { return func(t *schema.Tag) { t.SetCount(schema.ModeMax, n) } }

// Jump is the tag jump: the field does not move steadily, but changes at once.
func Jump() FieldOption { return func(t *schema.Tag) { t.SetHint(schema.HintJump) } }

// Linear is the tag linear: the integer moves steadily.
func Linear() FieldOption { return func(t *schema.Tag) { t.SetHint(schema.HintLinear) } }

// Wrap is the tag wrap: the integer goes round in its range, or in all that its type has.
func Wrap() FieldOption { return func(t *schema.Tag) { t.SetHint(schema.HintWrap) } }

// Counter is the tag counter: the number stays or grows a little.
func Counter() FieldOption { return func(t *schema.Tag) { t.SetHint(schema.HintCounter) } }

// Half is the tag half.
func Half() FieldOption { return func(t *schema.Tag) { t.SetMode(schema.ModeHalf) } }

// Raw is the tag raw.
func Raw() FieldOption { return func(t *schema.Tag) { t.SetMode(schema.ModeRaw) } }

// Skip is the tag -.
func Skip() FieldOption { return func(t *schema.Tag) { t.SetMode(schema.ModeSkip) } }
