package main

import (
	"fmt"
	"slices"
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
			return nil, blame(c.columnName(),
				"too much for one entity: it has at most %d components and %d bytes", maxComponents, maxEntityBytes)
		}
		// Field by field first, to find the one that is refused.
		for i, f := range c.fields {
			alone := component{name: c.name, fields: c.fields[i : i+1]}
			if err := alone.register(replication.NewSchema()); err != nil {
				return nil, blame(f.columnName(c.name), "%v", err)
			}
		}
		if err := c.register(schema); err != nil {
			return nil, blame(c.columnName(), "%v", err)
		}
	}
	return schema, nil
}

// register returns the library's panic on misuse as an error: here the types come from a file, so
// it is not a mistake of the program.
func (c *component) register(schema *replication.Schema) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s", strings.TrimPrefix(fmt.Sprint(p), "replication: "))
		}
	}()
	typ := c.typ
	if typ == nil {
		typ = structOf(c.name, c.fields)
	}
	options := append(slices.Clip(c.options), replication.Name(c.name))
	for _, opt := range fieldOptions(c.fields) {
		options = append(options, opt)
	}
	replication.RegisterType(schema, typ, options...)
	return nil
}

// columnName returns the name of the component's first column.
func (c *component) columnName() string {
	if len(c.fields) == 0 {
		return c.name
	}
	return c.fields[0].columnName(c.name)
}

// columnName returns the name of the column with the field's type.
func (f *field) columnName(component string) string {
	name := f.fullName(component)
	if f.array {
		name += "[0]"
	}
	return name
}
