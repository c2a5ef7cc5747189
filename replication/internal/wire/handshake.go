package wire

import "encoding/binary"

// The packets before a session, all fields little-endian behind the checksum:
//
//	hello    kind 8 | version 8 | fingerprint 64 | nonce 64 | offset 32 | session 64 | codings 8 | slots 32 |
//	         size 16 | data... | zeros to 60 bytes
//	welcome  kind 8 | version 8 | flags 8 | window 8 | nonce 64 | session 64 | tick 32 | sequence 32 | instance 64 |
//	         tick rate 16
//	refuse   kind 8 | version 8 | nonce 64 | offset 32 | total 32 | text...
//
// The nonce is the client's and returns in the answer. A client whose schema is refused
// asks for the text of the server's, piece by piece from an offset, until it finds the
// first difference: neither side keeps more than a packet of it.
//
// A client whose server went silent names its session in the hello. If the server knows
// the session, the welcome has the same number, and the session continues.
//
// A server that refuses the client answers with a disconnect that has the nonce instead of
// a session.

const (
	HelloSize   = 1 + 1 + 8 + 8 + 4 + 8 + 1 + 4 + 2
	welcomeSize = 1 + 1 + 1 + 1 + 8 + 8 + 4 + 4 + 8 + 2
	RefuseSize  = 1 + 1 + 8 + 4 + 4

	// MaxTickRate bounds the ticks per second of a server, and MaxInterval the ticks from one state
	// packet of a peer to the next, which keeps it well within the window and the timeouts.
	MaxTickRate = 1000
	MaxInterval = 60

	// MaxJoinData is the largest size of the join data in a hello, in bytes.
	MaxJoinData = 512

	// paddedHello is the least size of a hello's body. It bounds the answer: a forged hello
	// makes the server send at most MaxAmplification times what was sent to it, the limit
	// that QUIC has (RFC 9000, section 8.1).
	paddedHello      = MinMTU - ChecksumSize
	MaxAmplification = 3

	// Flags of a welcome.
	flagNoChecksum = 1
	flagCompact    = 2 // states are coded by Compact

	// TakesCompact is set in the codings of a hello if the client takes Compact besides Packed.
	TakesCompact = 1
)

// Hello asks for a session.
type Hello struct {
	Version     uint8
	Fingerprint uint64
	Nonce       uint64
	Offset      uint32
	Session     uint64 // the client's present session, or 0
	Codings     uint8
	Slots       uint32 // number of slots that the client has, 0 if it is not known
	Data        []byte // join data, for the server's decision; of a parsed hello, part of the packet
}

// Append appends the body of a hello.
func (h *Hello) Append(b []byte) []byte {
	b = append(b, byte(KindHello), h.Version)
	b = binary.LittleEndian.AppendUint64(b, h.Fingerprint)
	b = binary.LittleEndian.AppendUint64(b, h.Nonce)
	b = binary.LittleEndian.AppendUint32(b, h.Offset)
	b = binary.LittleEndian.AppendUint64(b, h.Session)
	b = append(b, h.Codings)
	b = binary.LittleEndian.AppendUint32(b, h.Slots)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(h.Data)))
	b = append(b, h.Data...)
	return append(b, make([]byte, max(0, paddedHello-HelloSize-len(h.Data)))...)
}

// Parse reads the body of a hello.
func (h *Hello) Parse(b []byte) bool {
	if len(b) < paddedHello {
		return false
	}
	size := int(binary.LittleEndian.Uint16(b[HelloSize-2:]))
	if size > MaxJoinData || len(b) != max(paddedHello, HelloSize+size) {
		return false
	}
	h.Version = b[1]
	h.Fingerprint = binary.LittleEndian.Uint64(b[2:])
	h.Nonce = binary.LittleEndian.Uint64(b[10:])
	h.Offset = binary.LittleEndian.Uint32(b[18:])
	h.Session = binary.LittleEndian.Uint64(b[22:])
	h.Codings = b[30]
	h.Slots = binary.LittleEndian.Uint32(b[31:])
	h.Data = b[HelloSize:][:size:size]
	return true
}

// IsHello reports whether a packet is a hello.
func IsHello(packet []byte) bool {
	body := OpenHandshake(packet)
	return body != nil && PacketKind(body[0]) == KindHello && new(Hello).Parse(body)
}

// Welcome offers a session.
type Welcome struct {
	Version    uint8
	NoChecksum bool
	Compact    bool
	Window     uint8
	Nonce      uint64
	Session    uint64
	Tick       uint32 // the server's, for completing the low bits of ticks
	Sequence   uint32 // of the first state packet
	Instance   uint64 // sessions with the same instance share their NetIDs
	TickRate   uint16 // ticks per second
}

// Append appends the body of a welcome.
func (m *Welcome) Append(b []byte) []byte {
	flags := byte(0)
	if m.NoChecksum {
		flags |= flagNoChecksum
	}
	if m.Compact {
		flags |= flagCompact
	}
	b = append(b, byte(KindWelcome), m.Version, flags, m.Window)
	b = binary.LittleEndian.AppendUint64(b, m.Nonce)
	b = binary.LittleEndian.AppendUint64(b, m.Session)
	b = binary.LittleEndian.AppendUint32(b, m.Tick)
	b = binary.LittleEndian.AppendUint32(b, m.Sequence)
	b = binary.LittleEndian.AppendUint64(b, m.Instance)
	return binary.LittleEndian.AppendUint16(b, m.TickRate)
}

// Parse reads the body of a welcome.
func (m *Welcome) Parse(b []byte) bool {
	if len(b) != welcomeSize || b[2]&^(flagNoChecksum|flagCompact) != 0 || b[3] < MinWindow || b[3] > MaxWindow {
		return false
	}
	m.Version, m.Window = b[1], b[3]
	m.NoChecksum, m.Compact = b[2]&flagNoChecksum != 0, b[2]&flagCompact != 0
	m.Nonce = binary.LittleEndian.Uint64(b[4:])
	m.Session = binary.LittleEndian.Uint64(b[12:])
	m.Tick = binary.LittleEndian.Uint32(b[20:])
	m.Sequence = binary.LittleEndian.Uint32(b[24:])
	m.Instance = binary.LittleEndian.Uint64(b[28:])
	m.TickRate = binary.LittleEndian.Uint16(b[36:])
	return m.TickRate >= 1 && m.TickRate <= MaxTickRate
}

// Refuse answers a client that has another schema, with a piece of the server's schema text.
type Refuse struct {
	Version uint8
	Nonce   uint64
	Offset  uint32
	Total   uint32 // bytes of the schema text
	Text    []byte // a piece of it, from Offset on
}

// Append appends the body of a refusal.
func (m *Refuse) Append(b []byte) []byte {
	b = append(b, byte(KindRefuse), m.Version)
	b = binary.LittleEndian.AppendUint64(b, m.Nonce)
	b = binary.LittleEndian.AppendUint32(b, m.Offset)
	b = binary.LittleEndian.AppendUint32(b, m.Total)
	return append(b, m.Text...)
}

// Parse reads a refusal. Its text is part of b.
func (m *Refuse) Parse(b []byte) bool {
	if len(b) < RefuseSize {
		return false
	}
	m.Version = b[1]
	m.Nonce = binary.LittleEndian.Uint64(b[2:])
	m.Offset = binary.LittleEndian.Uint32(b[10:])
	m.Total = binary.LittleEndian.Uint32(b[14:])
	m.Text = b[RefuseSize:]
	return true
}

// WithChecksum puts the handshake's checksum before a body.
func WithChecksum(body []byte) []byte {
	packet := append(make([]byte, ChecksumSize, ChecksumSize+len(body)), body...)
	HandshakeKey().Write(packet, 0, 0)
	return packet
}

// OpenHandshake returns the body of a handshake packet, or nil if it is not one.
func OpenHandshake(packet []byte) []byte {
	s := HandshakeKey()
	body := s.Body(packet)
	if body == nil || KindOf(body) > KindRefuse && KindOf(body) != KindDisconnect || !s.Matches(packet, 0, 0) {
		return nil
	}
	return body
}
