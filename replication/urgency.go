package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What waits longest, times what it weighs, goes first: every tick in which something waits adds
// its weight to its urgency. The numbers of 64 slots are kept bit-sliced: bit i of all of them
// stands in one word. So 64 weights are added with a few operations a bit, and the most urgent of
// all slots are found by looking at one bit after the other, from the highest down, without
// sorting. Both are from D. Rinfret, P. O'Neil and E. O'Neil, "Bit-Sliced Index Arithmetic", 2001.

const (
	// weightUnit is a weight of 1.
	weightUnit = 16
	weightBits = 12 // of a weight: it is less than 256
	maxWeight  = 1<<weightBits - 1

	// urgencyBits are enough for 2,047 ticks at weight 1. What has waited for longer is all alike.
	urgencyBits = 15
)

// sliced are the urgencies of the slots of a block, from the lowest bit to the highest.
type sliced [urgencyBits]uint64

// keep sets the urgency of all other slots to 0.
func (u *sliced) keep(mask uint64) {
	for i := range u {
		u[i] &= mask
	}
}

// add adds the weights of some slots, twice those of the slots in double. It returns the number of bits that are
// in use, as far as it has seen them.
func (u *sliced) add(w *slicedWeights, mask, double uint64) (used int) {
	carry, below := uint64(0), uint64(0)
	i := w.first
	for ; i < w.end; i++ {
		plane := w.planes[i]
		term := (plane&^double | below&double) & mask
		below = plane
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
	}
	if term := below & double & mask; term != 0 || carry != 0 { // i is weightBits at most
		sum := u[i] ^ term
		u[i], carry = sum^carry, u[i]&term|carry&sum
		for i++; i < urgencyBits && carry != 0; i++ {
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

// slicedWeights are the weights of the slots of a block.
type slicedWeights struct {
	planes     [weightBits]uint64
	first, end int  // all other planes are 0
	inexact    bool // some are no multiples of the unit
}

// reset makes all weights 0.
func (w *slicedWeights) reset() { *w = slicedWeights{first: weightBits} }

// set sets the weight of a slot that was 0. What is no multiple of the unit is rounded up or
// down, by chance, so that it is right in the mean.
func (w *slicedWeights) set(slot int, weight float32, chance uint32) {
	scaled := float64(weight) * weightUnit
	if !(scaled > 0) {
		return
	}
	scaled = min(scaled, maxWeight)
	n := uint32(scaled)
	if rest := scaled - float64(n); rest > 0 {
		w.inexact = true
		if float64(chance)/(1<<32) < rest {
			n++
		}
	}
	if n == 0 {
		return
	}
	w.first, w.end = min(w.first, bits.TrailingZeros32(n)), max(w.end, bits.Len32(n))
	for bit := uint64(1) << (slot & 63); n != 0; n &= n - 1 {
		w.planes[bits.TrailingZeros32(n)] |= bit
	}
}

// chanceOf returns a number that is evenly spread over slots and ticks.
func chanceOf(slot int, tick uint32) uint32 {
	return uint32(wire.Mix64(uint64(tick)<<32|uint64(uint32(slot))) >> 32)
}

// A weightTable holds the weights that slots have for all peers.
type weightTable struct {
	blocks []slicedWeights
	known  bitset.Set // blocks whose weights stand there
	tick   uint32     // of the last update
}

// forgetAll does so for all blocks.
func (t *weightTable) forgetAll() { clear(t.known) }

// update looks up the weights of all blocks that may have changed since the tick before.
func (t *weightTable) update(s *slotTable, tick uint32) {
	if tick != t.tick+1 { // what changed meanwhile is not known
		t.forgetAll()
	}
	t.tick = tick
	for len(t.blocks) < len(s.alive) {
		t.blocks = append(t.blocks, slicedWeights{})
	}
	t.known = t.known.Grown(len(t.blocks))
	for b := range t.blocks {
		if t.known.Has(b) && s.turned[b]|s.reshaped[b] == 0 {
			continue
		}
		w := &t.blocks[b]
		w.reset()
		for slot := range bitset.Slots(b, ^uint64(0)) {
			if slot < s.len() {
				w.set(slot, s.weight(slot), chanceOf(slot, tick))
			}
		}
		if t.known.Add(b); w.inexact {
			t.known.Remove(b)
		}
	}
}

// weight returns the weight of a slot. What is gone weighs 1.
func (t *slotTable) weight(slot int) float32 {
	info := &t.info[slot]
	if !t.alive.Has(slot) || info.table == nil {
		return 1
	}
	return t.info[info.of].weight * info.table.weight
}

// urgency is how urgent it is to send a peer what waits.
type urgency struct {
	blocks  []sliced
	used    int        // no more than so many bits of them are
	waiting bitset.Set // slots that have waited since weights were added last
	turn    int        // of equally urgent slots those from this one on go first
}

// grow makes room for slots below n.
func (u *urgency) grow(n int) {
	u.waiting = u.waiting.Grown(n)
	if more := len(u.waiting) - len(u.blocks); more > 0 {
		u.blocks = append(u.blocks, make([]sliced, more)...)
	}
}

// wait ends a tick: what is not due any more waits no longer.
func (u *urgency) wait(due bitset.Set) {
	for b := range u.waiting {
		u.waiting[b] &= due[b]
	}
}

// gain adds the weights of slots of a block that are due.
func (u *urgency) gain(b int, due uint64, w *slicedWeights, double uint64) {
	if due == 0 {
		u.waiting[b] = 0
		return
	}
	if kept := u.waiting[b]; kept != ^uint64(0) {
		u.blocks[b].keep(kept)
	}
	u.used = max(u.used, u.blocks[b].add(w, due, double))
	u.waiting[b] = due
}
