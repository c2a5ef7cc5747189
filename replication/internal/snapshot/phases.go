package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// phases has the phase of each slot, for components that are captured every few ticks.
type phases struct {
	of    []uint32   // by slot; the phase of a slot beyond it is its number
	early bitset.Set // slots with a new phase, which are captured once more in the next tick
}

// Grow makes room for the phase of a slot.
func (p *phases) Grow(slot int32) {
	for int(slot) >= len(p.of) {
		p.of = append(p.of, uint32(len(p.of)))
	}
}

// scheduled reports whether a slot is captured in tick now, if that happens every n ticks.
func (p *phases) scheduled(slot uint32, now delta.Tick, n int) bool {
	phase := slot
	if int64(slot) < int64(len(p.of)) {
		phase = p.of[slot]
	}
	return (phase+uint32(now))%uint32(n) == 0 || p.early.Holds(slot)
}
