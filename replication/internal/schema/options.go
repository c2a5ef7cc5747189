package schema

import "reflect"

// Options are the settings that the options of a component make.
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
	stateless  string // what the type is, if it is neither a component nor a resource

	// How the component is shown between two states.
	Newest   bool
	Snap     float64
	Velocity reflect.Type // nil: none is known
	PerTick  float64
}

// FieldOverride replaces the tag of the field with the given path.
type FieldOverride struct {
	Path string
	Tag  string
}
