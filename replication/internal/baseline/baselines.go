// Package baseline groups the slots of a block by the acknowledged ticks that their updates are taken against.
package baseline

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Class is the slots of a block that a peer needs against the same baselines, or
// whole.
type Class struct {
	Mask  uint64
	Full  bool
	Third uint8 // how many ticks before A1 a third baseline is, for Compact; 0: there is none
	delta.Baselines
}

// ClassOf returns the class of a slot of a block; it must have one.
func ClassOf(classes []Class, bit uint64) *Class {
	i := 0
	for classes[i].Mask&bit == 0 {
		i++
	}
	return &classes[i]
}

// NearBases is how many pairs are tried.
const NearBases = 4

// Classes is the list of the classes of the block in hand.
type Classes struct {
	Slots   *snapshot.SlotTable
	List    []Class
	Compact bool // they are for Compact
}

// Add adds slots to the class with these baselines.
func (c *Classes) Add(mask uint64, base delta.Baselines) {
	c.AddClass(Class{Mask: mask, Baselines: base})
}

// AddStopped adds the class of those of some slots of a block that changed between two baselines and not
// since, and returns the others. An old motion predicts nothing.
func (c *Classes) AddStopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	stopped := c.Slots.Stopped(b, m, at, at2)
	if stopped != 0 {
		c.Add(stopped, delta.Baselines{A1: at})
	}
	return m &^ stopped
}

// MaxStep bounds how far second baselines lie before first ones, other than the likely one.
const MaxStep = 8
