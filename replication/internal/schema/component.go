package schema

// This file has registered types and their columns.

import (
	"fmt"
	"reflect"
	"strconv"
	"unicode"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/field"
)

// Component is a registered type.
type Component struct {
	Name       string
	Typ        reflect.Type
	Size       uintptr
	Words      int      // length of a row
	Columns    []Column // in the order of their words
	References []int    // columns that refer to entities
	Lines      []string // of the schema text, until Freeze
	Layout     *delta.Component
	Resource   bool  // the type is a resource of the world, not a component
	Strings    []int // columns that are strings, stand-ins aside
	First      int   // number of such columns in the components before this one

	StandIns []*StandIn
	Volatile bool // a converted value may change while the component's bytes don't

	checked []int // columns whose codes have gaps: a code within the range of its field may be invalid

	// Settings of the server.
	Every     int     // ticks between captures
	Once      bool    // captured only when it is new
	Priority  float32 // weight of entities that have the component
	condition Condition
	Class     int // of the slots that hold it: 1 + the index of its condition in Schema.Conditions, or 0

	Shown Shown
}

// Column is a leaf of a component type: a number, a text, a reference, or the numbers of a unit
// vector or quaternion.
type Column struct {
	Path   string       // inside the component: "X", "Gun.Heat", "Cells[3]"; empty if the component is the leaf
	Steps  []int        // indices of struct fields and array elements on the way to it
	offset uintptr      // from the component's start
	Word   int          // index of its first word in the row
	Codec  *field.Codec // shared by the elements of an array
	three  bool         // it is read together with the next two

	StandIn *StandIn // to which the column belongs, or nil; a column of a stand-in has no steps and no offset
}

// newComponent returns the component of type t.
func newComponent(t reflect.Type, o *Options) (Component, error) {
	name := t.Name()
	if o.Named {
		name = o.Name
	}
	switch {
	case o.Named || name != "":
		if err := checkComponentName(name); err != nil {
			return Component{}, err
		}
	case t.Kind() == reflect.Pointer:
		return Component{}, fmt.Errorf("%v is a pointer: register the component type itself", t)
	default:
		return Component{}, fmt.Errorf("%v has no name: register it with the option Name", t)
	}
	c := Component{
		Name: name, Typ: t, Size: t.Size(), Resource: o.Resource,
		Every: max(o.Every, 1), Once: o.Once, Priority: max(o.Priority, 1),
	}
	if c.Once {
		c.Every = 1
	}
	f := Flattener{Component: &c, overrides: o.Fields, conversions: o.Conversions, stateless: o.stateless}
	if c.Resource {
		f.stateless = "a resource"
	}
	if err := f.flatten(); err != nil {
		return Component{}, err
	}
	if c.Resource && c.Targeted() {
		return Component{}, fmt.Errorf("%s: a resource has no relation: use a field of type ecs.Entity", c.Name)
	}
	for i := range c.Columns {
		if c.Columns[i].Codec.Op == field.OpString && c.Columns[i].StandIn == nil {
			c.Strings = append(c.Strings, i)
		}
		if c.Columns[i].Codec.HasGaps() {
			c.checked = append(c.checked, i)
		}
	}
	for i := 0; i+2 < len(c.Columns); i++ {
		if c.Columns[i].three = c.three(c.Columns[i:]); c.Columns[i].three {
			i += 2
		}
	}
	return c, nil
}

// three reports whether the first three columns are alike, of a codec that reads three at once, and lie side by side.
func (c *Component) three(columns []Column) bool {
	for i := range columns[:3] {
		col := &columns[i]
		q, first := col.Codec, columns[0].Codec
		if col.StandIn != nil || !q.ReadsThree() || q.Fixed != first.Fixed ||
			col.offset != columns[0].offset+uintptr(4*i) || col.Word != columns[0].Word+i {
			return false
		}
	}
	return true
}

// checkComponentName keeps the schema text unambiguous: one name, one word.
func checkComponentName(name string) error {
	const limit = 256
	if name == "" || len(name) > limit {
		return fmt.Errorf("the component name %.40q has %d bytes: use 1 to %d", name, len(name), limit)
	}
	if name == "component" || name == "resource" {
		return fmt.Errorf("the component name %q has a meaning in the schema text: "+
			"choose another with the option Name", name)
	}
	for _, r := range name {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !strconv.IsGraphic(r) {
			return fmt.Errorf("the component name %q contains %q: use letters, digits and punctuation", name, r)
		}
	}
	return nil
}

// kind returns the schema text's word for the type.
func (c *Component) kind() string {
	if c.Resource {
		return "resource"
	}
	return "component"
}

// beside returns an error if a type can't be registered beside another one. same reports that both
// are components or resources, or both are messages or inputs.
func (c *Component) beside(other *Component, same bool) error {
	switch {
	case same && other.Typ == c.Typ && other.Resource != c.Resource:
		return fmt.Errorf("%s: %v is registered as a %s already: a type is either a component or a resource, "+
			"so make another type of it", c.Name, c.Typ, other.kind())
	case same && other.Typ == c.Typ:
		return fmt.Errorf("%s: %v is registered already: register every type once", c.Name, c.Typ)
	case other.Name == c.Name:
		return fmt.Errorf("%s: %v and %v have the same name: give one another with the option Name",
			c.Name, other.Typ, c.Typ)
	}
	return nil
}

// part returns the description of the type for the delta coder.
func (c *Component) part() delta.Component {
	part := delta.Component{Name: c.Name}
	for i := range c.Columns {
		part.Fields = c.Columns[i].Codec.AppendLayout(part.Fields, c.Columns[i].Path)
	}
	return part
}

// Refers reports whether the component refers to entities.
func (c *Component) Refers() bool { return len(c.References) > 0 }

// Targeted reports whether the component is a relation whose target is replicated.
func (c *Component) Targeted() bool {
	return len(c.Columns) > 0 && c.Columns[0].Codec.Op == field.OpRelation
}

// ValidRow reports whether every code of the row is one that its quantiser produces.
func (c *Component) ValidRow(row []uint32) bool {
	for i := range c.Columns {
		if col := &c.Columns[i]; !col.Codec.Valid(row[col.Word:]) {
			return false
		}
	}
	return true
}

// ValidDecoded is ValidRow for a row that the delta coder returned without an error: all its codes are within the
// ranges of their fields.
func (c *Component) ValidDecoded(row []uint32) bool {
	return len(c.checked) == 0 || c.validChecked(row)
}

// validChecked reports whether those columns are valid that not all codes are valid for.
func (c *Component) validChecked(row []uint32) bool {
	for _, i := range c.checked {
		if col := &c.Columns[i]; !col.Codec.Valid(row[col.Word:]) {
			return false
		}
	}
	return true
}

// Simple reports whether rows can be written into many values at once with [Component.WriteRows]: no field refers to
// anything, is a text or is converted by the user's functions.
func (c *Component) Simple() bool {
	return len(c.References)+len(c.Strings)+len(c.StandIns) == 0 && !c.Volatile
}

// TextTooLong returns the error about a text of n bytes that is too long for its column.
func (c *Component) TextTooLong(col *Column, n int) error {
	what := "string"
	if col.Codec.Op == field.OpBytes {
		what = "array"
	}
	return fmt.Errorf("replication: %s: the %s has %d bytes, and max is %d: shorten it, or raise max in the tag",
		fullPath(c.Name, col.Path), what, n, col.Codec.Max)
}

// Offset returns where the column is in a component value. A column of a stand-in is nowhere in it.
func (col *Column) Offset() uintptr { return col.offset }

// Code returns the code of the column in the row, low word first. Unit vectors, quaternions and
// texts have no single code.
func (col *Column) Code(row []uint32) uint64 { return col.Codec.Code(row[col.Word:]) }

// Digest returns the digest of the column in the row by which both ends compare it, and its width
// in bits.
func (col *Column) Digest(row []uint32, tick uint32) (digest uint64, bits uint) {
	return col.Codec.Digest(row[col.Word:], tick)
}

// Of returns the field of a component's value that the column is.
func (col *Column) Of(v reflect.Value) any {
	for _, step := range col.Steps {
		if v.Kind() == reflect.Struct {
			v = v.Field(step)
		} else {
			v = v.Index(step)
		}
	}
	return v.Interface()
}
