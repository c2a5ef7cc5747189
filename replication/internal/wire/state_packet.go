package wire

// This file has the header of state packets.

import (
	"encoding/binary"

	"github.com/arche-replicate/arche-replicate/delta"
)

// StateHeader precedes the entries of a state packet:
//
//	checksum 32 | kind 3, pad 3, complete 1, 0 | sequence 32 | tick 32 | interval 8
//	checksum 32 | kind 3, pad 3, implied 1, 1 | low bits of the sequence | low bits of the tick, unless implied
//
// The low bits are 8 of each, but 16 in sessions without checksums. The client completes the sequence to
// the one nearest to the newest that it received. It completes the tick from the packet's reference: of
// the [ShortReach] packets before it, the newest that it acknowledged. A tick that is implied is as many
// send intervals after that of the reference as there are packets from one to the other. The interval is
// that of the reference.
//
// So the server knows whether the client can: it must have acknowledged one of these packets, and all
// that were sent since must agree. If a packet is overtaken by so many others that its sequence is
// completed wrongly, the checksum does not match, see [Key.Sum].
type StateHeader struct {
	Sequence uint32
	Tick     uint32
	Interval uint8 // ticks from one that is sent to the client to the next
	Form     HeaderForm
	Wide     bool // short numbers have 16 bits, because the session has no checksums
	Complete bool // implied by the short forms

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

// HeaderForm is how a state packet has its sequence and tick.
type HeaderForm uint8

const (
	HeaderLong    HeaderForm = iota // complete
	HeaderShort                     // the low bits of both
	HeaderImplied                   // the low bits of the sequence
	HeaderForms                     // their number
)

const (
	// ShortReach is the largest distance of a packet with a short header from its reference, in packets,
	// and ShortTicks the largest in ticks, unless the tick is implied.
	ShortReach = 1<<7 - 1
	ShortTicks = 1<<8 - 1
	// MaxStateHeader is the size of the longest header of a state packet, without the checksum.
	MaxStateHeader = 1 + 4 + 4 + 1
)

const (
	shortBit   = 1 << 7
	impliedBit = 1 << 6 // of a short header
)

// Size returns the bytes of the header, without the checksum.
func (h *StateHeader) Size() int {
	switch h.Form {
	case HeaderShort:
		return 1 + 2*h.shortSize()
	case HeaderImplied:
		return 1 + h.shortSize()
	default:
		return MaxStateHeader
	}
}

// shortSize returns the bytes of a short number.
func (h *StateHeader) shortSize() int {
	if h.Wide {
		return 2
	}
	return 1
}

// Put writes the header to the start of b, which has room for it. The caller sets pad later.
func (h *StateHeader) Put(b []byte) {
	b[0] = byte(KindState)
	if h.Settled {
		b[0] = byte(kindSettledState)
	}
	if h.Form == HeaderLong {
		if h.Complete {
			b[0] |= completeBit
		}
		binary.LittleEndian.PutUint32(b[1:], h.Sequence)
		binary.LittleEndian.PutUint32(b[5:], h.Tick)
		b[9] = h.Interval
		return
	}
	b[0] |= shortBit
	n := h.shortSize()
	putLow(b[1:][:n], h.Sequence)
	if h.Form == HeaderImplied {
		b[0] |= impliedBit
		return
	}
	putLow(b[1+n:][:n], h.Tick)
}

// putLow fills b with the low bytes of a number.
func putLow(b []byte, v uint32) {
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
}

// complete returns the number of which b has the low bytes and that is not before from, but nearer to it
// than any other one.
func complete(b []byte, from uint32) uint32 {
	var low uint32
	for i, x := range b {
		low |= uint32(x) << (8 * i)
	}
	return from + (low-from)&(1<<(8*len(b))-1)
}

// IsState reports whether a packet of a session, without its checksum, is a state packet. It has come
// from the server.
func IsState(body []byte) bool { return KindOf(body) == KindState || KindOf(body) == kindSettledState }

// ParseHeader reads the header of a state packet without its checksum. wide reports whether the session
// has no checksums. It returns the bits that follow; the last pad ones are not used. A packet without a
// reference is a very late one, or not of the session.
func (w *ReceiveWindow) ParseHeader(body []byte, wide bool) (h StateHeader, rest []byte, pad int, err error) {
	h.Settled, h.Wide, pad = KindOf(body) == kindSettledState, wide, int(body[0]>>PadShift)&7
	switch {
	case body[0]&shortBit == 0:
		h.Complete = body[0]&completeBit != 0
	case body[0]&impliedBit != 0:
		h.Form, h.Complete = HeaderImplied, true
	default:
		h.Form, h.Complete = HeaderShort, true
	}
	size := h.Size()
	if len(body) < size {
		return h, nil, 0, ErrMalformed
	}
	if h.Form == HeaderLong {
		h.Sequence, h.Tick = binary.LittleEndian.Uint32(body[1:]), binary.LittleEndian.Uint32(body[5:])
		h.Interval = body[9]
		return h, body[size:], pad, nil
	}
	k := h.shortSize()
	h.Sequence = complete(body[1:][:k], w.Newest-1<<(8*k-1))
	reference, ok := w.reference(h.Sequence)
	switch {
	case ok:
	case h.Wide:
		return h, nil, 0, ErrStale
	default:
		return h, nil, 0, ErrChecksum // it can't match
	}
	i := reference % WindowSize
	if h.Interval = w.intervals[i]; h.Form == HeaderImplied {
		h.Tick = w.ticks[i] + (h.Sequence-reference)*uint32(h.Interval)
	} else {
		h.Tick = complete(body[1+k:][:k], w.ticks[i])
	}
	return h, body[size:], pad, nil
}

// Context is the state that entries of a packet share with those before them.
type Context struct {
	Set   ComponentSet
	Names delta.Names
}
