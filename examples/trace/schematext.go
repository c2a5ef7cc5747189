package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
)

// textSchema is a schema that was made from its text: see docs/wire-format.md, section 12. Its types have the fields
// that the text names.
type textSchema struct {
	schema      *replication.Schema
	types       []textType
	conditional bool // some components have conditions; the text does not name them
}

// textType is a component, resource, message or input.
type textType struct {
	component
	word   string   // component, resource, message or input
	shown  []string // the rest of its line
	tables string   // for Schema.Tune
}

// Limits of a schema text, which comes from a file.
const (
	maxSchemaText = 1 << 20
	maxElements   = 4096 // of arrays: the library's limit for the fields of a component
)

// schemaOf makes the schema that has the given text. The error is a sentence.
func schemaOf(text string) (s *textSchema, err error) {
	if len(text) > maxSchemaText {
		return nil, fmt.Errorf("the schema's text has %d bytes, more than %d", len(text), maxSchemaText)
	}
	defer func() { // of reflect and the library, which check the types
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("types can't be made from the schema's text: %s",
				strings.TrimPrefix(fmt.Sprint(p), "replication: "))
		}
	}()
	s = &textSchema{schema: replication.NewSchema()}
	if err := s.parse(text); err != nil {
		return nil, fmt.Errorf("types can't be made from the schema's text: %w", err)
	}
	s.register()
	if got := s.schema.Text(); got != text {
		was, is := strings.Split(text, "\n"), strings.Split(got, "\n")
		i := 0
		for i < min(len(was), len(is))-1 && was[i] == is[i] {
			i++
		}
		return nil, fmt.Errorf("types can't be made from the schema's text: line %d, %.80q, would become %.80q",
			i+1, was[i], is[i])
	}
	return s, nil
}

// parse reads the text.
func (s *textSchema) parse(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		number++
		words := strings.Split(line, " ")
		n := len(s.types)
		var err error
		switch {
		case number == 1: // compared later
		case line == "facets":
			s.conditional = true
		case len(words) > 1 && slices.Contains([]string{"component", "resource", "message", "input"}, words[0]):
			s.types = append(s.types, textType{component: component{name: words[1]}, word: words[0], shown: words[2:]})
		case n == 0:
			err = errors.New("it stands before the first component")
		default:
			err = s.types[n-1].parseField(line)
		}
		if err != nil {
			return fmt.Errorf("line %d, %.80q: %w", number, line, err)
		}
	}
	own := 0
	for i := range s.types {
		t := &s.types[i]
		if err := t.makeType(slots[min(own, len(slots)-1)]); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if len(t.fields) == 1 && t.fields[0].name == "" {
			if own++; own > len(slots) {
				return fmt.Errorf("more than %d components are no structs", len(slots))
			}
		}
	}
	return nil
}

// pathPart is a name on the way to a field, and the indices after it.
type pathPart struct {
	name  string
	index []int
}

// splitPath splits the path of a field. The first part is the component itself, without a name.
func splitPath(path string) (parts []pathPart, err error) {
	for i, text := range strings.Split(path, ".") {
		name, indices, _ := strings.Cut(text, "[")
		p := pathPart{name: name}
		if i == 0 && name != "" {
			return nil, errors.New("it does not begin with the component's name")
		}
		if indices != "" {
			closed := false
			if indices, closed = strings.CutSuffix(indices, "]"); !closed {
				return nil, errors.New("a bracket is open")
			}
			for digits := range strings.SplitSeq(indices, "][") {
				n, err := strconv.Atoi(digits)
				if err != nil || n < 0 || n >= maxElements {
					return nil, fmt.Errorf("%.20q is no index", digits)
				}
				p.index = append(p.index, n)
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// grow makes lengths of arrays so large that there is an element with the index.
func grow(lengths, index []int) ([]int, error) {
	if lengths == nil {
		lengths = make([]int, len(index))
	}
	if len(lengths) != len(index) {
		return nil, errors.New("the same array has other dimensions than before")
	}
	for i, n := range index {
		lengths[i] = max(lengths[i], n+1)
	}
	return lengths, nil
}

// parseField reads the line of a field. The elements of an array of structs have a line each, and make one field.
func (t *textType) parseField(line string) error {
	path, declared, _ := strings.Cut(line, " ")
	path, ok := strings.CutPrefix(path, t.name)
	if !ok {
		return errors.New("it does not begin with the component's name")
	}
	parts, err := splitPath(path)
	if err != nil {
		return err
	}
	typeName, tag, _ := strings.Cut(declared, " ")
	code := replication.CodecField{}
	if typeName == "code" {
		last := parts[len(parts)-1]
		if code, tag, err = parseCode(last.name, tag); err != nil || len(last.index) > 0 || len(parts) == 1 {
			return cmp.Or(err, errors.New("a code is a single one"))
		}
		parts = parts[:len(parts)-1]
	}
	names := make([]string, 0, len(parts))
	for _, p := range parts[1:] {
		if !token.IsIdentifier(p.name) || !token.IsExported(p.name) {
			return fmt.Errorf("%.80q is no exported name: embedded structs of unexported types can't be made", p.name)
		}
		names = append(names, p.name)
	}
	f := t.field(strings.Join(names, "."))
	for i, p := range parts[:len(parts)-1] {
		if f.around == nil {
			f.around = make([][]int, len(parts)-1)
		}
		if f.around[i], err = grow(f.around[i], p.index); err != nil {
			return err
		}
	}
	last := parts[len(parts)-1]
	if typeName == "code" {
		if f.dims, err = grow(f.dims, last.index); err != nil {
			return err
		}
		if !slices.ContainsFunc(f.codes, func(c replication.CodecField) bool { return c.Name == code.Name }) {
			f.codes = append(f.codes, code)
		}
	} else if len(last.index) > 0 {
		return errors.New("an array of numbers has one line")
	} else if err := f.parseTextType(typeName, tag); err != nil {
		return err
	}
	tag, table := cutTable(tag)
	if table != "" {
		t.tables += t.name + path + "=" + table + " "
	}
	f.tag = tag
	return nil
}

// field returns the field with the name, a new one if there is none.
func (t *textType) field(name string) *field {
	if i := slices.IndexFunc(t.fields, func(f field) bool { return f.name == name }); i >= 0 {
		return &t.fields[i]
	}
	t.fields = append(t.fields, field{name: name})
	return &t.fields[len(t.fields)-1]
}

// parseTextType parses a type such as [4]float32.
func (f *field) parseTextType(name, tag string) error {
	f.dims = nil
	for strings.HasPrefix(name, "[") {
		n, element, ok := splitType(name)
		if name = element; !ok || n == 0 || n > maxElements {
			return errors.New("it is no array that a component can have")
		}
		f.dims = append(f.dims, n)
	}
	switch name {
	case "entity":
		f.typ = reflect.TypeFor[ecs.Entity]()
	case "relation":
		f.typ = reflect.TypeFor[ecs.Relation]()
	case "string":
		f.typ = reflect.TypeFor[string]()
	case "bytes":
		digits, _, _ := strings.Cut(strings.TrimPrefix(tag, "max="), ",")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > delta.MaxBytes {
			return fmt.Errorf("%.20q is no number of bytes", digits)
		}
		f.typ = reflect.ArrayOf(n, reflect.TypeFor[uint8]())
	default:
		typ, ok := scalars[name]
		if !ok {
			return fmt.Errorf("the type %.40q is not known", name)
		}
		f.typ = typ
	}
	return nil
}

// codeKinds are the kinds of codes, as the text has them.
var codeKinds = []delta.Kind{delta.Linear, delta.Wrap, delta.Counter, delta.Flags}

// parseCode parses a code of a codec. rest is what belongs to its field.
func parseCode(name, tag string) (code replication.CodecField, rest string, err error) {
	code.Name = name
	var others []string
	for item := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(item, "=")
		var n uint64
		switch key {
		case "bits":
			n, err = strconv.ParseUint(value, 10, 8)
			code.Bits = uint(n)
		case "max":
			code.Max, err = strconv.ParseUint(value, 10, 64)
		default:
			i := slices.IndexFunc(codeKinds, func(k delta.Kind) bool { return k.String() == item })
			if i < 0 {
				others = append(others, item)
			} else {
				code.Kind = codeKinds[i]
			}
		}
		if err != nil {
			return code, "", fmt.Errorf("%.40q is no number", value)
		}
	}
	return code, strings.Join(others, ","), nil
}

// cutTable separates the table for Schema.Tune from a tag.
func cutTable(tag string) (rest, table string) {
	var items []string
	for item := range strings.SplitSeq(tag, ",") {
		if digits, ok := strings.CutPrefix(item, "orders="); ok {
			table = digits
		} else if item != "" {
			items = append(items, item)
		}
	}
	return strings.Join(items, ","), table
}
