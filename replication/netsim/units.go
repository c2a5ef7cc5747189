package netsim

import (
	"fmt"
	"math"
	"time"
)

// Ticks converts a duration to ticks at a rate of ticks per second, for the fields of [Config]: 50 ms at 60 Hz are 3
// ticks. Fractions are kept.
//
// Panics if d is negative, or rate is not a positive finite number.
func Ticks(d time.Duration, rate float64) float64 {
	checkRate(rate)
	if d < 0 {
		panic(fmt.Sprintf("netsim: Ticks of %v: a duration on a link is not negative", d))
	}
	return d.Seconds() * rate
}

// BytesPerTick converts bits per second to bytes per tick for [Config.Bandwidth], at a rate of ticks per second:
// 256,000 bit/s at 20 Hz are 1,600 bytes. The result is rounded down, but at least 1, because 0 would mean unlimited.
//
// Panics if bitsPerSecond or rate is not a positive finite number.
func BytesPerTick(bitsPerSecond, rate float64) int {
	checkRate(rate)
	if !(bitsPerSecond > 0) || math.IsInf(bitsPerSecond, 0) {
		panic(fmt.Sprintf("netsim: BytesPerTick of %v bit/s: must be positive; use Bandwidth 0 for no limit",
			bitsPerSecond))
	}
	return int(min(max(bitsPerSecond/8/rate, 1), maxBytes))
}

func checkRate(rate float64) {
	if !(rate > 0) || math.IsInf(rate, 0) {
		panic(fmt.Sprintf("netsim: a tick rate of %v per second: must be a positive number", rate))
	}
}

// instant is a moment or a duration in 1/65,536 ticks.
type instant int64

const instantBits = 16

func instantOf(ticks float64) instant {
	return instant(math.Round(ticks * (1 << instantBits)))
}

func instantOfTick(tick int64) instant { return instant(tick) << instantBits }

// tick returns the tick of an instant, rounded down.
func (i instant) tick() int64 { return int64(i >> instantBits) }

// chance is a probability in units of 2^-63: an event happens for a uniform 64-bit draw whose upper
// 63 bits lie below it. So 0 never happens and 1 always does.
type chance uint64

// Multiplying by a power of two is exact.
func chanceOf(p float64) chance { return chance(p * (1 << 63)) }

func (c chance) holds(draw uint64) bool { return chance(draw>>1) < c }
