package wire

import (
	"encoding/binary"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A MessageHeader stands before the bits.
type MessageHeader struct {
	Kind  PacketKind
	Time  uint32
	Long  bool
	Epoch uint8
}

func (h *MessageHeader) Size() int {
	if h.Long {
		return 1 + 4
	}
	return 1 + 2
}

// Put writes the header to the start of b, which has room for it.
func (h *MessageHeader) Put(b []byte) {
	b[0] = byte(h.Kind) | h.Epoch<<epochShift
	if h.Long {
		b[0] |= LongBit
		binary.LittleEndian.PutUint32(b[1:], h.Time)
	} else {
		binary.LittleEndian.PutUint16(b[1:], uint16(h.Time))
	}
}

// Parse reads the header of a packet without its checksum, given a time near to it, and returns what follows.
func (h *MessageHeader) Parse(body []byte, near uint32) (rest []byte, ok bool) {
	h.Kind, h.Long, h.Epoch = KindOf(body), body[0]&LongBit != 0, body[0]>>epochShift%Epochs
	if body[0]>>7 != 0 || len(body) < h.Size() {
		return nil, false
	}
	if h.Long {
		h.Time = binary.LittleEndian.Uint32(body[1:])
	} else {
		h.Time = Extend16(binary.LittleEndian.Uint16(body[1:]), near)
	}
	return body[h.Size():], true
}

// Check returns an error if the packet is not of the session with the given seal, as far as the tag tells.
func (h *MessageHeader) Check(s Key) error {
	switch {
	case h.Epoch == s.Epoch:
		return nil
	case s.Off:
		return ErrStale
	}
	return ErrMalformed
}

// ShortTime is how far two times may lie apart for 16 bits to be enough, with room to spare.
const ShortTime = 1 << 14

// KindOf returns the kind of a session packet without its checksum.
func KindOf(body []byte) PacketKind { return PacketKind(body[0] & (1<<KindBits - 1)) }

// MessageOverhead is at least what a packet takes beside a message without dependencies that is all that is in it: its
// header, 5 + 4 bytes; an index of at most 9 bits, the flags of report and acks, 1 that a message follows, 8 of its number,
// 16 of its id, 1 that it is whole, 24 of its age, 1 without dependencies, and 1 at the end.
const MessageOverhead = 5 + 4 + 8

// MaxUnfragmented is the size of a row that fits into any packet. Types whose rows are never longer have no bit that says
// whether a message is in fragments.
const MaxUnfragmented = MinMTU - MessageOverhead

// ByteSize returns how many bytes a message of so many bits takes.
func ByteSize(bits int) int { return (bits + 7) / 8 }

// A Dependency is a state that a message waits for: one of the slot, of that tick or later.
type Dependency struct {
	Slot uint32
	Tick delta.Tick
}
