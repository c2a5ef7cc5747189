package replication

import (
	"errors"
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// A message is a value of a registered type that is sent from one end to the other once, beside the state of the world.
// Its type determines how often it is sent and when it is delivered:
//
//	                          from the server                              from a client
//	reliable                  once, in order, not before the world is as   once, in order
//	                          it was when the message was sent
//	reliable, Immediate       once, in order among its like                the same as reliable
//	Unreliable                at most once, not before the world is so     at most once
//	Unreliable, Immediate     at most once                                 the same as Unreliable

// Errors of [SendToClient], [SendToAll], [SendToViewers] and [SendToServer], and of Receive.
var (
	// ErrNotConnected: there is no session, not yet or not any more, in which messages and inputs could be sent.
	ErrNotConnected = errors.New("replication: not connected: messages and inputs need a session, " +
		"see Client.Status and Peer.Connected")
	// ErrBufferFull: too much awaits its acknowledgement or the next tick; the message was not sent.
	ErrBufferFull error
	// ErrMessageTooLarge: an unreliable message does not fit into a packet, a reliable one into 128, an input into 64
	// bytes, or a text in one is longer than its max. The error that wraps it names the sizes.
	ErrMessageTooLarge error
)

// Unreliable makes messages be sent once: they may get lost, and overtake each other, but none is delivered twice. It
// is for what is useless when it arrives late, such as sparks.
func Unreliable() MessageOption {
	return messageOption(func(m *schema.MessageOptions) { m.Unreliable = true })
}

// Immediate makes messages from the server be delivered as soon as they arrive, whatever of the world has arrived or is
// shown by then. It is for what has nothing to do with entities, such as chat: other reliable messages wait while a
// client receives a large world. Immediate reliable messages are in order among themselves, and so are the others.
func Immediate() MessageOption {
	return messageOption(func(m *schema.MessageOptions) { m.Immediate = true })
}

// RegisterMessage adds the message type T to the schema. Fields are coded as [Register] describes. Both ends must
// register the same messages in the same order.
//
// Messages are reliable unless there is the option [Unreliable]: each is delivered once, in the order in which they
// were sent. Those from the server wait for the world, unless there is the option [Immediate]: a message that was sent
// before a Replicate is delivered once the client's world has every visible entity, with the components that it had in
// that tick or a later one, and no entity that despawned by then. Values of components may still be older.
//
// A field of type [ecs.Entity] is translated: a server's entity becomes its replica at the client, and a replica
// becomes the server's entity. It is the zero entity if there is none alive when the message is delivered.
//
// Panics where [Register] does, if T is a relation, and if there are 255 message types already.
func RegisterMessage[T any](s *Schema, opts ...MessageOption) {
	RegisterMessageType(s, reflect.TypeFor[T](), opts...)
}

// RegisterMessageType is [RegisterMessage] for a type known at run time.
func RegisterMessageType(s *Schema, t reflect.Type, opts ...MessageOption) {
	var o schema.MessageOptions
	applyOptions("RegisterMessage", opts, func(opt MessageOption) { opt.applyToMessage(&o) })
	refuse(s.inside().RegisterMessage(t, &o))
}

// RegisterInput makes T the type of the commands that clients give, see [OnInput]. Fields are coded as [Register]
// describes. A field of type [ecs.Entity] that refers to a replica at the client refers to the replica's entity at the
// server, if that is alive when [Input] is called.
//
// Panics where [Register] does, if T is a relation, if the schema has an input type already, if no input takes 64 bytes
// or less, and if one may take more than 4,096.
func RegisterInput[T any](s *Schema, opts ...TypeOption) {
	RegisterInputType(s, reflect.TypeFor[T](), opts...)
}

// RegisterInputType is [RegisterInput] for a type known at run time.
func RegisterInputType(s *Schema, t reflect.Type, opts ...TypeOption) {
	var o schema.Options
	applyOptions("RegisterInput", opts, func(opt TypeOption) { opt.applyToComponent(&o) })
	refuse(s.inside().RegisterInput(t, &o))
}
