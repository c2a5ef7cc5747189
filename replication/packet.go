package replication

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ProtocolVersion is the version of the wire format. Ends with different versions
// refuse each other in the handshake.
const ProtocolVersion = 1

// Errors of Receive. They are values to log or count: the connection goes on.
var (
	// ErrMalformed: the packet is not one of this protocol, or damaged.
	ErrMalformed = errors.New("replication: malformed packet")
	// ErrChecksum: the packet is damaged, or of another session or schema.
	ErrChecksum = errors.New("replication: checksum does not match: the packet is damaged or of another session")
	// ErrStale: the packet came twice, or too late to tell whether it did.
	ErrStale = errors.New("replication: packet is a duplicate or too old")
	// ErrUnexpected: the packet is of a kind that this end does not take now.
	ErrUnexpected = errors.New("replication: unexpected kind of packet")
	// ErrMissingBaseline: the packet needs a state that this end does not hold. It
	// says so to the server, which then sends that entity whole.
	ErrMissingBaseline = errors.New("replication: a baseline is missing")
	// ErrMissingModel: the packet needs what was learnt from another one, in a session with
	// [Compact], and this end does not remember it: the packet was on its way for very long.
	// It counts as lost.
	ErrMissingModel = errors.New("replication: a model is missing")
)

// packetKind is the kind of a packet, in the low three bits of its first byte after
// the checksum.
type packetKind uint8

const (
	kindHello   packetKind = iota // client: may I? here is my schema's fingerprint
	kindWelcome                   // server: you may, and this is your session
	kindRefuse                    // server: your schema is not mine, which is this
	kindState                     // server: entities
	kindAck                       // client: packets that came

	kindMessages packetKind = 5 // both: messages, their acknowledgements, and the server's report of inputs
	kindInputs   packetKind = 6 // client: commands for ticks to come
)

// kindBye ends a session, in both directions.
const kindBye packetKind = 7

const (
	checksumSize = 4
	kindBits     = 3
	padShift     = kindBits      // 3 bits: unused bits of the packet's last byte
	tagShift     = kindBits      // 3 bits, of messages and inputs: the tag of the session
	keptBit      = 1 << padShift // with Compact: the model behind the packet is kept
	longBit      = 1 << 6        // sequence and tick have 32 bits, not 16
	completeBit  = 1 << 7        // what was there when the session began is acknowledged

	// minMTU leaves room for a welcome and for parts of a useful size.
	minMTU = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A seal is the key of the checksums of one direction of one session. It guards
// against damage and mix-ups, not against an attacker: authenticate and encrypt below
// this library if you need that.
type seal struct {
	key uint32
	off bool  // the transport guards integrity: there is no checksum
	tag uint8 // then in packets of messages and inputs: tells them from those of the sessions before
}

// handshakeSeal guards the packets before there is a session. It is that of all protocol
// versions, so that ends with different ones can tell each other so.
func handshakeSeal() seal { return seal{key: 0x61726368} }

// sessionSeal guards the packets of a session. The two directions differ, so that a
// packet sent back to its sender is refused.
func sessionSeal(fingerprint, session uint64, toServer, off bool) seal {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[0:], fingerprint)
	binary.LittleEndian.PutUint64(b[8:], session)
	if toServer {
		b[16] = 1
	}
	s := seal{key: crc32.Checksum(b[:], castagnoli), off: off}
	if off {
		s.tag = tagOf(session)
	}
	return s
}

// sessionTags is how many sessions in a row have different tags.
const sessionTags = 8

func tagOf(session uint64) uint8 { return uint8(session % sessionTags) }

// size returns the bytes that the checksum takes.
func (s seal) size() int {
	if s.off {
		return 0
	}
	return checksumSize
}

// sum is the checksum of what follows it in the packet, and of the full sequence and
// tick of which the packet holds only the low bits: were they completed wrongly, the
// checksum would not match.
func (s seal) sum(body []byte, sequence, tick uint32) uint32 {
	key := s.key ^ sequence*0x9e3779b1 ^ tick*0x85ebca6b
	return crc32.Update(key, castagnoli, body)
}

// close writes the checksum of a packet of which all else is written.
func (s seal) close(packet []byte, sequence, tick uint32) {
	if !s.off {
		binary.LittleEndian.PutUint32(packet, s.sum(packet[checksumSize:], sequence, tick))
	}
}

// matches reports whether the packet's checksum is right.
func (s seal) matches(packet []byte, sequence, tick uint32) bool {
	return s.off || binary.LittleEndian.Uint32(packet) == s.sum(packet[checksumSize:], sequence, tick)
}

// signed reports whether a packet of a session without checksums is one of those that have one all the same: first words, byes
// and state hashes. By those of the session before one knows that it is of that; its checksum would be taken for the
// beginning of anything.
func (s seal) signed(packet []byte) bool {
	if !s.off || len(packet) <= checksumSize {
		return false
	}
	if kind := packetKind(packet[checksumSize]); kind != kindAck && kind != kindHashes && kind != kindBye {
		return false
	}
	s.off = false
	return s.matches(packet, 0, 0)
}

// body returns the packet without its checksum, or nil if it is too short to have a
// kind.
func (s seal) body(packet []byte) []byte {
	if len(packet) <= s.size() {
		return nil
	}
	return packet[s.size():]
}

// extend16 completes the low 16 bits of a counter to the value nearest to near.
func extend16(low uint16, near uint32) uint32 {
	return near + uint32(int32(int16(low-uint16(near))))
}

// stateHeader is what stands before the entities of a state packet:
//
//	checksum 32 | kind 3, pad 3, long 1, complete 1 | sequence 16 or 32 | tick 16 or 32
type stateHeader struct {
	sequence uint32
	tick     uint32
	long     bool
	complete bool
}

func (h *stateHeader) size() int {
	if h.long {
		return 1 + 4 + 4
	}
	return 1 + 2 + 2
}

// put writes the header to the start of b, which has room for it; pad comes later.
func (h *stateHeader) put(b []byte) {
	b[0] = byte(kindState)
	if h.complete {
		b[0] |= completeBit
	}
	if h.long {
		b[0] |= longBit
		binary.LittleEndian.PutUint32(b[1:], h.sequence)
		binary.LittleEndian.PutUint32(b[5:], h.tick)
	} else {
		binary.LittleEndian.PutUint16(b[1:], uint16(h.sequence))
		binary.LittleEndian.PutUint16(b[3:], uint16(h.tick))
	}
}

// parseStateHeader reads the header of a state packet without its checksum, given the
// newest sequence and tick received. It returns the bits that follow, of which the
// last pad ones are not used.
func parseStateHeader(body []byte, sequence, tick uint32) (h stateHeader, rest []byte, pad int, ok bool) {
	h.long, h.complete = body[0]&longBit != 0, body[0]&completeBit != 0
	if len(body) < h.size() {
		return h, nil, 0, false
	}
	if h.long {
		h.sequence = binary.LittleEndian.Uint32(body[1:])
		h.tick = binary.LittleEndian.Uint32(body[5:])
	} else {
		h.sequence = extend16(binary.LittleEndian.Uint16(body[1:]), sequence)
		h.tick = extend16(binary.LittleEndian.Uint16(body[3:]), tick)
	}
	return h, body[h.size():], int(body[0]>>padShift) & 7, true
}
