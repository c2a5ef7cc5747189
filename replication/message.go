package replication

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A message is a value of a registered type that goes from one end to the other once, beside the state of the world. How
// often it is sent and when it is handed over is a matter of its type:
//
//	                          from the server                              from a client
//	reliable                  once, in order, not before the world is as   once, in order
//	                          it was when the message was sent
//	reliable, Immediate       once, in order among its like                the same as reliable
//	Unreliable                at most once, not before the world is so     at most once
//	Unreliable, Immediate     at most once                                 the same as Unreliable

// Errors of [Send], [SendToAll], [SendToViewers] and [SendToServer], and of Receive.
var (
	// ErrNotConnected: there is no session yet, or not any more, in which messages and inputs could go.
	ErrNotConnected = errors.New("replication: not connected: messages and inputs need a session, see Connected")
	// ErrBufferFull: so much awaits its acknowledgement, or the next tick, that nothing more is taken for the other end. The
	// message was not sent.
	ErrBufferFull = errors.New("replication: the message buffer is full: the other end has not acknowledged what is in it")
	// ErrMessageTooLarge: the message is unreliable and does not fit into a packet, or it is reliable and larger than 128
	// packets carry, or a text in it is longer than its max. The error that wraps it tells the sizes.
	ErrMessageTooLarge = errors.New("replication: message too large")
	// ErrFlood: a client sent more packets of messages and inputs in a tick than any honest one does.
	ErrFlood = errors.New("replication: too many packets of messages and inputs in a tick")
)

// A messageType is a registered type of messages.
type messageType struct {
	component
	reliable  bool
	immediate bool // does not wait for the state of its tick
	long      bool // it may go in fragments: a bit says whether it does
}

// waits reports whether messages from the server wait for the state of their tick.
func (m *messageType) waits() bool { return !m.immediate }

// A MessageOption changes how [RegisterMessage] takes a message type. The options [Name] and [Field] are such, too.
type MessageOption interface {
	applyToMessage(*messageOptions)
}

type messageOptions struct {
	componentOptions
	unreliable, immediate bool
}

func (o ComponentOption) applyToMessage(m *messageOptions) { o(&m.componentOptions) }

type messageOption func(*messageOptions)

func (o messageOption) applyToMessage(m *messageOptions) { o(m) }

// Unreliable makes messages be sent once: they may get lost, and overtake each other. It is for what is of no use when it
// comes late, such as sparks. None is handed over twice.
func Unreliable() MessageOption {
	return messageOption(func(m *messageOptions) { m.unreliable = true })
}

// Immediate makes messages from the server be handed over as soon as they come, whatever of the world has come by then. It is
// for what has nothing to do with entities, such as chat and the score: while a client gets to know a large world, other
// reliable messages wait. Immediate reliable messages are in order among themselves, and so are the others.
func Immediate() MessageOption {
	return messageOption(func(m *messageOptions) { m.immediate = true })
}

// RegisterMessage adds the message type T to the schema. The fields of messages are coded as those of components, see
// [Register]. Both ends must register the same messages in the same order.
//
// Messages are reliable unless there is the option [Unreliable]: each is handed over once, in the order in which they were
// sent. Those from the server wait for the world, unless there is the option [Immediate]: a message that was sent before a
// Replicate is handed over when every entity that the client can see has, in its world, at least the components that it had in
// that tick, and all that ended by then is gone. Values of components may still be older.
//
// A field of type [ecs.Entity] refers at the receiver to what mirrors, or is mirrored by, the entity that it refers to at the
// sender; it is the zero entity if that is not there, or not alive, when the message is handed over.
//
// Panics where [Register] does, if T is a relation, and if there are 256 message types already.
func RegisterMessage[T any](s *Schema, opts ...MessageOption) {
	s.mustExist()
	var o messageOptions
	for i, opt := range opts {
		if isNil(opt) {
			panic(nilOption("RegisterMessage", i))
		}
		opt.applyToMessage(&o)
	}
	if err := s.raw.registerMessage(reflect.TypeFor[T](), &o); err != nil {
		panic("replication: " + err.Error())
	}
}

// RegisterInput makes T the type of the commands that clients give, see [SetInput]. Its fields are coded as those of
// components, see [Register]; of the options, [Name] and [Field] are for inputs. A field of type [ecs.Entity] refers at the
// server to what the entity mirrors that it refers to at the client, if that is alive when [Input] is called.
//
// Panics where [Register] does, if T is a relation, if the schema has an input type already, and if an input takes more than 64 bytes.
func RegisterInput[T any](s *Schema, opts ...ComponentOption) {
	s.mustExist()
	var o componentOptions
	applyOptions("RegisterInput", &o, opts)
	if err := s.raw.registerInput(reflect.TypeFor[T](), &o); err != nil {
		panic("replication: " + err.Error())
	}
}

// maxMessageTypes is the largest number of message types; the input type is one more in the layout.
const maxMessageTypes = delta.MaxComponents - 1

func (s *rawSchema) registerMessage(t reflect.Type, o *messageOptions) error {
	c, err := newMessageComponent(t, &o.componentOptions)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, true); err != nil {
		return err
	}
	if len(s.messages) == maxMessageTypes {
		return fmt.Errorf("%s: the schema is full: it holds at most %d message types", c.name, maxMessageTypes)
	}
	s.messages = append(s.messages, messageType{component: c, reliable: !o.unreliable, immediate: o.immediate})
	return nil
}

func (s *rawSchema) registerInput(t reflect.Type, o *componentOptions) error {
	c, err := newMessageComponent(t, o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(&c, true); err != nil {
		return err
	}
	if s.input != nil {
		return fmt.Errorf("%s: the schema has the input type %s already: put all commands into one", c.name, s.input.name)
	}
	if width := delta.NewLayout(c.part()).Components[0].Width(); width > maxInputBits {
		return fmt.Errorf("%s: an input of %d bits, where %d are the most: inputs are sent again and again; "+
			"use ranges, and messages for what is rare", c.name, width, maxInputBits)
	}
	s.input = &c
	return nil
}

// newMessageComponent is newComponent for messages and inputs.
func newMessageComponent(t reflect.Type, o *componentOptions) (component, error) {
	c, err := newComponent(t, o)
	switch {
	case err != nil:
		return c, err
	case o.every != 0:
		return c, fmt.Errorf("%s: the option Every is for components", c.name)
	case o.priority != 0:
		return c, fmt.Errorf("%s: the option Priority is for components", c.name)
	case o.once:
		return c, fmt.Errorf("%s: the option Once is for components", c.name)
	case len(o.conditions) > 0:
		return c, fmt.Errorf("%s: OwnerOnly, ExceptOwner and OnlyFor are for components: who gets a message is said when it is sent", c.name)
	case c.targeted():
		return c, fmt.Errorf("%s: a relation is for components: use a field of type ecs.Entity", c.name)
	case (c.name == "message" || c.name == "input") && len(c.columns) > 0 && c.columns[0].path == "":
		return c, fmt.Errorf("the name %q of a type that is no struct has a meaning in the schema text: choose another with the option Name", c.name)
	}
	return c, nil
}

// admit returns why a component, or a message or the input, can't be registered beside those that are. The schema is locked.
func (s *rawSchema) admit(c *component, message bool) error {
	if s.layout != nil {
		return fmt.Errorf("%s: the schema is in use: register all components before making a server or client of it", c.name)
	}
	for i := range s.components {
		if err := c.beside(&s.components[i], !message); err != nil {
			return err
		}
	}
	for i := range s.messages {
		if err := c.beside(&s.messages[i].component, message); err != nil {
			return err
		}
	}
	if s.input != nil {
		return c.beside(s.input, message)
	}
	return nil
}

// beside returns why a type can't be registered beside another one, which is of the same sort or not.
func (c *component) beside(other *component, same bool) error {
	switch {
	case same && other.typ == c.typ && other.resource != c.resource:
		return fmt.Errorf("%s: %v is registered as a %s already: a type is either a component or a resource, so make another type of it", c.name, c.typ, other.kind())
	case same && other.typ == c.typ:
		return fmt.Errorf("%s: %v is registered already: register every type once", c.name, c.typ)
	case other.name == c.name:
		return fmt.Errorf("%s: %v and %v have the same name: give one another with the option Name", c.name, other.typ, c.typ)
	}
	return nil
}

// layoutOfMessages returns the layout of message rows in the order of their numbers, and behind them that of inputs.
func (s *rawSchema) layoutOfMessages() *delta.Layout {
	var parts []delta.Component
	for i := range s.messages {
		parts = append(parts, s.messages[i].part())
	}
	if s.input != nil {
		parts = append(parts, s.input.part())
	}
	return delta.NewLayout(parts...)
}

// part returns what the delta coder knows of the type.
func (c *component) part() delta.Component {
	part := delta.Component{Name: c.name}
	for i := range c.columns {
		part.Fields = c.columns[i].appendFields(part.Fields)
	}
	return part
}

// talks reports whether there is anything to say beside the state of the world.
func (s *rawSchema) talks() bool { return len(s.messages) > 0 || s.input != nil }

// waits reports whether there are messages that wait for the state of their tick.
func (s *rawSchema) waits() bool {
	for i := range s.messages {
		if s.messages[i].waits() {
			return true
		}
	}
	return false
}

// numberBits returns the bits of a message type's number on the wire.
func (s *rawSchema) numberBits() uint { return uint(bits.Len(uint(max(len(s.messages)-1, 0)))) }

// sealMessages freezes the messages with the schema.
func (s *rawSchema) sealMessages() {
	s.talk = s.layoutOfMessages()
	s.numbers = map[reflect.Type]int{}
	for i := range s.messages {
		m := &s.messages[i]
		m.layout = &s.talk.Components[i]
		m.long = m.reliable && byteSize(m.layout.Width()) > wholeBytes
		s.mentions = s.mentions || m.refers()
		s.numbers[m.typ] = i
	}
	if s.input != nil {
		s.input.layout = &s.talk.Components[len(s.messages)]
		s.mentions = s.mentions || s.input.refers()
	}
	s.refers = s.refers || s.mentions
}

// messageNumber returns the number of a message type.
//
// Panics if it is not registered.
func (s *rawSchema) messageNumber(t reflect.Type) int {
	if i, ok := s.numbers[t]; ok {
		return i
	}
	if t.Kind() == reflect.Pointer {
		panic(fmt.Sprintf("replication: %v is a pointer: send and handle the message itself", t))
	}
	panic(fmt.Sprintf("replication: %v is not a registered message: call RegisterMessage before making servers and clients of the schema", t))
}

// messageText writes the part of the schema text that is about messages and inputs.
func (s *rawSchema) messageText(write func(line string)) {
	for i := range s.messages {
		m := &s.messages[i]
		line := "message " + m.name
		if m.reliable {
			line += " reliable"
		} else {
			line += " unreliable"
		}
		if m.immediate {
			line += " immediate"
		}
		write(line)
		for _, line := range m.lines {
			write(line)
		}
	}
	if s.input != nil {
		write("input " + s.input.name)
		for _, line := range s.input.lines {
			write(line)
		}
	}
}
