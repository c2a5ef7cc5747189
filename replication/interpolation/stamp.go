package interpolation

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A server with package rewind judges what a player did by what this client showed. So inputs carry the time that is
// shown, as exactly as it is shown: in steps of about a millisecond.

// round returns the time as stamps can have it.
func round(at blend.Time, rate float64) blend.Time {
	at.Part &^= blend.Parts>>wire.StampPrecision(rate) - 1
	return at
}

// stamp makes the inputs to come carry the time that is shown.
func stamp(p *Interpolation) {
	m := p.inside.Messages
	if m == nil {
		return // the schema has no inputs
	}
	at := p.at
	if newest := delta.Tick(p.inside.Recv.NearTick); !at.Tick.Before(newest) && !p.clock.rests() {
		at = blend.Time{Tick: newest} // beyond it, that is what is shown
	}
	m.Shown = wire.Stamp{Tick: at.Tick, Part: at.Part, Precision: wire.StampPrecision(p.clock.rate), Valid: true}
}
