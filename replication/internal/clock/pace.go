package clock

import "time"

// pace is a client's own time, in ticks of its server.
type pace struct {
	Now   uint32 // full ticks since the session began, modulo 2^32
	Rate  uint32 // ticks in a second
	wraps uint32 // of Now
	part  uint64 // what has passed of the next tick, in tickParts

	step   float64 // ticks since the last frame ended
	before float64 // the same of the frame before
	frame  float64 // length of frames in ticks, smoothed: as long as two in succession were at once
	passed uint32  // full ticks that the present frame counts
	long   LongFrames
}

const (
	// tickParts is the number of parts of a tick: a nanosecond has Rate of them.
	tickParts = uint64(time.Second)
	// maxAdvance bounds the ticks that pass at once. Times of the client go over the wire in 16 bits, and a longer step
	// would make one from before a pause look like one from after it. How long a pause was shows the server's tick.
	maxAdvance = 1 << 13
	// frameShare smooths the length of frames.
	frameShare = 16
)

// pass lets time pass and returns how many ticks that were.
func (p *pace) pass(parts uint64) (ticks float64) {
	p.part += parts
	full := uint32(p.part / tickParts)
	p.part %= tickParts
	if p.Now += full; p.Now < full {
		p.wraps++
	}
	p.passed += full
	ticks = float64(parts) / float64(tickParts)
	p.step += ticks
	return ticks
}

// fraction returns what has passed of the next tick.
func (p *pace) fraction() float64 { return float64(p.part) / float64(tickParts) }

// time returns the ticks since the session began. It does not wrap.
func (p *pace) time() float64 { return float64(uint64(p.wraps)<<32|uint64(p.Now)) + p.fraction() }

// hitch reports whether the present frame is longer than the game plans: packets that came in it have waited for the
// client.
func (p *pace) hitch() bool {
	return p.share() > 1 && (!p.long.Usual() || p.step > float64(p.Rate))
}

// share returns the length of the present frame, divided by that of the longest ones of most games.
func (p *pace) share() float64 { return p.step / max(float64(p.Rate)/8, 1.5) }
