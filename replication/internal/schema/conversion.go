package schema

// This file replaces values while they are replicated: the options With and As send codes, or a
// value of another type, instead of the value itself.

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
)

// Conversion replicates values of one type by a stand-in: codes that the user's codec makes, or a
// value of another type.
type Conversion interface {
	// option returns the name of the option, for errors.
	option() string
	// Source returns the type of the values.
	Source() reflect.Type
	// describe adds the columns of the stand-in to f's component, which is the first argument of
	// the methods below.
	describe(f *Flattener, at FieldPlace, tag field.Tag) error
	// Read stores the row of the stand-in for the value at p, and returns how many numbers were
	// clamped.
	Read(c *Component, row []uint32, p unsafe.Pointer) (clamped int)
	// keeps is [Component.Keeps] for the row of the stand-in for the value at p, which differs from the recorded one.
	keeps(c *Component, row, recorded []uint32, p unsafe.Pointer) bool
	// Write sets the value at p from a valid row.
	Write(c *Component, p unsafe.Pointer, row []uint32)
	// Fits returns an error if a text of the value at p is too long.
	Fits(c *Component, p unsafe.Pointer) error
}

// StandIn is replicated instead of a value in a component. Values describes it like a component of
// its own. Its columns are columns of the outer component as well, but have no place in the memory
// of that.
type StandIn struct {
	Conversion Conversion
	Offset     uintptr // of the value, from the component's start
	Word       int     // index of its first word in the row
	Values     Component
}

// ConversionUse is an option that names a conversion.
type ConversionUse struct {
	Conversion Conversion
	Paths      []string // of the fields to convert; all fields of the type if there are none
	Met        []bool   // which paths have found their field; without paths, the first stands for any field
}

// matches returns how well the option suits a field: 0 if not at all, 1 by type, 2 by type and
// path.
func (u *ConversionUse) matches(t reflect.Type, pattern string) int {
	switch {
	case u.Conversion.Source() != t:
		return 0
	case len(u.Paths) == 0:
		return 1
	case slices.Contains(u.Paths, pattern):
		return 2
	}
	return 0
}

// conversionOf returns the option that converts values of type t at a place, nil if there is none.
func (f *Flattener) conversionOf(t reflect.Type, at FieldPlace) (best *ConversionUse, err error) {
	match := 0
	for _, u := range f.conversions {
		switch m := u.matches(t, at.pattern); {
		case m > match:
			best, match, err = u, m, nil
		case m > 0 && m == match:
			err = f.refuse(at, "two of the options With and As are for %v: give them the paths of their fields", t)
		}
	}
	return best, err
}

// converted reports whether an option converts values of type t at a place.
func (f *Flattener) converted(t reflect.Type, at FieldPlace) bool {
	u, _ := f.conversionOf(t, at)
	return u != nil
}

// convert adds the stand-in for a value of type t, which is inner or an array of arrays of it.
func (f *Flattener) convert(t, inner reflect.Type, at FieldPlace, tag field.Tag) error {
	if t != inner {
		for i := range t.Len() {
			if err := f.convert(t.Elem(), inner, at.element(i, t.Elem().Size()), tag); err != nil {
				return err
			}
		}
		return nil
	}
	u, err := f.conversionOf(inner, at)
	if err != nil {
		return err
	}
	u.Met[max(0, slices.Index(u.Paths, at.pattern))] = true

	c := f.Component
	p := &StandIn{Conversion: u.Conversion, Offset: at.offset, Word: c.Words}
	p.Values.Name = c.Name
	sub := *f
	sub.Component = &p.Values
	sub.conversions = slices.DeleteFunc(slices.Clone(f.conversions), func(v *ConversionUse) bool { return v == u })
	inside := FieldPlace{path: at.path, pattern: at.pattern, standIn: true}
	if err := u.Conversion.describe(&sub, inside, tag); err != nil {
		return err
	}
	f.paths, f.width = sub.paths, sub.width
	if len(c.Columns)+len(p.Values.Columns) > maxComponentFields {
		return f.refuse(at, tooManyFields, maxComponentFields)
	}
	for _, col := range p.Values.Columns {
		col.Word += p.Word
		col.StandIn, col.Steps, col.offset = p, nil, 0
		c.Columns = append(c.Columns, col)
	}
	c.Words += p.Values.Words
	c.Lines = append(c.Lines, p.Values.Lines...)
	c.StandIns = append(c.StandIns, p)
	c.Volatile = c.Volatile || p.Values.Volatile || HasPointers(inner)
	return nil
}

// checkConversions returns an error about an option that has found no field.
func (f *Flattener) checkConversions() error {
	for _, u := range f.conversions {
		for i, met := range u.Met {
			switch {
			case met:
			case len(u.Paths) == 0:
				return fmt.Errorf("%s: the option %s for %v meets no field of that type",
					f.Component.Name, u.Conversion.option(), u.Conversion.Source())
			default:
				return fmt.Errorf("%s: the option %s for %v names %q: there is no such field of that type",
					f.Component.Name, u.Conversion.option(), u.Conversion.Source(), u.Paths[i])
			}
		}
	}
	return nil
}

// HasPointers reports whether values of the type point to others, which may change while the
// value's own bytes do not.
func HasPointers(t reflect.Type) bool {
	switch kind := t.Kind(); kind {
	case reflect.Array:
		return t.Len() > 0 && HasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if HasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return !(reflect.Bool <= kind && kind <= reflect.Complex128)
	}
}
