package soak

import (
	"errors"
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A sent is a message in flight, with its expected effect.
type sent struct {
	kind    noteKind
	note    note
	who     ecs.Entity // of the sender's world
	whoID   uint64     // packed, 0 for none
	tick    uint32     // of the Replicate that it belongs to
	viewers ecs.Entity // of SendToViewers
	session uint64     // of the client that sent it
}

// A letter is a message that a client should get.
type letter struct {
	*sent
	optional bool
}

// A mailbox has the messages in flight in one direction of a session.
type mailbox struct {
	channels   [2][]letter
	unreliable map[uint32]bool // by Unique: unreliable messages that have not arrived
}

func (m *mailbox) restart() {
	m.channels[0], m.channels[1] = nil, nil
	m.unreliable = map[uint32]bool{}
}

// takes records that a message arrived, and describes what is wrong with that.
func (m *mailbox) takes(s *sent, channel int) string {
	if !s.kind.reliable() {
		if !m.unreliable[s.note.Unique] {
			return "an unreliable message came twice, or in another session, or to whom it is not for"
		}
		delete(m.unreliable, s.note.Unique)
		return ""
	}
	queue := &m.channels[channel]
	for len(*queue) > 0 {
		next := (*queue)[0]
		*queue = (*queue)[1:]
		if next.sent == s {
			return ""
		}
		if !next.optional {
			return "a reliable message came out of turn"
		}
	}
	return "a reliable message came that is not on its way"
}

// open returns how many messages must still arrive.
func (m *mailbox) open() int {
	n := 0
	for _, queue := range m.channels {
		for _, l := range queue {
			if !l.optional {
				n++
			}
		}
	}
	return n
}

func (m *mailbox) post(s *sent, channel int, optional bool) {
	if s.kind.reliable() {
		m.channels[channel] = append(m.channels[channel], letter{s, optional})
	} else {
		m.unreliable[s.note.Unique] = true
	}
}

// write makes a message.
func (ep *episode) write(g *chance, who ecs.Entity) *sent {
	ep.unique++
	s := &sent{kind: noteKind(g.IntN(int(noteKinds))), who: who}
	s.note = note{Unique: ep.unique, Text: cut(pick(g, words...), 24), Who: who, Level: float32(g.between(0, 10))}
	ep.sent = append(ep.sent, s)
	return s
}

// find returns the message that was sent with this number, and fails if the contents differ.
func (ep *episode) find(kind noteKind, n note) *sent {
	if n.Unique == 0 || int(n.Unique) > len(ep.sent) {
		ep.fail("message %d was never sent", n.Unique)
	}
	s := ep.sent[n.Unique-1]
	if s.kind != kind || s.note.Text != n.Text || math.Abs(float64(s.note.Level-n.Level)) > 0.0501 {
		ep.fail("message %v of kind %d became %v of kind %d", s.note, s.kind, n, kind)
	}
	return s
}

// takeNotes sets the message handlers of a host.
func (h *host) takeNotes() {
	if !h.plan.notes {
		return
	}
	for kind, calls := range noteTypes {
		calls.onServer(h.server, func(p *replication.Peer, n note) {
			s := h.ep.find(noteKind(kind), n)
			h.ofPeer[p].arrivesUp(s, n.Who)
		})
	}
	replication.OnClientMessage(h.server, func(_ *replication.Peer, f fire) {
		if h.ep.fired[f.Number] {
			h.ep.fail("fire %d came twice", f.Number)
		}
		h.ep.fired[f.Number] = true
		h.fires = append(h.fires, f)
	})
}

// sendDown sends messages from the server.
func (h *host) sendDown() {
	g := h.g
	if !h.plan.notes || len(h.truth.here) == 0 || !g.one(2) {
		return
	}
	who := h.truth.here[g.IntN(len(h.truth.here))].e
	switch {
	case g.one(4) && h.newest != (ecs.Entity{}):
		who = h.newest
	case g.one(4):
		who = ecs.Entity{}
	}
	s := h.ep.write(g, who)
	calls := &noteTypes[s.kind]
	h.waiting = append(h.waiting, s)
	c := h.someConn()
	switch {
	case g.one(4):
		err := calls.all(h.server, s.note)
		h.post(s, err != nil)
	case g.one(4) && h.world.Alive(who):
		s.viewers = who
		h.post(s, calls.viewers(h.server, who, s.note) != nil)
	case c != nil:
		err := calls.send(c.peer, s.note)
		if c.peer.Connected() != !errors.Is(err, replication.ErrNotConnected) {
			h.ep.fail("Send to a peer that is connected: %v returns %v", c.peer.Connected(), err)
		}
		if err == nil {
			c.down.post(s, s.kind.channel(), false)
		}
	}
}

func (h *host) post(s *sent, optional bool) {
	for _, c := range h.conns {
		if c.peer.Connected() {
			c.down.post(s, s.kind.channel(), optional)
		}
	}
}

// posted determines, after a Replicate, the tick and receivers of messages sent since the previous
// one.
func (h *host) posted() {
	for _, s := range h.waiting {
		s.tick = h.truth.now
		if l := h.truth.byEntity[s.who]; l != nil {
			s.whoID = pack(l.id)
		}
		if s.viewers == (ecs.Entity{}) {
			continue
		}
		l := h.truth.byEntity[s.viewers]
		for _, c := range h.conns {
			if l != nil {
				c.down.decide(s, c.showable(l.id, h.truth.now, everyone))
			} else { // clients to which it was shown, which only the server knows
				c.down.decide(s, maybe)
			}
		}
	}
	h.waiting = h.waiting[:0]
	h.newest = ecs.Entity{}
}

// decide sets whether a client gets a message sent to viewers.
func (m *mailbox) decide(s *sent, seen verdict) {
	if !s.kind.reliable() {
		if seen == no {
			delete(m.unreliable, s.note.Unique)
		}
		return
	}
	queue := &m.channels[s.kind.channel()]
	for i := len(*queue) - 1; i >= 0; i-- {
		if (*queue)[i].sent != s {
			continue
		}
		switch seen {
		case no:
			*queue = append((*queue)[:i], (*queue)[i+1:]...)
		case maybe:
			(*queue)[i].optional = true
		}
		return
	}
}

// takeNotes sets the message handlers of a client.
func (c *conn) takeNotes() {
	c.down.restart()
	c.up = map[uint64]*mailbox{}
	if !c.host.plan.notes {
		return
	}
	for kind, calls := range noteTypes {
		calls.onClient(c.client, func(n note) { c.arrivesDown(c.ep.find(noteKind(kind), n), n.Who) })
	}
}

// arrivesDown handles a message from the server.
func (c *conn) arrivesDown(s *sent, who ecs.Entity) {
	c.ep.checks++
	if wrong := c.down.takes(s, s.kind.channel()); wrong != "" {
		c.ep.fail("message %d of tick %d, kind %d, for viewers of %v: %s", s.note.Unique, s.tick, s.kind, s.viewers, wrong)
	}
	if c.client.MessageTick() != replication.Tick(s.tick) {
		c.ep.fail("message of tick %d has MessageTick %d", s.tick, c.client.MessageTick())
	}
	// In a session that is not complete, what the client shows may be of the one before, and is named by no message.
	former := who == ecs.Entity{} && c.client.Stats().Sessions > 1 && !c.client.Complete()
	if want := c.mirror(s.whoID); who != want && !former && !c.isRemoved(s.whoID) {
		c.ep.fail("message of tick %d is about %v, which is %v here, not %v", s.tick, unpack(s.whoID), want, who)
	}
	if s.kind.waits() {
		c.structure(s.tick, "a message")
	}
}

// sendUp sends messages to the server.
func (c *conn) sendUp() {
	if !c.host.plan.notes || !c.g.one(5) {
		return
	}
	s := c.ep.write(c.g, c.someone())
	if id, ok := c.client.NetID(s.who); ok && s.who != (ecs.Entity{}) {
		s.whoID = pack(id)
	}
	if noteTypes[s.kind].toServer(c.client, s.note) == nil {
		s.session = c.client.Stats().Sessions
		c.upMail(s.session).post(s, 0, false)
	}
}

// upMail returns the messages in flight to the server in one session.
func (c *conn) upMail(session uint64) *mailbox {
	m := c.up[session]
	if m == nil {
		m = &mailbox{}
		m.restart()
		c.up[session] = m
	}
	return m
}

// arrivesUp handles a message from the client.
func (c *conn) arrivesUp(s *sent, who ecs.Entity) {
	c.ep.checks++
	if s.session < c.upSession {
		c.ep.fail("a message of session %d came in session %d", s.session, c.upSession)
	}
	c.upSession = s.session
	if wrong := c.upMail(s.session).takes(s, 0); wrong != "" {
		c.ep.fail("message %d to the server, kind %d: %s", s.note.Unique, s.kind, wrong)
	}
	var want ecs.Entity
	if l := c.host.truth.lives[unpack(s.whoID)]; s.whoID != 0 && l != nil && !l.over && c.host.world.Alive(l.e) {
		want = l.e
	}
	if who != want {
		c.ep.fail("message to the server is about %v, which is %v there, not %v", unpack(s.whoID), want, who)
	}
}
