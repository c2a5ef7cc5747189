package clock

import "github.com/arche-replicate/arche-replicate/delta"

// RoundTrip estimates the time until a packet is acknowledged, in integers of 1/8 tick
// (after Jacobson, "Congestion Avoidance and Control", 1988).
type RoundTrip struct {
	Smooth, deviation int32
	Known             bool
}

// Sample notes that an acknowledgement took so many ticks.
func (r *RoundTrip) Sample(ticks delta.Tick) {
	r.sample(int32(min(ticks, 1<<16)) * 8)
}

// sample is Sample for a time in 1/8 tick.
func (r *RoundTrip) sample(t int32) {
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

// MaxTimeout bounds the timeout. A peer with a longer round trip gets some states twice;
// without the bound, a peer with a bad moment would have to wait.
const MaxTimeout = 128

// Timeout returns the number of ticks after which a packet without acknowledgement counts as lost.
func (r *RoundTrip) Timeout() delta.Tick {
	if !r.Known {
		return 32
	}
	return min(delta.Tick(r.Smooth+4*r.deviation)/8+3, MaxTimeout)
}

// Slack returns the number of ticks by which a packet may be acknowledged later than one sent
// after it before it counts as lost.
func (r *RoundTrip) Slack() delta.Tick {
	return delta.Tick(2*r.deviation)/8 + 2
}
