package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A client introduces itself with a nonce, and takes the answer that bears it. Whenever
// it has reason to begin anew it takes another nonce, so that late answers to earlier
// introductions mean nothing. What it knows of a server that has gone silent stays until
// the server, or another one in its place, begins a new session.

// A ClientState is what a client does about its connection.
type ClientState uint8

const (
	ClientIntroducing ClientState = iota // it has no session and asks for one
	ClientConnected                      // it has a session
	ClientSeeking                        // it has a session, but the server is silent: it asks whether the server knows it still
	ClientEnded                          // the connection has ended or was refused
	ClientClosed                         // and for good
)

// An Event is what changes the state of a client.
type Event uint8

const (
	EventWelcomed Event = iota // the server gave it a session, or knows the present one
	EventReceived              // a packet of the session came
	EventSilence               // none came for too long
	EventLeft                  // the session is given up for another one
	EventEnded                 // one of the ends does not go on, or the server refuses the client
	EventClosed                // the client is closed
)

// After returns the state that follows on an event. Events that are not in the table change nothing.
//
//	             welcomed   heard      silence  left         ended  closed
//	introducing  connected                      introducing  ended  closed
//	connected                          seeking  introducing  ended  closed
//	seeking      connected  connected           introducing  ended  closed
//	ended                                       introducing         closed
//	closed
func (s ClientState) After(e Event) ClientState {
	switch {
	case s == ClientClosed:
		return s
	case e == EventClosed:
		return ClientClosed
	case e == EventEnded:
		return ClientEnded
	case e == EventLeft:
		return ClientIntroducing
	case e == EventWelcomed && s != ClientEnded, e == EventReceived && s == ClientSeeking:
		return ClientConnected
	case e == EventSilence && s == ClientConnected:
		return ClientSeeking
	}
	return s
}

// timeoutCode is the code of a disconnect (replication.ReasonTimeout) after which the client introduces itself again.
const timeoutCode = 1

// PublicErrors make the errors that the user sees.
type PublicErrors struct {
	Disconnected func(Farewell) error
	Differs      func(*SchemaDifference) error
}

// A Status has the values of replication.Status.
type Status uint8

const (
	statusConnecting Status = iota
	statusConnected
	statusReconnecting
	statusDisconnected
)

// ClientSession is what a client and its server agreed on, and how the connection stands. It knows of no world.
type ClientSession struct {
	public PublicErrors
	stats  *counters.ClientCounters
	Send   func(packet []byte) error

	// What the client says of itself.
	Fingerprint uint64
	Slots       uint32 // that it has room for
	codings     uint8  // that it takes besides Packed
	joinData    []byte // for the server to decide by
	joinRoom    int    // the most bytes of it

	State   ClientState
	met     bool   // there was a session at some time
	Err     error  // why the connection ended, or never was
	Nonce   uint64 // of the present introduction
	seeded  bool   // the nonces are reproducible
	offset  uint32 // of the part of the server's schema that is asked for
	Applies uint32 // calls of Apply, to space introductions
	silent  int    // calls of Apply since the server said something
	timeout int    // how many are too many

	ID         uint64
	Down, Up   wire.Key // of packets from the server and to it
	former     wire.Key // of packets from the server in the session before
	formerHeld wire.Key // the same of the latest one before of which states came
	InForce    bool     // a state packet came since the last welcome
	Complete   bool     // the server said that all has come that was there when the session began
}

// NewClientSession returns the session of a client that has not introduced itself yet.
func NewClientSession(o *config.ClientOptions, public PublicErrors, send func(packet []byte) error, stats *counters.ClientCounters, fingerprint uint64, slots uint32) ClientSession {
	s := ClientSession{
		public: public,
		stats:  stats, Send: send, Fingerprint: fingerprint, Slots: slots,
		Nonce: o.Seed, seeded: o.Seeded, timeout: o.Timeout,
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

// SetJoinData sets what the following introductions tell the server to decide by. It takes a copy.
func (s *ClientSession) SetJoinData(data []byte) {
	if len(data) > s.joinRoom {
		panic(fmt.Sprintf("replication: join data of %d bytes: use at most %d, which fit into the packet that asks to join", len(data), s.joinRoom))
	}
	s.joinData = slices.Clone(data)
}

// on changes the state. Nothing else does.
func (s *ClientSession) on(e Event) { s.State = s.State.After(e) }

// Open reports whether there is a session.
func (s *ClientSession) Open() bool { return s.State == ClientConnected || s.State == ClientSeeking }

// Asks reports whether the client introduces itself, so that an answer to that is of interest.
func (s *ClientSession) Asks() bool { return s.State == ClientIntroducing || s.State == ClientSeeking }

// Over reports whether the connection has ended.
func (s *ClientSession) Over() bool { return s.State == ClientEnded || s.State == ClientClosed }

func (s *ClientSession) Status() Status {
	switch {
	case s.Over():
		return statusDisconnected
	case s.State == ClientConnected:
		return statusConnected
	case s.met:
		return statusReconnecting
	}
	return statusConnecting
}

// Reconnect gives up the session, or the end that there was, for another session.
func (s *ClientSession) Reconnect() {
	if s.State == ClientClosed {
		panic("replication: Reconnect of a closed client: make a new one with NewClient")
	}
	s.Leave()
	s.Err = nil
}

// Leave forgets the session and begins to introduce the client anew.
func (s *ClientSession) Leave() {
	s.on(EventLeft)
	s.introduce()
}

// end ends the connection.
func (s *ClientSession) end(why error) {
	s.on(EventEnded)
	s.Err = why
}

// introduce makes the client send introductions with a new nonce.
func (s *ClientSession) introduce() {
	s.offset, s.Applies, s.silent = 0, 0, 0
	if s.seeded {
		s.Nonce = wire.Mix64(s.Nonce + wire.Golden64)
		return
	}
	s.Nonce = wire.Random64()
}

const (
	// IntroduceEvery is how many Applies lie between two introductions, or between two acks
	// that no packet asked for.
	IntroduceEvery = 4
	// Patience is for how many calls of Apply introductions come at that pace. Then there is less hope, and they are rarer.
	Patience       = 64
	IntroduceRarer = 32
)

// Step counts a call of Apply, and reports whether it is time to say something again. It begins to look for the server if that
// has said nothing for too long.
func (s *ClientSession) Step() (send bool) {
	if s.State == ClientConnected {
		if s.silent++; s.timeout > 0 && s.silent > s.timeout {
			s.on(EventSilence)
			s.introduce()
		}
	}
	send = s.Applies%IntroduceEvery == 0 && (s.Applies < Patience || s.Applies%IntroduceRarer == 0)
	s.Applies++
	return send
}

// SendHello introduces the client to the server.
func (s *ClientSession) SendHello() {
	h := wire.Hello{
		Version: wire.ProtocolVersion, Fingerprint: s.Fingerprint, Nonce: s.Nonce, Offset: s.offset,
		Codings: s.codings, Slots: s.Slots, Data: s.joinData,
	}
	if s.Open() {
		h.Session = s.ID
	}
	s.Transmit(wire.WithChecksum(h.Append(nil)))
}

func (s *ClientSession) Transmit(packet []byte) {
	if s.Send(packet) != nil {
		s.stats.SendErrors++
	}
}

// AckKey returns the key of ack packets.
func (s *ClientSession) AckKey() wire.Key {
	key := s.Up
	key.Off = key.Off && s.InForce // the first words of a session have a checksum
	return key
}

// ReceiveAnswer takes the server's answer to the client's introduction. It returns a welcome to a new session, which is to begin
// now. own is the text of the client's schema.
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
		if m.Nonce != s.Nonce || !s.Asks() || m.Offset != s.offset {
			return nil, wire.ErrStale
		}
		s.on(EventLeft) // a server that does not know the session
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

// receiveWelcome takes the server's answer to the present introduction, and reports whether that begins another session.
func (s *ClientSession) receiveWelcome(m *wire.Welcome) (begins bool) {
	begins = !s.Open() || m.Session != s.ID
	s.on(EventWelcomed)
	s.silent, s.Applies = 0, 0
	s.InForce = false // the server may know the session as one that it offered only
	return begins
}

// Begin notes what both ends agreed on. held reports whether states came in the session before.
func (s *ClientSession) Begin(m *wire.Welcome, held bool) {
	s.stats.Sessions++
	s.met, s.Complete = true, false
	s.ID = m.Session
	if s.former = s.Down; held { // of any session hashes and disconnects may come late, though no state of it did
		s.formerHeld = s.Down
	}
	s.Down = wire.SessionKey(s.Fingerprint, m.Session, false, m.NoChecksum)
	s.Up = wire.SessionKey(s.Fingerprint, m.Session, true, m.NoChecksum)
}

// receiveRefusal looks for the first difference between the schemas in the piece of the
// server's text that came.
func (s *ClientSession) receiveRefusal(m *wire.Refuse, own string) {
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
		s.Applies = 0
		return
	}
	// What stands before the difference is the same on both sides.
	server := own[:from] + string(m.Text)
	if int64(m.Offset)+int64(len(m.Text)) < int64(m.Total) {
		// The rest did not come: see that the line of the difference is whole, if it
		// fits into a packet, and leave out all behind it.
		start := strings.LastIndexByte(own[:from+same], '\n') + 1
		if strings.IndexByte(server[from+same:], '\n') < 0 && start > from {
			s.offset, s.Applies = uint32(start), 0
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

// upToLine cuts text behind the line that position i is in.
func upToLine(text string, i int) string {
	for ; i < len(text); i++ {
		if text[i] == '\n' {
			return text[:i+1]
		}
	}
	return text
}

// Received notes that the server lives.
func (s *ClientSession) Received() {
	s.silent = 0
	s.on(EventReceived)
}

// StateCame notes that a packet of the session's came that has state. complete reports whether all has come by it that was
// there when the session began.
func (s *ClientSession) StateCame(complete bool) {
	s.InForce = true
	s.Complete = s.Complete || complete
}

// OfFormer reports whether a packet is one of a session before.
func (s *ClientSession) OfFormer(packet []byte) bool {
	return s.former.Signed(packet) || s.formerHeld.Signed(packet)
}

// Disconnect ends the connection and tells the server why.
func (s *ClientSession) Disconnect(code uint8, text string) {
	if s.Over() {
		return
	}
	text = wire.Cut(text, wire.MaxReasonText)
	if s.Open() {
		packet := wire.DisconnectPacket(code, text, s.ID, s.Up, wire.ChecksumSize+wire.DisconnectHead+wire.MaxReasonText)
		for range DisconnectCopies {
			s.Transmit(packet)
		}
	}
	s.Leave()
	s.end(s.public.Disconnected(Farewell{Code: code, Text: text}))
}

// Close makes the end of the connection final.
func (s *ClientSession) Close() {
	s.Disconnect(0, "")
	s.on(EventClosed)
}

// ReceiveDisconnect takes a disconnect packet of the server, and reports whether it is one.
func (s *ClientSession) ReceiveDisconnect(packet []byte) bool {
	code, text, ok := wire.ParseDisconnect(packet, s.ID, s.Down)
	if !ok {
		return false
	}
	s.endByServer(code, text)
	return true
}

// endByServer notes that the server has ended the connection, or refused it.
func (s *ClientSession) endByServer(code uint8, text string) {
	s.Leave()
	if code != timeoutCode {
		s.end(s.public.Disconnected(Farewell{Code: code, Text: text, Remote: true}))
	}
}
