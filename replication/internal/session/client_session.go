package session

// This file has the client's end of a session. A client introduces itself with a nonce, and accepts only
// the answer that has it. When it starts again it takes another nonce, so that late answers to earlier
// introductions are ignored. It keeps the world of a server that has gone silent until that server, or
// another one in its place, begins a new session.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ClientState is the state of a client's connection.
type ClientState uint8

const (
	clientIntroducing ClientState = iota // the client has no session and asks for one
	clientConnected                      // the client has a session
	clientProbing                        // the same, but the server is silent for longer than usual
	ClientSeeking                        // the same, for so long that the user should know
	clientEnded                          // the connection has ended or was refused
	clientClosed                         // the client is closed
)

// event changes the state of a client.
type event uint8

const (
	eventWelcomed event = iota // the server gave it a session, or confirmed the present one
	eventReceived              // a packet of the session arrived
	eventQuiet                 // no packet arrived for longer than usual
	eventSilence               // no packet arrived for too long
	eventLeft                  // the session is abandoned for another one
	eventEnded                 // either end disconnected, or the server refuses the client
	eventClosed                // the client is closed
)

// after returns the state after an event. Events that are not in the table change nothing.
//
//	             welcomed   received   quiet    silence  left         ended  closed
//	introducing  connected                               introducing  ended  closed
//	connected                          probing  seeking  introducing  ended  closed
//	probing      connected  connected           seeking  introducing  ended  closed
//	seeking      connected  connected                    introducing  ended  closed
//	ended                                                introducing         closed
//	closed
func (s ClientState) after(e event) ClientState {
	switch {
	case s == clientClosed:
		return s
	case e == eventClosed:
		return clientClosed
	case e == eventEnded:
		return clientEnded
	case e == eventLeft:
		return clientIntroducing
	case e == eventWelcomed && s != clientEnded, e == eventReceived && s.Seeks():
		return clientConnected
	case e == eventQuiet && s == clientConnected:
		return clientProbing
	case e == eventSilence && s.inContact():
		return ClientSeeking
	}
	return s
}

// inContact reports whether there is a session in which the server may still send.
func (s ClientState) inContact() bool { return s == clientConnected || s == clientProbing }

// Seeks reports whether the client asks for the session that it has.
func (s ClientState) Seeks() bool { return s == clientProbing || s == ClientSeeking }

// timeoutCode is the code of a disconnect (replication.ReasonTimeout) after which the client introduces
// itself again.
const timeoutCode = 1

// PublicErrors makes the errors that the user sees.
type PublicErrors struct {
	Disconnected func(Farewell) error
	Differs      func(*SchemaDifference) error
}

// Status has the values of replication.Status.
type Status uint8

const (
	statusConnecting Status = iota
	statusConnected
	statusReconnecting
	statusDisconnected
)

// ClientSession is the client's session and the state of its connection. It has no world.
type ClientSession struct {
	public PublicErrors
	stats  *counters.ClientCounters
	Send   func(packet []byte) error

	// The content of introductions.
	Fingerprint uint64
	Slots       uint32 // that the client has
	codings     uint8  // that the client accepts besides Packed
	joinData    []byte // for the server's decision
	joinRoom    int    // its largest size

	State   ClientState
	Met     bool   // there has been a session
	Err     error  // why the connection ended or was refused
	Nonce   uint64 // of the present introduction
	seeded  bool   // the nonces are reproducible
	offset  uint32 // of the part of the server's schema that is asked for
	spacing        // of introductions, and of acks without new packets
	contact        // with the server

	ID         uint64
	hello      wire.Hello // names the session as it was offered
	Down, Up   wire.Key   // of packets from the server and to it
	former     wire.Key   // of packets from the server in the previous session
	formerHeld wire.Key   // the same of the latest earlier session that had states
	InForce    bool       // a state packet has arrived since the last welcome
	Complete   bool       // everything that existed when the session began has arrived
}

// NewClientSession returns the session of a client that has not introduced itself yet.
func NewClientSession(
	o *config.ClientOptions, public PublicErrors, send func(packet []byte) error,
	stats *counters.ClientCounters, fingerprint uint64, slots uint32,
) ClientSession {
	s := ClientSession{
		public: public,
		stats:  stats, Send: send, Fingerprint: fingerprint, Slots: slots,
		Nonce: o.Seed, seeded: o.Seeded,
		contact:  contact{timeout: o.Timeout, rate: config.DefaultTickRate},
		joinRoom: min(wire.MaxJoinData, o.MTU-wire.ChecksumSize-wire.HelloSize),
	}
	s.SetJoinData(o.JoinData)
	if !o.NoCompact {
		s.codings = wire.TakesCompact
	}
	if !o.Seeded {
		s.Nonce = wire.Random64()
	}
	return s
}

// SetJoinData sets the data by which the server decides about the following introductions. It copies
// the data.
func (s *ClientSession) SetJoinData(data []byte) {
	if len(data) > s.joinRoom {
		panic(fmt.Sprintf("replication: join data of %d bytes: "+
			"use at most %d, which fit into the packet that asks to join", len(data), s.joinRoom))
	}
	s.joinData = slices.Clone(data)
	if s.Asks() && s.next > 0 { // the answer may be to a hello with other data
		s.introduce()
	}
}

// on changes the state; nothing else does.
func (s *ClientSession) on(e event) { s.State = s.State.after(e) }

// Open reports whether there is a session.
func (s *ClientSession) Open() bool { return s.State == clientConnected || s.State.Seeks() }

// Asks reports whether the client introduces itself and waits for an answer.
func (s *ClientSession) Asks() bool { return s.State == clientIntroducing || s.State.Seeks() }

// Over reports whether the connection has ended.
func (s *ClientSession) Over() bool { return s.State == clientEnded || s.State == clientClosed }

// Status returns the public status.
func (s *ClientSession) Status() Status {
	switch {
	case s.Over():
		return statusDisconnected
	case s.State.inContact():
		return statusConnected
	case s.Met:
		return statusReconnecting
	}
	return statusConnecting
}

// Reconnect abandons the session, or leaves the ended state, for a new session.
func (s *ClientSession) Reconnect() {
	if s.State == clientClosed {
		panic("replication: Reconnect of a closed client: make a new one with NewClient")
	}
	s.Leave()
	s.Err = nil
}

// Leave forgets the session and starts to introduce the client again.
func (s *ClientSession) Leave() {
	s.on(eventLeft)
	s.silent = 0
	s.introduce()
}

// Fail ends the connection for a reason of the transport's. Nothing is sent until Reconnect.
func (s *ClientSession) Fail(why error) {
	if s.State != clientClosed {
		s.end(why)
	}
}

// end ends the connection.
func (s *ClientSession) end(why error) {
	s.on(eventEnded)
	s.Err = why
}

// introduce makes the client send introductions with a new nonce.
func (s *ClientSession) introduce() {
	s.offset = 0
	s.restart()
	if s.seeded {
		s.Nonce = wire.Mix64(s.Nonce + wire.Golden64)
		return
	}
	s.Nonce = wire.Random64()
}

// spacing spaces packets that are repeated until they are answered.
type spacing struct {
	Waited uint32 // ticks since the first one
	next   uint32 // what Waited is when the next one follows
}

// restart makes the next call of pass report that it is time.
func (s *spacing) restart() { *s = spacing{} }

// rarely spaces the packets as if they had been repeated for long.
func (s *spacing) rarely() { s.Waited = Patience }

// pass lets ticks pass, so many in a second, and reports whether it is time for a packet.
func (s *spacing) pass(ticks, rate uint32) bool {
	s.Waited += ticks
	if s.Waited < s.next {
		return false
	}
	s.next = s.Waited + IntroduceEvery
	if s.Waited >= Patience {
		s.next = s.Waited + max(IntroduceRarer*rate/config.DefaultTickRate, 1)
	}
	return true
}

const (
	// IntroduceEvery is the number of ticks between two introductions, or between two acks without new
	// packets.
	IntroduceEvery = 4
	// Patience is the number of ticks after which introductions become rarer: one in IntroduceRarer
	// ticks at the default rate, which is about twice a second.
	Patience       = 64
	IntroduceRarer = 32
)

// Step lets ticks pass, and reports whether it is time to send again. A client of a silent server asks it whether it
// still has the session; after the timeout more often.
func (s *ClientSession) Step(ticks uint32) (send bool) {
	if s.State.inContact() {
		s.silent += ticks
		switch {
		case s.lost():
			s.on(eventSilence)
			s.introduce()
		case s.State == clientConnected && s.quiet():
			s.on(eventQuiet)
			s.introduce()
			s.rarely()
		}
	}
	return s.pass(ticks, s.rate)
}

// newHello returns a hello with the present nonce and data.
func (s *ClientSession) newHello() wire.Hello {
	return wire.Hello{
		Version: wire.ProtocolVersion, Fingerprint: s.Fingerprint, Nonce: s.Nonce, Offset: s.offset,
		Codings: s.codings, Slots: s.Slots, Data: s.joinData,
	}
}

// SendHello introduces the client to the server.
func (s *ClientSession) SendHello() {
	h := s.newHello()
	if s.Open() {
		h.Session = s.ID
	}
	s.Transmit(wire.WithChecksum(h.Append(nil)))
}

// Confirm sends a hello that names the session. It confirms the session like an ack, but also if the server has
// made so many offers since that it does not know an ack of this one.
func (s *ClientSession) Confirm() { s.Transmit(wire.WithChecksum(s.hello.Append(nil))) }

// Transmit sends a packet, and counts errors.
func (s *ClientSession) Transmit(packet []byte) {
	if s.Send(packet) != nil {
		s.stats.SendErrors++
	}
}

// AckKey returns the key of ack packets.
func (s *ClientSession) AckKey() wire.Key {
	key := s.Up
	key.Off = key.Off && s.InForce // the first acks of a session always have a checksum
	return key
}

// ReceiveAnswer reads the server's answer to an introduction. If it offers a new session, ReceiveAnswer
// returns the welcome, and the caller begins the session. own returns the client's schema text.
func (s *ClientSession) ReceiveAnswer(body []byte, own func() string) (*wire.Welcome, error) {
	switch wire.PacketKind(body[0]) {
	case wire.KindWelcome:
		var m wire.Welcome
		if !m.Parse(body) {
			return nil, wire.ErrMalformed
		}
		if m.Compact && s.codings&wire.TakesCompact == 0 {
			return nil, wire.ErrMalformed
		}
		if m.Nonce != s.Nonce || !s.Asks() {
			return nil, wire.ErrStale // the answer to an abandoned introduction, or a duplicate
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
		if m.Nonce != s.Nonce || !s.Asks() || m.Offset != s.offset {
			return nil, wire.ErrStale
		}
		s.on(eventLeft) // the server does not know the session
		s.receiveRefusal(&m, own())
		return nil, nil
	case wire.KindDisconnect:
		code, nonce, text, ok := wire.ReadDisconnect(body)
		if !ok {
			return nil, wire.ErrMalformed
		}
		if nonce != s.Nonce || !s.Asks() {
			return nil, wire.ErrStale
		}
		s.endByServer(code, text)
		return nil, nil
	}
	return nil, wire.ErrUnexpected
}

// Adopt leaves the session for that of a welcome, whoever asked for it. The caller begins the session.
func (s *ClientSession) Adopt(packet []byte) (*wire.Welcome, error) {
	var m wire.Welcome
	body := wire.OpenHandshake(packet)
	if body == nil || wire.PacketKind(body[0]) != wire.KindWelcome || !m.Parse(body) {
		return nil, wire.ErrMalformed
	}
	s.Reconnect()
	s.Nonce = m.Nonce
	return s.ReceiveAnswer(body, nil)
}

// receiveWelcome reads the welcome to the present introduction, and reports whether it begins another
// session.
func (s *ClientSession) receiveWelcome(m *wire.Welcome) (begins bool) {
	begins = !s.Open() || m.Session != s.ID
	s.made(begins || s.State == ClientSeeking)
	s.on(eventWelcomed)
	s.rate = uint32(m.TickRate)
	s.restart()
	s.InForce = false // the session may only be an offer for the server
	return begins
}

// Begin begins the session of a welcome. held reports whether the previous session had states.
func (s *ClientSession) Begin(m *wire.Welcome, held bool) {
	s.stats.Sessions++
	s.Met, s.Complete = true, false
	s.ID, s.hello = m.Session, s.newHello()
	s.hello.Session, s.hello.Offset = m.Session, m.Sequence
	if s.former = s.Down; held { // late hashes and disconnects may be of either
		s.formerHeld = s.Down
	}
	s.Down = wire.SessionKey(s.Fingerprint, m.Session, false, m.NoChecksum)
	s.Up = wire.SessionKey(s.Fingerprint, m.Session, true, m.NoChecksum)
}

// receiveRefusal looks for the first difference of the schemas in the piece of the
// server's text that arrived.
func (s *ClientSession) receiveRefusal(m *wire.Refuse, own string) {
	if m.Version != wire.ProtocolVersion {
		s.end(fmt.Errorf("replication: the server speaks protocol version %d, this client %d: "+
			"use the same release on both sides", m.Version, wire.ProtocolVersion))
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
		s.offset += uint32(same) // no difference so far: ask for more
		s.restart()
		return
	}
	// The text before the difference is the same on both sides.
	server := own[:from] + string(m.Text)
	if int64(m.Offset)+int64(len(m.Text)) < int64(m.Total) {
		// The rest is missing. Show only the line of the difference, and ask for
		// all of it if it fits into a packet.
		start := strings.LastIndexByte(own[:from+same], '\n') + 1
		if strings.IndexByte(server[from+same:], '\n') < 0 && start > from {
			s.offset = uint32(start)
			s.restart()
			return
		}
		own = upToLine(own, from+same)
		server = upToLine(server, from+same)
	}
	if diff := CompareSchemas(server, own); diff != nil {
		s.end(s.public.Differs(diff))
		return
	}
	s.end(errors.New("replication: the server refuses this client's schema, but shows the same one"))
}

// upToLine cuts text behind the line at position i.
func upToLine(text string, i int) string {
	for ; i < len(text); i++ {
		if text[i] == '\n' {
			return text[:i+1]
		}
	}
	return text
}

// Received notes that a packet of the session arrived.
func (s *ClientSession) Received() {
	if s.unacked {
		return
	}
	s.made(s.State == ClientSeeking)
	s.on(eventReceived)
}

// StateCame notes that a state packet of the session arrived. acked reports whether it shows that the server has a new
// ack. Once everything that existed when the session began has arrived, headers are long only if the server has no
// recent ack, or sends many packets per round trip, or has changed the send interval.
func (s *ClientSession) StateCame(h *wire.StateHeader, acked bool) {
	s.InForce = true
	s.Complete = s.Complete || h.Complete
	switch recent := acked || h.Form != wire.HeaderLong; {
	case !recent:
		s.unacked = s.unacked || h.Complete
	case s.unacked:
		s.silent, s.unacked = 0, false
	}
}

// OfFormer reports whether a packet is of an earlier session.
func (s *ClientSession) OfFormer(packet []byte) bool {
	return s.former.Signed(packet) || s.formerHeld.Signed(packet)
}

// Disconnect ends the connection and sends the reason to the server.
func (s *ClientSession) Disconnect(code uint8, text string) {
	if s.Over() {
		return
	}
	text = wire.Cut(text, wire.MaxReasonText)
	if s.Met { // the server may still have the last session, also if the client has left it to reconnect
		const size = wire.ChecksumSize + wire.DisconnectHead + wire.MaxReasonText
		for range DisconnectCopies {
			s.Transmit(wire.DisconnectPacket(code, text, s.ID, s.Up, size))
		}
	}
	s.Leave()
	s.end(s.public.Disconnected(Farewell{Code: code, Text: text}))
}

// Close makes the end of the connection final.
func (s *ClientSession) Close() {
	s.Disconnect(0, "")
	s.on(eventClosed)
}

// ReceiveDisconnect reads a disconnect of the server, and reports whether the packet is one.
func (s *ClientSession) ReceiveDisconnect(packet []byte) bool {
	code, text, ok := wire.ParseDisconnect(packet, s.ID, s.Down)
	if !ok {
		return false
	}
	s.endByServer(code, text)
	return true
}

// endByServer ends the connection, which the server has ended or refused.
func (s *ClientSession) endByServer(code uint8, text string) {
	s.Leave()
	if code != timeoutCode {
		s.end(s.public.Disconnected(Farewell{Code: code, Text: text, Remote: true}))
	}
}
