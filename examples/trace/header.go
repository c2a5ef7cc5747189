package main

import (
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// header describes the rows of a trace.
type header struct {
	rate       float64 // ticks per second
	columns    []string
	tickBits   int
	entityBits int
	components []component
	typesLine  int    // the line of the types, for errors
	tables     string // of a recording, for Schema.Tune
}

// component is a component type of a trace. It takes the columns first to end-1.
type component struct {
	name       string
	fields     []field
	first, end int
	typ        reflect.Type                  // a struct, once the types are known
	options    []replication.ComponentOption // instead of tags
	source     int                           // of a recording: the number of the type
}

// field is a field of a component. It takes one column or, as an array, one per element. In a recording, it may be
// inside structs, Gun.Heat, and in arrays of them; a component that is no struct has one field without a name.
type field struct {
	name   string
	around [][]int // of a recording: lengths of the arrays that are the component and the structs on the way
	array  bool
	column int // the first
	length int // number of columns
	dims   []int
	typ    reflect.Type
	tag    string // of the key repl

	codes []replication.CodecField // of a recording, where the game converts a value by a codec
	with  func(paths ...string) replication.TypeOption
}

// headColumns is the number of columns before the components.
const headColumns = 2

// columnError is an error in a column.
type columnError struct {
	column string
	reason string
}

func (e *columnError) Error() string { return e.column + ": " + e.reason }

func blame(column, format string, args ...any) error {
	return &columnError{column, fmt.Sprintf(format, args...)}
}

// parseNames parses the row of column names.
func (h *header) parseNames(names []string) error {
	for i, want := range [headColumns]string{"tick", "entity"} {
		if i >= len(names) || names[i] != want {
			return fmt.Errorf("column %d must be named %s; "+
				"a trace starts with tick,entity and goes on with columns like Position.X", i+1, want)
		}
	}
	if len(names) == headColumns {
		return fmt.Errorf("there is no component; after tick,entity come columns like Position.X")
	}
	h.columns = append([]string(nil), names...)
	for i := headColumns; i < len(names); i++ {
		if err := h.parseName(i, names[i]); err != nil {
			return err
		}
	}
	return nil
}

// parseName adds a column to the components.
func (h *header) parseName(column int, name string) error {
	compName, fieldName, index, ok := splitName(name)
	if !ok {
		return blame(name,
			"a column is named Component.Field or Component.Field[i], with Go names, the field's exported")
	}
	if n := len(h.components); n == 0 || h.components[n-1].name != compName {
		for _, c := range h.components {
			if c.name == compName {
				return blame(name, "the columns of %s must stand together", compName)
			}
		}
		h.components = append(h.components, component{name: compName, first: column})
	}
	c := &h.components[len(h.components)-1]
	c.end = column + 1

	if index > 0 {
		if n := len(c.fields); n > 0 {
			if f := &c.fields[n-1]; f.array && f.name == fieldName && f.length == index {
				f.length++
				return nil
			}
		}
		return blame(name, "the elements of an array must stand together, in order from [0]")
	}
	for _, f := range c.fields {
		if f.name == fieldName {
			return blame(name, "the field %s of %s is there already", fieldName, compName)
		}
	}
	c.fields = append(c.fields, field{name: fieldName, array: index == 0, column: column, length: 1})
	return nil
}

// splitName splits a column name. Without [i] the index is -1.
func splitName(name string) (component, field string, index int, ok bool) {
	component, field, _ = strings.Cut(name, ".")
	index = -1
	if open := strings.IndexByte(field, '['); open >= 0 {
		digits, closed := strings.CutSuffix(field[open+1:], "]")
		n, err := strconv.ParseUint(digits, 10, 16)
		if !closed || err != nil || strconv.FormatUint(n, 10) != digits {
			return "", "", 0, false
		}
		field, index = field[:open], int(n)
	}
	ok = token.IsIdentifier(component) && token.IsIdentifier(field) && token.IsExported(field)
	return component, field, index, ok
}

// parseTypes parses the row of column types, which has as many cells as there are names, and builds
// the component types.
func (h *header) parseTypes(types []string) error {
	for i, bits := range [headColumns]*int{&h.tickBits, &h.entityBits} {
		typ, ok := scalars[types[i]]
		if !ok || typ.Kind() < reflect.Uint8 || typ.Kind() > reflect.Uint64 {
			return blame(h.columns[i], "%q is not an unsigned integer type, such as uint32", types[i])
		}
		*bits = typ.Bits()
	}
	for i := range h.components {
		c := &h.components[i]
		for j := range c.fields {
			f := &c.fields[j]
			if err := f.parseType(h.columns, types); err != nil {
				return err
			}
		}
		c.typ = structOf(c.name, c.fields)
	}
	return nil
}

// parseType parses a field's type and tag in the cell of its first column.
func (f *field) parseType(columns, types []string) error {
	name := columns[f.column]
	typeName, tag, _ := strings.Cut(types[f.column], " ")
	length, scalarName, isArray := splitType(typeName)
	scalar, ok := scalars[scalarName]
	switch {
	case !ok:
		return blame(name, "%q is not a type that a trace can hold; those are %s, and arrays of them "+
			"such as [4]float32", typeName, scalarNames)
	case isArray && !f.array:
		return blame(name, "%s is an array, so that the column must be named %s[0]", typeName, name)
	case !isArray && f.array:
		return blame(name, "%s is not an array, but the column is named like an element of one", typeName)
	case isArray && length != f.length:
		return blame(name, "%s has %d elements, but there are columns for %d", typeName, length, f.length)
	}
	for i := 1; i < f.length; i++ {
		if cell := types[f.column+i]; cell != "" {
			return blame(columns[f.column+i], "the type of an array stands at element 0 alone, but here is %q", cell)
		}
	}
	f.tag, f.typ = tag, scalar
	if isArray {
		f.dims, f.typ = []int{length}, reflect.ArrayOf(length, scalar)
	}
	return nil
}

// splitType splits a type such as [4]float32. The length is 0 if it is not an array.
func splitType(name string) (length int, element string, isArray bool) {
	rest, ok := strings.CutPrefix(name, "[")
	if !ok {
		return 0, name, false
	}
	digits, element, ok := strings.Cut(rest, "]")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil {
		return 0, "", false
	}
	return int(n), element, true
}

// structOf builds the component type as written in Go. Go would make components with equal fields
// one type, so a second struct tag contains the component's name.
func structOf(name string, fields []field) reflect.Type {
	if len(fields) == 1 && fields[0].name == "" {
		return fields[0].typ
	}
	var lengths []int
	if len(fields) > 0 && len(fields[0].around) > 0 {
		lengths = fields[0].around[0]
	}
	return arrayOf(lengths, structAt(name, fields, 0))
}

// structAt builds a struct inside so many others.
func structAt(name string, fields []field, depth int) reflect.Type {
	key := fmt.Sprintf("component:%q", name)
	if len(fields) == 0 { // a tag
		return reflect.StructOf([]reflect.StructField{{
			Name: "None", Type: reflect.TypeFor[struct{}](), Tag: reflect.StructTag(`repl:"-" ` + key),
		}})
	}
	var members []reflect.StructField
	for len(fields) > 0 {
		f, n := fields[0], 1
		names := strings.Split(f.name, ".")
		member := reflect.StructField{Name: names[depth], Type: f.typ, Tag: reflect.StructTag(key)}
		if depth < len(names)-1 {
			inside := strings.Join(names[:depth+1], ".") + "."
			for n < len(fields) && strings.HasPrefix(fields[n].name, inside) {
				n++
			}
			member.Type = arrayOf(f.around[depth+1], structAt(name, fields[:n], depth+1))
		} else {
			member.Anonymous = f.typ == relationType
			if f.tag != "" {
				member.Tag = reflect.StructTag(fmt.Sprintf("repl:%q %s", f.tag, key))
			}
		}
		members, fields = append(members, member), fields[n:]
	}
	return reflect.StructOf(members)
}

// arrayOf returns the type of an array of arrays.
func arrayOf(lengths []int, typ reflect.Type) reflect.Type {
	for _, n := range slices.Backward(lengths) {
		typ = reflect.ArrayOf(n, typ)
	}
	return typ
}

// steps returns, for each column of the field, the way to its value in a component type.
func (f *field) steps(typ reflect.Type) (all [][]int) {
	leaf := f.scalar()
	var walk func(t reflect.Type, names []string, way []int)
	walk = func(t reflect.Type, names []string, way []int) {
		way = slices.Clip(way)
		switch {
		case len(names) == 0 && t == leaf:
			all = append(all, way)
		case t.Kind() == reflect.Array:
			for i := range t.Len() {
				walk(t.Elem(), names, append(way, i))
			}
		default:
			member, _ := t.FieldByName(names[0])
			walk(member.Type, names[1:], append(way, member.Index[0]))
		}
	}
	var names []string
	if f.name != "" {
		names = strings.Split(f.name, ".")
	}
	walk(typ, names, nil)
	return all
}

// follow returns the value at the end of a way.
func follow(v reflect.Value, way []int) reflect.Value {
	for _, i := range way {
		if v.Kind() == reflect.Array {
			v = v.Index(i)
		} else {
			v = v.Field(i)
		}
	}
	return v
}

// fieldOptions returns the options that register fields which have no tags in their type.
func fieldOptions(fields []field) (opts []replication.TypeOption) {
	for _, f := range fields {
		if f.with != nil {
			opts = append(opts, f.with(f.name))
		}
		if f.name == "" && f.tag != "" {
			opts = append(opts, replication.Field("", f.tag))
		}
	}
	return opts
}
