package session

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// session is what a client and a server agreed on.
type session struct {
	ID       uint64
	nonce    uint64
	open     bool
	Compact  bool     // the coding is Compact
	First    uint32   // sequence of its first state packet
	Slots    uint32   // that the client takes; 0: it does not say
	JoinData []byte   // that it asked to join with
	Down, Up wire.Key // of packets to the client and from it
}

// openPacket returns the body of a packet that a client sent in the session, or nil.
func (s *session) openPacket(packet []byte) []byte {
	if body := s.Up.Body(packet); s.open && body != nil && s.Up.Matches(packet, 0, 0) {
		return body
	}
	return nil
}

// openFirstWord returns the body of the packet that puts the session in force, or nil. It
// has a checksum, also in sessions without: else the ack of any other session on this
// connection could be taken for it.
func (s *session) openFirstWord(packet []byte) []byte {
	key := s.Up
	key.Off = false
	if body := key.Body(packet); s.open && body != nil && key.Matches(packet, 0, 0) && wire.PacketKind(body[0]) == wire.KindAck {
		return body
	}
	return nil
}

// openFirstMessages returns the body of a packet of messages or inputs that puts the session in force, since it came before the
// ack that was sent first, or nil. Only its checksum tells.
func (s *session) openFirstMessages(packet []byte) []byte {
	body := s.Up.Body(packet)
	if !s.open || s.Up.Off || body == nil || wire.KindOf(body) != wire.KindMessages && wire.KindOf(body) != wire.KindInputs {
		return nil
	}
	var h wire.MessageHeader
	if _, ok := h.Parse(body, 0); !ok || h.Check(s.Up) != nil || !s.Up.Matches(packet, 0, h.Time) {
		return nil
	}
	return body
}
