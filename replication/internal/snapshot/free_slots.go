package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Which slot an entity or a sub-entity gets: the lowest free one of its class, so that slots stay
// dense. What ends in a tick frees its slot for the next one, because capture meets newcomers
// before it knows who is gone. So a class has never had more slots than were taken at the
// beginning of a tick and in it together: twice as many as it had members at a time.
//
// A freed slot need not rest. The next generation tells the two entities apart at a client, and
// all that a peer is known to hold is forgotten when the slot empties. A generation comes again
// after 65,536 incarnations of 2 ticks at least, see receive.GenerationSpan.

// SlotsFor returns how many slots a server needs at most for so many entities at a time, each
// with sub-entities under so many conditions, and for resources.
func SlotsFor(entities, conditions int, resources bool) uint32 {
	n := 2 * uint64(entities)
	if resources {
		n++ // see archeutil.ResourceSlot
	}
	if conditions > 0 {
		n = uint64(1+conditions) * ((n + 63) &^ 63) // every class has blocks of its own
	}
	return uint32(min(n, MaxSlots))
}

// MaxSlots is more than a server has memory for.
const MaxSlots = 1 << 30

// A slotPool has the slots of a class that are free, or were never used.
type slotPool struct {
	next int // never used, in the block that was taken last; the first of a block: there is none

	// No block before these has free slots of the class for this tick: slots outside of
	// groups, and any.
	unreliable, any int
}

// InitClasses makes room for sub-entities under so many conditions.
func (t *SlotTable) InitClasses(conditions int) {
	t.pools = make([]slotPool, 1+conditions)
	t.subEntityOf = make([][]uint32, conditions)
}

// Reclaim makes the slots that were freed in earlier ticks available.
func (t *SlotTable) Reclaim() {
	for i := range t.pools {
		t.pools[i].unreliable, t.pools[i].any = 0, 0
	}
}

// take returns a free slot of a class: 0 for entities, else 1 + the condition of sub-entities.
func (t *SlotTable) take(class int, now delta.Tick) int {
	pool := &t.pools[class]
	slot, ok := t.takeFree(class, &pool.unreliable, t.Bound)
	if !ok { // who gets one of those has to travel with a group that still tells its peers the end of another
		slot, ok = t.takeFree(class, &pool.any, nil)
	}
	switch {
	case ok:
		return slot
	case len(t.pools) == 1:
		t.grow(len(t.Info)+1, now)
		return len(t.Info) - 1
	case pool.next&63 == 0:
		pool.next = len(t.Info)
		t.grow(len(t.Info)+64, now)
		t.Classes = append(t.Classes, uint8(class))
	}
	pool.next++
	return pool.next - 1
}

// takeFree takes the lowest free slot of a class that is not in a set. No block before the
// given one has any; it is moved up to the first that has.
func (t *SlotTable) takeFree(class int, block *int, except bitset.Set) (slot int, ok bool) {
	for b := *block; b < len(t.free); b++ {
		word := t.free[b]
		if b < len(except) {
			word &^= except[b]
		}
		if word != 0 && t.Class(b) == class {
			*block = b
			slot = b<<6 + bits.TrailingZeros64(word)
			t.free.Remove(slot)
			return slot, true
		}
	}
	*block = len(t.free)
	return 0, false
}
