package replication

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"unicode"

	"github.com/arche-replicate/arche-replicate/delta"
)

// schemaHeader is the first line of every schema text. Its number changes when the same text no longer means the same codes.
const schemaHeader = "arche-replicate schema 1"

// A Schema is the ordered list of component and resource types that both ends replicate, and of the types of messages and inputs that they
// exchange, and how each of their fields is coded. Server and client must register the same types with the same tags in the
// same order; the handshake compares [Schema.Fingerprint].
//
// A schema belongs to no world. Build one with [NewSchema], [Register] the components and share it between as many servers
// and clients as you like; the first of them seals it, and registering panics from then on. All other methods may be called
// from several goroutines at a time.
type Schema struct {
	raw rawSchema
}

// component is a registered type.
type component struct {
	name       string
	typ        reflect.Type
	size       uintptr
	words      int      // length of a row
	columns    []column // in the order of their words
	references []int    // those of the columns that refer to entities
	lines      []string // of the schema text, until the schema is sealed
	layout     *delta.Component
	resource   bool  // it is a resource of the world, see resources.go
	strings    []int // the columns that are strings in the component itself
	first      int   // how many columns of the components before are

	standIns []*standIn
	volatile bool // what one stands for may change while the component's bytes do not

	// How a server treats it.
	every     int     // ticks from one look at it to the next
	once      bool    // no look at it but the first
	priority  float32 // weight of entities that have it
	condition condition
	class     int // of slots: 1 + the condition's place in Schema.conditions, or 0
}

// NewSchema returns a schema without components.
func NewSchema() *Schema { return &Schema{} }

// mustExist panics if the schema is nil. A zero one is as good as one of NewSchema.
func (s *Schema) mustExist() {
	if s == nil {
		panic("replication: there is no schema: make one with NewSchema")
	}
}

// Register adds the component type T to the schema. How a field is coded says its tag:
//
//	type Position struct {
//		X, Y    float32 `repl:"range=-1000:1000,step=0.01"`
//		Heading float32 `repl:"angle,bits=10"`
//		Cached  []int   `repl:"-"`
//	}
//
// The keys of a tag are separated by commas:
//
//	range=MIN:MAX             an integer of this range, both ends included      quantize.Int, Uint
//	range=MIN:MAX,step=S      a float or integer in equal steps of S            quantize.Fixed, IntStep
//	range=MIN:MAX,precision=P a float off by at most P, finer towards zero      quantize.Float
//	angle,bits=N[,period=P]   a float that wraps after P, by default 2π         quantize.Angle
//	unit,bits=N               a direction: [3]float or a struct of three        quantize.UnitVector
//	quat,bits=N               a rotation: [4]float or a struct of four, x y z w quantize.Quat
//	half                      a float as IEEE 754 binary16                      quantize.Half
//	raw                       a float bit by bit, the same as no tag
//	enum=N                    an integer of 0 to N-1                            quantize.Int, Uint
//	flags=N                   the N low bits of an integer, and only these
//	max=N                     a string, or array of bytes as one value, of up to N bytes
//	-                         not replicated: the receiver's value is left alone
//
// One more key may say how a number changes, where its type does not. It changes no value, but what changes cost:
//
//	linear                    an integer that moves steadily: it is extrapolated, as floats in steps are without being told
//	wrap                      an integer that goes round in its range, or in its type; with a range, whole turns are dropped
//	counter                   a number that stays or grows a little
//	jump                      a float in steps, or an angle, that does not move steadily
//
// Ranges and steps of an int64, and so of a [time.Duration], may be written as durations: range=0s:1h,step=1ms.
//
// Without a tag a bool takes one bit, an integer its full width (int and uint: 64 bits) and a float all its bits. Nested and
// embedded structs are taken field by field, fixed arrays element by element, and the tag of an array is that of its
// elements. Unexported and blank fields are not replicated. A struct without fields is a tag: its presence is replicated.
//
// A field of type [ecs.Entity] refers at the client to what mirrors the entity that it refers to at the server; it is zero
// there while that is not at the client. So does the target of a relation, a component that embeds [ecs.Relation].
//
// Panics:
//   - if the type cannot be replicated: if it has no name, a field of a kind that is not named above or a tag that does not
//     suit the field, or if all its fields are unexported
//   - if the type or its name is registered already
//   - if the schema has 256 components already, or a component more than 4096 fields
//   - if a server or client has been made of the schema
//
// See also [RegisterType], [Field] for types without tags, [As] and [With] for types that tags are no help for, and
// [RegisterResource].
func Register[T any](s *Schema, opts ...ComponentOption) {
	RegisterType(s, reflect.TypeFor[T](), opts...)
}

// RegisterType is [Register] for a type known at run time. Types made by [reflect.StructOf] have no name and need the
// option [Name].
func RegisterType(s *Schema, t reflect.Type, opts ...ComponentOption) {
	s.mustExist()
	var o componentOptions
	applyOptions("Register", &o, opts)
	if err := s.raw.register(t, &o); err != nil {
		panic("replication: " + err.Error())
	}
}

func (s *rawSchema) register(t reflect.Type, o *componentOptions) error {
	if t == nil {
		return fmt.Errorf("RegisterType needs a component type, not nil")
	}
	c, err := newComponent(t, o)
	if err != nil {
		return err
	}
	if c.condition, err = checkConditions(c.name, t, o); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, false); err != nil {
		return err
	}
	if len(s.components) == delta.MaxComponents {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components", c.name, delta.MaxComponents)
	}
	if len(s.components) == delta.MaxComponents-1 && (c.condition.kind != always || s.conditional()) {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components if one of them has a condition", c.name, delta.MaxComponents-1)
	}
	s.components = append(s.components, c)
	return nil
}

// newComponent returns the component of type t.
func newComponent(t reflect.Type, o *componentOptions) (component, error) {
	name := t.Name()
	if o.named {
		name = o.name
	}
	switch {
	case o.named || name != "":
		if err := checkComponentName(name); err != nil {
			return component{}, err
		}
	case t.Kind() == reflect.Pointer:
		return component{}, fmt.Errorf("%v is a pointer: register the component type itself", t)
	default:
		return component{}, fmt.Errorf("%v has no name: register it with the option Name", t)
	}
	c := component{name: name, typ: t, size: t.Size(), resource: o.resource, every: max(o.every, 1), once: o.once, priority: max(o.priority, 1)}
	if c.once {
		c.every = 1
	}
	f := flattener{component: &c, overrides: o.fields, conversions: o.conversions}
	if err := f.flatten(); err != nil {
		return component{}, err
	}
	if c.resource && c.targeted() {
		return component{}, fmt.Errorf("%s: a resource has no relation: use a field of type ecs.Entity", c.name)
	}
	for i := range c.columns {
		if c.columns[i].codec.op == opString && c.columns[i].standIn == nil {
			c.strings = append(c.strings, i)
		}
	}
	return c, nil
}

// checkComponentName keeps the schema text unambiguous: one name, one word.
func checkComponentName(name string) error {
	const limit = 256
	if name == "" || len(name) > limit {
		return fmt.Errorf("the component name %.40q has %d bytes: use 1 to %d", name, len(name), limit)
	}
	if name == "component" || name == "resource" {
		return fmt.Errorf("the component name %q has a meaning in the schema text: choose another with the option Name", name)
	}
	for _, r := range name {
		if r == unicode.ReplacementChar || unicode.IsSpace(r) || !unicode.IsGraphic(r) {
			return fmt.Errorf("the component name %q contains %q: use letters, digits and punctuation", name, r)
		}
	}
	return nil
}

// seal freezes the schema and builds s.layout. Sealing it again does nothing.
func (s *rawSchema) seal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layout != nil {
		return
	}
	for i := range s.components {
		s.refers = s.refers || s.components[i].refers()
	}
	s.sealConditions()
	parts := make([]delta.Component, len(s.components))
	for i := range s.components {
		parts[i] = s.components[i].part()
	}
	s.layout = delta.NewLayout(parts...)
	for i := range s.components {
		s.components[i].layout = &s.layout.Components[i]
		s.components[i].first = s.strings
		s.strings += len(s.components[i].strings)
	}
	s.sealMessages()
	s.text = s.buildText()
	s.dropLines()
}

// Text returns the schema as lines of text: a line that names the format, then for every component its name and one line
// for every field, arrays of numbers counting as one; then the same for messages and the input. Numbers and keys are written in
// one way only, so that two schemas have the same text if and only if they have the same names and codes.
//
//	arche-replicate schema 1
//	component Position
//	Position.X float32 range=-1000:1000,step=0.01
//	component Frozen
//	resource Match
//	Match.Round uint8
//
// If a component has a condition, as [OwnerOnly], there is a last line "facets". Which one and what it is does not show.
func (s *Schema) Text() string {
	s.mustExist()
	return s.raw.fullText()
}

// fullText returns the text, sealed or not.
func (s *rawSchema) fullText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layout != nil {
		return s.text
	}
	return s.buildText()
}

// buildText is Text of a schema that is not sealed.
func (s *rawSchema) buildText() string {
	var b strings.Builder
	b.WriteString(schemaHeader + "\n")
	for i := range s.components {
		if s.components[i].typ == reflect.TypeFor[facetOf]() {
			continue
		}
		b.WriteString(s.components[i].kind() + " " + s.components[i].name + "\n")
		for _, line := range s.components[i].lines {
			b.WriteString(line + "\n")
		}
	}
	s.messageText(func(line string) { b.WriteString(line + "\n") })
	if s.conditional() {
		b.WriteString("facets\n")
	}
	return b.String()
}

// dropLines frees what the text was made of: servers and clients need nothing but the text.
func (s *rawSchema) dropLines() {
	for i := range s.components {
		s.components[i].lines = nil
	}
	for i := range s.messages {
		s.messages[i].lines = nil
	}
	if s.input != nil {
		s.input.lines = nil
	}
}

// Fingerprint returns a 64-bit hash (FNV-1a) of [Schema.Text]. It tells honest mistakes apart; it is no defence against
// forgery and needs none, as no code from the wire is trusted.
func (s *Schema) Fingerprint() uint64 {
	s.mustExist()
	return s.raw.hash()
}

// hash returns the fingerprint.
func (s *rawSchema) hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.fullText())) // never fails
	return h.Sum64()
}

// Codes appends the codes of a component to dst and returns it: field by field, two for a unit vector, four for a quaternion
// (the index of the largest part, then the codes of the other three), for a text its length and then four bytes each, the
// first in the lowest bits, as many as the longest text takes. An entity has its ID in Arche and above that, from bit 32 on,
// its generation: its code on the wire needs a world. It is meant for tests and tools.
//
// Panics if the component is neither a value of a registered type nor a pointer to one.
func (s *Schema) Codes(component any, dst []uint64) []uint64 {
	s.mustExist()
	return s.raw.codes(component, dst)
}

// codes appends the codes of a component.
func (s *rawSchema) codes(component any, dst []uint64) []uint64 {
	v := reflect.ValueOf(component)
	if v.Kind() != reflect.Pointer {
		if !v.IsValid() {
			panic("replication: Codes needs a component, not nil")
		}
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		v = p
	}
	if v.IsNil() {
		panic(fmt.Sprintf("replication: Codes needs a component, not a nil %v", v.Type()))
	}
	c := s.component(v.Type().Elem())
	if c == nil {
		panic(fmt.Sprintf("replication: %v is not registered: register it before asking for its codes", v.Type().Elem()))
	}
	row := make([]uint32, c.words)
	c.readColumn(row, v.UnsafePointer(), 1)
	for i := range c.columns {
		col := &c.columns[i]
		if col.codec.bits > 32 {
			dst = append(dst, col.code(row))
			continue
		}
		for _, w := range row[col.word:][:col.codec.words()] {
			dst = append(dst, uint64(w))
		}
	}
	return dst
}

// component returns the component of type t, or nil. The result may only be read.
func (s *rawSchema) component(t reflect.Type) *component {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.components {
		if s.components[i].typ == t {
			return &s.components[i]
		}
	}
	return nil
}
