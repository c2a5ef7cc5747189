package schema

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ErrMessageTooLarge says that the message is unreliable and does not fit into a packet, or is reliable and larger than
// 128 packets carry, or that a text in it is longer than its max. The error that wraps it tells the sizes.
var ErrMessageTooLarge = errors.New("replication: message too large")

// A MessageType is a registered type of messages.
type MessageType struct {
	Component
	Reliable  bool
	immediate bool // does not wait for the state of its tick
	Long      bool // it may go in fragments: a bit says whether it does
}

// Waits reports whether messages from the server wait for the state of their tick.
func (m *MessageType) Waits() bool { return !m.immediate }

// MessageOptions are what the options of a message type set.
type MessageOptions struct {
	Options
	Unreliable, Immediate bool
}

// MaxMessageTypes is the largest number of message types; the input type is one more in the layout.
const MaxMessageTypes = delta.MaxComponents - 1

func (s *Schema) RegisterMessage(t reflect.Type, o *MessageOptions) error {
	c, err := newMessageComponent(t, &o.Options)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, true); err != nil {
		return err
	}
	if len(s.Messages) == MaxMessageTypes {
		return fmt.Errorf("%s: the schema is full: it holds at most %d message types", c.Name, MaxMessageTypes)
	}
	s.Messages = append(s.Messages, MessageType{Component: c, Reliable: !o.Unreliable, immediate: o.Immediate})
	return nil
}

func (s *Schema) RegisterInput(t reflect.Type, o *Options) error {
	c, err := newMessageComponent(t, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, true); err != nil {
		return err
	}
	if s.Input != nil {
		return fmt.Errorf("%s: the schema has the input type %s already: put all commands into one", c.Name, s.Input.Name)
	}
	if l := delta.NewLayout(c.part()).Components[0]; l.MinWidth() > MaxInputBits || l.Width() > maxInputType {
		return fmt.Errorf("%s: an input of %d to %d bits, where %d are the most, and %d that its type may take: inputs are sent "+
			"again and again; use ranges, and messages for what is rare", c.Name, l.MinWidth(), l.Width(), MaxInputBits, maxInputType)
	}
	s.Input = &c
	return nil
}

// newMessageComponent is newComponent for messages and inputs.
func newMessageComponent(t reflect.Type, o *Options) (Component, error) {
	c, err := newComponent(t, o)
	switch {
	case err != nil:
		return c, err
	case c.Targeted():
		return c, fmt.Errorf("%s: a relation is for components: use a field of type ecs.Entity", c.Name)
	case (c.Name == "message" || c.Name == "input") && len(c.Columns) > 0 && c.Columns[0].Path == "":
		return c, fmt.Errorf("the name %q of a type that is no struct has a meaning in the schema text: choose another with the option Name", c.Name)
	}
	return c, nil
}

// admit returns why a component, or a message or the input, can't be registered beside those that are. The schema is locked.
func (s *Schema) admit(c *Component, message bool) error {
	if s.Layout != nil {
		return fmt.Errorf("%s: the schema is in use: register all components before making a server or client of it", c.Name)
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

// beside returns why a type can't be registered beside another one, which is of the same sort or not.
func (c *Component) beside(other *Component, same bool) error {
	switch {
	case same && other.Typ == c.Typ && other.Resource != c.Resource:
		return fmt.Errorf("%s: %v is registered as a %s already: a type is either a component or a resource, so make another type of it", c.Name, c.Typ, other.kind())
	case same && other.Typ == c.Typ:
		return fmt.Errorf("%s: %v is registered already: register every type once", c.Name, c.Typ)
	case other.Name == c.Name:
		return fmt.Errorf("%s: %v and %v have the same name: give one another with the option Name", c.Name, other.Typ, c.Typ)
	}
	return nil
}

// layoutOfMessages returns the layout of message rows in the order of their numbers, and behind them that of inputs.
func (s *Schema) layoutOfMessages() *delta.Layout {
	var parts []delta.Component
	for i := range s.Messages {
		parts = append(parts, s.Messages[i].part())
	}
	if s.Input != nil {
		parts = append(parts, s.Input.part())
	}
	return delta.NewLayout(parts...)
}

// part returns what the delta coder knows of the type.
func (c *Component) part() delta.Component {
	part := delta.Component{Name: c.Name}
	for i := range c.Columns {
		part.Fields = c.Columns[i].appendFields(part.Fields)
	}
	return part
}

// UsesMessages reports whether there is anything to say beside the state of the world.
func (s *Schema) UsesMessages() bool { return len(s.Messages) > 0 || s.Input != nil }

// Waits reports whether there are messages that wait for the state of their tick.
func (s *Schema) Waits() bool {
	for i := range s.Messages {
		if s.Messages[i].Waits() {
			return true
		}
	}
	return false
}

// NumberBits returns the bits of a message type's number on the wire.
func (s *Schema) NumberBits() uint { return uint(bits.Len(uint(max(len(s.Messages)-1, 0)))) }

// freezeMessages freezes the messages with the schema.
func (s *Schema) freezeMessages() {
	s.Talk = s.layoutOfMessages()
	s.numbers = map[reflect.Type]int{}
	for i := range s.Messages {
		m := &s.Messages[i]
		m.Layout = &s.Talk.Components[i]
		m.Long = m.Reliable && wire.ByteSize(m.Layout.Width()) > wire.MaxUnfragmented
		s.Mentions = s.Mentions || m.Refers()
		s.numbers[m.Typ] = i
	}
	if s.Input != nil {
		s.Input.Layout = &s.Talk.Components[len(s.Messages)]
		s.Mentions = s.Mentions || s.Input.Refers()
	}
	s.Refers = s.Refers || s.Mentions
}

// MessageNumber returns the number of a message type.
//
// Panics if it is not registered.
func (s *Schema) MessageNumber(t reflect.Type) int {
	if i, ok := s.numbers[t]; ok {
		return i
	}
	if t.Kind() == reflect.Pointer {
		panic(fmt.Sprintf("replication: %v is a pointer: send and handle the message itself", t))
	}
	panic(fmt.Sprintf("replication: %v is not a registered message: call RegisterMessage before making servers and clients of the schema", t))
}

// messageText writes the part of the schema text that is about messages and inputs.
func (s *Schema) messageText(write func(line string)) {
	for i := range s.Messages {
		m := &s.Messages[i]
		line := "message " + m.Name
		if m.Reliable {
			line += " reliable"
		} else {
			line += " unreliable"
		}
		if m.immediate {
			line += " immediate"
		}
		write(line)
		for _, line := range m.Lines {
			write(line)
		}
	}
	if s.Input != nil {
		write("input " + s.Input.Name)
		for _, line := range s.Input.Lines {
			write(line)
		}
	}
}

func (s *Schema) CheckInput(t reflect.Type) {
	switch {
	case s.Input == nil:
		panic("replication: the schema has no inputs: call RegisterInput before making servers and clients of it")
	case s.Input.Typ != t:
		panic(fmt.Sprintf("replication: %v is not the input type, which is %v", t, s.Input.Typ))
	}
}

// Channel returns the channel of a reliable message type.
func (m *MessageType) Channel(down bool) int {
	if down && m.immediate {
		return wire.ChannelImmediate
	}
	return wire.ChannelState
}

// MaxInputBits bounds an input, and maxInputType the longest one of its type, of which the server keeps 128 for each client.
const MaxInputBits, maxInputType = 64 * 8, 4096 * 8
