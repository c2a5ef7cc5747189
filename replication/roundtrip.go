package replication

import "github.com/arche-replicate/arche-replicate/delta"

// A roundTrip estimates, in ticks, how long a packet's acknowledgement takes (after
// Jacobson, "Congestion Avoidance and Control", 1988), in integers of 1/8 tick.
type roundTrip struct {
	smooth, deviation int32
	known             bool
}

// sample notes that an acknowledgement took the given ticks.
func (r *roundTrip) sample(ticks delta.Tick) {
	t := int32(min(ticks, 1<<16)) * 8
	if !r.known {
		r.smooth, r.deviation, r.known = t, t/2, true
		return
	}
	diff := t - r.smooth
	r.smooth += diff / 8
	if diff < 0 {
		diff = -diff
	}
	r.deviation += (diff - r.deviation) / 4
}

// maxTimeout bounds the timeout: a peer with a longer round trip is sent some things
// twice, instead of one with a bad moment being kept waiting.
const maxTimeout = 128

// timeout returns after how many ticks a packet without acknowledgement counts as lost.
func (r *roundTrip) timeout() delta.Tick {
	if !r.known {
		return 32
	}
	return min(delta.Tick(r.smooth+4*r.deviation)/8+3, maxTimeout)
}

// slack returns how many ticks later than a packet sent after it a packet may be
// acknowledged before it counts as lost.
func (r *roundTrip) slack() delta.Tick {
	return delta.Tick(2*r.deviation)/8 + 2
}
