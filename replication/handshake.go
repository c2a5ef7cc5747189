package replication

import "encoding/binary"

// The packets before a session, all fields little-endian behind the checksum:
//
//	hello    kind 8 | version 8 | fingerprint 64 | nonce 64 | offset 32 | session 64 | codings 8 | slots 32 | zeros to 60 bytes
//	welcome  kind 8 | version 8 | flags 8 | window 8 | nonce 64 | session 64 | tick 32 | sequence 32 | origin 64
//	refuse   kind 8 | version 8 | nonce 64 | offset 32 | total 32 | text...
//
// The nonce is the client's and comes back with the answer. A client whose schema is
// refused asks for the text of the server's, piece by piece from an offset, until it
// finds the first difference: neither side keeps more than a packet of it.
//
// A client that has a session and hears nothing any more names it in its hello. If the
// server knows it, the welcome bears the same number, and it goes on.

const (
	helloSize   = 1 + 1 + 8 + 8 + 4 + 8 + 1 + 4
	welcomeSize = 1 + 1 + 1 + 1 + 8 + 8 + 4 + 4 + 8
	refuseSize  = 1 + 1 + 8 + 4 + 4

	// paddedHello is the size of a hello's body. It bounds the answer: a forged hello
	// makes the server send at most maxAmplification times what was sent to it, the limit
	// that QUIC has (RFC 9000, section 8.1).
	paddedHello      = minMTU - checksumSize
	maxAmplification = 3

	// Flags of a welcome.
	flagNoChecksum = 1
	flagCompact    = 2 // states are coded by Compact

	// Codings of a hello that the client takes besides Packed.
	takesCompact = 1
)

type hello struct {
	version     uint8
	fingerprint uint64
	nonce       uint64
	offset      uint32
	session     uint64 // that the client believes to have, or 0
	codings     uint8
	slots       uint32 // that the client takes, from 0 on; 0: it does not say
}

func (h *hello) append(b []byte) []byte {
	b = append(b, byte(kindHello), h.version)
	b = binary.LittleEndian.AppendUint64(b, h.fingerprint)
	b = binary.LittleEndian.AppendUint64(b, h.nonce)
	b = binary.LittleEndian.AppendUint32(b, h.offset)
	b = binary.LittleEndian.AppendUint64(b, h.session)
	b = append(b, h.codings)
	b = binary.LittleEndian.AppendUint32(b, h.slots)
	return append(b, make([]byte, paddedHello-helloSize)...)
}

func (h *hello) parse(b []byte) bool {
	if len(b) != paddedHello {
		return false
	}
	h.version = b[1]
	h.fingerprint = binary.LittleEndian.Uint64(b[2:])
	h.nonce = binary.LittleEndian.Uint64(b[10:])
	h.offset = binary.LittleEndian.Uint32(b[18:])
	h.session = binary.LittleEndian.Uint64(b[22:])
	h.codings = b[30]
	h.slots = binary.LittleEndian.Uint32(b[31:])
	return true
}

type welcome struct {
	version    uint8
	noChecksum bool
	compact    bool
	window     uint8
	nonce      uint64
	session    uint64
	tick       uint32 // the server's, for completing the low bits of ticks
	sequence   uint32 // of the first state packet
	origin     uint64 // the NetIDs of sessions with the same one mean the same
}

func (m *welcome) append(b []byte) []byte {
	flags := byte(0)
	if m.noChecksum {
		flags |= flagNoChecksum
	}
	if m.compact {
		flags |= flagCompact
	}
	b = append(b, byte(kindWelcome), m.version, flags, m.window)
	b = binary.LittleEndian.AppendUint64(b, m.nonce)
	b = binary.LittleEndian.AppendUint64(b, m.session)
	b = binary.LittleEndian.AppendUint32(b, m.tick)
	b = binary.LittleEndian.AppendUint32(b, m.sequence)
	return binary.LittleEndian.AppendUint64(b, m.origin)
}

func (m *welcome) parse(b []byte) bool {
	if len(b) != welcomeSize || b[2]&^(flagNoChecksum|flagCompact) != 0 || b[3] > maxWindow {
		return false
	}
	m.version, m.window = b[1], b[3]
	m.noChecksum, m.compact = b[2]&flagNoChecksum != 0, b[2]&flagCompact != 0
	m.nonce = binary.LittleEndian.Uint64(b[4:])
	m.session = binary.LittleEndian.Uint64(b[12:])
	m.tick = binary.LittleEndian.Uint32(b[20:])
	m.sequence = binary.LittleEndian.Uint32(b[24:])
	m.origin = binary.LittleEndian.Uint64(b[28:])
	return true
}

type refuse struct {
	version uint8
	nonce   uint64
	offset  uint32
	total   uint32 // bytes of the schema text
	text    []byte // of it, from offset on
}

func (m *refuse) append(b []byte) []byte {
	b = append(b, byte(kindRefuse), m.version)
	b = binary.LittleEndian.AppendUint64(b, m.nonce)
	b = binary.LittleEndian.AppendUint32(b, m.offset)
	b = binary.LittleEndian.AppendUint32(b, m.total)
	return append(b, m.text...)
}

// parse reads a refusal; its text is part of b.
func (m *refuse) parse(b []byte) bool {
	if len(b) < refuseSize {
		return false
	}
	m.version = b[1]
	m.nonce = binary.LittleEndian.Uint64(b[2:])
	m.offset = binary.LittleEndian.Uint32(b[10:])
	m.total = binary.LittleEndian.Uint32(b[14:])
	m.text = b[refuseSize:]
	return true
}

// sealed puts the handshake's checksum before a body.
func sealed(body []byte) []byte {
	packet := append(make([]byte, checksumSize, checksumSize+len(body)), body...)
	handshakeSeal().close(packet, 0, 0)
	return packet
}

// openHandshake returns the body of a handshake packet, or nil if it is not one.
func openHandshake(packet []byte) []byte {
	s := handshakeSeal()
	if body := s.body(packet); body != nil && s.matches(packet, 0, 0) {
		return body
	}
	return nil
}
