package clock

import "github.com/arche-replicate/arche-replicate/delta"

// A RoundTrip estimates, in ticks, how long a packet's acknowledgement takes (after
// Jacobson, "Congestion Avoidance and Control", 1988), in integers of 1/8 tick.
type RoundTrip struct {
	Smooth, deviation int32
	Known             bool
}

// Sample notes that an acknowledgement took the given ticks.
func (r *RoundTrip) Sample(ticks delta.Tick) {
	t := int32(min(ticks, 1<<16)) * 8
	if !r.Known {
		r.Smooth, r.deviation, r.Known = t, t/2, true
		return
	}
	diff := t - r.Smooth
	r.Smooth += diff / 8
	if diff < 0 {
		diff = -diff
	}
	r.deviation += (diff - r.deviation) / 4
}

// MaxTimeout bounds the timeout: a peer with a longer round trip is sent some things
// twice, instead of one with a bad moment being kept waiting.
const MaxTimeout = 128

// Timeout returns after how many ticks a packet without acknowledgement counts as lost.
func (r *RoundTrip) Timeout() delta.Tick {
	if !r.Known {
		return 32
	}
	return min(delta.Tick(r.Smooth+4*r.deviation)/8+3, MaxTimeout)
}

// Slack returns how many ticks later than a packet sent after it a packet may be
// acknowledged before it counts as lost.
func (r *RoundTrip) Slack() delta.Tick {
	return delta.Tick(2*r.deviation)/8 + 2
}
