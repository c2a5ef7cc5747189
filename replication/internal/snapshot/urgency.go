package snapshot

import "github.com/arche-replicate/arche-replicate/replication/internal/bitset"

// The urgency of a slot is the time for which it has waited, times its weight: every tick in which
// others are sent and it is not adds its weight. See [Sliced].

// Urgency is the urgency of a peer's dirty slots.
type Urgency struct {
	Blocks  []Sliced
	Waiting bitset.Set // slots that have been dirty since weights were last added
	Used    int32      // upper bound for the bits in use
	First   int32      // of equally urgent slots, those from this one on come first
}

// Grow makes room for slots below n.
func (u *Urgency) Grow(n int) {
	u.Waiting = u.Waiting.Grown(n)
	if more := len(u.Waiting) - len(u.Blocks); more > 0 {
		u.Blocks = append(u.Blocks, make([]Sliced, more)...)
	}
}

// Wait ends a tick: slots that are clean no longer wait. If no other slot has the highest bit, it is no longer in use.
func (u *Urgency) Wait(dirty bitset.Set) {
	highest, plane := uint64(0), max(u.Used-1, 0)
	for b := range u.Waiting {
		u.Waiting[b] &= dirty[b]
		highest |= u.Blocks[b][plane] & u.Waiting[b]
	}
	if highest == 0 {
		u.Used = plane
	}
}

// Gain adds the weights of the dirty slots of a block, twice for the slots in double.
func (u *Urgency) Gain(b int, dirty uint64, w *SlicedWeights, double uint64) {
	if dirty == 0 {
		u.Waiting[b] = 0
		return
	}
	u.Blocks[b].keep(u.Waiting[b])
	u.Used = max(u.Used, int32(u.Blocks[b].add(w, dirty, double)))
	u.Waiting[b] = dirty
}
