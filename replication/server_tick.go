package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Replicate runs one tick: it captures the world and sends every connected peer what it needs. Call it once per tick,
// after the systems have run. It does not change the structure of the world and works on a locked one.
//
// Panics if the server is closed, and in a message handler or hook of the server.
func (s *Server) Replicate() {
	s.mustExist()
	if s.messages.Handling {
		panic("replication: Replicate in a message handler or hook of the server: wait until the call that " +
			"it runs in returns")
	}
	defer s.watchers.Note(seam.ReplicateEnds, 0) // when others may read again
	defer s.calls.Leave(s.calls.EnterAlone(exclusive.Replicate))
	if s.closed.Load() {
		panic("replication: Replicate of a closed server: make a new one with NewServer")
	}
	s.watchers.Note(seam.ReplicateBegins, 0)
	s.noticeReset()
	if s.dropSilent(); s.closed.Load() {
		return // by a hook
	}
	s.noticeReset() // a hook may have reset the world
	s.interest.Groups.Tidy(s.snap.Tick, s.released)
	for _, p := range s.peers {
		if p.takesPart() && p.sight.MakeRoom() {
			break
		}
	}
	s.snap.Tick++
	s.snap.Slots.Begin(s.snap.Tick)
	s.snap.CaptureWorld(s.refreshPeers)
	s.disownGone()
	for _, fn := range s.captured {
		fn()
	}
	s.interest.SettleOwners()
	s.snap.SettleWeights()
	s.snap.Slots.List()
	for _, g := range s.interest.Grids {
		g.Update()
	}
	s.interest.UpdateSets()
	s.interest.Groups.Update(&s.snap)
	s.askPeers()
	s.sendStates()
	s.sendMessages()
	s.watchers.Note(seam.Replicated, 0)
}

// disownGone ends the ownership of entities that the capture found gone. It is called before the next capture as well,
// as a function of the user's may have panicked in this one.
func (s *Server) disownGone() {
	for _, g := range s.snap.Gone {
		s.interest.Disown(g.Slot, g.Entity)
	}
	s.snap.Gone = s.snap.Gone[:0]
}

// askPeers calls what the user gave to choose what connected peers are sent.
func (s *Server) askPeers() {
	workers := &s.sender.workers
	workers.Begin()
	for _, p := range s.peers {
		if p.conn.State == session.Connected {
			workers.Add(&p.out)
		}
	}
	workers.Ready(&s.snap)
	was, open := s.calls.Ask(), true
	for _, p := range s.peers {
		if !p.takesPart() {
			continue
		}
		if p.sight.View.Blind() {
			p.stats.NoViewpoint++
		}
		p.sight.View.Ask(s.snap.Capture.Tables)
		p.sight.AskConditions(func(ask any) bool { return p.silent || (*ask.(*func(*Peer) bool))(p) })
		p.out.HasMessages = p.speaks()
		workers.PrepareHere(&p.out)
		open = open && p.sight.View.Everything()
	}
	s.calls.Leave(was)
	s.snap.Steady.Measure(&s.snap, open)
}

// sendStates sends the peers what changed, and ends the tick of the slots: also if a send
// function panics, or the next tick would take the changes of this one for its own, which peers
// may have acknowledged by then.
func (s *Server) sendStates() {
	defer s.snap.Slots.Settle(s.snap.Tick)
	s.sender.workers.Run(s.snap.Tick)
	for _, p := range s.peers {
		if p.takesPart() {
			p.out.Flush()
			p.out.Keep()
		}
	}
	s.sendHashes()
}

// takesPart reports whether the peer is sent state in the present tick, if it needs any.
func (p *Peer) takesPart() bool { return p.conn.State == session.Connected && p.out.Joining.Begun }

// refreshPeers keeps the ticks that peers hold of slots of a block within reach of serial arithmetic.
func (s *Server) refreshPeers(b int, slots uint64, limit delta.Tick) {
	for _, p := range s.peers {
		p.acked.Refresh(b, slots, limit)
	}
}

// released reports whether a former member of a group means nothing to any peer any more.
func (s *Server) released(g *interest.Group, f interest.FormerMember) bool {
	for _, p := range s.peers {
		if p.conn.State == session.Connected && !p.acked.Released(g, f) {
			return false
		}
	}
	return true
}

// sendHashes sends all peers the hashes of this tick, if it is one for them.
func (s *Server) sendHashes() {
	every := s.opts.HashEvery
	if every == 0 {
		return
	}
	for _, p := range s.peers {
		h := &p.out.Hashing
		if p.takesPart() && p.acked.MaySendNow() && (!h.Any || s.snap.Tick-h.At >= every) {
			p.out.Hashing.Any, p.out.Hashing.At = true, s.snap.Tick
			if p.opts.MTU > len(s.sender.hashes) {
				s.sender.hashes = make([]byte, p.opts.MTU)
			}
			p.out.SendHashes(s.sender.hashes[:p.opts.MTU])
		}
	}
}

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
	s.messages.End()
}

// dropSilent disconnects the peers that have been silent for too long in the tick that begins.
func (s *Server) dropSilent() {
	timeout := delta.Tick(config.Ticks(s.opts.Timeout, s.opts.TickRate))
	if timeout == 0 {
		return
	}
	for i := len(s.peers) - 1; i >= 0; i-- {
		if i >= len(s.peers) {
			continue // a hook has disconnected others
		}
		if p := s.peers[i]; s.snap.Tick+1-p.conn.ReceivedAt > timeout {
			s.stats.Timeouts++
			p.disconnect(Reason{Code: ReasonTimeout})
		}
	}
}

// enqueue hands the last pending message to all peers.
func (s *Server) enqueue(pending int) (err error) {
	if s.closed.Load() {
		s.messages.Messenger.Discard()
		return ErrNotConnected
	}
	d := &s.messages.Messenger.Pending[pending]
	full := d.Viewers && !s.messages.HasRoomFor(d)
	taken, anybody := false, false
	for _, p := range s.peers {
		if p.conn.State != session.Connected || p.deaf {
			continue
		}
		anybody = anybody || !p.silent
		refused := message.ErrBufferFull
		if !full {
			refused = p.messages.Enqueue(pending)
		}
		if taken = taken || refused == nil; refused != nil {
			p.stats.MessagesDropped++
			if !p.silent && (err == nil || err == message.ErrBufferFull) { // one that waiting does not mend goes first
				err = refused
			}
		}
	}
	if !anybody {
		err = s.messages.Messenger.CheckSize(pending, s.opts.MTU)
	}
	switch {
	case !taken:
		s.messages.Messenger.Discard()
	case d.Viewers:
		s.messages.Take(d)
	}
	return err
}

// toViewers marks a pending message as one for those only that see an entity.
func (s *Server) toViewers(d *message.PendingMessage, e ecs.Entity) {
	d.Viewers, d.Entity = true, e
	id, known := s.netID(e)
	d.ID, d.Known = wire.NetID(id), known
}
