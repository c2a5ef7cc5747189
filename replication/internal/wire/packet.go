// Package wire has the layout of every packet outside the lists of entities and messages: what
// writes a packet stands beside what parses it.
package wire

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ProtocolVersion is the version of the wire format. Ends with different versions
// refuse each other in the handshake.
const ProtocolVersion = 1

// ErrMalformed says that the packet is not one of this protocol, or damaged.
var ErrMalformed = errors.New("replication: malformed packet")

// ErrStale says that the packet came twice, or too late to tell whether it did.
var ErrStale = errors.New("replication: packet is a duplicate or too old")

// PacketKind is the kind of a packet, in the low three bits of its first byte after
// the checksum.
type PacketKind uint8

const (
	KindHello   PacketKind = iota // client: may I? here is my schema's fingerprint
	KindWelcome                   // server: you may, and this is your session
	KindRefuse                    // server: your schema is not mine, which is this
	KindState                     // server: entities
	KindAck                       // client: packets that came

	KindMessages PacketKind = 5 // both: messages, their acknowledgements, and the server's report of inputs
	KindInputs   PacketKind = 6 // client: commands for ticks to come
)

// KindDisconnect ends a session, in both directions.
const KindDisconnect PacketKind = 7

const (
	ChecksumSize = 4
	KindBits     = 3
	PadShift     = KindBits      // 3 bits: unused bits of the packet's last byte
	epochShift   = KindBits      // 3 bits, of messages and inputs: the tag of the session
	KeptBit      = 1 << PadShift // with Compact: the model behind the packet is kept
	LongBit      = 1 << 6        // sequence and tick have 32 bits, not 16
	completeBit  = 1 << 7        // what was there when the session began is acknowledged

	// MinMTU leaves room for a welcome and for parts of a useful size.
	MinMTU = 64
)

// Castagnoli is the table of the polynomial of checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Key is the key of the checksums of one direction of one session. It guards
// against damage and mix-ups, not against an attacker: authenticate and encrypt below
// this library if you need that.
type Key struct {
	Key   uint32
	Off   bool  // the transport guards integrity: there is no checksum
	Epoch uint8 // then in packets of messages and inputs: tells them from those of the sessions before
}

// HandshakeKey guards the packets before there is a session. It is that of all protocol
// versions, so that ends with different ones can tell each other so.
func HandshakeKey() Key { return Key{Key: 0x61726368} }

// SessionKey guards the packets of a session. The two directions differ, so that a
// packet sent back to its sender is refused.
func SessionKey(fingerprint, session uint64, toServer, off bool) Key {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[0:], fingerprint)
	binary.LittleEndian.PutUint64(b[8:], session)
	if toServer {
		b[16] = 1
	}
	s := Key{Key: crc32.Checksum(b[:], Castagnoli), Off: off}
	if off {
		s.Epoch = EpochOf(session)
	}
	return s
}

// Epochs is how many sessions in a row have different tags.
const Epochs = 8

// EpochOf returns the epoch of a session.
func EpochOf(session uint64) uint8 { return uint8(session % Epochs) }

// Size returns the bytes that the checksum takes.
func (s Key) Size() int {
	if s.Off {
		return 0
	}
	return ChecksumSize
}

// Sum is the checksum of what follows it in the packet, and of the full sequence and
// tick of which the packet holds only the low bits: were they completed wrongly, the
// checksum would not match.
func (s Key) Sum(body []byte, sequence, tick uint32) uint32 {
	key := s.Key ^ sequence*0x9e3779b1 ^ tick*0x85ebca6b
	return crc32.Update(key, Castagnoli, body)
}

// Write writes the checksum of a packet of which all else is written.
func (s Key) Write(packet []byte, sequence, tick uint32) {
	if !s.Off {
		binary.LittleEndian.PutUint32(packet, s.Sum(packet[ChecksumSize:], sequence, tick))
	}
}

// Matches reports whether the packet's checksum is right.
func (s Key) Matches(packet []byte, sequence, tick uint32) bool {
	return s.Off || binary.LittleEndian.Uint32(packet) == s.Sum(packet[ChecksumSize:], sequence, tick)
}

// Signed reports whether a packet of a session without checksums is one of those that have one all the same: first words, disconnects
// and state hashes. By those of the session before one knows that it is of that; its checksum would be taken for the
// beginning of anything.
func (s Key) Signed(packet []byte) bool {
	if !s.Off || len(packet) <= ChecksumSize {
		return false
	}
	if kind := PacketKind(packet[ChecksumSize]); kind != KindAck && kind != KindHashes && kind != KindDisconnect {
		return false
	}
	s.Off = false
	return s.Matches(packet, 0, 0)
}

// Body returns the packet without its checksum, or nil if it is too short to have a
// kind.
func (s Key) Body(packet []byte) []byte {
	if len(packet) <= s.Size() {
		return nil
	}
	return packet[s.Size():]
}

// Extend16 completes the low 16 bits of a counter to the value nearest to near.
func Extend16(low uint16, near uint32) uint32 {
	return near + uint32(int32(int16(low-uint16(near))))
}

// StateHeader is what stands before the entities of a state packet:
//
//	checksum 32 | kind 3, pad 3, long 1, complete 1 | sequence 16 or 32 | tick 16 or 32
type StateHeader struct {
	Sequence uint32
	Tick     uint32
	Long     bool
	Complete bool
}

func (h *StateHeader) Size() int {
	if h.Long {
		return 1 + 4 + 4
	}
	return 1 + 2 + 2
}

// Put writes the header to the start of b, which has room for it; pad comes later.
func (h *StateHeader) Put(b []byte) {
	b[0] = byte(KindState)
	if h.Complete {
		b[0] |= completeBit
	}
	if h.Long {
		b[0] |= LongBit
		binary.LittleEndian.PutUint32(b[1:], h.Sequence)
		binary.LittleEndian.PutUint32(b[5:], h.Tick)
	} else {
		binary.LittleEndian.PutUint16(b[1:], uint16(h.Sequence))
		binary.LittleEndian.PutUint16(b[3:], uint16(h.Tick))
	}
}

// ParseStateHeader reads the header of a state packet without its checksum, given the
// newest sequence and tick received. It returns the bits that follow, of which the
// last pad ones are not used.
func ParseStateHeader(body []byte, sequence, tick uint32) (h StateHeader, rest []byte, pad int, ok bool) {
	h.Long, h.Complete = body[0]&LongBit != 0, body[0]&completeBit != 0
	if len(body) < h.Size() {
		return h, nil, 0, false
	}
	if h.Long {
		h.Sequence = binary.LittleEndian.Uint32(body[1:])
		h.Tick = binary.LittleEndian.Uint32(body[5:])
	} else {
		h.Sequence = Extend16(binary.LittleEndian.Uint16(body[1:]), sequence)
		h.Tick = Extend16(binary.LittleEndian.Uint16(body[3:]), tick)
	}
	return h, body[h.Size():], int(body[0]>>PadShift) & 7, true
}

// State hashes prove that what a client holds is what the server has, and name the first
// field that is not. They need no memory of what was sent: the server says what an entity
// is and since when it has not changed, and a client that holds a state of it from that
// time on must hold just that. A packet of them, behind a checksum that it always has:
//
//	kind 8 | tick 32 | entries | 0 | padding
//	entry: 1 | gap, exp-Golomb of order 4 | generation 16 | age, exp-Golomb of order 0 | set against the entry before | digests
//
// Entries are in the order of slots, and the gap is as in state packets. The entity has
// been what it is for age ticks before the packet's. There is a digest for every field of
// every component, in the order of the schema: the code itself if it is one of 8 bits or
// less, or else 8 bits of a hash of its words with the tick, so that a difference that one
// hash misses shows in the next.

// KindHashes is a packet of state hashes. Acks go the other way.
const KindHashes = KindAck

// ErrUnexpected says that the packet is of a kind that this end does not take now.
var ErrUnexpected = errors.New("replication: unexpected kind of packet")

// ErrChecksum says that the packet is damaged, or of another session or schema.
var ErrChecksum = errors.New("replication: checksum does not match: the packet is damaged or of another session")

// ErrMissingBaseline tells that the packet needs a state that this end does not hold. It
// says so to the server, which then sends that entity whole.
var ErrMissingBaseline = errors.New("replication: a baseline is missing")

// ErrMissingModel tells that the packet needs what was learnt from another one, in a session with
// [Compact], and this end does not remember it: the packet was on its way for very long.
// It counts as lost.
var ErrMissingModel = errors.New("replication: a model is missing")

const (
	MaxMTU = 65507
)

// HashGapOrder is the order of the exp-Golomb code of slot gaps in a packet of state hashes.
const HashGapOrder = 4

// Ancient is the age at which ticks are brought forward so that serial arithmetic
// keeps telling before from after.
const Ancient = 1 << 30
