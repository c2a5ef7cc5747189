package wire

// This file has the header of packets of messages and inputs.

import (
	"encoding/binary"

	"github.com/arche-replicate/arche-replicate/delta"
)

// MessageHeader precedes the bits of a packet of messages or inputs.
type MessageHeader struct {
	Kind  PacketKind
	Time  uint32
	Long  bool
	Epoch uint8
	// Stamped is for packets of inputs: each input has a stamp.
	Stamped bool
}

const stampedBit = 1 << 7

// Size returns the bytes of the header, without the checksum.
func (h *MessageHeader) Size() int {
	if h.Long {
		return 1 + 4
	}
	return 1 + 2
}

// Put writes the header to the start of b, which has room for it.
func (h *MessageHeader) Put(b []byte) {
	b[0] = byte(h.Kind) | h.Epoch<<epochShift
	if h.Stamped {
		b[0] |= stampedBit
	}
	if h.Long {
		b[0] |= LongBit
		binary.LittleEndian.PutUint32(b[1:], h.Time)
	} else {
		binary.LittleEndian.PutUint16(b[1:], uint16(h.Time))
	}
}

// Parse reads the header of a packet without its checksum, given a time near to the packet's, and
// returns the bytes that follow.
func (h *MessageHeader) Parse(body []byte, near uint32) (rest []byte, ok bool) {
	h.Kind, h.Long, h.Epoch = KindOf(body), body[0]&LongBit != 0, body[0]>>epochShift%Epochs
	h.Stamped = body[0]&stampedBit != 0
	if h.Stamped && h.Kind != KindInputs || len(body) < h.Size() {
		return nil, false
	}
	if h.Long {
		h.Time = binary.LittleEndian.Uint32(body[1:])
	} else {
		h.Time = Extend16(binary.LittleEndian.Uint16(body[1:]), near)
	}
	return body[h.Size():], true
}

// Check returns an error if the packet's epoch is not that of the session with the given key.
func (h *MessageHeader) Check(s Key) error {
	switch {
	case h.Epoch == s.Epoch:
		return nil
	case s.Off:
		return ErrStale
	}
	return ErrMalformed
}

// ShortTime is the distance of two times up to which 16 bits suffice, with room to spare.
const ShortTime = 1 << 14

// KindOf returns the kind of a session packet without its checksum.
func KindOf(body []byte) PacketKind { return PacketKind(body[0] & (1<<kindBits - 1)) }

// MessageOverhead is an upper bound of the bytes of a packet beside its only message, which has no
// dependencies: its checksum and header, 4 + 5 bytes; an index of at most 9 bits; the flags of report
// and acks; 1 bit before the message, 8 of its number, 16 of its id, 1 for not being fragmented, 24 of
// its age, 1 for no dependencies; and 1 at the end.
const MessageOverhead = 5 + 4 + 8

// MaxUnfragmented is the size in bytes of a row that fits into any packet. Messages of types whose rows
// are never larger are not fragmented, and have no bit for that.
const MaxUnfragmented = MinMTU - MessageOverhead

// ByteSize returns the number of bytes that hold so many bits.
func ByteSize(bits int) int { return (bits + 7) / 8 }

// Dependency is a state for which a message waits: one of the slot, of that tick or later.
type Dependency struct {
	Slot uint32
	Tick delta.Tick
}
