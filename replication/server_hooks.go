package replication

import (
	"iter"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
)

// hooks are functions of the user's, in the order in which they were added.
type hooks[F any] []*hook[F]

type hook[F any] struct {
	fn    F
	taken bool // back
}

// add appends a function and returns one that takes it back, as the same call of the server.
func (h *hooks[F]) add(s *Server, call exclusive.Call, fn F) (remove func()) {
	added := &hook[F]{fn: fn}
	*h = append(slices.Clip(*h), added)
	return func() {
		defer s.guard().Leave(s.guard().Enter(call))
		added.taken = true
		*h = slices.DeleteFunc(slices.Clone(*h), func(other *hook[F]) bool { return other == added })
	}
}

// each yields the functions that there were at its call, but for those that are taken back meanwhile.
func (h hooks[F]) each() iter.Seq[F] {
	return func(yield func(F) bool) {
		for _, each := range h {
			if !each.taken && !yield(each.fn) {
				return
			}
		}
	}
}

// OnJoin makes the server ask fn whether a client may join, before it keeps anything of the client. data is what the
// client gave to [WithJoinData] or [Client.SetJoinData], at most 512 bytes; it is valid during the call. A nil error
// accepts the client. While fn returns [ErrJoinPending], the client waits and fn is called again. Another error refuses
// it: the client gets a [DisconnectError] with [ReasonRefused] and the error's text, cut to 50 bytes, or to 27 more
// than there are of data if that is more, and to 128 at most. To refuse with a code of your own, disconnect the peer.
//
// fn is called in [Peer.Receive] when a client with the right schema asks for a new session: usually once per session,
// and at most 16 times per tick of a peer. The peer of a refused client stays, so that the client may try again, until
// it times out.
//
// fn should only decide, since packets may be forged or late: it may be called though the session never begins, also
// while the peer is connected. Set up what belongs to the player in [Server.OnConnect], from [Peer.JoinData]. fn may do
// what a function of OnConnect may. If there are several functions, the first error counts. remove takes fn back.
//
// Panics if fn is nil.
func (s *Server) OnJoin(fn func(p *Peer, data []byte) error) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnJoin))
	if fn == nil {
		panic("replication: OnJoin needs a function")
	}
	s.sessions.Approves = true
	return s.joining.add(s, exclusive.OnJoin, fn)
}

// OnRefuse makes the server call fn when a client was refused, with the reason: the error of a function of
// [Server.OnJoin], or a sentence that names the client's protocol version, or the lines in which its schema differs. It
// may be called several times for a long schema. The peer stays until it times out.
//
// fn is called in [Peer.Receive], and may do what a function of [Server.OnConnect] may. Panics if fn is nil.
func (s *Server) OnRefuse(fn func(p *Peer, reason error)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnRefuse))
	if fn == nil {
		panic("replication: OnRefuse needs a function")
	}
	return s.refusing.add(s, exclusive.OnRefuse, fn)
}

// refused calls the functions of OnRefuse. Without any, the reason is not put into words.
func (s *Server) refused(p *Peer) {
	defer p.conn.ForgetRefusal()
	if len(s.refusing) == 0 {
		return
	}
	reason := p.conn.Refusal()
	s.handle(func() {
		for fn := range s.refusing.each() {
			fn(p, reason)
		}
	})
}

// approve asks the functions of OnJoin whether the client of a peer may join.
func (s *Server) approve(p *Peer, data []byte) (err error) {
	s.handle(func() {
		for fn := range s.joining.each() {
			if err = fn(p, data); err != nil || p.conn.State == session.Ended {
				return
			}
		}
	})
	return err
}

// OnConnect makes the server call fn when a client's session begins: from then on the client is sent the world, and
// messages may be sent to it. fn is called in [Peer.Receive], before the client's first message is delivered; and again
// for the same peer if its client begins a new session.
//
// fn may change the world, send messages and disconnect peers. It must not call Receive or Replicate. Functions are
// called in the order in which they were registered.
//
// Panics if fn is nil.
func (s *Server) OnConnect(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnConnect))
	if fn == nil {
		panic("replication: OnConnect needs a function")
	}
	return s.connecting.add(s, exclusive.OnConnect, fn)
}

// OnDisconnect makes the server call fn once for each peer whose connection has ended, whichever end ended it, also if
// its client never connected; [Peer.Err] returns why. It is called in [Peer.Receive] if the client disconnected, at the
// start of [Server.Replicate] if it timed out (see [WithTimeout]), and in [Peer.Disconnect] and [Server.Close]. By then
// the peer no longer owns anything.
//
// fn may do what one of [Server.OnConnect] may, and close the server; a Replicate in which it does so sends nothing.
// Panics if fn is nil.
func (s *Server) OnDisconnect(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnDisconnect))
	if fn == nil {
		panic("replication: OnDisconnect needs a function")
	}
	return s.parting.add(s, exclusive.OnDisconnect, fn)
}

// OnDrain makes the server call fn when there is room for messages to a client again: a reliable message was refused
// with [ErrBufferFull], or one of [SendToViewers] was dropped, and now at most half of the buffer is in use. fn is
// called in [Peer.Receive], once until the buffer is full again, but not for a new session.
//
// fn may do what one of [Server.OnConnect] may. Panics if fn is nil.
func (s *Server) OnDrain(fn func(p *Peer)) (remove func()) {
	defer s.guard().Leave(s.guard().Enter(exclusive.OnDrain))
	if fn == nil {
		panic("replication: OnDrain needs a function")
	}
	return s.drained.add(s, exclusive.OnDrain, fn)
}

// callHooks calls hooks for a peer.
func (s *Server) callHooks(list hooks[func(p *Peer)], p *Peer) {
	if len(list) == 0 {
		return
	}
	s.handle(func() {
		for fn := range list.each() {
			fn(p)
		}
	})
}

// handle calls what calls functions of the user's, in which no tick may begin.
func (s *Server) handle(call func()) {
	was, now := s.messages.Handling, s.calls.Open()
	s.messages.Handling = true
	defer func() { s.messages.Handling = was; s.calls.Leave(now) }()
	call()
}
