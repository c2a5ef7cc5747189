package main

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// axes are the columns of a trace that are an entity's position.
type axes struct {
	names   []string     // two or three, such as Position.X
	columns []int        // by axis
	scalar  reflect.Type // of all axes: float32 or float64
	tags    []string     // by axis
	from    int          // the component
	fields  map[int]bool // of the component, by index: those that have become axes
	index   int          // of the component that has the axes alone, after carve
}

// place is the component of the axes. With two axes, Z is not replicated.
type place[F float32 | float64] struct{ X, Y, Z F }

// positionNames match the names of components that are likely to be positions.
var positionNames = regexp.MustCompile(`(?i)pos|place|location|transform|body|coord`)

var errNoPosition = errors.New("nothing in it looks like a position: -render needs a component with float fields " +
	"X and Y, and possibly Z, or with an array of two or three floats")

// findAxes returns the position of the first component that has one, preferably of one named like a position.
func findAxes(components []component) (*axes, error) {
	var found *axes
	for i := range components {
		a := axesOf(&components[i])
		if a == nil {
			continue
		}
		a.from = i
		if positionNames.MatchString(components[i].name) {
			return a, nil
		}
		if found == nil {
			found = a
		}
	}
	if found == nil {
		return nil, errNoPosition
	}
	return found, nil
}

// axesOf returns the position in a component, or nil.
func axesOf(c *component) *axes {
	a := &axes{fields: map[int]bool{}}
	for _, name := range []string{"X", "Y", "Z"} {
		if i := slices.IndexFunc(c.fields, func(f field) bool { return f.name == name && !f.array }); i >= 0 {
			a.add(c, i)
		}
	}
	if len(a.names) == 1 {
		a = &axes{fields: map[int]bool{}}
	}
	for i := range c.fields {
		if f := &c.fields[i]; len(a.names) == 0 && f.array && (f.length == 2 || f.length == 3) {
			a.add(c, i)
		}
	}
	if len(a.names) < 2 {
		return nil
	}
	return a
}

// add makes a field an axis, or several if it is an array, unless it is not a float or of another type than the axes so
// far, or moves in circles.
func (a *axes) add(c *component, number int) {
	f := &c.fields[number]
	if !f.float() || !linear(f.tag) {
		return
	}
	scalar := scalars[f.scalar().Kind().String()]
	if a.scalar != nil && a.scalar != scalar {
		return
	}
	a.scalar, a.fields[number] = scalar, true
	for k := range f.length {
		name := f.fullName(c.name)
		if f.array {
			name += "[" + strconv.Itoa(k) + "]"
		}
		a.names, a.columns = append(a.names, name), append(a.columns, f.column+k)
		a.tags = append(a.tags, withoutKey(f.tag, "place"))
	}
}

// linear reports whether the values of a float with this tag are on a line.
func linear(tag string) bool {
	ranged, stepped := false, false
	for item := range strings.SplitSeq(tag, ",") {
		switch key, _, _ := strings.Cut(item, "="); key {
		case "", "half", "raw", "jump", "linear", "counter", "hold", "cut", "place":
		case "range":
			ranged = true
		case "step", "precision":
			stepped = true
		default:
			return false
		}
	}
	return ranged == stepped
}

// withoutKey returns a tag without a key that has no value.
func withoutKey(tag, key string) string {
	items := slices.DeleteFunc(strings.Split(tag, ","), func(item string) bool { return item == key })
	return strings.Join(items, ",")
}

// carve reads the following rows as if the trace had its position in a component of its own, of type place. Codes are
// the same as before.
func (r *reader) carve() (*axes, error) {
	a, err := findAxes(r.components)
	if err != nil {
		return nil, r.faultAt(r.typesLine, err)
	}
	r.components = slices.Clone(r.components)
	from := &r.components[a.from]
	own, rest := *from, []field(nil)
	for i, f := range from.fields {
		if !a.fields[i] {
			rest = append(rest, f)
		}
	}
	own.fields, own.options = a.placeFields()
	if own.typ = reflect.TypeFor[place[float32]](); a.scalar.Kind() == reflect.Float64 {
		own.typ = reflect.TypeFor[place[float64]]()
	}
	if len(rest) == 0 {
		*from, a.index = own, a.from
	} else {
		from.fields, from.typ = rest, structOf(from.name, rest)
		for taken := true; taken; {
			own.name += "Place"
			taken = slices.ContainsFunc(r.components, func(c component) bool { return c.name == own.name })
		}
		a.index = len(r.components)
		r.components = append(r.components, own)
	}
	r.row = r.newRow()
	return a, nil
}

// placeFields returns the fields of the component of type place, and the options that register it.
func (a *axes) placeFields() (fields []field, options []replication.ComponentOption) {
	for i, name := range []string{"X", "Y", "Z"} {
		if i >= len(a.columns) {
			options = append(options, replication.Field(name, "-"))
			continue
		}
		fields = append(fields, field{name: name, column: a.columns[i], length: 1, typ: a.scalar, tag: a.tags[i]})
		options = append(options, replication.Field(name, a.tags[i]))
	}
	return fields, options
}

// position returns the position in the latest row. ok is false if the entity has none.
func (a *axes) position(r *reader) (at vector, ok bool) {
	if !r.has[a.index] {
		return at, false
	}
	for i, column := range a.columns {
		at[i] = r.cells[column].Float()
	}
	return at, true
}
