package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/field"

// Range is the tag range=MIN:MAX. Bounds of integers beyond ±2^53 need a tag to be exact. A [time.Duration] counts in
// nanoseconds: Range(0, float64(time.Hour)).
func Range(low, high float64) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetRange(field.BoundText(low), field.BoundText(high)) })
}

// Step is the tag step=S. It needs a [Range].
func Step(step float64) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetNumber(&t.Step, "step", step) })
}

// Precision is the tag precision=P. It needs a [Range].
func Precision(precision float64) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetNumber(&t.Precision, "precision", precision) })
}

// Angle is the tag angle,bits=N; the period is 2π unless there is a [Period].
func Angle(bits uint) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeAngle); t.SetBits(bits) })
}

// Period is the tag period=P: 360 for an [Angle] in degrees.
func Period(period float64) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetNumber(&t.Period, "period", period) })
}

// UnitVector is the tag unit,bits=N.
func UnitVector(bits uint) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeUnit); t.SetBits(bits) })
}

// Quat is the tag quat,bits=N.
func Quat(bits uint) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeQuat); t.SetBits(bits) })
}

// Margin is the tag margin=M: by how many steps more than half a step a number must differ from what the server
// recorded last, to be a change. It is 1/8 without the option; use 0, for none, to 0.4.
func Margin(steps float64) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetNumber(&t.Margin, "margin", steps) })
}

// Enum is the tag enum=N: an integer of 0 to n-1.
func Enum(n int) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetCount(field.ModeEnum, n) })
}

// Flags is the tag flags=N: the n low bits of an integer.
func Flags(n int) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetCount(field.ModeFlags, n) })
}

// Max is the tag max=N: a string, or an array of bytes as one value, of up to n bytes.
func Max(n int) FieldOption {
	return fieldOption(func(t *field.Tag) { t.SetCount(field.ModeMax, n) })
}

// Jump is the tag jump: the field does not move steadily, but changes abruptly.
func Jump() FieldOption { return fieldOption(func(t *field.Tag) { t.SetHint(field.HintJump) }) }

// Linear is the tag linear: the integer moves steadily.
func Linear() FieldOption { return fieldOption(func(t *field.Tag) { t.SetHint(field.HintLinear) }) }

// Wrap is the tag wrap: the integer wraps in its range, or in that of its type.
func Wrap() FieldOption { return fieldOption(func(t *field.Tag) { t.SetHint(field.HintWrap) }) }

// Counter is the tag counter: the number stays the same or grows a little.
func Counter() FieldOption { return fieldOption(func(t *field.Tag) { t.SetHint(field.HintCounter) }) }

// Half is the tag half.
func Half() FieldOption { return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeHalf) }) }

// Raw is the tag raw.
func Raw() FieldOption { return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeRaw) }) }

// Skip is the tag -.
func Skip() FieldOption { return fieldOption(func(t *field.Tag) { t.SetMode(field.ModeSkip) }) }
