package schema

import (
	"math"
	"strconv"
)

// Options are what the options of a component set.
type Options struct {
	Name   string
	Named  bool
	Fields []FieldOverride

	Conversions []*ConversionUse
	Every       int
	Priority    float32

	Once       bool
	Conditions []Condition
	Resource   bool
}

// FieldOverride stands for the tag of the field with the given path.
type FieldOverride struct {
	Path string
	Tag  Tag
}

// BoundText writes a bound as a tag would: whole numbers with all their digits, lest integers lose some.
func BoundText(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e20 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
