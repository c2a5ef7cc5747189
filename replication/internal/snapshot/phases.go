package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// phases says in which ticks slots have their turn, of components that are looked at every few ticks.
type phases struct {
	of    []uint32   // by slot; what is beyond it has its own number
	early bitset.Set // slots that are looked at in the next tick, as their phase is another one now
}

// Grow makes room for the phase of a slot.
func (p *phases) Grow(slot int32) {
	for int(slot) >= len(p.of) {
		p.of = append(p.of, uint32(len(p.of)))
	}
}

// scheduled reports whether a slot has its turn in tick now, of those that come every n ticks.
func (p *phases) scheduled(slot uint32, now delta.Tick, n int) bool {
	phase := slot
	if int64(slot) < int64(len(p.of)) {
		phase = p.of[slot]
	}
	return (phase+uint32(now))%uint32(n) == 0 || p.early.Holds(slot)
}
