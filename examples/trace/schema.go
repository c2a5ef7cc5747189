package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication"
)

// Limits of an entity. Arche fails with more than 240 component types, of which a marker is one;
// the library sends at most 32 KiB of state for an entity.
const (
	maxComponents  = 239
	maxEntityBytes = 32 << 10
)

// buildSchema registers the components of a trace. If the library refuses something, the error
// names a column.
func buildSchema(components []component) (*replication.Schema, error) {
	schema := replication.NewSchema()
	size := 0
	for n, c := range components {
		size += int(c.typ.Size())
		if n == maxComponents || size > maxEntityBytes {
			return nil, blame(c.fields[0].columnName(c.name),
				"too much for one entity: it has at most %d components and %d bytes", maxComponents, maxEntityBytes)
		}
		// Field by field first, to find the one that is refused.
		for i, f := range c.fields {
			if err := register(replication.NewSchema(), c.name, structOf(c.name, c.fields[i:i+1])); err != nil {
				return nil, blame(f.columnName(c.name), "%v", err)
			}
		}
		if err := register(schema, c.name, c.typ, c.options...); err != nil {
			return nil, blame(c.fields[0].columnName(c.name), "%v", err)
		}
	}
	return schema, nil
}

// register returns the library's panic on misuse as an error: here the types come from a file, so
// it is not a mistake of the program.
func register(
	schema *replication.Schema, name string, typ reflect.Type, options ...replication.ComponentOption,
) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s", strings.TrimPrefix(fmt.Sprint(p), "replication: "))
		}
	}()
	replication.RegisterType(schema, typ, append(options, replication.Name(name))...)
	return nil
}

// columnName returns the name of the column with the field's type.
func (f *field) columnName(component string) string {
	name := component + "." + f.name
	if f.array {
		name += "[0]"
	}
	return name
}
