package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// The urgency of a slot is the time for which it has waited, times its weight: every tick in which
// others are sent and it is not adds its weight. See [snapshot.Sliced].

// Urgency is the urgency of a peer's dirty slots.
type Urgency struct {
	Blocks  []snapshot.Sliced
	Waiting bitset.Set // slots that have been dirty since weights were last added
	used    int32      // upper bound for the bits in use
	first   int32      // of equally urgent slots, those from this one on come first
}

// grow makes room for slots below n.
func (u *Urgency) grow(n int) {
	u.Waiting = u.Waiting.Grown(n)
	if more := len(u.Waiting) - len(u.Blocks); more > 0 {
		u.Blocks = append(u.Blocks, make([]snapshot.Sliced, more)...)
	}
}

// wait ends a tick: slots that are clean no longer wait.
func (u *Urgency) wait(dirty bitset.Set) {
	for b := range u.Waiting {
		u.Waiting[b] &= dirty[b]
	}
}

// gain adds the weights of the dirty slots of a block, twice for the slots in double.
func (u *Urgency) gain(b int, dirty uint64, w *snapshot.SlicedWeights, double uint64) {
	if dirty == 0 {
		u.Waiting[b] = 0
		return
	}
	if kept := u.Waiting[b]; kept != ^uint64(0) {
		u.Blocks[b].Keep(kept)
	}
	u.used = max(u.used, int32(u.Blocks[b].Add(w, dirty, double)))
	u.Waiting[b] = dirty
}
