package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// resetMessages forgets all that was said.
func (p *Peer) resetMessages() {
	s := p.server
	if !s.schema.UsesMessages() {
		return
	}
	t := &message.PeerMessages{
		Snap: &s.snap, Schema: s.schema, Messages: &s.messages, Acked: &p.acked, Stats: &p.stats,
		Down: p.conn.Session.Down, Up: p.conn.Session.Up, Send: p.out.SendMessages, Reported: s.snap.Tick,
	}
	t.Handler = func(number int) (handled, on bool) {
		h := s.handlers[number]
		if h == nil {
			return false, true
		}
		p.stats.MessagesReceived++
		h(p)
		return true, p.messages == t
	}
	p.messages = t
}

// speaks reports whether there are new messages for the peer.
func (p *Peer) speaks() bool { return p.messages != nil && p.messages.Speaks() }

// sendMessages sends the peers their messages, after the state of the tick.
func (s *Server) sendMessages() {
	if !s.schema.UsesMessages() {
		return
	}
	for i := 0; i < len(s.peers); i++ {
		if p := s.peers[i]; p.conn.State == session.Connected {
			p.messages.SendTick()
		}
	}
	s.messages.Messenger.Clear()
}

// toViewers sends a draft to those only that see an entity.
func (s *Server) toViewers(d *message.PendingMessage, e ecs.Entity) {
	d.Viewers, d.Entity = true, e
	id, known := s.NetID(e)
	d.ID, d.Known = wire.NetID(id), known
}
