package wire

// This file has the header of state packets.

import (
	"encoding/binary"

	"github.com/arche-replicate/arche-replicate/delta"
)

// StateHeader precedes the entries of a state packet:
//
//	checksum 32 | kind 3, pad 3, long 1, complete 1 | sequence 16 or 32 | tick 16 or 32
type StateHeader struct {
	Sequence uint32
	Tick     uint32
	Long     bool
	Complete bool

	// Settled is the kind: kindSettledState or KindState. A settled packet certifies that
	//
	//   - in every tick in which the client could have been sent state, from that of the state packet
	//     before up to the last one before this packet, nothing that it may see was left unsent, and
	//   - all that was in packets up to the packet's base tick has arrived, in those or in later ones.
	//
	// The base tick is the first baseline of the front; in Compact, the tick of the packet whose model
	// this one goes on with. If there is none, it is the tick before the packet's.
	Settled bool
}

// Size returns the bytes of the header, without the checksum.
func (h *StateHeader) Size() int {
	if h.Long {
		return 1 + 4 + 4
	}
	return 1 + 2 + 2
}

// Put writes the header to the start of b, which has room for it. The caller sets pad later.
func (h *StateHeader) Put(b []byte) {
	b[0] = byte(KindState)
	if h.Settled {
		b[0] = byte(kindSettledState)
	}
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

// IsState reports whether a packet of a session, without its checksum, is a state packet. It has come
// from the server.
func IsState(body []byte) bool { return KindOf(body) == KindState || KindOf(body) == kindSettledState }

// ParseStateHeader reads the header of a state packet without its checksum, given the
// newest sequence and tick received. It returns the bits that follow; the last pad ones
// are not used.
func ParseStateHeader(body []byte, sequence, tick uint32) (h StateHeader, rest []byte, pad int, ok bool) {
	h.Long, h.Complete = body[0]&LongBit != 0, body[0]&completeBit != 0
	h.Settled = KindOf(body) == kindSettledState
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

// Context is the state that entries of a packet share with those before them.
type Context struct {
	Next  int // the slot after the last one
	Set   delta.Set
	Names delta.Names
}
