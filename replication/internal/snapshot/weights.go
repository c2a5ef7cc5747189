package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A weightTable holds the weights of slots, which are the same for all peers.
type weightTable struct {
	Blocks []SlicedWeights
	known  bitset.Set // blocks with valid weights
	tick   uint32     // of the last update
}

// forgetAll makes the weights of all blocks invalid.
func (t *weightTable) forgetAll() { clear(t.known) }

// Update computes the weights of all blocks that may have changed since the tick before.
func (t *weightTable) Update(s *SlotTable, tick uint32) {
	if tick != t.tick+1 { // changes of skipped ticks are not known
		t.forgetAll()
	}
	t.tick = tick
	for len(t.Blocks) < len(s.Alive) {
		t.Blocks = append(t.Blocks, SlicedWeights{})
	}
	t.known = t.known.Grown(len(t.Blocks))
	for b := range t.Blocks {
		if t.known.Has(b) && s.Churned[b]|s.SetChanged[b] == 0 {
			continue
		}
		w := &t.Blocks[b]
		w.Reset()
		for slot := range bitset.Slots(b, ^uint64(0)) {
			if slot < s.Len() {
				w.Put(slot, s.Weight(slot), ChanceOf(slot, tick))
			}
		}
		if t.known.Add(b); w.inexact {
			t.known.Remove(b)
		}
	}
}

// SlicedWeights are the weights of the slots of a block, bit-sliced.
type SlicedWeights struct {
	Planes     [UrgencyBits]uint64
	first, end uint8 // only these planes are not 0
	inexact    bool  // some weights are no multiples of the unit
}

// Reset makes all weights 0.
func (w *SlicedWeights) Reset() { *w = SlicedWeights{first: weightBits} }

// Put sets the weight of a slot, which was 0. A weight between two multiples of the unit is rounded
// up or down at random, so that it is right on average.
func (w *SlicedWeights) Put(slot int, weight float32, chance uint32) {
	scaled := float64(weight) * WeightUnit
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
	w.first, w.end = min(w.first, uint8(bits.TrailingZeros32(n))), max(w.end, uint8(bits.Len32(n)))
	for bit := uint64(1) << (slot & 63); n != 0; n &= n - 1 {
		w.Planes[bits.TrailingZeros32(n)] |= bit
	}
}

// WithUnit returns a copy in which some slots of the block have a weight of 1.
func (w *SlicedWeights) WithUnit(slots uint64) SlicedWeights {
	x := *w
	for i := range x.Planes {
		x.Planes[i] &^= slots
	}
	for slot := range bitset.Slots(0, slots) {
		x.Put(slot, 1, 0)
	}
	return x
}

// ChanceOf returns a number that is evenly distributed over slots and ticks.
func ChanceOf(slot int, tick uint32) uint32 {
	return uint32(wire.Mix64(uint64(tick)<<32|uint64(uint32(slot))) >> 32)
}

const weightBits = 12 // bits of a weight, which is below 256

// WeightUnit is a weight of 1.
const WeightUnit = 16

// maxWeight is the largest weight, in units.
const maxWeight = 1<<weightBits - 1
