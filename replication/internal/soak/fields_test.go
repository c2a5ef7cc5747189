package soak

import (
	"fmt"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication"
)

// skipped is a field that is not replicated.
func skipped(g *chance) fieldSpec {
	if g.one(3) { // of a type that can't be replicated
		return fieldSpec{
			typ: reflect.TypeFor[[]func()](), tag: "-",
			leaves: func(_ string, _ uintptr, c *cells) { c.skips++ },
		}
	}
	return fieldSpec{
		typ: reflect.TypeFor[uint64](), tag: "-",
		leaves: func(path string, offset uintptr, c *cells) {
			c.locals, c.skips = append(c.locals, local{path, offset}), c.skips+1
		},
	}
}

// plain is a field of a single value.
func plain(g *chance) fieldSpec {
	switch g.IntN(6) {
	case 0:
		return boolField(g)
	case 1:
		return entityField(g)
	case 2, 3:
		return pick(g, integerFields...)(g)
	case 4:
		return floatField[float64](g)
	}
	return floatField[float32](g)
}

// anyField is a field of any kind. depth limits the nesting of structs and arrays.
func anyField(g *chance, depth int) fieldSpec {
	switch n := g.IntN(20); {
	case n < 8 || depth == 0 && n >= 15:
		return plain(g)
	case n == 8:
		return directionField[float32](g)
	case n == 9:
		return directionField[float64](g)
	case n == 10:
		return rotationField[float32](g)
	case n == 11:
		return rotationField[float64](g)
	case n == 12:
		return textField(1 + g.IntN(30))
	case n == 13:
		return bytesField(g)
	case n == 14:
		return skipped(g)
	case n == 15:
		return pick(g, asField, withField)(g)
	case n < 18:
		return arrayOf(g, 1+g.IntN(4), anyField(g, depth-1))
	}
	return structOf(g, fmt.Sprintf("N%d", depth), 1+g.IntN(3), depth-1, false)
}

// arrayOf is an array; its tag applies to its elements.
func arrayOf(_ *chance, n int, of fieldSpec) fieldSpec {
	s := of
	s.typ = reflect.ArrayOf(n, of.typ)
	size := of.typ.Size()
	s.leaves = func(path string, offset uintptr, c *cells) {
		for i := range n {
			of.leaves(fmt.Sprintf("%s[%d]", path, i), offset+uintptr(i)*size, c)
		}
	}
	return s
}

// structOf is a struct of n random fields. Where it may, it uses options in place of tags, as for a
// type of another module; a component then passes them on.
func structOf(g *chance, name string, n, depth int, component bool) fieldSpec {
	var fields []fieldSpec
	for range n {
		fields = append(fields, anyField(g, depth))
	}
	return fieldsOf(name, fields, component && g.one(4))
}

func fieldsOf(name string, fields []fieldSpec, options bool) fieldSpec {
	s := fieldSpec{opts: map[string]replication.ComponentOption{}}
	var of []reflect.StructField
	for i, f := range fields {
		field := reflect.StructField{Name: fmt.Sprintf("%sF%d", name, i), Type: f.typ}
		if f.tag != "" {
			if options {
				s.opts[field.Name] = replication.Field(field.Name, f.tag)
			} else {
				field.Tag = reflect.StructTag(fmt.Sprintf(`repl:"%s"`, f.tag))
			}
		}
		for key, o := range f.opts {
			s.opts[key] = o
		}
		of = append(of, field)
	}
	s.typ = reflect.StructOf(of)
	s.leaves = func(path string, offset uintptr, c *cells) {
		for i, f := range fields {
			field := s.typ.Field(i)
			f.leaves(path+"."+field.Name, offset+field.Offset, c)
		}
	}
	return s
}
