package replication

import (
	"errors"
	"fmt"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A client introduces itself with a nonce, and takes the answer that bears it. Whenever
// it has reason to begin anew it takes another nonce, so that late answers to earlier
// introductions mean nothing. What it knows of a server that has gone silent stays until
// the server, or another one in its place, begins a new session.

// A clientState is what a client does about its connection.
type clientState uint8

const (
	clientIntroducing clientState = iota // it has no session and asks for one
	clientConnected                      // it has a session
	clientSeeking                        // it has a session, but the server is silent: it asks whether the server knows it still
	clientEnded                          // the connection has ended or was refused
	clientClosed                         // and for good
)

// A sessionEvent is what changes the state of a client.
type sessionEvent uint8

const (
	eventWelcomed sessionEvent = iota // the server gave it a session, or knows the present one
	eventHeard                        // a packet of the session came
	eventSilence                      // none came for too long
	eventLeft                         // the session is given up for another one
	eventEnded                        // one of the ends does not go on, or the server refuses the client
	eventClosed                       // the client is closed
)

// after returns the state that follows on an event. Events that are not in the table change nothing.
//
//	             welcomed   heard      silence  left         ended  closed
//	introducing  connected                      introducing  ended  closed
//	connected                          seeking  introducing  ended  closed
//	seeking      connected  connected           introducing  ended  closed
//	ended                                       introducing         closed
//	closed
func (s clientState) after(e sessionEvent) clientState {
	switch {
	case s == clientClosed:
		return s
	case e == eventClosed:
		return clientClosed
	case e == eventEnded:
		return clientEnded
	case e == eventLeft:
		return clientIntroducing
	case e == eventWelcomed && s != clientEnded, e == eventHeard && s == clientSeeking:
		return clientConnected
	case e == eventSilence && s == clientConnected:
		return clientSeeking
	}
	return s
}

// timeoutCode is the code of a leave after which the client introduces itself again.
const timeoutCode = 1

// publicErrors make the errors that the user sees.
type publicErrors struct {
	disconnected func(session.Farewell) error
	differs      func(*schemaDifference) error
}

// A clientStatus is a Status inside.
type clientStatus uint8

const (
	statusConnecting clientStatus = iota
	statusConnected
	statusReconnecting
	statusDisconnected
)

// clientSession is what a client and its server agreed on, and how the connection stands. It knows of no world.
type clientSession struct {
	public publicErrors
	stats  *clientCounters
	send   func(packet []byte) error

	// What the client says of itself.
	fingerprint uint64
	slots       uint32 // that it has room for
	codings     uint8  // that it takes besides Packed

	state   clientState
	met     bool   // there was a session at some time
	err     error  // why the connection ended, or never was
	nonce   uint64 // of the present introduction
	seeded  bool   // the nonces are reproducible
	offset  uint32 // of the part of the server's schema that is asked for
	applies uint32 // calls of Apply, to space introductions
	silent  int    // calls of Apply since the server said something
	timeout int    // how many are too many

	id         uint64
	down, up   wire.Key // of packets from the server and to it
	former     wire.Key // of packets from the server in the session before
	formerHeld wire.Key // the same of the latest one before of which states came
	inForce    bool     // a state packet came since the last welcome
	complete   bool     // the server said that all has come that was there when the session began
}

func newClientSession(o *clientOptions, public publicErrors, send func(packet []byte) error, stats *clientCounters, fingerprint uint64, slots uint32) clientSession {
	s := clientSession{
		public: public,
		stats:  stats, send: send, fingerprint: fingerprint, slots: slots,
		nonce: o.seed, seeded: o.seeded, timeout: o.timeout,
	}
	if !o.noCompact {
		s.codings = wire.TakesCompact
	}
	if !o.seeded {
		s.nonce = wire.Random64()
	}
	return s
}

// on changes the state. Nothing else does.
func (s *clientSession) on(e sessionEvent) { s.state = s.state.after(e) }

// open reports whether there is a session.
func (s *clientSession) open() bool { return s.state == clientConnected || s.state == clientSeeking }

// asks reports whether the client introduces itself, so that an answer to that is of interest.
func (s *clientSession) asks() bool { return s.state == clientIntroducing || s.state == clientSeeking }

// over reports whether the connection has ended.
func (s *clientSession) over() bool { return s.state == clientEnded || s.state == clientClosed }

func (s *clientSession) status() clientStatus {
	switch {
	case s.over():
		return statusDisconnected
	case s.state == clientConnected:
		return statusConnected
	case s.met:
		return statusReconnecting
	}
	return statusConnecting
}

// reconnect gives up the session, or the end that there was, for another session.
func (s *clientSession) reconnect() {
	if s.state == clientClosed {
		panic("replication: Reconnect of a closed client: make a new one with NewClient")
	}
	s.leave()
	s.err = nil
}

// leave forgets the session and begins to introduce the client anew.
func (s *clientSession) leave() {
	s.on(eventLeft)
	s.introduce()
}

// end ends the connection.
func (s *clientSession) end(why error) {
	s.on(eventEnded)
	s.err = why
}

// introduce makes the client send introductions with a new nonce.
func (s *clientSession) introduce() {
	s.offset, s.applies, s.silent = 0, 0, 0
	if s.seeded {
		s.nonce = wire.Mix64(s.nonce + wire.Golden64)
		return
	}
	s.nonce = wire.Random64()
}

const (
	// introduceEvery is how many Applies lie between two introductions, or between two acks
	// that no packet asked for.
	introduceEvery = 4
	// After patience of them there is less hope, and they are rarer.
	patience       = 64
	introduceRarer = 32
)

// step counts a call of Apply, and reports whether it is time to say something again. It begins to look for the server if that
// has said nothing for too long.
func (s *clientSession) step() (due bool) {
	if s.state == clientConnected {
		if s.silent++; s.timeout > 0 && s.silent > s.timeout {
			s.on(eventSilence)
			s.introduce()
		}
	}
	due = s.applies%introduceEvery == 0 && (s.applies < patience || s.applies%introduceRarer == 0)
	s.applies++
	return due
}

// sayHello introduces the client to the server.
func (s *clientSession) sayHello() {
	h := wire.Hello{
		Version: wire.ProtocolVersion, Fingerprint: s.fingerprint, Nonce: s.nonce, Offset: s.offset,
		Codings: s.codings, Slots: s.slots,
	}
	if s.open() {
		h.Session = s.id
	}
	s.transmit(wire.Sealed(h.Append(nil)))
}

func (s *clientSession) transmit(packet []byte) {
	if s.send(packet) != nil {
		s.stats.SendErrors++
	}
}

// ackKey returns the key of ack packets.
func (s *clientSession) ackKey() wire.Key {
	key := s.up
	key.Off = key.Off && s.inForce // the first words of a session have a checksum
	return key
}

// receiveAnswer takes the server's answer to the client's introduction. It returns a welcome to a new session, which is to begin
// now. own is the text of the client's schema.
func (s *clientSession) receiveAnswer(body []byte, own func() string) (*wire.Welcome, error) {
	switch wire.PacketKind(body[0]) {
	case wire.KindWelcome:
		var m wire.Welcome
		if !m.Parse(body) {
			return nil, wire.ErrMalformed
		}
		if m.Compact && s.codings&wire.TakesCompact == 0 {
			return nil, wire.ErrMalformed
		}
		if m.Nonce != s.nonce || !s.asks() {
			return nil, wire.ErrStale // the answer to an introduction that was repeated, or given up
		}
		if !s.receiveWelcome(&m) {
			return nil, nil
		}
		return &m, nil
	case wire.KindRefuse:
		var m wire.Refuse
		if !m.Parse(body) {
			return nil, wire.ErrMalformed
		}
		if m.Nonce != s.nonce || !s.asks() || m.Offset != s.offset {
			return nil, wire.ErrStale
		}
		s.on(eventLeft) // a server that does not know the session
		s.receiveRefusal(&m, own())
		return nil, nil
	}
	return nil, wire.ErrUnexpected
}

// receiveWelcome takes the server's answer to the present introduction, and reports whether that begins another session.
func (s *clientSession) receiveWelcome(m *wire.Welcome) (begins bool) {
	begins = !s.open() || m.Session != s.id
	s.on(eventWelcomed)
	s.silent, s.applies = 0, 0
	s.inForce = false // the server may know the session as one that it offered only
	return begins
}

// begin notes what both ends agreed on. held reports whether states came in the session before.
func (s *clientSession) begin(m *wire.Welcome, held bool) {
	s.stats.Sessions++
	s.met, s.complete = true, false
	s.id = m.Session
	if s.former = s.down; held { // of any session hashes and byes may come late, though no state of it did
		s.formerHeld = s.down
	}
	s.down = wire.SessionKey(s.fingerprint, m.Session, false, m.NoChecksum)
	s.up = wire.SessionKey(s.fingerprint, m.Session, true, m.NoChecksum)
}

// receiveRefusal looks for the first difference between the schemas in the piece of the
// server's text that came.
func (s *clientSession) receiveRefusal(m *wire.Refuse, own string) {
	if m.Version != wire.ProtocolVersion {
		s.end(fmt.Errorf("replication: the server speaks protocol version %d, this client %d: use the same release on both sides",
			m.Version, wire.ProtocolVersion))
		return
	}
	from := int(s.offset)
	if from > len(own) {
		from = len(own)
	}
	same := 0
	for same < len(m.Text) && from+same < len(own) && m.Text[same] == own[from+same] {
		same++
	}
	if same == len(m.Text) && same > 0 && int64(m.Offset)+int64(same) < int64(m.Total) {
		s.offset += uint32(same) // all the same so far: ask for more
		s.applies = 0
		return
	}
	// What stands before the difference is the same on both sides.
	server := own[:from] + string(m.Text)
	if int64(m.Offset)+int64(len(m.Text)) < int64(m.Total) {
		// The rest did not come: see that the line of the difference is whole, if it
		// fits into a packet, and leave out all behind it.
		start := strings.LastIndexByte(own[:from+same], '\n') + 1
		if strings.IndexByte(server[from+same:], '\n') < 0 && start > from {
			s.offset, s.applies = uint32(start), 0
			return
		}
		own = upToLine(own, from+same)
		server = upToLine(server, from+same)
	}
	if diff := compareSchemas(server, own); diff != nil {
		s.end(s.public.differs(diff))
		return
	}
	s.end(errors.New("replication: the server refuses this client's schema, but shows the same one"))
}

// upToLine cuts text behind the line that position i is in.
func upToLine(text string, i int) string {
	for ; i < len(text); i++ {
		if text[i] == '\n' {
			return text[:i+1]
		}
	}
	return text
}

// heard notes that the server lives.
func (s *clientSession) heard() {
	s.silent = 0
	s.on(eventHeard)
}

// stateCame notes that a packet of the session's came that has state. complete reports whether all has come by it that was
// there when the session began.
func (s *clientSession) stateCame(complete bool) {
	s.inForce = true
	s.complete = s.complete || complete
}

// ofFormer reports whether a packet is one of a session before.
func (s *clientSession) ofFormer(packet []byte) bool {
	return s.former.Signed(packet) || s.formerHeld.Signed(packet)
}

// disconnect ends the connection and tells the server why.
func (s *clientSession) disconnect(code uint8, text string) {
	if s.over() {
		return
	}
	text = wire.Cut(text, wire.MaxReasonText)
	if s.open() {
		packet := wire.DisconnectPacket(code, text, s.id, s.up, wire.ChecksumSize+wire.DisconnectHead+wire.MaxReasonText)
		for range session.ByeCopies {
			s.transmit(packet)
		}
	}
	s.leave()
	s.end(s.public.disconnected(session.Farewell{Code: code, Text: text}))
}

// close makes the end of the connection final.
func (s *clientSession) close() {
	s.disconnect(0, "")
	s.on(eventClosed)
}

// receiveBye takes the server's leave, and reports whether that is what the packet is.
func (s *clientSession) receiveBye(packet []byte) bool {
	code, text, ok := wire.ParseDisconnect(packet, s.id, s.down)
	if !ok {
		return false
	}
	s.leave()
	if code != timeoutCode {
		s.end(s.public.disconnected(session.Farewell{Code: code, Text: text, Remote: true}))
	}
	return true
}
