package replication

import (
	"iter"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
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
	connected
	ended
)

// A farewell says why a connection ended.
type farewell struct {
	code   uint8
	text   string
	remote bool // the other end ended it
}

// connection is what a peer and its client agreed on: the session in force, those that were offered, and how the connection
// ended. It reads and writes the packets of handshakes, and finds out which session other packets are of.
type connection struct {
	sessions *serverSessions
	opts     *serverOptions
	stats    *peerCounters
	send     func(packet []byte)

	state   connState
	compact bool     // the peer is to have states coded by Compact, if its client takes it
	why     farewell // once it has ended
	byes    int      // sent in answer since then

	session session    // in force once connected
	former  wire.Key   // of packets from the client in the session before
	pending []session  // offered by welcomes, the newest first; in force with the client's first packet of one
	epoch   uint8      // of the session that was offered last
	heardAt delta.Tick // when something of the client came last
}

// maxPending is how many introductions may wait for the client's first word: a late copy
// of an old one must not push out the one that counts.
const maxPending = 4

// sequenceGap lies between the sequences of a session and those of the next one on the
// same connection, so that late packets of the former are too old for the latter, even if
// there is no checksum. In their short form, too: it is less than 2^15.
const sequenceGap = 1 << 14

const (
	// offerGap lies between the sequences of sessions that are offered while none of them comes into force. It is more than
	// what may be in flight.
	offerGap = 1 << 11
	// maxOfferGaps is how many of these there are. Who is offered more sessions than that has them begin alike: farther
	// off, packets of the session in force would seem to be of the time to come, in their short form.
	maxOfferGaps = 7
)

// A packetUse says what a packet from a client is.
type packetUse uint8

const (
	useNothing  packetUse = iota // it was dealt with
	useAck                       // the body is that of an ack
	useMessages                  // the body is that of messages or inputs
	useEnd                       // the client ended the connection; why says how
)

// incoming is a packet from a client.
type incoming struct {
	use   packetUse
	begin bool // it puts a session in force, which has to begin before the body is used
	body  []byte
}

// receive finds out what a packet is. now is the tick of the latest Replicate, next the sequence of the next packet to the
// client.
func (c *connection) receive(packet []byte, now delta.Tick, next uint32) (incoming, error) {
	if c.state == ended {
		c.repeatBye(packet)
		return incoming{}, ErrUnexpected
	}
	if body := wire.OpenHandshake(packet); body != nil {
		return incoming{}, c.receiveHello(body, now, next)
	}
	if use, ok := c.receiveBye(packet); ok {
		return incoming{use: use}, nil
	}
	for i := range c.pending {
		if body := c.pending[i].openFirstWord(packet); body != nil && c.sessions.ack.Parse(body) == nil {
			c.enforce(i)
			return incoming{useAck, true, body}, nil
		}
		if body := c.pending[i].openFirstTalk(packet); body != nil && c.sessions.talks {
			c.enforce(i)
			return incoming{useMessages, true, body}, nil
		}
	}
	if c.session.up.Off {
		if body := c.session.openFirstWord(packet); body != nil {
			return incoming{useAck, false, body}, nil // repeated; its checksum may look like any kind of packet
		}
	}
	if c.former.Signed(packet) {
		return incoming{}, wire.ErrStale
	}
	if body := c.session.up.Body(packet); c.session.open && body != nil && (wire.KindOf(body) == wire.KindMessages || wire.KindOf(body) == wire.KindInputs) {
		return incoming{useMessages, false, body}, nil
	}
	if body := c.session.openPacket(packet); body != nil {
		return incoming{useAck, false, body}, nil
	}
	return incoming{}, ErrChecksum
}

// enforce puts a session in force that was offered. What was offered later stays: this may be the late word of a client
// that is gone.
func (c *connection) enforce(pending int) {
	c.former, c.session = c.session.up, c.pending[pending]
	c.pending = slices.Clone(c.pending[:pending])
	c.state = connected
}

// receiveHello answers a client that introduces itself. The session it is offered
// replaces the present one only when a packet of the new one arrives, so that an old
// hello that comes late changes nothing.
func (c *connection) receiveHello(body []byte, now delta.Tick, next uint32) error {
	var h wire.Hello
	if wire.PacketKind(body[0]) != wire.KindHello {
		return ErrUnexpected
	}
	if !h.Parse(body) {
		return wire.ErrMalformed
	}
	s := c.sessions
	if h.Version != wire.ProtocolVersion || h.Fingerprint != s.fingerprint {
		c.stats.RefusedSchemas++
		m := wire.Refuse{Version: wire.ProtocolVersion, Nonce: h.Nonce, Offset: h.Offset}
		piece := ""
		if h.Version == wire.ProtocolVersion {
			m.Total = uint32(len(s.text))
			from := int(min(uint64(h.Offset), uint64(len(s.text)))) // an int may have 32 bits
			room := min(c.opts.mtu, wire.MaxAmplification*(wire.ChecksumSize+len(body))) - wire.ChecksumSize - wire.RefuseSize
			piece = s.text[from:min(from+room, len(s.text))]
		}
		c.answerHello(append(m.Append(s.answer[:wire.ChecksumSize]), piece...))
		return nil
	}
	offered := c.offer(&h, next)
	m := wire.Welcome{
		Version: wire.ProtocolVersion, NoChecksum: c.opts.noChecksum, Compact: offered.compact, Window: uint8(c.opts.window),
		Nonce: h.Nonce, Session: offered.id, Tick: uint32(now), Sequence: offered.first, Origin: s.origin,
	}
	c.answerHello(m.Append(s.answer[:wire.ChecksumSize]))
	return nil
}

// answerHello completes a packet, in the server's memory for answers, and sends it.
func (c *connection) answerHello(packet []byte) {
	wire.HandshakeKey().Write(packet, 0, 0)
	c.send(packet)
}

// offer returns the session for a client that introduces itself: the one that it names, or
// that it was offered before if it asks again, as the answer may have been lost; or a new
// one.
func (c *connection) offer(h *wire.Hello, next uint32) session {
	for s := range c.known() {
		if s.id == h.Session || s.nonce == h.Nonce {
			return *s
		}
	}
	offered := c.newSession(h, next)
	offered.compact = c.compact && h.Codings&wire.TakesCompact != 0
	c.pending = slices.Insert(c.pending[:min(len(c.pending), maxPending-1)], 0, offered)
	return offered
}

// newSession makes a session for a client that introduced itself. next is the sequence of the next packet.
func (c *connection) newSession(h *wire.Hello, next uint32) session {
	id, first := c.sessions.newSessionID(), c.firstSequence(next)
	if c.opts.noChecksum {
		id = id&^(wire.Epochs-1) | uint64(c.nextTag(id, h.Session))
	}
	return session{
		id: id, nonce: h.Nonce, open: true, first: first, slots: h.Slots,
		down: wire.SessionKey(c.sessions.fingerprint, id, false, c.opts.noChecksum),
		up:   wire.SessionKey(c.sessions.fingerprint, id, true, c.opts.noChecksum),
	}
}

// nextTag returns the tag of a session that is to have the given number, but for its tag: on this connection the next one, and
// never that of a session that the client may believe in, or of the one before. named is the session that the client says it
// is in, 0 for none: it may be one with another peer, of which messages and inputs arrive until the new one begins.
func (c *connection) nextTag(id, named uint64) uint8 {
	sessions := slices.Collect(c.known())
	taken := func(tag uint8) bool {
		return named != 0 && wire.EpochOf(named) == tag || slices.ContainsFunc(sessions, func(s *session) bool { return wire.EpochOf(s.id) == tag })
	}
	if len(sessions) == 0 {
		if c.epoch = wire.EpochOf(id); taken(c.epoch) {
			c.epoch = (c.epoch + 1) % wire.Epochs
		}
		return c.epoch
	}
	for {
		c.epoch = (c.epoch + 1) % wire.Epochs
		if c.former.Epoch != c.epoch && !taken(c.epoch) {
			return c.epoch // there is one: no more than 7 are taken
		}
	}
}

// firstSequence returns the sequence with which a session begins that is offered now. Those that were offered before may
// come into force when the client is in this one already, so it keeps its distance from them as well. next is the sequence
// of the next packet of the session in force.
func (c *connection) firstSequence(next uint32) uint32 {
	first := uint32(c.opts.firstSequence)
	if c.session.open {
		first = next + sequenceGap
	}
	last := first + maxOfferGaps*offerGap
	for i := range c.pending {
		if next := c.pending[i].first + offerGap; int32(next-first) > 0 {
			first = next
		}
	}
	if int32(first-last) > 0 {
		return last
	}
	return first
}

// known returns the sessions that the client may believe in.
func (c *connection) known() iter.Seq[*session] {
	return func(yield func(*session) bool) {
		if c.session.open && !yield(&c.session) {
			return
		}
		for i := range c.pending {
			if c.pending[i].open && !yield(&c.pending[i]) {
				return
			}
		}
	}
}

// receiveBye takes a client's leave, and reports whether that is what the packet is.
func (c *connection) receiveBye(packet []byte) (use packetUse, ok bool) {
	if !wire.MaybeDisconnect(packet) {
		return useNothing, false
	}
	for s := range c.known() {
		if code, text, ok := wire.ParseDisconnect(packet, s.id, s.up); ok {
			if s != &c.session && c.state == connected {
				*s = session{} // one that never came into force
				return useNothing, true
			}
			c.why = farewell{code, text, true}
			return useEnd, true
		}
	}
	return useNothing, false
}

// sayBye tells the client that the connection ends.
func (c *connection) sayBye(code uint8, text string) {
	for s := range c.known() {
		packet := wire.DisconnectPacket(code, text, s.id, s.down, c.opts.mtu)
		for range byeCopies {
			c.send(packet)
		}
	}
}

// repeatBye answers a client that does not know that the connection has ended.
func (c *connection) repeatBye(packet []byte) {
	if c.why.remote || c.byes == maxByes {
		return
	}
	named := uint64(0)
	var h wire.Hello
	if body := wire.OpenHandshake(packet); body != nil && wire.PacketKind(body[0]) == wire.KindHello && h.Parse(body) {
		named = h.Session
	}
	for s := range c.known() {
		if s.id == named || named == 0 && s.openPacket(packet) != nil {
			c.byes++
			c.send(wire.DisconnectPacket(c.why.code, c.why.text, s.id, s.down, c.opts.mtu))
			return
		}
	}
}
