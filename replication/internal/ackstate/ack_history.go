package ackstate

// An ackHistory knows which of the latest packets earlier acks confirmed. Each ack repeats that, and the packets need
// not be looked up again.
type ackHistory struct {
	newest uint32 // the newest packet that was acknowledged
	acked  uint64 // bit i is for the packet i before the newest one
}

// add notes the acknowledgements of a packet and the 31 before it, as bits from that packet on, and returns those that
// are new.
func (h *ackHistory) add(sequence, word uint32) (fresh uint32) {
	if ahead := sequence - h.newest; int32(ahead) > 0 {
		h.newest, h.acked = sequence, h.acked<<ahead
	}
	back := h.newest - sequence
	fresh = word &^ uint32(h.acked>>back)
	h.acked |= uint64(word) << back
	return fresh
}
