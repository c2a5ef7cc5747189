package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A blockComponents knows the component sets of the slots of a block without a look at each of them.
type blockComponents struct {
	all     wire.ComponentSet // has the components of every slot, and perhaps some that no slot has any more
	changed delta.Tick        // no slot's component set changed later
}

// note notes that a slot of the block has a component set from tick now on.
func (c *blockComponents) note(set *wire.ComponentSet, now delta.Tick) {
	c.all.AddAll(set)
	c.changed = now
}

// refresh forgets components that none of the block's slots has, and keeps the tick within reach of serial arithmetic.
func (c *blockComponents) refresh(slots []slotInfo, limit delta.Tick) {
	c.all = wire.ComponentSet{}
	for i := range slots {
		c.all.AddAll(&slots[i].Set)
	}
	if c.changed.Before(limit) {
		c.changed = limit
	}
}
