package schema

// This file registers the types of messages and the input.

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ErrMessageTooLarge means that an unreliable message does not fit into a packet, that a reliable
// one is larger than 128 packets carry, or that a text in the message is longer than its max. The
// error that wraps it has the sizes.
var ErrMessageTooLarge = errors.New("replication: message too large")

// MessageType is a registered type of messages.
type MessageType struct {
	Component
	Reliable  bool
	immediate bool // the message does not wait for the state of its tick
	Long      bool // the message may be fragmented: a bit on the wire shows whether it is
}

// Waits reports whether messages from the server wait for the state of their tick.
func (m *MessageType) Waits() bool { return !m.immediate }

// MessageOptions are the settings that the options of a message type make.
type MessageOptions struct {
	Options
	Unreliable, Immediate bool
}

// MaxMessageTypes is the largest number of message types: the input is one more component in their
// layout.
const MaxMessageTypes = delta.MaxComponents - 1

// RegisterMessage adds a message type.
func (s *Schema) RegisterMessage(t reflect.Type, o *MessageOptions) error {
	c, err := newMessageComponent(t, &o.Options, "a message")
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

// RegisterInput sets the input type.
func (s *Schema) RegisterInput(t reflect.Type, o *Options) error {
	c, err := newMessageComponent(t, o, "an input")
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, true); err != nil {
		return err
	}
	if s.Input != nil {
		return fmt.Errorf("%s: the schema has the input type %s already: put all commands into one",
			c.Name, s.Input.Name)
	}
	if l := delta.NewLayout(c.part()).Components[0]; l.MinWidth() > MaxInputBits || l.Width() > maxInputType {
		return fmt.Errorf("%s: an input of %d to %d bits, where %d are the most, and %d that its type may take: "+
			"inputs are sent again and again; use ranges, and messages for what is rare",
			c.Name, l.MinWidth(), l.Width(), MaxInputBits, maxInputType)
	}
	s.Input = &c
	return nil
}

// newMessageComponent is newComponent for messages and the input.
func newMessageComponent(t reflect.Type, o *Options, what string) (Component, error) {
	if t == nil {
		return Component{}, fmt.Errorf("RegisterMessageType and RegisterInputType need a type, not nil")
	}
	o.stateless = what
	c, err := newComponent(t, o)
	switch {
	case err != nil:
		return c, err
	case c.Targeted():
		return c, fmt.Errorf("%s: a relation is for components: use a field of type ecs.Entity", c.Name)
	case (c.Name == "message" || c.Name == "input") && len(c.Columns) > 0 && c.Columns[0].Path == "":
		return c, fmt.Errorf("the name %q of a type that is no struct has a meaning in the schema text: "+
			"choose another with the option Name", c.Name)
	}
	return c, nil
}

// layoutOfMessages returns the layout of message rows in the order of their numbers, with the input
// behind them.
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

// UsesMessages reports whether there are messages or inputs.
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

// freezeMessages is Freeze for messages and the input.
func (s *Schema) freezeMessages() {
	s.MessageLayout = s.layoutOfMessages()
	s.numbers = map[reflect.Type]int{}
	for i := range s.Messages {
		m := &s.Messages[i]
		m.Layout = &s.MessageLayout.Components[i]
		m.Long = m.Reliable && wire.ByteSize(m.Layout.Width()) > wire.MaxUnfragmented
		s.MessagesRefer = s.MessagesRefer || m.Refers()
		s.numbers[m.Typ] = i
	}
	if s.Input != nil {
		s.Input.Layout = &s.MessageLayout.Components[len(s.Messages)]
		s.MessagesRefer = s.MessagesRefer || s.Input.Refers()
	}
	s.Refers = s.Refers || s.MessagesRefer
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
	panic(fmt.Sprintf("replication: %v is not a registered message: "+
		"call RegisterMessage before making servers and clients of the schema", t))
}

// CheckInput panics unless t is the input type.
func (s *Schema) CheckInput(t reflect.Type) {
	switch {
	case s.Input == nil:
		panic("replication: the schema has no inputs: call RegisterInput before making servers and clients of it")
	case s.Input.Typ != t:
		panic(fmt.Sprintf("replication: %v is not the input type, which is %v", t, s.Input.Typ))
	}
}

// Channel returns the channel of a reliable message type, to clients or to the server.
func (m *MessageType) Channel(down bool) int {
	if down && m.immediate {
		return wire.ChannelImmediate
	}
	return wire.ChannelState
}

// MaxInputBits is the largest width of an input that can be sent, and maxInputType that of the longest
// input of its type: the server keeps room for 128 of them for each client.
const MaxInputBits, maxInputType = 64 * 8, 4096 * 8
