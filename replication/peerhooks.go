package replication

// Hooks of a server are functions of the user's that it calls when clients come and go.

// OnConnect makes the server call fn when a client's session begins: from then on it is sent the world, and messages may be
// sent to it. It is called in [Peer.Receive], before the client's first message is handed over; and again for the same peer
// if its client begins anew, after [Client.Reconnect] for instance.
//
// fn may change the world, send messages and disconnect peers. It must not call Receive or Replicate. Functions are called in
// the order in which they were registered.
//
// Panics if fn is nil.
func (s *Server) OnConnect(fn func(p *Peer)) {
	s.mustExist()
	if fn == nil {
		panic("replication: OnConnect needs a function")
	}
	s.connecting = append(s.connecting, fn)
}

// OnDisconnect makes the server call fn when a connection has ended, whoever ended it; [Peer.Err] tells why. It is called in
// [Peer.Receive] if the client took its leave, at the begin of [Server.Replicate] if it was silent for too long (see
// [WithTimeout]), and in [Peer.Disconnect], [Server.Disconnect] and [Server.Close], once for each peer that [Server.Connect]
// made, also for those whose client never came. By then the peer owns nothing any more.
//
// fn may do what one of [Server.OnConnect] may, and close the server; a Replicate in which it does so makes no tick. Panics if
// fn is nil.
func (s *Server) OnDisconnect(fn func(p *Peer)) {
	s.mustExist()
	if fn == nil {
		panic("replication: OnDisconnect needs a function")
	}
	s.parting = append(s.parting, fn)
}

// callHooks calls hooks for a peer.
func (s *Server) callHooks(hooks []func(*Peer), p *Peer) {
	if len(hooks) == 0 {
		return
	}
	was := s.messages.Handling
	s.messages.Handling = true
	defer func() { s.messages.Handling = was }()
	for _, fn := range hooks {
		fn(p)
	}
}
