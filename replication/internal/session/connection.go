// Package session has sessions: the handshake, which packet is of which session, and the disconnect.
package session

import (
	"iter"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A connState is what became of a connection with a client:
//
//	introducing -> connected   the client's first packet of a session that was offered
//	connected   -> connected   the same of another session: the client has begun anew
//	any         -> ended       either end disconnected
type connState uint8

const (
	introducing connState = iota // no session is in force
	Connected
	Ended
)

// A Farewell says why a connection ended.
type Farewell struct {
	Code   uint8
	Text   string
	Remote bool // the other end ended it
}

// Connection is what a peer and its client agreed on: the session in force, those that were offered, and how the connection
// ended. It reads and writes the packets of handshakes, and finds out which session other packets are of.
type Connection struct {
	sessions *ServerSessions
	opts     *config.ServerOptions
	stats    *counters.PeerCounters
	send     func(packet []byte)

	State       connState
	Compact     bool     // the peer is to have states coded by Compact, if its client takes it
	Why         Farewell // once it has ended
	disconnects int      // sent in answer since then

	Session session   // in force once connected
	Former  wire.Key  // of packets from the client in the session before
	pending []session // offered by welcomes, the newest first; in force with the client's first packet of one
	epoch   uint8     // of the session that was offered last
	admission
	ReceivedAt delta.Tick // when something of the client came last
}

// maxPending is how many introductions may wait for the client's first word: a late copy
// of an old one must not push out the one that counts.
const maxPending = 4

// SequenceGap lies between the sequences of a session and those of the next one on the
// same connection, so that late packets of the former are too old for the latter, even if
// there is no checksum. In their short form, too: it is less than 2^15.
const SequenceGap = 1 << 14

const (
	// OfferGap lies between the sequences of sessions that are offered while none of them comes into force. It is more than
	// what may be in flight.
	OfferGap = 1 << 11
	// MaxOfferGaps is how many of these there are. Who is offered more sessions than that has them begin alike: farther
	// off, packets of the session in force would seem to be of the time to come, in their short form.
	MaxOfferGaps = 7
)

// A packetUse says what a packet from a client is.
type packetUse uint8

const (
	useNothing  packetUse = iota // it was dealt with
	UseAck                       // the body is that of an ack
	UseMessages                  // the body is that of messages or inputs
	UseEnd                       // the client ended the connection; why says how
)

// Incoming is a packet from a client.
type Incoming struct {
	Use   packetUse
	Begin bool // it puts a session in force, which has to begin before the body is used
	Body  []byte
}

// Receive finds out what a packet is. now is the tick of the latest Replicate, next the sequence of the next packet to the
// client.
func (c *Connection) Receive(packet []byte, now delta.Tick, next uint32) (Incoming, error) {
	if c.State == Ended {
		c.repeatDisconnect(packet)
		return Incoming{}, wire.ErrUnexpected
	}
	if body := wire.OpenHandshake(packet); body != nil {
		return Incoming{}, c.receiveHello(body, now, next)
	}
	if use, ok := c.receiveDisconnect(packet); ok {
		return Incoming{Use: use}, nil
	}
	for i := range c.pending {
		if body := c.pending[i].openFirstWord(packet); body != nil && c.sessions.Ack.Parse(body) == nil {
			c.Enforce(i)
			return Incoming{UseAck, true, body}, nil
		}
		if body := c.pending[i].openFirstMessages(packet); body != nil && c.sessions.UsesMessages {
			c.Enforce(i)
			return Incoming{UseMessages, true, body}, nil
		}
	}
	if c.Session.Up.Off {
		if body := c.Session.openFirstWord(packet); body != nil {
			return Incoming{UseAck, false, body}, nil // repeated; its checksum may look like any kind of packet
		}
	}
	if c.Former.Signed(packet) {
		return Incoming{}, wire.ErrStale
	}
	if body := c.Session.Up.Body(packet); c.Session.open && body != nil && (wire.KindOf(body) == wire.KindMessages || wire.KindOf(body) == wire.KindInputs) {
		return Incoming{UseMessages, false, body}, nil
	}
	if body := c.Session.openPacket(packet); body != nil {
		return Incoming{UseAck, false, body}, nil
	}
	return Incoming{}, wire.ErrChecksum
}

// Enforce puts a session in force that was offered. What was offered later stays: this may be the late word of a client
// that is gone.
func (c *Connection) Enforce(pending int) {
	c.Former, c.Session = c.Session.Up, c.pending[pending]
	c.pending = slices.Clone(c.pending[:pending])
	c.State = Connected
}

// receiveHello answers a client that introduces itself. The session it is offered
// replaces the present one only when a packet of the new one arrives, so that an old
// hello that comes late changes nothing.
func (c *Connection) receiveHello(body []byte, now delta.Tick, next uint32) error {
	var h wire.Hello
	if wire.PacketKind(body[0]) != wire.KindHello {
		return wire.ErrUnexpected
	}
	if !h.Parse(body) {
		return wire.ErrMalformed
	}
	s := c.sessions
	if h.Version != wire.ProtocolVersion || h.Fingerprint != s.Fingerprint {
		c.stats.RefusedSchemas++
		m := wire.Refuse{Version: wire.ProtocolVersion, Nonce: h.Nonce, Offset: h.Offset}
		piece := ""
		if h.Version == wire.ProtocolVersion {
			m.Total = uint32(len(s.Text))
			from := int(min(uint64(h.Offset), uint64(len(s.Text)))) // an int may have 32 bits
			room := min(c.opts.MTU, len(s.answer)) - wire.ChecksumSize - wire.RefuseSize
			piece = s.Text[from:min(from+room, len(s.Text))]
		}
		c.answerHello(append(m.Append(s.answer[:wire.ChecksumSize]), piece...))
		return nil
	}
	offered := c.sessionOf(&h)
	if offered == nil {
		if ok, err := c.admit(&h, now, wire.ChecksumSize+len(body)); !ok {
			return err
		}
		offered = c.offer(&h, next)
	}
	m := wire.Welcome{
		Version: wire.ProtocolVersion, NoChecksum: c.opts.NoChecksum, Compact: offered.Compact, Window: uint8(c.opts.Window),
		Nonce: h.Nonce, Session: offered.ID, Tick: uint32(now), Sequence: offered.First, Instance: s.Instance,
	}
	c.answerHello(m.Append(s.answer[:wire.ChecksumSize]))
	return nil
}

// answerHello completes a packet, in the server's memory for answers, and sends it.
func (c *Connection) answerHello(packet []byte) {
	wire.HandshakeKey().Write(packet, 0, 0)
	c.send(packet)
}

// sessionOf returns the session of a client that introduces itself: the one that it names, or
// that it was offered before if it asks again, as the answer may have been lost; or nil.
func (c *Connection) sessionOf(h *wire.Hello) *session {
	for s := range c.Known() {
		if s.ID == h.Session || s.nonce == h.Nonce {
			return s
		}
	}
	return nil
}

// offer makes a session for a client that introduces itself.
func (c *Connection) offer(h *wire.Hello, next uint32) *session {
	offered := c.newSession(h, next)
	offered.Compact = c.Compact && h.Codings&wire.TakesCompact != 0
	c.pending = slices.Insert(c.pending[:min(len(c.pending), maxPending-1)], 0, offered)
	return &c.pending[0]
}

// newSession makes a session for a client that introduced itself. next is the sequence of the next packet.
func (c *Connection) newSession(h *wire.Hello, next uint32) session {
	id, first := c.sessions.newSessionID(), c.firstSequence(next)
	if c.opts.NoChecksum {
		id = id&^(wire.Epochs-1) | uint64(c.nextEpoch(id, h.Session))
	}
	return session{
		ID: id, nonce: h.Nonce, open: true, First: first, Slots: h.Slots, JoinData: slices.Clone(h.Data),
		Down: wire.SessionKey(c.sessions.Fingerprint, id, false, c.opts.NoChecksum),
		Up:   wire.SessionKey(c.sessions.Fingerprint, id, true, c.opts.NoChecksum),
	}
}

// nextEpoch returns the tag of a session that is to have the given number, but for its tag: on this connection the next one, and
// never that of a session that the client may believe in, or of the one before. named is the session that the client says it
// is in, 0 for none: it may be one with another peer, of which messages and inputs arrive until the new one begins.
func (c *Connection) nextEpoch(id, named uint64) uint8 {
	sessions := slices.Collect(c.Known())
	taken := func(epoch uint8) bool {
		return named != 0 && wire.EpochOf(named) == epoch || slices.ContainsFunc(sessions, func(s *session) bool { return wire.EpochOf(s.ID) == epoch })
	}
	if len(sessions) == 0 {
		if c.epoch = wire.EpochOf(id); taken(c.epoch) {
			c.epoch = (c.epoch + 1) % wire.Epochs
		}
		return c.epoch
	}
	for {
		c.epoch = (c.epoch + 1) % wire.Epochs
		if c.Former.Epoch != c.epoch && !taken(c.epoch) {
			return c.epoch // there is one: no more than 7 are taken
		}
	}
}

// firstSequence returns the sequence with which a session begins that is offered now. Those that were offered before may
// come into force when the client is in this one already, so it keeps its distance from them as well. next is the sequence
// of the next packet of the session in force.
func (c *Connection) firstSequence(next uint32) uint32 {
	first := uint32(c.opts.FirstSequence)
	if c.Session.open {
		first = next + SequenceGap
	}
	last := first + MaxOfferGaps*OfferGap
	for i := range c.pending {
		if next := c.pending[i].First + OfferGap; int32(next-first) > 0 {
			first = next
		}
	}
	if int32(first-last) > 0 {
		return last
	}
	return first
}

// Known returns the sessions that the client may believe in.
func (c *Connection) Known() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		if c.Session.open && !yield(&c.Session) {
			return
		}
		for i := range c.pending {
			if c.pending[i].open && !yield(&c.pending[i]) {
				return
			}
		}
	}
}

// receiveDisconnect takes a disconnect packet of the client, and reports whether it is one.
func (c *Connection) receiveDisconnect(packet []byte) (use packetUse, ok bool) {
	if !wire.MaybeDisconnect(packet) {
		return useNothing, false
	}
	for s := range c.Known() {
		if code, text, ok := wire.ParseDisconnect(packet, s.ID, s.Up); ok {
			if s != &c.Session && c.State == Connected {
				*s = session{} // one that never came into force
				return useNothing, true
			}
			c.Why = Farewell{code, text, true}
			return UseEnd, true
		}
	}
	return useNothing, false
}

// SendDisconnect tells the client that the connection ends.
func (c *Connection) SendDisconnect(code uint8, text string) {
	for s := range c.Known() {
		packet := wire.DisconnectPacket(code, text, s.ID, s.Down, c.opts.MTU)
		for range DisconnectCopies {
			c.send(packet)
		}
	}
}

// repeatDisconnect answers a client that does not know that the connection has ended.
func (c *Connection) repeatDisconnect(packet []byte) {
	if c.Why.Remote || c.disconnects == MaxDisconnects {
		return
	}
	named := uint64(0)
	var h wire.Hello
	if body := wire.OpenHandshake(packet); body != nil && wire.PacketKind(body[0]) == wire.KindHello && h.Parse(body) {
		if named = h.Session; c.knows(&h) {
			c.disconnects++
			c.sendRefusal(len(packet))
			return
		}
	}
	for s := range c.Known() {
		if s.ID == named || named == 0 && s.openPacket(packet) != nil {
			c.disconnects++
			c.send(wire.DisconnectPacket(c.Why.Code, c.Why.Text, s.ID, s.Down, c.opts.MTU))
			return
		}
	}
}

const (

	// DisconnectCopies are sent at once: with a fifth of all packets lost, all of them are in one
	// of some hundred cases.
	DisconnectCopies = 3
	// MaxDisconnects bounds how often a client is told again that its session has ended.
	MaxDisconnects = 16
)

// Init prepares a connection: compact says whether the peer is to have states coded by Compact, if its client takes it. approve
// decides whether a client may join, if ServerSessions.Approves.
func (c *Connection) Init(sessions *ServerSessions, opts *config.ServerOptions, stats *counters.PeerCounters, send func(packet []byte), approve func(data []byte) error, compact bool, now delta.Tick) {
	c.sessions, c.opts, c.stats, c.send, c.approve = sessions, opts, stats, send, approve
	c.Compact, c.ReceivedAt = compact, now
	c.Session.First = c.firstSequence(0)
}

// End ends the connection.
func (c *Connection) End(why Farewell) { c.State, c.Why = Ended, why }
