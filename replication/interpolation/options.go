package interpolation

import (
	"fmt"
	"time"
)

// An Option configures an [Interpolation]: see [Attach].
type Option func(*Interpolation)

// defaultMargin is the share of gaps between states that the delay covers. To cover one more in a hundred would cost
// about as much delay as two thirds of an interval where a packet in five gets lost.
const defaultMargin = 0.9944

// Margin sets the share of gaps between states that the delay covers. With the default, 0.9944, about 2.5 frames in
// 1,000 have nothing new to show if a fifth of the packets are lost, and 1 on good networks. A larger share makes the
// delay longer.
//
// Panics outside 0.5 to 0.9999.
func Margin(share float64) Option {
	if !(share >= 0.5 && share <= 0.9999) {
		panic(fmt.Sprintf("interpolation: Margin(%v): use 0.5 to 0.9999", share))
	}
	return func(p *Interpolation) { p.clock.limits.margin = share }
}

// Speed sets how slowly and how fast the time shown may pass while the delay changes, where 1 is real time. The default
// is 0.75 and 1.05.
//
// Panics if slowest is not 0.25 to 1, or fastest is not 1.01 to 2.
func Speed(slowest, fastest float64) Option {
	if !(slowest >= 0.25 && slowest <= 1 && fastest >= 1.01 && fastest <= 2) {
		panic(fmt.Sprintf("interpolation: Speed(%v, %v): use 0.25 to 1, and 1.01 to 2", slowest, fastest))
	}
	return func(p *Interpolation) { p.clock.limits.slowest, p.clock.limits.fastest = slowest, fastest }
}

// Extrapolate makes entities continue their motion when the next state is late, until so long after their newest state.
// By default they stop at that state. Entities that are known to rest do not move. When the next state arrives, an
// entity that has changed course jumps.
//
// Panics unless the duration is 1 ms to 3 seconds.
func Extrapolate(d time.Duration) Option {
	if d < time.Millisecond || d > mostExtrapolated {
		panic(fmt.Sprintf("interpolation: Extrapolate(%v): use 1ms to %v", d, mostExtrapolated))
	}
	return func(p *Interpolation) { p.extrapolate = d }
}

// mostExtrapolated bounds how far entities go on, since what they do by then is anybody's guess.
const mostExtrapolated = 3 * time.Second
