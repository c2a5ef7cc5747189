package session

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// session is the server's record of a session.
type session struct {
	ID       uint64
	nonce    uint64
	open     bool
	Compact  bool     // the coding is Compact
	First    uint32   // sequence of its first state packet
	Slots    uint32   // number of slots that the client has, 0 if it is not known
	JoinData []byte   // of the hello
	Down, Up wire.Key // of packets to the client and from it
}

// openPacket returns the body of a packet that a client sent in the session, or nil.
func (s *session) openPacket(packet []byte) []byte {
	if body := s.Up.Body(packet); s.open && body != nil && s.Up.Matches(packet, 0, 0) {
		return body
	}
	return nil
}

// openFirstAck returns the body of the ack that puts the session in force, or nil. The ack has a
// checksum, also in sessions without: otherwise an ack of any other session on this connection could
// be mistaken for it.
func (s *session) openFirstAck(packet []byte) []byte {
	key := s.Up
	key.Off = false
	body := key.Body(packet)
	if s.open && body != nil && key.Matches(packet, 0, 0) && wire.KindOf(body) == wire.KindAck {
		return body
	}
	return nil
}

// openFirstMessages returns the body of a packet of messages or inputs that puts the session in force,
// since it overtook the first ack, or nil. Only its checksum identifies it.
func (s *session) openFirstMessages(packet []byte) []byte {
	body := s.Up.Body(packet)
	if !s.open || s.Up.Off || body == nil {
		return nil
	}
	if kind := wire.KindOf(body); kind != wire.KindMessages && kind != wire.KindInputs {
		return nil
	}
	var h wire.MessageHeader
	if _, ok := h.Parse(body, 0); !ok || h.Check(s.Up) != nil || !s.Up.Matches(packet, 0, h.Time) {
		return nil
	}
	return body
}
