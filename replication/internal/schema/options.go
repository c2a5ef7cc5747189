package schema

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
}

// FieldOverride replaces the tag of the field with the given path.
type FieldOverride struct {
	Path string
	Tag  string
}
