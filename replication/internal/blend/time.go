package blend

import "github.com/arche-replicate/arche-replicate/delta"

// Parts is how many parts a tick has. Both ends name a moment by a tick and a number of parts, so the server computes
// the fraction that the client used, to the last bit.
const Parts = 64

// A Time is a moment of the server's time: a tick, and how many parts of a tick have passed since, 0 to Parts-1.
type Time struct {
	Tick delta.Tick
	Part uint8
}

// since returns the parts that have passed since a tick, negative if t is before it. The two are less than 2^31 ticks
// apart.
func (t Time) since(tick delta.Tick) int64 {
	return int64(int32(t.Tick-tick))*Parts + int64(t.Part)
}

// Add returns the time so many parts later, or earlier if parts is negative.
func (t Time) Add(parts int64) Time {
	parts += int64(t.Part)
	return Time{Tick: t.Tick + delta.Tick(parts>>6), Part: uint8(parts & (Parts - 1))}
}

// A Span is the time in which a value goes from one state to the next.
type Span struct {
	from    delta.Tick // before it, the value is the first one
	inverse float32    // 1 / parts of the span; 0: the value does not move
}

// NewSpan returns the span between two ticks. Between equal ones a value does not move.
func NewSpan(from, to delta.Tick) Span {
	if from == to {
		return Span{from: from}
	}
	return Span{from: from, inverse: 1 / (float32(to-from) * Parts)}
}

// Fraction returns how much of the span has passed: 0 before it, 1 at its end, and more after it.
func (s Span) Fraction(t Time) float32 {
	return float32(max(t.since(s.from), 0)) * s.inverse
}
