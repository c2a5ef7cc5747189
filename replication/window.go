package replication

// windowSize is how many packets back the receiver remembers whether it got them.
const windowSize = 1024

// A receiveWindow knows which of the last [windowSize] packets came, and which of
// them may be acknowledged.
type receiveWindow struct {
	newest uint32                  // before the first packet the one before it
	any    bool                    // a packet came
	seen   [windowSize / 64]uint64 // bit by sequence modulo windowSize
	acked  [windowSize / 64]uint64
}

// newReceiveWindow returns the window of a session whose first packet has the given
// sequence. What is before that is not of this session.
func newReceiveWindow(first uint32) receiveWindow {
	w := receiveWindow{newest: first - 1}
	for i := range w.seen {
		w.seen[i] = ^uint64(0)
	}
	return w
}

// fresh reports whether a packet with this sequence has not come yet and is not too
// old to tell.
func (w *receiveWindow) fresh(sequence uint32) bool {
	if int32(sequence-w.newest) > 0 {
		return true
	}
	return w.newest-sequence < windowSize && w.seen[sequence%windowSize/64]>>(sequence%64)&1 == 0
}

// add notes that a fresh packet came and whether to acknowledge it.
func (w *receiveWindow) add(sequence uint32, ack bool) {
	w.any = true
	if ahead := int32(sequence - w.newest); ahead > 0 {
		for i := uint32(1); i <= min(uint32(ahead), windowSize); i++ {
			w.set(w.newest+i, false, false)
		}
		w.newest = sequence
	}
	w.set(sequence, true, ack)
}

func (w *receiveWindow) set(sequence uint32, seen, ack bool) {
	i, bit := sequence%windowSize/64, uint64(1)<<(sequence%64)
	w.seen[i] &^= bit
	w.acked[i] &^= bit
	if seen {
		w.seen[i] |= bit
	}
	if ack {
		w.acked[i] |= bit
	}
}

// history returns 32 acknowledgement bits: bit i for packet from-i.
func (w *receiveWindow) history(from uint32) (h uint32) {
	for i := uint32(0); i < 32; i++ {
		s := from - i
		if w.any && w.newest-s < windowSize && w.acked[s%windowSize/64]>>(s%64)&1 != 0 {
			h |= 1 << i
		}
	}
	return h
}
