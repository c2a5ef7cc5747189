package playout

import (
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Stats are the state and the counts of a play-out.
type Stats struct {
	// Delay is how far the time that is shown lies behind the state that the fastest packets would bring. What is shown
	// is older than the server's present by this and the time that such packets take, half of
	// [replication.Client.RoundTrip].
	Delay time.Duration
	// Speed is how fast time went in the last frame: 1 most of the time.
	Speed float64
	// Frames counts calls of Advance since the first state came.
	Frames uint64
	// Starved counts frames that showed a time of which no state had come: moving entities stood still, or were
	// extrapolated. Frames in which the server had nothing to send don't count, so it is only known afterwards.
	Starved uint64
	// Extrapolated counts frames in which an entity was extrapolated.
	Extrapolated uint64
	// Snaps counts jumps of time, forward, after it had come to lag by more than 0.4 seconds.
	Snaps uint64
}

// Stats returns the state and the counts.
func (p *Playout) Stats() Stats {
	p.mustExist()
	c := &p.clock
	s := Stats{
		Speed: c.counts.speed, Frames: c.counts.frames, Starved: c.counts.starved, Snaps: c.counts.snaps,
		Extrapolated: p.guesses,
	}
	if c.running {
		s.Delay = time.Duration((c.now - c.path.base() - c.time) / c.rate * float64(time.Second))
	}
	return s
}

// restsAt reports whether an entity whose newest state is of a tick is known to have rested since.
func (p *Playout) restsAt(tick delta.Tick) bool {
	settled := &p.inside.Recv.Settled
	return settled.Known && settled.Tick.After(tick)
}
