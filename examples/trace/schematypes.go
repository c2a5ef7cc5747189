package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// makeType makes the types of the fields, and numbers their columns.
func (t *textType) makeType(own slot) error {
	column := 0
	t.first = 0
	for i := range t.fields {
		f := &t.fields[i]
		elements := 1
		for _, lengths := range append(slices.Clip(f.around), f.dims) {
			for _, n := range lengths {
				if elements *= n; elements > maxElements {
					return fmt.Errorf("more than %d elements", maxElements)
				}
			}
		}
		if len(f.codes) > 256 {
			return errors.New("a codec of more than 256 codes")
		}
		if len(f.codes) > 0 {
			from := slots[0]
			if f.name == "" {
				from = own
			}
			f.typ, f.with = from.codec(f.codes)
		} else if f.name == "" {
			f.typ = own.scalar(f.typ)
		}
		f.typ = arrayOf(f.dims, f.typ)
		f.array, f.column, f.length = len(f.dims) > 0, column, elements
		column += elements
	}
	t.end = column
	t.typ = structOf(t.name, t.fields)
	return nil
}

// register registers the types.
func (s *textSchema) register() {
	tables := ""
	for i := range s.types {
		t := &s.types[i]
		tables += t.tables
		opts := append([]replication.TypeOption{replication.Name(t.name)}, fieldOptions(t.fields)...)
		switch t.word {
		case "component":
			replication.RegisterType(s.schema, t.typ, s.componentOptions(t, opts)...)
		case "resource":
			replication.RegisterResourceType(s.schema, t.typ, components(opts)...)
		case "input":
			replication.RegisterInputType(s.schema, t.typ, opts...)
		case "message":
			var messageOpts []replication.MessageOption
			for _, opt := range opts {
				messageOpts = append(messageOpts, opt)
			}
			if slices.Contains(t.shown, "unreliable") {
				messageOpts = append(messageOpts, replication.Unreliable())
			}
			if slices.Contains(t.shown, "immediate") {
				messageOpts = append(messageOpts, replication.Immediate())
			}
			replication.RegisterMessageType(s.schema, t.typ, messageOpts...)
		}
	}
	if tables != "" {
		s.schema.Tune(tables)
	}
}

// componentOptions adds the options that the line of a component has. If there are conditions, which components have
// them makes no difference to who receives.
func (s *textSchema) componentOptions(t *textType, opts []replication.TypeOption) []replication.ComponentOption {
	all := components(opts)
	for _, word := range t.shown {
		key, value, _ := strings.Cut(word, "=")
		number, name, _ := strings.Cut(value, ",")
		n, _ := strconv.ParseFloat(number, 64)
		switch key {
		case "newest":
			all = append(all, replication.Newest())
		case "snap":
			all = append(all, replication.Snap(n))
		case "hermite":
			i := slices.IndexFunc(s.types, func(v textType) bool { return v.name == name && v.word == "component" })
			if i < 0 {
				panic(fmt.Sprintf("%s: there is no component %.80q", t.name, name))
			}
			all = append(all, replication.HermiteType(s.types[i].typ, n))
		}
	}
	if s.conditional && !slices.ContainsFunc(t.fields, func(f field) bool { return f.typ == relationType }) {
		all = append(all, replication.OwnerOnly())
	}
	return all
}

var (
	entityType   = reflect.TypeFor[ecs.Entity]()
	relationType = reflect.TypeFor[ecs.Relation]()
)

func components(opts []replication.TypeOption) []replication.ComponentOption {
	var all []replication.ComponentOption
	for _, opt := range opts {
		all = append(all, opt)
	}
	return all
}
