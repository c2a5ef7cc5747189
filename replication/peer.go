package replication

import (
	"errors"
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Peer is the server's view of one client: what it has acknowledged of every slot,
// and what is on its way. [Server.Connect] makes peers.
type Peer struct {
	server *Server
	out    sender
	closed bool
	coding Coding           // that it is to have
	ended  *DisconnectError // why, if closed
	byes   int              // sent in answer since then

	session   session   // in force once connected
	former    wire.Key  // of packets from the client in the session before
	pending   []session // offered by welcomes, the newest first; in force with the client's first word of one
	tag       uint8     // of the session that was offered last
	connected bool
	heardAt   delta.Tick // when something of the client came last

	acked tracker

	sight sight
	talk  *peerTalk // nil: the schema has neither messages nor inputs
	stats PeerStats
}

// maxPending is how many introductions may wait for the client's first word: a late copy
// of an old one must not push out the one that counts.
const maxPending = 4

// session is what a client and a server agreed on.
type session struct {
	id       uint64
	nonce    uint64
	open     bool
	compact  bool     // the coding is Compact
	first    uint32   // sequence of its first state packet
	slots    uint32   // that the client takes; 0: it does not say
	down, up wire.Key // of packets to the client and from it
}

// newSession makes a session for a client that introduced itself.
func (p *Peer) newSession(h *wire.Hello) session {
	s := p.server
	id, first := s.sessions.newSessionID(), p.firstSequence(p.acked.log.next)
	if s.opts.noChecksum {
		id = id&^(wire.Epochs-1) | uint64(p.nextTag(id, h.Session))
	}
	return session{
		id: id, nonce: h.Nonce, open: true, first: first, slots: h.Slots,
		down: wire.SessionKey(s.sessions.fingerprint, id, false, s.opts.noChecksum),
		up:   wire.SessionKey(s.sessions.fingerprint, id, true, s.opts.noChecksum),
	}
}

// nextTag returns the tag of a session that is to have the given number, but for its tag: on this connection the next one, and
// never that of a session that the client may believe in, or of the one before. named is the session that the client says it
// is in, 0 for none: it may be one with another peer, of which messages and inputs arrive until the new one begins.
func (p *Peer) nextTag(id, named uint64) uint8 {
	sessions := slices.Collect(p.sessions())
	taken := func(tag uint8) bool {
		return named != 0 && wire.EpochOf(named) == tag || slices.ContainsFunc(sessions, func(s *session) bool { return wire.EpochOf(s.id) == tag })
	}
	if len(sessions) == 0 {
		if p.tag = wire.EpochOf(id); taken(p.tag) {
			p.tag = (p.tag + 1) % wire.Epochs
		}
		return p.tag
	}
	for {
		p.tag = (p.tag + 1) % wire.Epochs
		if p.former.Epoch != p.tag && !taken(p.tag) {
			return p.tag // there is one: no more than 7 are taken
		}
	}
}

// openPacket returns the body of a packet that a client sent in the session, or nil.
func (s *session) openPacket(packet []byte) []byte {
	if body := s.up.Body(packet); s.open && body != nil && s.up.Matches(packet, 0, 0) {
		return body
	}
	return nil
}

// openFirstWord returns the body of the packet that puts the session in force, or nil. It
// has a checksum, also in sessions without: else the ack of any other session on this
// connection could be taken for it.
func (s *session) openFirstWord(packet []byte) []byte {
	key := s.up
	key.Off = false
	if body := key.Body(packet); s.open && body != nil && key.Matches(packet, 0, 0) && wire.PacketKind(body[0]) == wire.KindAck {
		return body
	}
	return nil
}

// openFirstTalk returns the body of a packet of messages or inputs that puts the session in force, since it came before the
// ack that was sent first, or nil. Only its checksum tells.
func (s *session) openFirstTalk(packet []byte) []byte {
	body := s.up.Body(packet)
	if !s.open || s.up.Off || body == nil || wire.KindOf(body) != wire.KindMessages && wire.KindOf(body) != wire.KindInputs {
		return nil
	}
	var h wire.MessageHeader
	if _, ok := h.Parse(body, 0); !ok || h.Check(s.up) != nil || !s.up.Matches(packet, 0, h.Time) {
		return nil
	}
	return body
}

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

// firstSequence returns the sequence with which a session begins that is offered now. Those that were offered before may
// come into force when the client is in this one already, so it keeps its distance from them as well. next is the sequence
// of the next packet of the session in force.
func (p *Peer) firstSequence(next uint32) uint32 {
	first := uint32(p.server.opts.firstSequence)
	if p.session.open {
		first = next + sequenceGap
	}
	last := first + maxOfferGaps*offerGap
	for i := range p.pending {
		if next := p.pending[i].first + offerGap; int32(next-first) > 0 {
			first = next
		}
	}
	if int32(first-last) > 0 {
		return last
	}
	return first
}

func newPeer(s *Server, send func([]byte) error, o peerOptions) *Peer {
	p := &Peer{}
	p.sight.snap, p.sight.schema, p.sight.interest = &s.snap, s.schema, &s.interest
	p.out.snap, p.out.opts, p.out.interest, p.out.sight, p.out.acked, p.out.stats = &s.snap, &s.opts, &s.interest, &p.sight, &p.acked, &p.stats
	p.acked.snap, p.acked.opts, p.acked.interest, p.acked.sight, p.acked.stats = &s.snap, &s.opts, &s.interest, &p.sight, &p.stats
	p.server, p.out.send, p.coding, p.heardAt = s, send, o.coding, s.snap.tick
	p.acked.interval, p.out.stream, p.acked.classes.slots, p.acked.outcome = 1, -1, &s.snap.slots, &p.out
	p.session.first = p.firstSequence(0)
	p.SetInterest(Interest{})
	p.reset()
	return p
}

// reset forgets all that was sent and acknowledged.
func (p *Peer) reset() {
	p.acked.acks.reset(&p.server.snap.slots, p.server.snap.tick)
	p.acked.due = nil
	p.acked.large = map[int]*largeState{}
	p.acked.log = newSentLog(p.session.first)
	p.acked.trip = clock.RoundTrip{}
	p.out.budget.restart(p.server.snap.tick)
	p.acked.heard, p.out.resume, p.out.behind, p.out.yields, p.out.crowded = false, 0, 0, false, 0
	p.out.rests = false
	p.out.sending, p.out.outbox.failed = false, p.out.outbox.failed[:0]
	p.out.typical, p.out.usage = firstTypical, usage{spent: p.stats.spending()}
	p.acked.followed = p.acked.log.next
	for i := range p.acked.full {
		p.acked.full[i] = p.server.snap.tick // none that is to come
	}
	p.sight.view.visible, p.sight.view.next = nil, nil
	p.sight.view.kept = nil
	p.sight.view.room, p.sight.view.withheld = int(min(p.session.slots, maxSlots)), 0
	p.acked.join, p.out.alive, p.acked.silence = join{}, keepAlive{next: p.acked.log.next}, silence{answered: p.acked.log.next}
	p.out.urgency, p.out.met = urgency{}, nil
	p.out.seal, p.out.compact = p.session.down, p.session.compact
	p.out.packet.compact, p.acked.classes.compact = nil, p.session.compact
	if p.session.compact {
		p.out.packet.compact = newCompactWriter(&p.server.snap)
	}
	p.resetTalk()
}

func (p *Peer) close() {
	p.closed, p.connected = true, false
	p.acked.acks, p.acked.due, p.acked.large, p.acked.log = ackTable{}, nil, nil, sentLog{}
	p.acked.structure = nil
	p.talk = nil
	p.sight.view, p.out.urgency, p.out.met = view{}, urgency{}, nil
	p.acked.join = join{}
	p.out.packet.compact = nil
}

// mustExist panics if the peer is nil, or zero.
func (p *Peer) mustExist() {
	if p == nil || p.server == nil {
		panic("replication: there is no peer: Server.Connect returns one")
	}
}

// Connected reports whether the client has introduced itself with the same schema and
// is sent state. When that ends, [Peer.Err] says why.
func (p *Peer) Connected() bool {
	p.mustExist()
	return p.connected
}

// Stats returns what went to and came from the peer.
func (p *Peer) Stats() PeerStats {
	p.mustExist()
	stats := p.stats
	stats.Budget = int(p.out.budget.rate)
	return stats
}

// RoundTrip returns the estimated time from sending a packet to learning that it came,
// in ticks, or 0 if none did yet.
func (p *Peer) RoundTrip() float64 {
	p.mustExist()
	return float64(p.acked.trip.Smooth) / 8
}

// SetSendInterval makes the server send state to the peer on every n-th tick only; 1, the
// default, is every tick. Peers with the same interval take turns.
//
// Panics if n is not 1 to 60.
func (p *Peer) SetSendInterval(n int) {
	p.mustExist()
	if n < 1 || n > maxInterval {
		panic(fmt.Sprintf("replication: a send interval of %d ticks: use 1 to %d", n, maxInterval))
	}
	p.acked.interval = delta.Tick(n)
}

// maxInterval keeps intervals well within the window and the timeouts.
const maxInterval = 60

// Receive takes a packet from the client. The packet is not kept. Whatever it holds,
// nothing worse happens than an error: [ErrMalformed], [ErrChecksum], [ErrStale],
// [ErrUnexpected], [ErrFlood]. Call it between Replicates, on the same goroutine. Messages
// are handed over in it, see [OnMessage].
func (p *Peer) Receive(packet []byte) error {
	p.mustExist()
	err := p.receive(packet)
	switch {
	case errors.Is(err, wire.ErrStale):
		p.stats.Duplicates++
	case err != nil:
		p.stats.RefusedPackets++
	default:
		p.heardAt = p.server.snap.tick
	}
	return err
}

func (p *Peer) receive(packet []byte) error {
	if p.closed {
		p.repeatBye(packet)
		return ErrUnexpected
	}
	if body := wire.OpenHandshake(packet); body != nil {
		return p.receiveHello(body)
	}
	if p.receiveBye(packet) {
		return nil
	}
	for i := range p.pending {
		if body := p.pending[i].openFirstWord(packet); body != nil && p.server.sessions.ack.Parse(body) == nil {
			p.enforce(i)
			if p.closed {
				return nil // by a hook
			}
			return p.receiveAck(body)
		}
		if body := p.pending[i].openFirstTalk(packet); body != nil && p.server.schema.Talks() {
			p.enforce(i)
			if p.closed {
				return nil
			}
			return p.talk.receiveTalk(packet, body)
		}
	}
	if p.session.up.Off {
		if body := p.session.openFirstWord(packet); body != nil {
			return p.receiveAck(body) // repeated; its checksum may look like any kind of packet
		}
	}
	if p.former.Signed(packet) {
		return wire.ErrStale
	}
	if body := p.session.up.Body(packet); p.session.open && body != nil && (wire.KindOf(body) == wire.KindMessages || wire.KindOf(body) == wire.KindInputs) {
		return p.talk.receiveTalk(packet, body)
	}
	if body := p.session.openPacket(packet); body != nil {
		return p.receiveAck(body)
	}
	return ErrChecksum
}

// enforce puts a session in force that was offered. What was offered later stays: this may be the late word of a client
// that is gone.
func (p *Peer) enforce(pending int) {
	p.former, p.session = p.session.up, p.pending[pending]
	p.pending = slices.Clone(p.pending[:pending])
	p.connected = true
	p.reset()
	p.server.messages.callHooks(p.server.connecting, p)
}

// receiveHello answers a client that introduces itself. The session it is offered
// replaces the present one only when a packet of the new one arrives, so that an old
// hello that comes late changes nothing.
func (p *Peer) receiveHello(body []byte) error {
	var h wire.Hello
	if wire.PacketKind(body[0]) != wire.KindHello {
		return ErrUnexpected
	}
	if !h.Parse(body) {
		return wire.ErrMalformed
	}
	s := p.server
	if h.Version != wire.ProtocolVersion || h.Fingerprint != s.sessions.fingerprint {
		p.stats.RefusedSchemas++
		m := wire.Refuse{Version: wire.ProtocolVersion, Nonce: h.Nonce, Offset: h.Offset}
		piece := ""
		if h.Version == wire.ProtocolVersion {
			m.Total = uint32(len(s.sessions.text))
			from := int(min(uint64(h.Offset), uint64(len(s.sessions.text)))) // an int may have 32 bits
			room := min(s.opts.mtu, wire.MaxAmplification*(wire.ChecksumSize+len(body))) - wire.ChecksumSize - wire.RefuseSize
			piece = s.sessions.text[from:min(from+room, len(s.sessions.text))]
		}
		p.out.answerHello(append(m.Append(s.sessions.answer[:wire.ChecksumSize]), piece...))
		return nil
	}
	offered := p.offer(&h)
	m := wire.Welcome{
		Version: wire.ProtocolVersion, NoChecksum: s.opts.noChecksum, Compact: offered.compact, Window: uint8(s.opts.window),
		Nonce: h.Nonce, Session: offered.id, Tick: uint32(s.snap.tick), Sequence: offered.first, Origin: s.sessions.origin,
	}
	p.out.answerHello(m.Append(s.sessions.answer[:wire.ChecksumSize]))
	return nil
}

// answerHello completes a packet, in the server's memory for answers, and sends it.
func (p *sender) answerHello(packet []byte) {
	wire.HandshakeKey().Write(packet, 0, 0)
	p.transmit(packet)
}

// offer returns the session for a client that introduces itself: the one that it names, or
// that it was offered before if it asks again, as the answer may have been lost; or a new
// one.
func (p *Peer) offer(h *wire.Hello) session {
	for s := range p.sessions() {
		if s.id == h.Session || s.nonce == h.Nonce {
			return *s
		}
	}
	offered := p.newSession(h)
	offered.compact = p.coding == Compact && h.Codings&wire.TakesCompact != 0
	p.pending = slices.Insert(p.pending[:min(len(p.pending), maxPending-1)], 0, offered)
	return offered
}

func (p *sender) transmit(packet []byte) {
	if p.send(packet) != nil {
		p.stats.SendErrors++
	}
}
