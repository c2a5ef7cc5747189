package wire

// This file has the checksums of packets.

import (
	"encoding/binary"
	"hash/crc32"
)

// The factors by which sequence and tick change the key of a packet.
const (
	sequenceFactor = 0x9e3779b1
	tickFactor     = 0x85ebca6b
)

// Castagnoli is the table of the polynomial of checksums.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Key is the key of the checksums of one direction of one session. It protects
// against damage and mix-ups, not against an attacker: authenticate and encrypt below
// this library if you need that.
type Key struct {
	Key   uint32
	Off   bool  // there is no checksum: the transport protects integrity
	Epoch uint8 // if Off: distinguishes packets of messages and inputs from those of earlier sessions
}

// HandshakeKey is the key of packets before there is a session. All protocol versions
// share it, so that ends with different versions can refuse each other.
func HandshakeKey() Key { return Key{Key: 0x61726368} }

// SessionKey is the key of a session. The two directions have different ones, so that a
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

// Epochs is the number of successive sessions that have different epochs.
const Epochs = 8

// EpochOf returns the epoch of a session.
func EpochOf(session uint64) uint8 { return uint8(session % Epochs) }

// Size returns the bytes of the checksum.
func (s Key) Size() int {
	if s.Off {
		return 0
	}
	return ChecksumSize
}

// Sum returns the checksum of the body, and of the full sequence and tick, of which the packet may have
// only the low bits. If they are completed wrongly, the checksum never matches, as long as neither is off
// by more than 31,000: no smaller change of both has no effect on the key, and another key gives
// the same body another checksum.
func (s Key) Sum(body []byte, sequence, tick uint32) uint32 {
	key := s.Key ^ (sequence*sequenceFactor + tick*tickFactor)
	return crc32.Update(key, Castagnoli, body)
}

// Write writes the checksum of a packet that is complete otherwise.
func (s Key) Write(packet []byte, sequence, tick uint32) {
	if !s.Off {
		binary.LittleEndian.PutUint32(packet, s.Sum(packet[ChecksumSize:], sequence, tick))
	}
}

// Matches reports whether the packet's checksum is right.
func (s Key) Matches(packet []byte, sequence, tick uint32) bool {
	return s.Off || binary.LittleEndian.Uint32(packet) == s.Sum(packet[ChecksumSize:], sequence, tick)
}

// Signed reports whether a packet of a session without checksums is one of those that have one all the
// same, with this key: first acks, disconnects and state hashes. It recognises late ones of an earlier
// session, whose checksum could be mistaken for the beginning of another packet.
func (s Key) Signed(packet []byte) bool {
	if !s.Off || len(packet) <= ChecksumSize {
		return false
	}
	if kind := KindOf(packet[ChecksumSize:]); kind != KindAck && kind != KindHashes && kind != KindDisconnect {
		return false
	}
	s.Off = false
	return s.Matches(packet, 0, 0)
}

// Body returns the packet without its checksum, or nil if it is too short to have a kind.
func (s Key) Body(packet []byte) []byte {
	if len(packet) <= s.Size() {
		return nil
	}
	return packet[s.Size():]
}
