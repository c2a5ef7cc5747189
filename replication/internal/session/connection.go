// Package session owns the sessions of a connection, at both ends: the handshake, the session that a
// packet belongs to, reconnecting, and the disconnect. Packets and calls of the user go in; answers, state
// changes and the bodies of packets for other parts come out. The face calls it for each peer and client.
package session

// This file has the server's end of a connection.

import (
	"errors"
	"iter"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// connState is the state of a connection with a client:
//
//	introducing -> connected   with the client's first packet of an offered session
//	connected   -> connected   with that of another session: the client has started again
//	any         -> ended       when either end disconnects
type connState uint8

const (
	introducing connState = iota // no session is in force
	Connected
	Ended
)

// Farewell is the reason for which a connection ended.
type Farewell struct {
	Text   string
	Code   uint8
	Remote bool // the other end ended it
}

// Connection has the sessions of a peer: the one in force, those that were offered, and the end of the
// connection. It reads and writes the packets of handshakes, and finds the session of other packets.
type Connection struct {
	sessions *ServerSessions
	opts     *config.ServerOptions
	stats    *counters.PeerCounters
	send     func(packet []byte)

	State       connState
	Compact     bool       // the peer is to use the coding Compact, if its client accepts that
	disconnects uint8      // sent as answers since it has ended
	epoch       uint8      // of the session that was offered last
	ReceivedAt  delta.Tick // when the last packet of the client arrived
	Why         Farewell   // valid if it has ended

	Number   uint64   // of the connection among those of the server
	Session  session  // in force once connected
	Former   wire.Key // of packets from the client in the previous session
	formerID uint64
	Offered  *session // the latest offer, until a packet puts it in force, or nil; see offerOf for those before it
	*strangers
}

// strangers has what hellos need that are not of the session in force. It stands apart, as ticks don't use it.
type strangers struct {
	Refused   bool   // the latest hello was, which the peer has not taken note of yet
	unwanted  error  // why OnJoin refused it
	refusals  uint8  // for the schema, that were reported
	refusedAt uint32 // what part of its text the latest of these asked for
	admission
	rivals
}

// SequenceGap is the distance of the sequences of a session from those of the next one on the
// same connection, so that late packets of the former are too old for the latter, even without
// checksums. It is less than 2^15, so this holds for short sequences as well.
const SequenceGap = 1 << 14

const (
	// OfferGap is the distance between the sequences of sessions that are offered while none of
	// them comes into force. It is more than the packets that may be in flight.
	OfferGap = 1 << 11
	// MaxOfferGaps is the largest number of gaps. Further sessions begin with the same sequence:
	// farther off, packets of the session in force with a short sequence would seem to be of the
	// future.
	MaxOfferGaps = 7
)

// packetUse selects the part that uses a packet from a client.
type packetUse uint8

const (
	_           packetUse = iota // the packet is done with
	UseAck                       // the body is that of an ack
	UseMessages                  // the body is that of messages or inputs
	UseEnd                       // the client ended the connection, for Connection.Why
)

// Incoming is a packet from a client.
type Incoming struct {
	Use   packetUse
	Begin bool // the packet puts a session in force, which has to begin before the body is used
	Body  []byte
}

// Receive reads a packet from the client, or finds the part that does. now is the tick of the latest
// Replicate, next the sequence of the next packet to the client.
func (c *Connection) Receive(packet []byte, now delta.Tick, next uint32) (Incoming, error) {
	in, err := c.receive(packet, now, next)
	if err == nil && (in.Body != nil || in.Begin) {
		c.noteUse(now, in.Begin)
	}
	return in, err
}

func (c *Connection) receive(packet []byte, now delta.Tick, next uint32) (Incoming, error) {
	if c.State == Ended {
		c.repeatDisconnect(packet)
		return Incoming{}, wire.ErrUnexpected
	}
	if body := wire.OpenHandshake(packet); body != nil {
		begin, err := c.receiveHello(body, now, next)
		return Incoming{Begin: begin}, err
	}
	if c.receiveDisconnect(packet) {
		return Incoming{Use: UseEnd}, nil
	}
	if offered := c.Offered; offered != nil {
		if body := offered.openFirstAck(packet); body != nil && c.sessions.Ack.Parse(body, next) == nil {
			c.enforce(offered)
			return Incoming{UseAck, true, body}, nil
		}
		if body := offered.openFirstMessages(packet); body != nil && c.sessions.UsesMessages {
			c.enforce(offered)
			return Incoming{UseMessages, true, body}, nil
		}
	}
	if c.Session.Up.Off {
		if body := c.Session.openFirstAck(packet); body != nil {
			return Incoming{UseAck, false, body}, nil // a duplicate; its checksum may look like any kind of packet
		}
	}
	if c.Former.Signed(packet) {
		return Incoming{}, wire.ErrStale
	}
	if body := c.Session.Up.Body(packet); c.Session.open && body != nil {
		if kind := wire.KindOf(body); kind == wire.KindMessages || kind == wire.KindInputs {
			return Incoming{UseMessages, false, body}, nil
		}
	}
	if body := c.Session.openPacket(packet); body != nil {
		return Incoming{UseAck, false, body}, nil
	}
	return Incoming{}, wire.ErrChecksum
}

// enforce puts an offered session in force. It keeps a later offer: this may be a late packet of a client
// that has started again.
func (c *Connection) enforce(offered *session) {
	c.Former, c.formerID, c.Session = c.Session.Up, c.Session.ID, *offered
	if c.Offered != nil && int32(c.Offered.First-c.Session.First) <= 0 {
		c.Offered = nil
	}
	c.State = Connected
}

// TakeOffer puts the latest offer in force, if there is one, for a client in this process.
func (c *Connection) TakeOffer(now delta.Tick) bool {
	if c.Offered == nil {
		return false
	}
	c.enforce(c.Offered)
	c.noteUse(now, true)
	c.ReceivedAt = now
	return true
}

// receiveHello answers a client that introduces itself. The offered session replaces the
// present one only when a packet of it arrives, so that a late copy of an old hello
// changes nothing. begin reports whether this is such a packet.
func (c *Connection) receiveHello(body []byte, now delta.Tick, next uint32) (begin bool, err error) {
	var h wire.Hello
	if wire.PacketKind(body[0]) != wire.KindHello {
		return false, wire.ErrUnexpected
	}
	if !h.Parse(body) {
		return false, wire.ErrMalformed
	}
	s := c.sessions
	if h.Version != wire.ProtocolVersion || h.Fingerprint != s.Fingerprint {
		c.stats.RefusedSchemas++
		s.Refused++
		s.refused = refusedHello{uint32(h.Version), h.Offset, c.opts.MTU}
		c.noteRefusal(h.Offset)
		m := wire.Refuse{Version: wire.ProtocolVersion, Nonce: h.Nonce, Offset: h.Offset}
		piece := ""
		if h.Version == wire.ProtocolVersion {
			m.Total = uint32(len(s.Text))
			from := int(min(uint64(h.Offset), uint64(len(s.Text)))) // an int may have 32 bits
			piece = s.Text[from:min(from+s.pieceSize(c.opts.MTU), len(s.Text))]
		}
		c.answerHello(append(m.Append(s.answer[:wire.ChecksumSize]), piece...))
		return false, nil
	}
	if confirmed := c.offerOf(&h); confirmed != nil {
		return c.confirm(confirmed)
	}
	offered := c.sessionOf(&h)
	if c.State == Connected && offered != &c.Session && c.meet(&h, c.formerID, now, delta.Tick(c.opts.TickRate)) {
		c.stats.OtherClients++
	}
	if offered == nil {
		if ok, err := c.admit(&h, now, wire.ChecksumSize+len(body)); !ok {
			return false, err
		}
		offered = c.offer(&h, next)
	}
	m := wire.Welcome{
		Version: wire.ProtocolVersion, NoChecksum: c.opts.NoChecksum, Compact: offered.Compact,
		Window: uint8(c.opts.Window),
		Nonce:  h.Nonce, Session: offered.ID, Tick: uint32(now), Sequence: offered.First, Instance: s.Instance,
		TickRate: uint16(c.opts.TickRate),
	}
	c.answerHello(m.Append(s.answer[:wire.ChecksumSize]))
	return false, nil
}

// noteRefusal keeps why a hello was refused, once for each part of the schema's text that it asks for.
func (c *Connection) noteRefusal(offset uint32) {
	if c.refusals == 0 || offset != c.refusedAt && c.refusals < mostRefusals {
		c.refusals, c.refusedAt = c.refusals+1, offset
		c.Refused = true
	}
}

// Refusal returns why the latest hello was refused.
func (c *Connection) Refusal() error {
	if c.unwanted != nil {
		return c.unwanted
	}
	return errors.New("replication: " + c.sessions.LastRefusal())
}

// ForgetRefusal is called when the peer has taken note.
func (c *Connection) ForgetRefusal() { c.Refused, c.unwanted = false, nil }

// mostRefusals bounds how often a connection reports that it was refused for its schema: somebody may ask for any part.
const mostRefusals = 16

// confirm puts the session of a hello that names it in force, and reports whether it begins with that. A late hello
// of an earlier session changes nothing.
func (c *Connection) confirm(offered *session) (begin bool, err error) {
	switch {
	case !c.Session.open:
	case offered.ID == c.Session.ID:
		return false, nil // it is repeated until states arrive
	case offered.ID == c.formerID || int32(offered.First-c.Session.First) < 0:
		return false, wire.ErrStale
	}
	c.enforce(offered)
	return true, nil
}

// answerHello completes a packet, in the server's memory for answers, and sends it.
func (c *Connection) answerHello(packet []byte) {
	wire.HandshakeKey().Write(packet, 0, 0)
	c.send(packet)
}

// sessionOf returns the session of a client that introduces itself: the one that it names, or
// the one that was offered before if it asks again, since the answer may have been lost; or nil.
func (c *Connection) sessionOf(h *wire.Hello) *session {
	for s := range c.Known() {
		if s.ID == h.Session || s.nonce == h.Nonce {
			return s
		}
	}
	return nil
}

// offer makes a session for a client that introduces itself. next is the sequence of the next packet.
func (c *Connection) offer(h *wire.Hello, next uint32) *session {
	first, epoch := c.firstSequence(next), uint8(0)
	if c.opts.NoChecksum {
		epoch = c.nextEpoch(h.Session)
	}
	c.Offered = c.newSession(h, first, epoch)
	return c.Offered
}

// offerOf returns the session that was offered to a client whose hello names it, nil if this connection has not
// offered it to that client. The hello has all of the session, and the session's number proves that: so
// no number of other hellos displaces an offer.
func (c *Connection) offerOf(h *wire.Hello) *session {
	if h.Session == 0 {
		return nil
	}
	if s := c.newSession(h, h.Offset, wire.EpochOf(h.Session)); s.ID == h.Session {
		return s
	}
	return nil
}

// newSession returns the session for a hello that begins with the given sequence. The epoch counts in sessions
// without checksums only. It always returns the same one.
func (c *Connection) newSession(h *wire.Hello, first uint32, epoch uint8) *session {
	id := c.sessions.sessionID(c.Number, h, first)
	if c.opts.NoChecksum {
		id = id&^(wire.Epochs-1) | uint64(epoch)
	}
	return &session{
		ID: id, nonce: h.Nonce, open: true, First: first, Slots: h.Slots,
		Compact:  c.Compact && h.Codings&wire.TakesCompact != 0,
		JoinData: append([]byte(nil), h.Data...), // a Clone of no data would not be nil, and keep the packet
		Down:     wire.SessionKey(c.sessions.Fingerprint, id, false, c.opts.NoChecksum),
		Up:       wire.SessionKey(c.sessions.Fingerprint, id, true, c.opts.NoChecksum),
	}
}

// nextEpoch returns the epoch of a new session: the next one on this connection, but never that of a session that
// the client may be in, or of the previous one. They go round, so the last few offers have different ones. named
// is the session that the client names, 0 for none: it may be one with another peer, whose messages and
// inputs arrive until the new session begins.
func (c *Connection) nextEpoch(named uint64) uint8 {
	for {
		c.epoch = (c.epoch + 1) % wire.Epochs
		taken := named != 0 && wire.EpochOf(named) == c.epoch || c.Former.Off && c.Former.Epoch == c.epoch
		for s := range c.Known() {
			taken = taken || wire.EpochOf(s.ID) == c.epoch
		}
		if !taken {
			return c.epoch // there always is one: at most 4 are taken
		}
	}
}

// firstSequence returns the first sequence of a session that is offered now. It also keeps its distance
// from sessions that were offered before, which may come into force when the client is in this one
// already. next is the sequence of the next packet of the session in force.
func (c *Connection) firstSequence(next uint32) uint32 {
	first := uint32(c.opts.FirstSequence)
	if c.Session.open {
		first = next + SequenceGap
	}
	last := first + MaxOfferGaps*OfferGap
	if c.Offered != nil && int32(c.Offered.First+OfferGap-first) > 0 {
		first = c.Offered.First + OfferGap
	}
	if int32(first-last) > 0 {
		return last
	}
	return first
}

// Known returns the sessions that the client may be in, except for offers before the latest one.
func (c *Connection) Known() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		if c.Session.open && !yield(&c.Session) {
			return
		}
		if c.Offered != nil {
			yield(c.Offered)
		}
	}
}

// receiveDisconnect reads a disconnect of the client, and reports whether the packet is one.
func (c *Connection) receiveDisconnect(packet []byte) bool {
	if !wire.MaybeDisconnect(packet) {
		return false
	}
	for s := range c.Known() {
		if code, text, ok := wire.ParseDisconnect(packet, s.ID, s.Up); ok {
			c.Why = Farewell{Code: code, Text: text, Remote: true}
			return true
		}
	}
	return false
}

// SendDisconnect sends disconnects to the client.
func (c *Connection) SendDisconnect(code uint8, text string) {
	for s := range c.Known() {
		for range DisconnectCopies {
			c.send(wire.DisconnectPacket(code, text, s.ID, s.Down, c.opts.MTU))
		}
	}
}

// repeatDisconnect answers a client that has not learnt that the connection has ended.
func (c *Connection) repeatDisconnect(packet []byte) {
	if c.Why.Remote || c.disconnects == MaxDisconnects {
		return
	}
	repeat := func(s *session) {
		c.disconnects++
		c.send(wire.DisconnectPacket(c.Why.Code, c.Why.Text, s.ID, s.Down, c.opts.MTU))
	}
	named := uint64(0)
	var h wire.Hello
	if body := wire.OpenHandshake(packet); body != nil && wire.PacketKind(body[0]) == wire.KindHello && h.Parse(body) {
		if named = h.Session; c.knows(&h) {
			c.disconnects++
			c.sendRefusal(c.last, len(packet))
			return
		}
		if s := c.offerOf(&h); s != nil {
			repeat(s)
			return
		}
	}
	for s := range c.Known() {
		if s.ID == named || named == 0 && s.openPacket(packet) != nil {
			repeat(s)
			return
		}
	}
}

const (
	// DisconnectCopies is the number of disconnects sent at once: if a fifth of all packets is lost,
	// all copies are lost in one of 125 cases.
	DisconnectCopies = 3
	// MaxDisconnects bounds the disconnects that answer a client whose session has ended.
	MaxDisconnects = 16
)

// Init prepares a connection. approve decides whether a client may join, if ServerSessions.Approves.
// compact selects the coding Compact, if the client accepts that. number is another one for each connection.
func (c *Connection) Init(
	sessions *ServerSessions, opts *config.ServerOptions, stats *counters.PeerCounters, send func(packet []byte),
	approve func(data []byte) error, compact bool, number uint64, now delta.Tick,
) {
	c.sessions, c.opts, c.stats, c.send = sessions, opts, stats, send
	c.strangers = &strangers{admission: admission{approve: approve}}
	c.Compact, c.ReceivedAt = compact, now
	c.Number, c.epoch = number, wire.EpochOf(sessions.sessionID(number, &wire.Hello{}, 0))
	c.Session.First = c.firstSequence(0)
}

// End ends the connection.
func (c *Connection) End(why Farewell) { c.State, c.Why = Ended, why }
