// Package baseline groups the slots of a block by the acknowledged ticks that their updates are
// encoded against. Package ackstate fills the classes from the acknowledgements of a peer and
// package encode from the baselines of a packet set; package sender encodes each slot accordingly.
// The records of what a packet carried are defined here too, since both sides exchange them.
package baseline

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Class is the slots of a block that a peer is sent against the same baselines, or in full.
type Class struct {
	Mask uint64
	Full bool
	// Third and Fourth are the ages of further baselines, in ticks before A1, for the coding Compact; 0:
	// there is none.
	Third, Fourth uint8
	delta.Baselines
}

// ClassOf returns the class of a slot, which must be in one of them. The slot is given as its bit
// in the block.
func ClassOf(classes []Class, bit uint64) *Class {
	i := 0
	for classes[i].Mask&bit == 0 {
		i++
	}
	return &classes[i]
}

// NearBases is the number of pairs of baselines that a peer tries.
const NearBases = 4

// Classes are the classes of one block of slots.
type Classes struct {
	Slots   *snapshot.SlotTable
	List    []Class
	Compact bool // for the coding Compact
}

// Add adds slots to the class with these baselines and no nearer ones.
func (c *Classes) Add(mask uint64, base delta.Baselines) {
	c.AddClass(Class{Mask: mask, Baselines: base})
}

// AddClass adds slots to the class with the same baselines, or adds a class.
func (c *Classes) AddClass(k Class) {
	for i := range c.List {
		if o := &c.List[i]; o.Baselines == k.Baselines && o.Third == k.Third && o.Fourth == k.Fourth && !o.Full {
			o.Mask |= k.Mask
			return
		}
	}
	c.List = append(c.List, k)
}

// AddStopped adds the class of the slots that changed between two baselines but not since, and
// returns the other slots. These are encoded against the newer baseline alone, as their motion has
// ended.
func (c *Classes) AddStopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	stopped := c.Slots.Stopped(b, m, at, at2)
	if stopped != 0 {
		c.Add(stopped, delta.Baselines{A1: at})
	}
	return m &^ stopped
}

// MaxStep bounds the ticks between a first baseline and a second one, unless that is the likely
// one.
const MaxStep = 8
