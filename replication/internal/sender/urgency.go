package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// What waits longest, times what it weighs, goes first: every tick in which something waits adds
// its weight to its urgency. The numbers of 64 slots are kept bit-sliced: bit i of all of them
// stands in one word. So 64 weights are added with a few operations a bit, and the most urgent of
// all slots are found by looking at one bit after the other, from the highest down, without
// sorting. Both are from D. Rinfret, P. O'Neil and E. O'Neil, "Bit-Sliced Index Arithmetic", 2001.

// UrgencyBits are enough for 2,047 ticks at weight 1. What has waited for longer is all alike.
const UrgencyBits = 15

// Sliced are the urgencies of the slots of a block, from the lowest bit to the highest.
type Sliced [UrgencyBits]uint64

// keep sets the urgency of all other slots to 0.
func (u *Sliced) keep(mask uint64) {
	for i := range u {
		u[i] &= mask
	}
}

// add adds the weights of some slots, twice those of the slots in double. It returns the number of bits that are
// in use, as far as it has seen them.
func (u *Sliced) add(w *snapshot.SlicedWeights, mask, double uint64) (used int) {
	carry, below := uint64(0), uint64(0)
	i := w.First
	for ; i < w.End; i++ {
		plane := w.Planes[i]
		term := (plane&^double | below&double) & mask
		below = plane
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
	}
	if term := below & double & mask; term != 0 || carry != 0 { // i is snapshot.WeightBits at most
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
		for i++; i < UrgencyBits && carry != 0; i++ {
			u[i], carry = u[i]^carry, u[i]&carry
		}
	}
	if carry != 0 { // more than there is room for
		for i := range u {
			u[i] |= carry
		}
	}
	return i
}

// Urgency is how urgent it is to send a peer what waits.
type Urgency struct {
	Blocks  []Sliced
	Used    int        // no more than so many bits of them are
	Waiting bitset.Set // slots that have waited since weights were added last
	First   int        // of equally urgent slots those from this one on go first
}

// Grow makes room for slots below n.
func (u *Urgency) Grow(n int) {
	u.Waiting = u.Waiting.Grown(n)
	if more := len(u.Waiting) - len(u.Blocks); more > 0 {
		u.Blocks = append(u.Blocks, make([]Sliced, more)...)
	}
}

// Wait ends a tick: what is not due any more waits no longer.
func (u *Urgency) Wait(dirty bitset.Set) {
	for b := range u.Waiting {
		u.Waiting[b] &= dirty[b]
	}
}

// Gain adds the weights of slots of a block that are due.
func (u *Urgency) Gain(b int, dirty uint64, w *snapshot.SlicedWeights, double uint64) {
	if dirty == 0 {
		u.Waiting[b] = 0
		return
	}
	if kept := u.Waiting[b]; kept != ^uint64(0) {
		u.Blocks[b].keep(kept)
	}
	u.Used = max(u.Used, u.Blocks[b].add(w, dirty, double))
	u.Waiting[b] = dirty
}
