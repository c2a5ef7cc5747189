package replication

import (
	"math"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A Tick counts the calls of [Server.Replicate]. It wraps at 2^32: compare and subtract ticks by its methods.
type Tick = delta.Tick

// A Time is a moment between two ticks of the server.
type Time struct {
	Tick     Tick
	Fraction float32 // of the time to the next tick that has passed, 0 up to but not including 1
}

// timeOf returns the time a number of ticks after another tick.
func timeOf(base Tick, ticks float64) Time {
	full := math.Floor(ticks)
	t := Time{base + Tick(int64(full)), float32(ticks - full)}
	if t.Fraction >= 1 { // rounded
		t = Time{t.Tick + 1, 0}
	}
	return t
}

// Sub returns how many ticks t is after u, negative if it is before.
func (t Time) Sub(u Time) float64 {
	return float64(t.Tick.Sub(u.Tick)) + float64(t.Fraction) - float64(u.Fraction)
}

// Add returns the time some ticks after t, or before it if they are negative.
func (t Time) Add(ticks float64) Time { return timeOf(t.Tick, float64(t.Fraction)+ticks) }

// durationOf returns how long some ticks take.
func durationOf(ticks float64, rate int) time.Duration {
	return time.Duration(ticks / float64(rate) * float64(time.Second))
}
