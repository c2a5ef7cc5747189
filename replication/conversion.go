package replication

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed here
)

// A conversion replicates values of one type by what stands for them: codes of a [Codec], or a value of another type.
type conversion interface {
	// option returns what the conversion is called in messages.
	option() string
	// source returns the type of the values.
	source() reflect.Type
	// describe gives f's component the columns of what stands for a value, and makes it ready for the methods below.
	describe(f *flattener, at fieldPlace, tag fieldTag) error
	// read stores the row of what stands for the value at p, and returns how many numbers were clamped.
	read(c *component, row []uint32, p unsafe.Pointer) (clamped int)
	// write sets the value at p from a valid row.
	write(c *component, p unsafe.Pointer, row []uint32)
	// fits returns an error if a text of the value at p is longer than it may be.
	fits(c *component, p unsafe.Pointer) error
}

// A standIn is what is replicated in place of a value in a component. It is a component inside, of which the columns are those
// of the outer one as well: there they say nothing of where in memory a value is.
type standIn struct {
	conversion conversion
	offset     uintptr // from the component's start
	word       int     // index of its first word in the row
	values     component
}

// conversionUse is an option that names a conversion.
type conversionUse struct {
	conversion conversion
	paths      []string // of the fields that it is for; all of the type if there are none
	met        []bool   // which paths have met their field; without paths the first is for any
}

func useConversion(c conversion, paths []string) ComponentOption {
	return func(o *componentOptions) {
		o.conversions = append(o.conversions, &conversionUse{c, paths, make([]bool, max(1, len(paths)))})
	}
}

// matches returns how well the option suits a field: not, by type, or by type and path.
func (u *conversionUse) matches(t reflect.Type, pattern string) int {
	switch {
	case u.conversion.source() != t:
		return 0
	case len(u.paths) == 0:
		return 1
	case slices.Contains(u.paths, pattern):
		return 2
	}
	return 0
}

// conversionOf returns the option for values of type t at a place, nil if there is none.
func (f *flattener) conversionOf(t reflect.Type, at fieldPlace) (best *conversionUse, err error) {
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

// converted reports whether an option is for values of type t at a place.
func (f *flattener) converted(t reflect.Type, at fieldPlace) bool {
	u, _ := f.conversionOf(t, at)
	return u != nil
}

// convert takes a value of type t, or an array of such, by an option for inner.
func (f *flattener) convert(t, inner reflect.Type, at fieldPlace, tag fieldTag) error {
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
	u.met[max(0, slices.Index(u.paths, at.pattern))] = true

	c := f.component
	p := &standIn{conversion: u.conversion, offset: at.offset, word: c.words}
	p.values.name = c.name
	sub := *f
	sub.component = &p.values
	sub.conversions = slices.DeleteFunc(slices.Clone(f.conversions), func(v *conversionUse) bool { return v == u })
	if err := u.conversion.describe(&sub, fieldPlace{path: at.path, pattern: at.pattern, standIn: true}, tag); err != nil {
		return err
	}
	f.paths, f.width = sub.paths, sub.width
	if len(c.columns)+len(p.values.columns) > maxComponentFields {
		return f.refuse(at, "a component has at most %d fields, array elements included; split it or skip the field", maxComponentFields)
	}
	for _, col := range p.values.columns {
		col.word += p.word
		col.standIn, col.steps, col.offset = p, nil, 0
		c.columns = append(c.columns, col)
	}
	c.words += p.values.words
	c.lines = append(c.lines, p.values.lines...)
	c.standIns = append(c.standIns, p)
	c.volatile = c.volatile || p.values.volatile || hasPointers(inner)
	return nil
}

// checkConversions returns an error about an option that met no field.
func (f *flattener) checkConversions() error {
	for _, u := range f.conversions {
		for i, met := range u.met {
			switch {
			case met:
			case len(u.paths) == 0:
				return fmt.Errorf("%s: the option %s for %v meets no field of that type", f.component.name, u.conversion.option(), u.conversion.source())
			default:
				return fmt.Errorf("%s: the option %s for %v names %q: there is no such field of that type",
					f.component.name, u.conversion.option(), u.conversion.source(), u.paths[i])
			}
		}
	}
	return nil
}

// hasPointers reports whether values of the type lead to others, which may change while the value's own bytes do not.
func hasPointers(t reflect.Type) bool {
	switch kind := t.Kind(); kind {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	default:
		return !(reflect.Bool <= kind && kind <= reflect.Complex128)
	}
}
