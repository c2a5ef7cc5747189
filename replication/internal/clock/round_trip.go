package clock

import "github.com/arche-replicate/arche-replicate/delta"

// RoundTrip estimates the time until a packet is acknowledged, in integers of 1/8 tick
// (after Jacobson, "Congestion Avoidance and Control", 1988).
type RoundTrip struct {
	Smooth, deviation int32
	Known             bool
	late              int8 // weighs packets that came late against lost ones, see Reorders
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

const (
	lateWeight   = 3 // of a late packet against a lost one; it is one of these before it comes
	mostLateness = 24
)

// Late notes that a packet was acknowledged that was no longer waited for.
func (r *RoundTrip) Late() { r.late = min(r.late+lateWeight, mostLateness) }

// Lost notes that a packet counts as lost.
func (r *RoundTrip) Lost() { r.late = max(r.late-1, -mostLateness) }

// Reorders reports whether packets that were overtaken are more often late than lost.
func (r *RoundTrip) Reorders() bool { return r.late > 0 }
