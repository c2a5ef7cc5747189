package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// maxComponentFields is the largest number of leaves of a component. More of them would not fit into packets in any useful
// way, and an array of a million elements is more likely a mistake.
const maxComponentFields = 4096

// Flattener walks a component type and fills the component's columns and lines.
type Flattener struct {
	Component *Component
	overrides []FieldOverride
	matched   []bool   // which overrides have met their field
	paths     []string // of the fields met, for the message about an override that met none
	width     int      // bits

	conversions []*ConversionUse
}

// FieldPlace is where in the component a value is.
type FieldPlace struct {
	path    string // with indices, for people
	pattern string // without, for overrides
	steps   []int
	offset  uintptr
	standIn bool // it is that, or in it
}

func (at FieldPlace) field(i int, f *reflect.StructField) FieldPlace {
	at.path = joinPath(at.path, f.Name)
	at.pattern = joinPath(at.pattern, f.Name)
	at.steps = append(slices.Clip(at.steps), i)
	at.offset += f.Offset
	return at
}

func (at FieldPlace) element(i int, size uintptr) FieldPlace {
	at.path += "[" + strconv.Itoa(i) + "]"
	at.steps = append(slices.Clip(at.steps), i)
	at.offset += uintptr(i) * size
	return at
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fullPath returns a path with the component's name in front.
func (f *Flattener) fullPath(path string) string { return fullPath(f.Component.Name, path) }

func fullPath(component, path string) string {
	if path == "" || path[0] == '[' {
		return component + path
	}
	return component + "." + path
}

func (f *Flattener) refuse(at FieldPlace, format string, args ...any) error {
	return fmt.Errorf("%s: %s", f.fullPath(at.path), fmt.Sprintf(format, args...))
}

// flatten walks the whole type.
func (f *Flattener) flatten() error {
	f.matched = make([]bool, len(f.overrides))
	for i, o := range f.overrides {
		if slices.ContainsFunc(f.overrides[:i], func(p FieldOverride) bool { return p.Path == o.Path }) {
			return fmt.Errorf("%s: the option Field(%q) is given twice", f.Component.Name, o.Path)
		}
	}
	tag, err := f.override("", Tag{})
	if err != nil {
		return err
	}
	if tag.Mode == ModeSkip {
		return fmt.Errorf("%s: a component can't be skipped: don't register it", f.Component.Name)
	}
	if err := f.Value(f.Component.Typ, FieldPlace{}, tag); err != nil {
		return err
	}
	for i, o := range f.overrides {
		if !f.matched[i] {
			return fmt.Errorf("%s: the option Field(%q) names no exported field: there are %s", f.Component.Name, o.Path, listPaths(f.paths))
		}
	}
	return f.checkConversions()
}

// maxPathsListed keeps a message readable.
const maxPathsListed = 20

func listPaths(paths []string) string {
	switch {
	case len(paths) == 0:
		return "none"
	case len(paths) > maxPathsListed:
		return strings.Join(paths[:maxPathsListed], ", ") + " and more"
	}
	return strings.Join(paths, ", ")
}

// override returns the tag that counts for the field: the option's if there is one.
func (f *Flattener) override(pattern string, tag Tag) (Tag, error) {
	for i, o := range f.overrides {
		if o.Path == pattern {
			f.matched[i] = true
			tag = o.Tag
		}
	}
	if tag.err != nil {
		return tag, fmt.Errorf("%s: %w", f.fullPath(pattern), tag.err)
	}
	return tag, nil
}

// Value takes a value of type t, whose tag is not "skip".
func (f *Flattener) Value(t reflect.Type, at FieldPlace, tag Tag) error {
	if t.Kind() == reflect.Array && t.Size() == 0 {
		return nil // also keeps arrays of a billion empty structs from being walked
	}
	inner, dims := t, ""
	for inner.Kind() == reflect.Array && !isVector(inner, &tag) && !isText(inner, &tag) && !f.converted(inner, at) {
		dims += "[" + strconv.Itoa(inner.Len()) + "]"
		inner = inner.Elem()
	}
	switch {
	case f.converted(inner, at):
		return f.convert(t, inner, at, tag)
	case isVector(inner, &tag), isText(inner, &tag):
	case inner == reflect.TypeFor[ecs.Entity]():
		if !tag.empty() {
			return f.refuse(at, "an entity takes no tag but -")
		}
		if at.standIn {
			return f.refuse(at, noReferenceInTwin, "an entity")
		}
		return f.take(t, inner, at, dims, referenceCodec(OpEntity, "entity"))
	case inner.Kind() == reflect.Struct:
		if !tag.empty() {
			return f.refuseStructTag(inner, at, &tag)
		}
		return f.structs(t, at)
	case tag.Mode == ModeQuat || tag.Mode == ModeUnit:
		return f.refuseStructTag(inner, at, &tag)
	case tag.Mode == ModeMax:
		return f.refuse(at, "max is for strings and arrays of bytes, not for %v", inner)
	default:
		if what, instead := unsupportedKind(inner.Kind()); what != "" {
			return f.refuse(at, "%s can't be replicated; %s", what, skipAdvice(at, instead))
		}
	}
	q, err := newCodec(inner, &tag)
	if err != nil {
		return f.refuse(at, "%s", err)
	}
	return f.take(t, inner, at, dims, q)
}

// take takes an inner, or an array of arrays of them, with the given codec.
func (f *Flattener) take(t, inner reflect.Type, at FieldPlace, dims string, q *Codec) error {
	// Compare sizes first: the number of elements may exceed an int's useful range.
	count := t.Size() / inner.Size()
	if count > uintptr(maxComponentFields-len(f.Component.Columns)) {
		return f.refuse(at, "a component has at most %d fields, array elements included; split it or skip the field", maxComponentFields)
	}
	if f.width += int(count) * q.width(); f.width > wire.MaxEntityBits {
		return f.refuse(at, "a component takes at most 32 KiB; shorten it, split it or skip the field")
	}
	f.Component.Lines = append(f.Component.Lines, f.fullPath(at.path)+" "+dims+q.Text)
	f.leaves(t, inner, at, q)
	return nil
}

// leaves appends a column for every inner in t, an array of arrays of them.
func (f *Flattener) leaves(t, inner reflect.Type, at FieldPlace, q *Codec) {
	if t != inner {
		for i := range t.Len() {
			f.leaves(t.Elem(), inner, at.element(i, t.Elem().Size()), q)
		}
		return
	}
	c := f.Component
	if q.Op == OpEntity || q.Op == OpRelation {
		c.References = append(c.References, len(c.Columns))
	}
	c.Columns = append(c.Columns, Column{Path: at.path, Steps: at.steps, offset: at.offset, Word: c.Words, Codec: q})
	c.Words += q.Words()
}

// structs takes a struct, or an array of them.
func (f *Flattener) structs(t reflect.Type, at FieldPlace) error {
	if t.Kind() == reflect.Struct {
		return f.fields(t, at)
	}
	for i := range t.Len() {
		before := len(f.Component.Columns)
		if err := f.structs(t.Elem(), at.element(i, t.Elem().Size())); err != nil {
			return err
		}
		if len(f.Component.Columns) == before {
			break // all skipped: nor have the others anything
		}
	}
	return nil
}

// fields takes a struct field by field.
func (f *Flattener) fields(t reflect.Type, at FieldPlace) error {
	taken := false
	for i := range t.NumField() {
		field := t.Field(i)
		inside := at.field(i, &field)
		text := field.Tag.Get("repl")
		// The exported fields of an embedded struct are promoted even if its type is unexported.
		if !field.IsExported() && (!field.Anonymous || field.Type.Kind() != reflect.Struct) {
			if text != "" && text != string(ModeSkip) {
				return f.refuse(inside, "the tag of an unexported field has no effect; export the field or remove the tag")
			}
			continue
		}
		taken = true
		if len(f.paths) <= maxPathsListed && !slices.Contains(f.paths, inside.pattern) {
			f.paths = append(f.paths, inside.pattern)
		}
		tag, err := ParseFieldTag(text)
		if err != nil {
			tag.err = err
		}
		if tag, err = f.override(inside.pattern, tag); err != nil {
			return err
		}
		if tag.Mode == ModeSkip {
			if err := tag.check(); err != nil {
				return f.refuse(inside, "%s", err)
			}
			continue
		}
		if field.Type == reflect.TypeFor[ecs.Relation]() {
			if err := f.relation(inside, &field, tag); err != nil {
				return err
			}
			continue
		}
		if err := f.Value(field.Type, inside, tag); err != nil {
			return err
		}
	}
	if !taken && t.Size() > 0 {
		return f.refuse(at, "all fields of %v are unexported; %s", t, skipAdvice(at, "export some"))
	}
	return nil
}

// noReferenceInTwin is why: what an entity is at the client may change at any time, and the twin is not there any more then.
const noReferenceInTwin = "%s can't be in a type that As puts in the place of another: send it in a field as it is, of this component or another, " +
	`and skip it there with repl:"-"`

// relation takes the field that makes a component a relation.
func (f *Flattener) relation(at FieldPlace, field *reflect.StructField, tag Tag) error {
	switch {
	case len(at.steps) != 1 || at.steps[0] != 0 || !field.Anonymous:
		return f.refuse(at, "ecs.Relation must be embedded as the component's first field, the only place where Arche looks for it; %s", skipAdvice(at, ""))
	case !tag.empty():
		return f.refuse(at, "a relation takes no tag but -")
	case at.standIn:
		return f.refuse(at, noReferenceInTwin, "a relation")
	}
	// It has no size to count elements by, and is the first column.
	c := f.Component
	q := referenceCodec(OpRelation, "relation")
	f.width += q.width()
	c.Lines = append(c.Lines, f.fullPath(at.path)+" "+q.Text)
	f.leaves(field.Type, field.Type, at, q)
	return nil
}

func (f *Flattener) refuseStructTag(t reflect.Type, at FieldPlace, tag *Tag) error {
	switch tag.Mode {
	case ModeQuat:
		return f.refuse(at, "quat needs four floats of one type, x, y, z and w: [4]float32, [4]float64 or a struct of exported fields, not %v", t)
	case ModeUnit:
		return f.refuse(at, "unit needs three floats of one type, x, y and z: [3]float32, [3]float64 or a struct of exported fields, not %v", t)
	}
	return f.refuse(at, "a struct takes no tag but quat, unit and -; put tags on its fields")
}

// skipAdvice says how to mend a field of an unsupported type.
func skipAdvice(at FieldPlace, instead string) string {
	skip := `skip the field with repl:"-"`
	switch {
	case len(at.steps) == 0 && instead == "" && at.standIn:
		return "use another type in As"
	case len(at.steps) == 0 && instead == "":
		return "don't register the component"
	case len(at.steps) == 0:
		return instead
	case instead == "":
		return skip
	}
	return instead + " or " + skip
}

// unsupportedKind returns what a kind that can't be replicated is called, and what may be used in its place.
func unsupportedKind(kind reflect.Kind) (what, instead string) {
	switch kind {
	case reflect.Slice:
		return "slices", "use a fixed array"
	case reflect.String:
		return "strings without a bound", "give them one by the tag max=N"
	case reflect.Map:
		return "maps", ""
	case reflect.Pointer, reflect.UnsafePointer:
		return "pointers", ""
	case reflect.Interface:
		return "interfaces", ""
	case reflect.Func:
		return "functions", ""
	case reflect.Chan:
		return "channels", ""
	case reflect.Complex64, reflect.Complex128:
		return "complex numbers", "use two floats"
	case reflect.Uintptr:
		return "uintptrs", "use uint64"
	}
	return "", ""
}

// isVector reports whether the tag makes one value of the numbers in t.
func isVector(t reflect.Type, tag *Tag) bool {
	switch tag.Mode {
	case ModeQuat:
		return vectorElem(t, 4) != reflect.Invalid
	case ModeUnit:
		return vectorElem(t, 3) != reflect.Invalid
	}
	return false
}

// vectorElem returns the kind of the floats if t is an array or struct of just count floats of one type, all exported;
// either way they lie side by side in memory.
func vectorElem(t reflect.Type, count int) reflect.Kind {
	var elem reflect.Type
	switch {
	case t.Kind() == reflect.Array && t.Len() == count:
		elem = t.Elem()
	case t.Kind() == reflect.Struct && t.NumField() == count:
		elem = t.Field(0).Type
		for i := range count {
			if f := t.Field(i); f.Type != elem || !f.IsExported() {
				return reflect.Invalid
			}
		}
	default:
		return reflect.Invalid
	}
	if kind := elem.Kind(); kind == reflect.Float32 || kind == reflect.Float64 {
		return kind
	}
	return reflect.Invalid
}
