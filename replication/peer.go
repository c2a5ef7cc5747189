package replication

import (
	"errors"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A Peer is the server's view of one client: what it has acknowledged of every slot,
// and what is on its way. [Server.Connect] makes peers.
type Peer struct {
	server *Server
	send   func(packet []byte) error
	closed bool

	session   session             // in force once connected
	pending   [maxPending]session // offered by welcomes; in force with the first ack of one
	connected bool

	slots          []peerSlot
	due            bitset // slots to look at: all others are up to date or on their way
	large          map[int]*largeState
	log            sentLog
	trip           roundTrip
	recent         delta.Tick // newest tick that the peer acknowledged a packet of
	heard          bool       // recent and recentSequence are valid
	recentSequence uint32     // of a packet acknowledged with that tick
	resume         int        // the slot to begin with: where the last tick had to stop
	packet         packetWriter
	ack            ack
	stats          PeerStats
}

// maxPending is how many introductions may wait for the client's first word: a late copy
// of an old one must not push out the one that counts.
const maxPending = 4

// session is what a client and a server agreed on.
type session struct {
	id       uint64
	nonce    uint64
	open     bool
	down, up seal // of packets to the client and from it
}

// newSession makes a session for a client that introduced itself with the given nonce.
func (s *Server) newSession(nonce uint64) session {
	id := s.newSessionID()
	return session{
		id: id, nonce: nonce, open: true,
		down: sessionSeal(s.fingerprint, id, false, s.opts.noChecksum),
		up:   sessionSeal(s.fingerprint, id, true, s.opts.noChecksum),
	}
}

// openPacket returns the body of a packet that a client sent in the session, or nil.
func (s *session) openPacket(packet []byte) []byte {
	if body := s.up.body(packet); s.open && body != nil && s.up.matches(packet, 0, 0) {
		return body
	}
	return nil
}

// peerSlot is what the server knows of a slot at a peer: 16 bytes for every slot.
type peerSlot struct {
	ack   delta.Tick // newest acknowledged state, if isAcked
	acked uint32     // bit i: the state of tick ack-1-i is acknowledged too
	sent  delta.Tick // newest state or despawn sent, if wasSent
	since uint16     // low bits of a tick: nothing newer than ack was sent before it
	flags peerFlags
}

type peerFlags uint8

const (
	isAcked    peerFlags = 1 << iota
	wasSent              // the peer may show the slot
	isInFlight           // what was sent last may still arrive
	isLarge              // a state is on its way in parts
)

func newPeer(s *Server, send func([]byte) error) *Peer {
	p := &Peer{server: s, send: send}
	p.reset()
	return p
}

// reset forgets all that was sent and acknowledged.
func (p *Peer) reset() {
	p.slots, p.due = p.slots[:0], p.due[:0]
	p.large = map[int]*largeState{}
	p.log = newSentLog(uint32(p.server.opts.firstSequence))
	p.trip = roundTrip{}
	p.heard, p.resume = false, 0
}

func (p *Peer) close() {
	p.closed, p.connected = true, false
	p.slots, p.large, p.log = nil, nil, sentLog{}
}

// Connected reports whether the client has introduced itself with the same schema and
// is sent state.
func (p *Peer) Connected() bool { return p.connected }

// Stats returns what went to and came from the peer.
func (p *Peer) Stats() PeerStats { return p.stats }

// RoundTrip returns the estimated time from sending a packet to learning that it came,
// in ticks, or 0 if none did yet.
func (p *Peer) RoundTrip() float64 { return float64(p.trip.smooth) / 8 }

// Receive takes a packet from the client. The packet is not kept. Whatever it holds,
// nothing worse happens than an error: [ErrMalformed], [ErrChecksum], [ErrUnexpected].
// Call it between Replicates, on the same goroutine.
func (p *Peer) Receive(packet []byte) error {
	err := p.receive(packet)
	if err != nil {
		p.stats.RefusedPackets++
	}
	return err
}

func (p *Peer) receive(packet []byte) error {
	if p.closed {
		return ErrUnexpected
	}
	if body := openHandshake(packet); body != nil {
		return p.receiveHello(body)
	}
	for i := range p.pending {
		// Without checksums the kind is all that tells the new session's first ack.
		body := p.pending[i].openPacket(packet)
		if body != nil && packetKind(body[0]) == kindAck && p.ack.parse(body) == nil {
			p.session, p.pending = p.pending[i], [maxPending]session{}
			p.connected = true
			p.reset()
			return p.receiveAck(body)
		}
	}
	if body := p.session.openPacket(packet); body != nil {
		return p.receiveAck(body)
	}
	return ErrChecksum
}

// receiveHello answers a client that introduces itself. The session it is offered
// replaces the present one only when a packet of the new one arrives, so that an old
// hello that comes late changes nothing.
func (p *Peer) receiveHello(body []byte) error {
	var h hello
	if packetKind(body[0]) != kindHello {
		return ErrUnexpected
	}
	if !h.parse(body) {
		return ErrMalformed
	}
	s := p.server
	if h.version != ProtocolVersion || h.fingerprint != s.fingerprint {
		p.stats.RefusedSchemas++
		m := refuse{version: ProtocolVersion, nonce: h.nonce, offset: h.offset}
		if h.version == ProtocolVersion {
			text := s.schema.Text()
			m.total = uint32(len(text))
			from := min(int(h.offset), len(text))
			room := min(s.opts.mtu, maxAmplification*(checksumSize+len(body))) - checksumSize - refuseSize
			m.text = []byte(text[from:min(from+room, len(text))])
		}
		p.transmit(sealed(m.append(nil)))
		return nil
	}
	offered := p.session
	if !offered.open || offered.nonce != h.nonce {
		offered = p.offer(h.nonce)
	}
	m := welcome{
		version: ProtocolVersion, noChecksum: s.opts.noChecksum, window: uint8(s.opts.window),
		nonce: h.nonce, session: offered.id, tick: uint32(s.tick), sequence: uint32(s.opts.firstSequence),
	}
	p.transmit(sealed(m.append(nil)))
	return nil
}

// offer returns the session for a client that is not connected yet. The same client is
// offered the same one if it asks again: the answer may have been lost.
func (p *Peer) offer(nonce uint64) session {
	for _, s := range p.pending {
		if s.open && s.nonce == nonce {
			return s
		}
	}
	copy(p.pending[1:], p.pending[:])
	p.pending[0] = p.server.newSession(nonce)
	return p.pending[0]
}

func (p *Peer) transmit(packet []byte) {
	if p.send(packet) != nil {
		p.stats.SendErrors++
	}
}

// errTooLarge means that an entry does not fit into a packet of its own.
var errTooLarge = errors.New("replication: entry larger than a packet")

// errFull means that no more packets may be sent now.
var errFull = errors.New("replication: too many packets in flight")

// replicate sends the peer what it needs of the present tick.
func (p *Peer) replicate() {
	s := p.server
	n := s.slots.len()
	p.due = p.due.grown(n)
	for slot := len(p.slots); slot < n; slot++ {
		p.slots = append(p.slots, peerSlot{})
		p.due.set(slot)
	}
	p.due.add(s.slots.news)
	p.expire()
	p.packet.begin(p)
	first := p.resume
	p.resume = 0
	if p.replicateSlots(first, len(p.slots)) && first > 0 {
		p.packet.finish() // slots rise within a packet
		p.replicateSlots(0, first)
	}
	p.packet.finish()
}

// replicateSlots goes through the slots of a range that are due, and returns false if it
// had to stop.
func (p *Peer) replicateSlots(from, to int) bool {
	for i := from >> 6; i<<6 < to; i++ {
		for word := p.due[i]; word != 0; word &= word - 1 {
			slot := i<<6 + bits.TrailingZeros64(word)
			if slot < from || slot >= to {
				continue
			}
			p.due.clear(slot) // a send that fails sets it again
			if p.replicateSlot(slot) != nil {
				p.due.set(slot)
				p.resume = slot
				return false
			}
		}
	}
	return true
}

// replicateSlot sends what the peer needs of a slot. Afterwards there is nothing to do
// for the slot until it changes or what was sent is lost.
func (p *Peer) replicateSlot(slot int) error {
	s := p.server
	st := &p.slots[slot]
	if !s.slots.alive[slot] {
		if st.flags&wasSent == 0 || st.flags&isInFlight != 0 && !st.sent.Before(s.slots.info[slot].born) {
			return nil // never heard of, or on its way
		}
		return p.sendDespawn(slot, st)
	}
	changed := s.slots.changed[slot]
	if st.flags&(isAcked|isLarge) == isAcked && !changed.After(st.ack) {
		return nil // up to date
	}
	if st.flags&(isInFlight|isLarge) == isInFlight && !changed.After(st.sent) {
		return nil // on its way
	}
	return p.sendState(slot, st)
}

// sendState sends the state of a slot that has an entity.
func (p *Peer) sendState(slot int, st *peerSlot) error {
	s := p.server
	born := s.slots.info[slot].born
	if st.flags&wasSent != 0 && st.sent.Before(born) {
		// All that is known is of an entity that is gone: the new one replaces it.
		p.dropLarge(slot, st)
		st.flags = wasSent
	}
	if st.flags&isLarge != 0 {
		return p.sendParts(slot)
	}
	r, count := p.bestRun(slot, st)
	switch err := p.packet.put(slot, r); err {
	case nil:
		*count++
		st.send(s.tick)
		return nil
	case errTooLarge:
		return p.beginLarge(slot, st)
	default:
		return err
	}
}

// bestRun returns the bits to send of a slot, and the counter of their kind.
func (p *Peer) bestRun(slot int, st *peerSlot) (r *run, count *uint64) {
	runs := &p.server.runs
	if b, ok := p.baselines(slot, st); ok {
		r := runs.update(slot, b)
		if r == nil && b.Two {
			b.Two, b.A2 = false, 0
			r = runs.update(slot, b)
		}
		if r != nil {
			return r, &p.stats.Updates
		}
	}
	return runs.whole(slot), &p.stats.Wholes
}

// send notes that the slot's state of tick now was sent.
func (st *peerSlot) send(now delta.Tick) {
	if st.sent == st.ack {
		st.since = uint16(now)
	}
	st.sent, st.flags = now, st.flags|wasSent|isInFlight
}

func (p *Peer) sendDespawn(slot int, st *peerSlot) error {
	p.dropLarge(slot, st)
	if err := p.packet.despawn(slot); err != nil {
		return err
	}
	p.stats.Despawns++
	st.sent, st.flags = p.server.tick, wasSent|isInFlight
	return nil
}

// baselines chooses the ticks that an update of the slot is taken against, both of
// them states that the peer has acknowledged and still holds.
func (p *Peer) baselines(slot int, st *peerSlot) (b delta.Baselines, ok bool) {
	s := p.server
	now, window := s.tick, delta.Tick(s.opts.window)
	if st.flags&isAcked == 0 {
		return b, false
	}
	if st.ack != st.sent && uint16(now)-st.since > uint16(window) {
		// The peer keeps its newest state for ever, and others for a window after they
		// were that.
		return b, false
	}
	b.A1, b.Old = st.ack, now-st.ack >= 1<<delta.NameBits
	info := &s.slots.info[slot]
	if now-st.ack > restAfter && !info.previous.After(st.ack) {
		return b, true // it had come to rest: an old motion predicts nothing
	}
	if d := secondBaseline(st.ack, st.acked); d > 0 && !b.Old {
		if a2 := st.ack - d; !a2.Before(info.born) && now-a2 <= window && delta.Ratio(now, b.A1, a2) != 0 {
			b.A2, b.Two = a2, true
		}
	}
	return b, true
}

const (
	// restAfter is how many ticks without a change make an entity count as at rest.
	restAfter = 2
	// spanGrid is the grid of second baselines: that peers and entities have them in
	// common makes them cheap to name and updates the same for many peers.
	spanGrid = 4
)

// secondBaseline returns how many ticks before ack the second baseline lies: the newest
// acknowledged tick on the grid that is at least a grid step older, or else the oldest
// acknowledged one; 0 if there is none.
func secondBaseline(ack delta.Tick, acked uint32) delta.Tick {
	if acked == 0 {
		return 0
	}
	first := delta.Tick(spanGrid)
	if r := ack % spanGrid; r != 0 {
		first += r
	}
	for d := first; d <= delta.MaxSpan; d += spanGrid {
		if acked>>(d-1)&1 != 0 {
			return d
		}
	}
	d := delta.Tick(0)
	for i := delta.Tick(1); i <= delta.MaxSpan && i <= 2*spanGrid; i++ {
		if acked>>(i-1)&1 != 0 {
			d = i
		}
	}
	return d
}

// refresh keeps the slot's ticks within reach of serial arithmetic.
func (p *Peer) refresh(slot int, limit delta.Tick) {
	if slot >= len(p.slots) {
		return
	}
	st := &p.slots[slot]
	if st.flags&isAcked != 0 && st.ack.Before(limit) {
		st.flags &^= isAcked // the state is sent whole once
		p.due.set(slot)
	}
	now, window := uint16(p.server.tick), uint16(p.server.opts.window)
	if now-st.since > window {
		st.since = now - window - 1 // long ago: it must not come round again
	}
	if st.flags&wasSent != 0 && st.sent.Before(limit) {
		st.sent = limit
	}
}
