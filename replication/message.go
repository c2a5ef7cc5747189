package replication

import (
	"errors"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A message is a value of a registered type that goes from one end to the other once, beside the state of the world.
// How often it is sent and when it is handed over is a matter of its type:
//
//	                          from the server                              from a client
//	reliable                  once, in order, not before the world is as   once, in order
//	                          it was when the message was sent
//	reliable, Immediate       once, in order among its like                the same as reliable
//	Unreliable                at most once, not before the world is so     at most once
//	Unreliable, Immediate     at most once                                 the same as Unreliable

// Errors of [SendToClient], [SendToAll], [SendToViewers] and [SendToServer], and of Receive.
var (
	// ErrNotConnected: there is no session yet, or not any more, in which messages and inputs could go.
	ErrNotConnected = errors.New("replication: not connected: messages and inputs need a session, see Connected")
	// ErrBufferFull: so much awaits its acknowledgement, or the next tick, that nothing more is taken for the other
	// end. The message was not sent.
	ErrBufferFull = message.ErrBufferFull
	// ErrMessageTooLarge: the message is unreliable and does not fit into a packet, or it is
	// reliable and larger than 128 packets carry, or an input takes more than 64 bytes, or a text
	// in one is longer than its max. The error that wraps it has the sizes in its text.
	ErrMessageTooLarge = schema.ErrMessageTooLarge
	// ErrFlood: a client sent more packets of messages and inputs in a tick than any honest one does.
	ErrFlood = message.ErrFlood
)

// Unreliable makes messages be sent once: they may get lost, and overtake each other. It is for what is of no use when
// it comes late, such as sparks. None is handed over twice.
func Unreliable() MessageOption {
	return messageOption(func(m *schema.MessageOptions) { m.Unreliable = true })
}

// Immediate makes messages from the server be handed over as soon as they come, whatever of the world has come by then.
// It is for what has nothing to do with entities, such as chat and the score: while a client gets to know a large
// world, other reliable messages wait. Immediate reliable messages are in order among themselves, and so are the
// others.
func Immediate() MessageOption {
	return messageOption(func(m *schema.MessageOptions) { m.Immediate = true })
}

// RegisterMessage adds the message type T to the schema. The fields of messages are coded as those of components, see
// [Register]; the options of all types are for messages as well. Both ends must register the same messages in the same
// order.
//
// Messages are reliable unless there is the option [Unreliable]: each is handed over once, in the order in which they
// were sent. Those from the server wait for the world, unless there is the option [Immediate]: a message that was sent
// before a Replicate is handed over when every entity that the client can see has, in its world, at least the
// components that it had in that tick, and all that ended by then is gone. Values of components may still be older.
//
// A field of type [ecs.Entity] refers at the receiver to what mirrors, or is mirrored by, the entity that it refers to
// at the sender; it is the zero entity if that is not there, or not alive, when the message is handed over.
//
// Panics where [Register] does, if T is a relation, and if there are 256 message types already.
func RegisterMessage[T any](s *Schema, opts ...MessageOption) {
	s.mustExist()
	var o schema.MessageOptions
	applyOptions("RegisterMessage", opts, func(opt MessageOption) { opt.applyToMessage(&o) })
	if err := s.raw.RegisterMessage(reflect.TypeFor[T](), &o); err != nil {
		panic("replication: " + err.Error())
	}
}

// RegisterInput makes T the type of the commands that clients give, see [SetInput]. Its fields are coded as those of
// components, see [Register], and its options are those of all types. A field of type [ecs.Entity] that refers to a
// mirrored entity at the client refers to the entity that it mirrors at the server, if that is alive when [Input] is
// called.
//
// Panics where [Register] does, if T is a relation, if the schema has an input type already, if no input takes 64 bytes
// or less, and if one may take more than 4,096.
func RegisterInput[T any](s *Schema, opts ...TypeOption) {
	s.mustExist()
	var o schema.Options
	applyOptions("RegisterInput", opts, func(opt TypeOption) { opt.applyToComponent(&o) })
	if err := s.raw.RegisterInput(reflect.TypeFor[T](), &o); err != nil {
		panic("replication: " + err.Error())
	}
}
