package interpolation

import (
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Stats are the present state and the counters of an [Interpolation].
type Stats struct {
	// Delay is how far the time shown is behind the newest state on an ideal path, on which all packets are as fast as
	// the fastest ones; add half of the round trip, see [replication.ClientStats], for the distance to the server's
	// present. It is 0 before the first state.
	Delay time.Duration
	// Speed is how fast the time shown passed in the last frame, where 1 is real time. It is Pace most of the time, and
	// 0 before a state has arrived.
	Speed float64
	// Pace is how fast the server ticks by the client's clock, as a share of the rate that it has by
	// [replication.WithTickRate]: 0.98 if it makes 49 ticks in the time for 50. It is exactly 1 unless the difference
	// shows, and becomes known after six seconds or more, the later the smaller it is.
	Pace float64
	// Frames counts frames after the first state arrived.
	Frames uint64
	// Starved counts frames that showed a time later than the newest state: moving entities stood still or were
	// extrapolated. They are counted when the next state arrives: only then is it known whether the server had
	// nothing to send, and such frames do not count.
	Starved uint64
	// Extrapolated counts frames in which an entity was extrapolated.
	Extrapolated uint64
	// Jumps counts corrections of more than 0.4 seconds that were made in one jump. Forward, the time shown jumps;
	// backward, it stands still instead.
	Jumps uint64
	// Teleports counts jumps of components with fields that move, by [replication.Snap] or the tag cut. If it grows
	// with all motion, the distance of Snap is too small, or what moves has the tag cut.
	Teleports uint64
	// Coarse is the name of a component whose precision is too coarse for its motion, or empty: it goes less than a
	// step between two states, three times a second or more, so that it stands still in most frames and then jumps. Of
	// the latest 16 motions that were looked at, at least 4 were such. A smaller step helps: see
	// docs/interpolation.md.
	Coarse string
}

// Stats returns the present state and the counters.
func (p *Interpolation) Stats() Stats {
	p.mustExist()
	c := &p.clock
	s := Stats{
		Speed: c.counts.speed, Pace: 1 + c.pace.ahead,
		Frames: c.counts.frames, Starved: c.counts.starved, Extrapolated: p.guesses, Jumps: c.counts.jumps,
		Teleports: p.teleports,
	}
	for _, column := range p.columns {
		if s.Coarse == "" {
			s.Coarse = column.coarse()
		}
	}
	if c.running {
		s.Delay = time.Duration((c.now - c.path.base() - c.time) / c.perSecond() * float64(time.Second))
	}
	return s
}

// restsAt reports whether an entity whose newest state is of a tick is known to have rested since.
func (p *Interpolation) restsAt(tick delta.Tick) bool {
	settled := &p.inside.Recv.Settled
	return settled.Known && settled.Tick.After(tick)
}
