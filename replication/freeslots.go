package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Which slot an entity or a facet gets: the lowest free one of its class, so that slots stay
// dense. What ends in a tick frees its slot for the next one, because capture meets newcomers
// before it knows who is gone. So a class has never had more slots than were taken at the
// beginning of a tick and in it together: twice as many as it had members at a time.
//
// A freed slot need not rest. The next generation tells the two entities apart at a client, and
// all that a peer is known to hold is forgotten when the slot empties. A generation comes again
// after 65,536 incarnations of 2 ticks at least, see generationSpan.

// slotsFor returns how many slots a server needs at most for so many entities at a time, each
// with facets under so many conditions, and for resources.
func slotsFor(entities, conditions int, resources bool) uint32 {
	n := 2 * uint64(entities)
	if resources {
		n++ // see resourceSlot
	}
	if conditions > 0 {
		n = uint64(1+conditions) * ((n + 63) &^ 63) // every class has blocks of its own
	}
	return uint32(min(n, maxSlots))
}

// maxSlots is more than a server has memory for.
const maxSlots = 1 << 30

// A slotPool has the slots of a class that are free, or were never used.
type slotPool struct {
	next int // never used, in the block that was taken last; the first of a block: there is none

	// No block before these has free slots of the class for this tick: slots outside of
	// groups, and any.
	loose, any int
}

// initClasses makes room for facets under so many conditions.
func (t *slotTable) initClasses(conditions int) {
	t.pools = make([]slotPool, 1+conditions)
	t.facetOf = make([][]uint32, conditions)
}

// reclaim makes the slots that were freed in earlier ticks available.
func (t *slotTable) reclaim() {
	for i := range t.pools {
		t.pools[i].loose, t.pools[i].any = 0, 0
	}
}

// take returns a free slot of a class: 0 for entities, else 1 + the condition of facets.
func (t *slotTable) take(class int, now delta.Tick) int {
	pool := &t.pools[class]
	slot, ok := t.takeFree(class, &pool.loose, t.bound)
	if !ok { // who gets one of those has to travel with a group that still tells its peers the end of another
		slot, ok = t.takeFree(class, &pool.any, nil)
	}
	switch {
	case ok:
		return slot
	case len(t.pools) == 1:
		t.grow(len(t.info)+1, now)
		return len(t.info) - 1
	case pool.next&63 == 0:
		pool.next = len(t.info)
		t.grow(len(t.info)+64, now)
		t.classes = append(t.classes, uint8(class))
	}
	pool.next++
	return pool.next - 1
}

// takeFree takes the lowest free slot of a class that is not in a set. No block before the
// given one has any; it is moved up to the first that has.
func (t *slotTable) takeFree(class int, block *int, except bitset.Set) (slot int, ok bool) {
	for b := *block; b < len(t.free); b++ {
		word := t.free[b]
		if b < len(except) {
			word &^= except[b]
		}
		if word != 0 && t.class(b) == class {
			*block = b
			slot = b<<6 + bits.TrailingZeros64(word)
			t.free.Remove(slot)
			return slot, true
		}
	}
	*block = len(t.free)
	return 0, false
}
