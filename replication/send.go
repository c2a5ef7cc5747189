package replication

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/mlange-42/arche/ecs"
)

// SendToClient sends a message to a client with the next [Server.Replicate], after the state of that tick: what was
// spawned before is there when the message is delivered.
//
// The error is nil, [ErrNotConnected], [ErrBufferFull] or one that wraps [ErrMessageTooLarge]; in case of an error, the
// message is not sent. A message that was accepted gets lost only if it is [Unreliable] or the session ends.
//
// A message that is larger than a packet is sent in up to 128 fragments. One that is [Unreliable] must fit into a
// packet: it takes at most the MTU less 17 bytes. The size of the message counts, not the largest of its type, but each
// entity in it counts 52 bits, unless it is zero.
//
// Panics if T is not registered with [RegisterMessage].
func SendToClient[T any](p *Peer, msg T) error {
	defer p.guard().Leave(p.guard().Enter(exclusive.SendToClient))
	s := p.server
	s.noticeReset()
	d, err := message.Write(&s.messages.Messenger, msg)
	if err != nil {
		return err
	}
	if err = ErrNotConnected; p.conn.State == session.Connected {
		err = p.messages.Enqueue(d)
	}
	if err != nil {
		s.messages.Messenger.Discard()
	}
	return err
}

// SendToAll is [SendToClient] to all clients that are connected. If it is an error for some of them, the others get the
// message, and the error is [ErrBufferFull], or wraps [ErrMessageTooLarge] if it is too large for one of them. It is no
// error if there are no clients, unless the server is closed or the message too large for packets of its own MTU.
func SendToAll[T any](s *Server, msg T) error {
	defer s.guard().Leave(s.guard().Enter(exclusive.SendToAll))
	s.noticeReset()
	d, err := message.Write(&s.messages.Messenger, msg)
	if err != nil {
		return err
	}
	return s.enqueue(d)
}

// SendToViewers is [SendToAll] to those clients only that may see an entity in the next [Server.Replicate], see
// [Peer.SetInterest]. If the entity is removed before that, the clients that saw it get the message. If it is dead at
// the call, nothing is sent, which is no error. A client whose buffer is full then does not get it, see
// [PeerStats.MessagesDropped]; [ErrBufferFull] is the error of more than 16,384 such messages, or 1 MiB, in a tick.
func SendToViewers[T any](s *Server, e ecs.Entity, msg T) error {
	defer s.guard().Leave(s.guard().Enter(exclusive.SendToViewers))
	s.noticeReset()
	d, err := message.Write(&s.messages.Messenger, msg)
	if err != nil {
		return err
	}
	if !archeutil.Alive(s.snap.World, e) {
		s.messages.Messenger.Discard()
		return nil
	}
	s.toViewers(&s.messages.Messenger.Pending[d], e)
	return s.enqueue(d)
}

// SendToServer sends a message to the server with the next [Client.Frame]. Errors and panics are those of
// [SendToClient].
func SendToServer[T any](c *Client, msg T) error {
	defer c.guard().Leave(c.guard().Enter(exclusive.SendToServer))
	if c.messages == nil {
		c.schema.MessageNumber(reflect.TypeFor[T]()) // panics
	}
	d, err := message.Write(&c.messages.Messenger, msg)
	if err != nil {
		return err
	}
	if err = ErrNotConnected; c.session.Open() {
		err = c.messages.Enqueue(d)
	}
	if err != nil {
		c.messages.Discard()
	}
	return err
}

// OnClientMessage sets the function that handles messages of type T from clients; nil removes it. Messages without one
// are counted and dropped.
//
// It is called in [Peer.Receive]: reliable messages in the order in which the client sent them, each once. It may
// change the world, and send messages. It must not call Receive or Replicate.
//
// Panics if T is not registered with [RegisterMessage].
func OnClientMessage[T any](s *Server, handle func(from *Peer, message T)) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnClientMessage))
	number := s.schema.MessageNumber(reflect.TypeFor[T]())
	if handle == nil {
		s.handlers[number] = nil
		return
	}
	value := s.messages.Messenger.Values[number].Pointer.(*T)
	s.handlers[number] = func(p *Peer) {
		was := s.calls.Open()
		handle(p, *value)
		s.calls.Leave(was)
	}
}

// OnServerMessage sets the function that handles messages of type T from the server; nil removes it. Messages without
// one are counted and dropped.
//
// It is called in [Client.Frame], after the world was brought up to date: reliable messages in the order in which the
// server sent them, each once. Unless they are [Immediate], they wait until the world is as it was then, see
// [RegisterMessage], and until package interpolation, if it is attached, shows that moment. It may change the world,
// and send messages. It must not call Receive or Frame.
//
// Panics if T is not registered with [RegisterMessage].
func OnServerMessage[T any](c *Client, handle func(message T)) {
	defer c.guard().Leave(c.guard().Enter(exclusive.OnServerMessage))
	number := c.schema.MessageNumber(reflect.TypeFor[T]())
	if handle == nil {
		c.messages.Handlers[number] = nil
		return
	}
	value := c.messages.Values[number].Pointer.(*T)
	c.messages.Handlers[number] = func() {
		was := c.calls.Open()
		handle(*value)
		c.calls.Leave(was)
	}
}
