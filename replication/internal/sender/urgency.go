package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// The urgency of a slot is the time for which it has waited, times its weight: every tick in which
// others are sent and it is not adds its weight. The urgencies of 64 slots are bit-sliced: bit i of all of them is in
// one word. So 64 weights are added with a few operations per bit, and the most urgent slots are
// found without sorting, by looking at one bit after the other from the highest down. Both are from
// D. Rinfret, P. O'Neil and E. O'Neil, "Bit-Sliced Index Arithmetic", 2001.

// urgencyBits suffice for 2,047 ticks at weight 1. Longer waits count the same.
const urgencyBits = 15

// Sliced are the urgencies of the slots of a block, from the lowest bit to the highest.
type Sliced [urgencyBits]uint64

// keep sets the urgency of all slots outside the mask to 0.
func (u *Sliced) keep(mask uint64) {
	for i := range u {
		u[i] &= mask
	}
}

// add adds the weights of the slots in the mask, twice for the slots in double. It returns the
// number of bits that it has looked at; higher ones did not change.
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
		for i++; i < urgencyBits && carry != 0; i++ {
			u[i], carry = u[i]^carry, u[i]&carry
		}
	}
	if carry != 0 { // overflow: the largest urgency
		for i := range u {
			u[i] |= carry
		}
	}
	return i
}

// Urgency is the urgency of a peer's dirty slots.
type Urgency struct {
	Blocks  []Sliced
	used    int        // upper bound for the bits in use
	Waiting bitset.Set // slots that have been dirty since weights were last added
	first   int        // of equally urgent slots, those from this one on come first
}

// grow makes room for slots below n.
func (u *Urgency) grow(n int) {
	u.Waiting = u.Waiting.Grown(n)
	if more := len(u.Waiting) - len(u.Blocks); more > 0 {
		u.Blocks = append(u.Blocks, make([]Sliced, more)...)
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
		u.Blocks[b].keep(kept)
	}
	u.used = max(u.used, u.Blocks[b].add(w, dirty, double))
	u.Waiting[b] = dirty
}
