// Package schema owns the registered types: components, resources, messages and the input.
// Registration turns each Go type into a [Component], a flat list of columns with their codecs. The
// first server or client freezes the schema, which lays out the rows for the delta coder and fixes
// the text that two ends compare. All other packages read the frozen schema to convert values into
// rows and back.
package schema

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Schema is the inside of the public Schema.
type Schema struct {
	mu         sync.Mutex
	Components []Component // and resources, in order: the index is the component's number on the wire
	Layout     *delta.Layout
	text       string // after Freeze
	Refers     bool   // a component or message refers to entities
	Strings    int    // how many columns are strings

	Messages      []MessageType // the index is the message's number on the wire
	numbers       map[reflect.Type]int
	Input         *Component    // nil if there are no inputs
	MessageLayout *delta.Layout // of messages and, behind them, the input
	MessagesRefer bool          // a message or the input refers to entities

	// Set by Freeze:
	Conditions []Condition // the conditions of components, without duplicates
	Link       int         // the component that links sub-entities to entities, -1 if there are none
}

// Register adds a component or resource type.
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
	if err := setShown(s, &c, o); err != nil {
		return err
	}
	if len(s.Components) == delta.MaxComponents {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components", c.Name, delta.MaxComponents)
	}
	if len(s.Components) == delta.MaxComponents-1 && (c.condition.Kind != always || s.conditional()) {
		return fmt.Errorf("%s: the schema is full: it holds at most %d components if one of them has a condition",
			c.Name, delta.MaxComponents-1)
	}
	s.Components = append(s.Components, c)
	return nil
}

// admit returns an error if a component, a message or the input can't be registered beside the
// types that already are. The schema is locked.
func (s *Schema) admit(c *Component, message bool) error {
	if s.Layout != nil {
		return fmt.Errorf("%s: the schema is in use: register all components before making a server or client of it",
			c.Name)
	}
	for i := range s.Components {
		if err := c.beside(&s.Components[i], !message); err != nil {
			return err
		}
	}
	for i := range s.Messages {
		if err := c.beside(&s.Messages[i].Component, message); err != nil {
			return err
		}
	}
	if s.Input != nil {
		return c.beside(s.Input, message)
	}
	return nil
}

// Freeze ends registration and derives everything from the registered types that servers and
// clients need. Freezing the schema again does nothing.
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

// freezeConditions numbers the conditions. If there are any, it adds the link of sub-entities to
// the components.
func (s *Schema) freezeConditions() {
	s.Link = -1
	for i := range s.Components {
		c := &s.Components[i]
		if c.condition.Kind == always {
			continue
		}
		k := slices.Index(s.Conditions, c.condition)
		if k < 0 {
			k = len(s.Conditions)
			s.Conditions = append(s.Conditions, c.condition)
		}
		c.Class = k + 1
	}
	if len(s.Conditions) > 0 {
		link, err := newComponent(reflect.TypeFor[subEntityOf](), &Options{})
		if err != nil {
			panic("replication: " + err.Error())
		}
		s.Link = len(s.Components)
		s.Components = append(s.Components, link)
	}
}

// conditional reports whether a component has a condition.
func (s *Schema) conditional() bool {
	return slices.ContainsFunc(s.Components, func(c Component) bool { return c.condition.Kind != always })
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

// Codes appends the codes of a component value, which may be given by its address.
func (s *Schema) Codes(component any, dst []uint64) []uint64 { return s.codes(component, nil, dst) }

// CodesAfter is Codes for a component of which a server recorded the given codes last.
func (s *Schema) CodesAfter(component any, recorded, dst []uint64) []uint64 {
	if recorded == nil {
		recorded = []uint64{}
	}
	return s.codes(component, recorded, dst)
}

// codes is Codes, or CodesAfter if recorded is not nil.
func (s *Schema) codes(component any, recorded, dst []uint64) []uint64 {
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
		panic(fmt.Sprintf("replication: %v is not registered: register it before asking for its codes",
			v.Type().Elem()))
	}
	row := make([]uint32, c.Words)
	c.ReadColumn(row, v.UnsafePointer(), 1)
	if recorded != nil {
		old := c.rowOf(recorded)
		if old == nil {
			panic(fmt.Sprintf("replication: these are no codes of %v: give CodesAfter what it or Codes "+
				"returned for the value before", v.Type().Elem()))
		}
		if c.Keeps(row, old, v.UnsafePointer()) {
			row = old
		}
	}
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

// rowOf returns the row with the given codes, or nil if they are no codes of the component.
func (c *Component) rowOf(codes []uint64) (row []uint32) {
	row = make([]uint32, 0, c.Words) // not nil, also if there are no codes
	for i := range c.Columns {
		q := c.Columns[i].Codec
		n := q.Words()
		if q.Bits > 32 {
			n = 1
		}
		if len(codes) < n {
			return nil
		}
		for _, code := range codes[:n] {
			row = append(row, uint32(code))
			if q.Bits > 32 {
				row = append(row, uint32(code>>32))
			}
		}
		codes = codes[n:]
	}
	if len(codes) > 0 || !c.ValidRow(row) {
		return nil
	}
	return row
}

// FullWork returns the work of decoding an entry without a baseline.
func (s *Schema) FullWork(set *wire.ComponentSet) int {
	work := wire.SlotWork
	for k := range set.All() {
		work += s.Components[k].Layout.Work()
	}
	return work
}

// RowWork returns the work of decoding a row that has changed or not.
func RowWork(c *delta.Component, changed bool) int {
	switch {
	case changed:
		return c.Work()
	case c.Width() > 0:
		return 1
	}
	return 0
}
