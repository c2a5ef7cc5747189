// Package schema has the registered types: their fields, the codecs of these, and the kernels that read
// and write them. Its text and fingerprint are what two ends compare.
package schema

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Schema is a Schema behind its public face.
type Schema struct {
	mu         sync.Mutex
	Components []Component // and resources, in order: the index is the component's number on the wire
	Layout     *delta.Layout
	text       string // once it is sealed
	Refers     bool   // some of them, or of the messages, refer to entities
	Strings    int    // how many columns are strings

	Messages []MessageType // the index is the message's number on the wire
	numbers  map[reflect.Type]int
	Input    *Component    // nil: there are no inputs
	Talk     *delta.Layout // of messages and, behind them, the input
	Mentions bool          // some of these refer to entities

	// From the first server or client on:
	Conditions []Condition // that some of them stand under
	Link       int         // the component that links sub-entities to entities, -1 if there are none
}

// SchemaHeader is the first line of every schema text. Its number changes when the same text no longer means the same codes.
const SchemaHeader = "arche-replicate schema 1"

// Component is a registered type.
type Component struct {
	Name       string
	Typ        reflect.Type
	Size       uintptr
	Words      int      // length of a row
	Columns    []Column // in the order of their words
	References []int    // those of the columns that refer to entities
	Lines      []string // of the schema text, until the schema is sealed
	Layout     *delta.Component
	Resource   bool  // it is a resource of the world, see resources.go
	Strings    []int // the columns that are strings in the component itself
	First      int   // how many columns of the components before are

	StandIns []*StandIn
	Volatile bool // what one stands for may change while the component's bytes do not

	// How a server treats it.
	Every     int     // ticks from one look at it to the next
	Once      bool    // no look at it but the first
	Priority  float32 // weight of entities that have it
	condition Condition
	Class     int // of slots: 1 + the condition's place in Schema.conditions, or 0
}

func (s *Schema) Register(t reflect.Type, o *Options) error {
	if t == nil {
		return fmt.Errorf("RegisterType needs a component type, not nil")
	}
	c, err := newComponent(t, o)
	if err != nil {
		return err
	}
	if c.condition, err = checkConditions(c.Name, t, o); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, false); err != nil {
		return err
	}
	if len(s.Components) == delta.MaxComponents {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components", c.Name, delta.MaxComponents)
	}
	if len(s.Components) == delta.MaxComponents-1 && (c.condition.Kind != always || s.conditional()) {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components if one of them has a condition", c.Name, delta.MaxComponents-1)
	}
	s.Components = append(s.Components, c)
	return nil
}

// newComponent returns the component of type t.
func newComponent(t reflect.Type, o *Options) (Component, error) {
	name := t.Name()
	if o.Named {
		name = o.Name
	}
	switch {
	case o.Named || name != "":
		if err := checkComponentName(name); err != nil {
			return Component{}, err
		}
	case t.Kind() == reflect.Pointer:
		return Component{}, fmt.Errorf("%v is a pointer: register the component type itself", t)
	default:
		return Component{}, fmt.Errorf("%v has no name: register it with the option Name", t)
	}
	c := Component{Name: name, Typ: t, Size: t.Size(), Resource: o.Resource, Every: max(o.Every, 1), Once: o.Once, Priority: max(o.Priority, 1)}
	if c.Once {
		c.Every = 1
	}
	f := Flattener{Component: &c, overrides: o.Fields, conversions: o.Conversions}
	if err := f.flatten(); err != nil {
		return Component{}, err
	}
	if c.Resource && c.Targeted() {
		return Component{}, fmt.Errorf("%s: a resource has no relation: use a field of type ecs.Entity", c.Name)
	}
	for i := range c.Columns {
		if c.Columns[i].Codec.Op == OpString && c.Columns[i].StandIn == nil {
			c.Strings = append(c.Strings, i)
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

// Freeze freezes the schema and builds s.layout. Sealing it again does nothing.
func (s *Schema) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Layout != nil {
		return
	}
	for i := range s.Components {
		s.Refers = s.Refers || s.Components[i].Refers()
	}
	s.freezeConditions()
	parts := make([]delta.Component, len(s.Components))
	for i := range s.Components {
		parts[i] = s.Components[i].part()
	}
	s.Layout = delta.NewLayout(parts...)
	for i := range s.Components {
		s.Components[i].Layout = &s.Layout.Components[i]
		s.Components[i].First = s.Strings
		s.Strings += len(s.Components[i].Strings)
	}
	s.freezeMessages()
	s.text = s.buildText()
	s.dropLines()
}

// FullText returns the text, sealed or not.
func (s *Schema) FullText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Layout != nil {
		return s.text
	}
	return s.buildText()
}

// buildText is Text of a schema that is not sealed.
func (s *Schema) buildText() string {
	var b strings.Builder
	b.WriteString(SchemaHeader + "\n")
	for i := range s.Components {
		if s.Components[i].Typ == reflect.TypeFor[subEntityOf]() {
			continue
		}
		b.WriteString(s.Components[i].kind() + " " + s.Components[i].Name + "\n")
		for _, line := range s.Components[i].Lines {
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
func (s *Schema) dropLines() {
	for i := range s.Components {
		s.Components[i].Lines = nil
	}
	for i := range s.Messages {
		s.Messages[i].Lines = nil
	}
	if s.Input != nil {
		s.Input.Lines = nil
	}
}

// Hash returns the fingerprint.
func (s *Schema) Hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.FullText())) // never fails
	return h.Sum64()
}

// Codes appends the codes of a component.
func (s *Schema) Codes(component any, dst []uint64) []uint64 {
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
	row := make([]uint32, c.Words)
	c.ReadColumn(row, v.UnsafePointer(), 1)
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.Codec.Bits > 32 {
			dst = append(dst, col.Code(row))
			continue
		}
		for _, w := range row[col.Word:][:col.Codec.Words()] {
			dst = append(dst, uint64(w))
		}
	}
	return dst
}

// component returns the component of type t, or nil. The result may only be read.
func (s *Schema) component(t reflect.Type) *Component {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.Components {
		if s.Components[i].Typ == t {
			return &s.Components[i]
		}
	}
	return nil
}

// CheckTexts returns an error if a text of the message at p is longer than its max: in a component it would be cut and
// counted, but who sends a message is there to be told.
func (c *Component) CheckTexts(p unsafe.Pointer) error {
	if err := c.Fits(p); err != nil {
		return fmt.Errorf("%w: %s", ErrMessageTooLarge, strings.TrimPrefix(err.Error(), "replication: "))
	}
	return nil
}

// kind returns what the type is registered as, in the words of the schema text.
func (c *Component) kind() string {
	if c.Resource {
		return "resource"
	}
	return "component"
}
