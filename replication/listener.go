package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// listen connects a peer without a client: what it was sent counts as received. No function of the game's is called
// for it.
func listen(s *Server, send func(packet []byte) error, deaf bool) seam.Listener {
	defer s.guard().Leave(s.guard().Enter(exclusive.Connect))
	if s.closed.Load() {
		panic("replication: a recorder of a closed server: make a new one with NewServer")
	}
	p := s.add(newPeer(s, send, peerOptions{coding: Compact, mtu: wire.MaxMTU, noChecksum: true, silent: true}))
	p.sends.Note = func(int) {}                                                      // nothing leaves
	_ = p.receive(s.sessions.Hello(wire.Mix64(s.sessions.Instance + p.conn.Number))) // it is a right one
	if p.conn.TakeOffer(s.snap.Tick) {
		p.reset()
	}
	p.deaf = deaf
	next := p.acked.Log.Next
	return seam.Listener{Stats: p.stats, Resolve: func() {
		defer s.calls.Leave(s.calls.Enter(exclusive.PeerReceive))
		p.conn.ReceivedAt, p.deaf = s.snap.Tick, false
		next = p.acked.ResolveAll(next)
		if p.messages != nil {
			p.messages.ResolveAll()
		}
	}, Close: func() {
		defer s.calls.Leave(s.calls.Enter(exclusive.PeerDisconnect))
		p.sends.Function = func([]byte) error { return nil }
		p.disconnect(Reason{})
	}}
}
