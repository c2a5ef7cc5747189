package wire

import "math/bits"

// WindowSize is the number of latest packets that a receiver remembers.
const WindowSize = 1024

// ReceiveWindow remembers which of the last [WindowSize] packets arrived, and which of
// them are acknowledged.
type ReceiveWindow struct {
	Newest uint32                  // before the first packet, the sequence before it
	Any    bool                    // a packet arrived
	far    farJump                 // of a packet that Near refused
	seen   [WindowSize / 64]uint64 // bit by sequence modulo WindowSize
	acked  [WindowSize / 64]uint64

	// Of those that are acknowledged, by sequence modulo WindowSize.
	ticks     [WindowSize]uint32
	intervals [WindowSize]uint8
}

// NewReceiveWindow returns the window of a session whose first packet has the given
// sequence. Packets before that are not of this session.
func NewReceiveWindow(first uint32) ReceiveWindow {
	w := ReceiveWindow{Newest: first - 1}
	for i := range w.seen {
		w.seen[i] = ^uint64(0)
	}
	return w
}

// Fresh reports whether a packet with this sequence is new: it has not arrived before and
// is not older than the window.
func (w *ReceiveWindow) Fresh(sequence uint32) bool {
	if int32(sequence-w.Newest) > 0 {
		return true
	}
	return w.Newest-sequence < WindowSize && w.seen[sequence%WindowSize/64]>>(sequence%64)&1 == 0
}

// Near reports whether the sequence of a fresh packet is believable without a checksum. The sequence of a packet that
// is damaged or of another session may be any number, and all genuine packets would be too old after it. So a packet
// that is more than a window ahead is believed only if another one near it was refused just before: after an outage in
// which many packets were lost, that costs one more. A packet that is less far ahead leaves all later ones fresh.
func (w *ReceiveWindow) Near(sequence uint32) bool {
	return int32(sequence-w.Newest) <= WindowSize || w.far.confirms(sequence)
}

// A farJump remembers the last number that was too far ahead to be believed at once.
type farJump struct {
	number uint32
	any    bool
}

// confirms reports whether the number before was near to this one, and another. If not, this one is remembered.
func (f *farJump) confirms(number uint32) bool {
	apart := int32(number - f.number)
	near := f.any && apart != 0 && -WindowSize < apart && apart < WindowSize
	*f = farJump{number, true}
	return near
}

// Add notes that a fresh packet arrived and whether to acknowledge it.
func (w *ReceiveWindow) Add(h *StateHeader, ack bool) {
	sequence := h.Sequence
	w.Any = true
	if ahead := int32(sequence - w.Newest); ahead > 0 {
		for i := uint32(1); i <= min(uint32(ahead), WindowSize); i++ {
			w.set(w.Newest+i, false, false)
		}
		w.Newest = sequence
	}
	w.far = farJump{}
	w.set(sequence, true, ack)
	w.ticks[sequence%WindowSize], w.intervals[sequence%WindowSize] = h.Tick, h.Interval
}

func (w *ReceiveWindow) set(sequence uint32, seen, ack bool) {
	i, bit := sequence%WindowSize/64, uint64(1)<<(sequence%64)
	w.seen[i] &^= bit
	w.acked[i] &^= bit
	if seen {
		w.seen[i] |= bit
	}
	if ack {
		w.acked[i] |= bit
	}
}

// Acked reports whether the packet with a sequence arrived and is acknowledged, if it is one of the latest.
func (w *ReceiveWindow) Acked(sequence uint32) bool {
	return w.Any && w.Newest-sequence < WindowSize && w.acked[sequence%WindowSize/64]>>(sequence%64)&1 != 0
}

// reference returns the newest acknowledged packet among the [ShortReach] before a sequence, and false if there is
// none.
func (w *ReceiveWindow) reference(sequence uint32) (uint32, bool) {
	for back := uint32(1); back <= ShortReach; back++ {
		if at := sequence - back; w.Acked(at) {
			return at, true
		}
	}
	return 0, false
}

// History returns 32 acknowledgement bits: bit i is for packet from-i, one of the latest.
func (w *ReceiveWindow) History(from uint32) uint32 {
	if !w.Any {
		return 0
	}
	first := from - 31
	i, shift := first%WindowSize/64, first%64
	next := w.acked[(i+1)%uint32(len(w.acked))]
	return bits.Reverse32(uint32(w.acked[i]>>shift | next<<(64-shift)))
}
