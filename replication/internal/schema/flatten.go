package schema

// This file walks component types down to their leaves.

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/field"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// maxComponentFields is the largest number of leaves of a component. More would not fit into
// packets in any useful way, and an array of a million elements is probably a mistake.
const maxComponentFields = 4096

// Flattener walks a component type and fills in the component's columns and lines.
type Flattener struct {
	Component *Component
	overrides []FieldOverride
	matched   []bool   // which overrides have found their field
	paths     []string // of fields found, for the error about an override that finds none
	width     int      // bits of all columns so far
	stateless string   // what the type is, if clients show it as it arrives: a message, an input, a resource

	conversions []*ConversionUse
}

// FieldPlace is the place of a value in the component.
type FieldPlace struct {
	path    string // with indices, for people
	pattern string // without indices, for overrides
	steps   []int
	offset  uintptr
	standIn bool // the value is a stand-in, or inside one
}

// field returns the place of a field of the struct at this place.
func (at FieldPlace) field(i int, f *reflect.StructField) FieldPlace {
	at.path = joinPath(at.path, f.Name)
	at.pattern = joinPath(at.pattern, f.Name)
	at.steps = append(slices.Clip(at.steps), i)
	at.offset += f.Offset
	return at
}

// element returns the place of an element of the array at this place.
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

// refuse returns an error about the value at a place.
func (f *Flattener) refuse(at FieldPlace, format string, args ...any) error {
	return fmt.Errorf("%s: %s", f.fullPath(at.path), fmt.Sprintf(format, args...))
}

// flatten walks the component type.
func (f *Flattener) flatten() error {
	f.matched = make([]bool, len(f.overrides))
	for i, o := range f.overrides {
		if slices.ContainsFunc(f.overrides[:i], func(p FieldOverride) bool { return p.Path == o.Path }) {
			return fmt.Errorf("%s: the option Field(%q) is given twice", f.Component.Name, o.Path)
		}
	}
	tag, err := f.override("", field.Tag{}, nil)
	if err != nil {
		return err
	}
	if tag.Mode == field.ModeSkip {
		return fmt.Errorf("%s: a component can't be skipped: don't register it", f.Component.Name)
	}
	if err := f.Value(f.Component.Typ, FieldPlace{}, tag); err != nil {
		return err
	}
	for i, o := range f.overrides {
		if !f.matched[i] {
			return fmt.Errorf("%s: the option Field(%q) names no exported field: there are %s",
				f.Component.Name, o.Path, listPaths(f.paths))
		}
	}
	return f.checkConversions()
}

// maxPathsListed keeps error texts readable.
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

// override returns the tag that applies to a field: that of an option if there is one, else the one
// that was parsed.
func (f *Flattener) override(pattern string, tag field.Tag, err error) (field.Tag, error) {
	for i := range f.overrides {
		if o := &f.overrides[i]; o.Path == pattern {
			f.matched[i] = true
			tag, err = field.ParseTag(o.Tag)
		}
	}
	if key := tag.Shown(); err == nil && key != "" && f.stateless != "" {
		err = fmt.Errorf("%s is for components: nothing is shown between two values of %s", key, f.stateless)
	}
	if err != nil {
		return tag, fmt.Errorf("%s: %w", f.fullPath(pattern), err)
	}
	return tag, nil
}

// Value adds a value of type t, whose tag must not skip it.
func (f *Flattener) Value(t reflect.Type, at FieldPlace, tag field.Tag) error {
	if t.Kind() == reflect.Array && t.Size() == 0 {
		return nil // also keeps arrays of a billion empty structs from being walked
	}
	inner, dims := t, ""
	isLeaf := func(t reflect.Type) bool {
		return field.IsVector(t, &tag) || field.IsText(t, &tag) || f.converted(t, at)
	}
	for inner.Kind() == reflect.Array && !isLeaf(inner) {
		dims += "[" + strconv.Itoa(inner.Len()) + "]"
		inner = inner.Elem()
	}
	switch {
	case f.converted(inner, at):
		return f.convert(t, inner, at, tag)
	case field.IsVector(inner, &tag), field.IsText(inner, &tag):
	case inner == reflect.TypeFor[ecs.Entity]():
		if !tag.OnlyCut() {
			return f.refuse(at, "an entity takes no tag but cut and -")
		}
		if at.standIn {
			return f.refuse(at, noReferenceInTwin, "an entity")
		}
		return f.take(t, inner, at, dims, field.NewReference(field.OpEntity, "entity", &tag))
	case inner.Kind() == reflect.Struct:
		if !tag.Empty() {
			return f.refuseStructTag(inner, at, &tag)
		}
		return f.structs(t, at)
	case tag.Mode == field.ModeQuat || tag.Mode == field.ModeUnit:
		return f.refuseStructTag(inner, at, &tag)
	case tag.Mode == field.ModeMax:
		return f.refuse(at, "max is for strings and arrays of bytes, not for %v", inner)
	default:
		if what, instead := unsupportedKind(inner.Kind()); what != "" {
			return f.refuse(at, "%s can't be replicated; %s", what, skipAdvice(at, instead))
		}
	}
	q, err := field.NewCodec(inner, &tag)
	if err != nil {
		return f.refuse(at, "%s", err)
	}
	return f.take(t, inner, at, dims, q)
}

const (
	tooManyFields = "a component has at most %d fields, array elements included; split it or skip the field"
	tooManyBits   = "a component takes at most 32 KiB; shorten it, split it or skip the field"
)

// take adds an inner, or an array of arrays of them, with the given codec.
func (f *Flattener) take(t, inner reflect.Type, at FieldPlace, dims string, q *field.Codec) error {
	// Compare sizes first: the number of elements may exceed an int's useful range.
	count := t.Size() / inner.Size()
	if count > uintptr(maxComponentFields-len(f.Component.Columns)) {
		return f.refuse(at, tooManyFields, maxComponentFields)
	}
	if f.width += int(count) * q.Width(); f.width > wire.MaxEntityBits {
		return f.refuse(at, tooManyBits)
	}
	f.Component.Lines = append(f.Component.Lines, f.fullPath(at.path)+" "+dims+q.Text)
	f.leaves(t, inner, at, q)
	return nil
}

// leaves appends a column for every inner in t, an array of arrays of them.
func (f *Flattener) leaves(t, inner reflect.Type, at FieldPlace, q *field.Codec) {
	if t != inner {
		for i := range t.Len() {
			f.leaves(t.Elem(), inner, at.element(i, t.Elem().Size()), q)
		}
		return
	}
	c := f.Component
	if q.Op == field.OpEntity || q.Op == field.OpRelation {
		c.References = append(c.References, len(c.Columns))
	}
	c.Columns = append(c.Columns, Column{Path: at.path, Steps: at.steps, offset: at.offset, Word: c.Words, Codec: q})
	c.Words += q.Words()
}

// structs adds a struct, or an array of them.
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
			break // every field is skipped, and so it is in the other elements
		}
	}
	return nil
}

// fields adds the fields of a struct.
func (f *Flattener) fields(t reflect.Type, at FieldPlace) error {
	exported := false
	for i := range t.NumField() {
		member := t.Field(i)
		inside := at.field(i, &member)
		// The exported fields of an embedded struct are promoted even if its type is unexported.
		if !member.IsExported() && (!member.Anonymous || member.Type.Kind() != reflect.Struct) {
			if text := member.Tag.Get(field.TagKey); text != "" && text != string(field.ModeSkip) {
				return f.refuse(inside, "the tag of an unexported field has no effect; "+
					"export the field or remove the tag")
			}
			continue
		}
		exported = true
		if err := f.member(&member, inside); err != nil {
			return err
		}
	}
	if !exported && t.Size() > 0 {
		return f.refuse(at, "all fields of %v are unexported; %s", t, skipAdvice(at, "export some"))
	}
	return nil
}

// member adds a field of a struct, by its tag or the option that overrides it.
func (f *Flattener) member(member *reflect.StructField, at FieldPlace) error {
	if len(f.paths) <= maxPathsListed && !slices.Contains(f.paths, at.pattern) {
		f.paths = append(f.paths, at.pattern)
	}
	text, err := field.TagText(member.Tag)
	var tag field.Tag
	if err == nil {
		tag, err = field.ParseTag(text)
	}
	if tag, err = f.override(at.pattern, tag, err); err != nil {
		return err
	}
	switch {
	case tag.Mode == field.ModeSkip:
		if err := tag.Check(); err != nil {
			return f.refuse(at, "%s", err)
		}
		return nil
	case member.Type == reflect.TypeFor[ecs.Relation]():
		return f.relation(member, at, tag)
	}
	return f.Value(member.Type, at, tag)
}

// noReferenceInTwin refuses references in a twin: the client may learn later which entity is meant,
// when the twin no longer exists.
const noReferenceInTwin = "%s can't be in a type that As puts in the place of another: send it in a field as it is, " +
	`of this component or another, and skip it there with repl:"-"`

// relation adds the field that makes a component a relation.
func (f *Flattener) relation(member *reflect.StructField, at FieldPlace, tag field.Tag) error {
	switch {
	case len(at.steps) != 1 || at.steps[0] != 0 || !member.Anonymous:
		return f.refuse(at, "ecs.Relation must be embedded as the component's first field, "+
			"the only place where Arche looks for it; %s", skipAdvice(at, ""))
	case !tag.OnlyCut():
		return f.refuse(at, "a relation takes no tag but cut and -")
	case at.standIn:
		return f.refuse(at, noReferenceInTwin, "a relation")
	}
	// It is the first column. It has no size, so take can't count it.
	c := f.Component
	q := field.NewReference(field.OpRelation, "relation", &tag)
	f.width += q.Width()
	c.Lines = append(c.Lines, f.fullPath(at.path)+" "+q.Text)
	f.leaves(member.Type, member.Type, at, q)
	return nil
}

// refuseStructTag returns the error about a tag that suits no struct or array of type t.
func (f *Flattener) refuseStructTag(t reflect.Type, at FieldPlace, tag *field.Tag) error {
	switch tag.Mode {
	case field.ModeQuat:
		return f.refuse(at, "quat needs four floats of one type, x, y, z and w: "+
			"[4]float32, [4]float64 or a struct of exported fields, not %v", t)
	case field.ModeUnit:
		return f.refuse(at, "unit needs three floats of one type, x, y and z: "+
			"[3]float32, [3]float64 or a struct of exported fields, not %v", t)
	}
	return f.refuse(at, "a struct takes no tag but quat, unit and -; put tags on its fields")
}

// skipAdvice returns how to mend a field of an unsupported type.
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

// unsupportedKind returns the name of a kind that can't be replicated, and what to do instead. The
// name is empty if the kind can be replicated.
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
