package snapshot

import (
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Which slot a new entity or sub-entity gets: the lowest free one of its class, so that slots stay
// dense. A slot becomes free in the tick after its entity ended, because capture finds new entities
// before it knows which ones are gone. So a class never has more slots than entities at the
// beginning of a tick and new ones in that tick together: at most twice its largest number of
// members.
//
// Or a slot rests for some ticks first, if the user wants that, so that clients can show the end of its
// entity. The slot that has rested longest is taken when a class has as many as it may have.
//
// A free slot can be reused at once. Clients distinguish the two entities by the generation, and all
// that a peer is known to hold of a slot is forgotten when the slot becomes empty. A generation
// returns after 65,536 entities of at least 2 ticks each; see receive.GenerationSpan.

// SlotsFor returns how many slots a server needs at most for a number of entities at a time, each
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

// MaxSlots exceeds any server's memory.
const MaxSlots = 1 << 30

// A slotPool finds the free slots of a class.
type slotPool struct {
	next int // first unused slot of the class's last block; at the start of a block, there is none

	// The first blocks that may have free slots in this tick: slots outside of groups, and any.
	ungrouped, any int
}

// InitClasses makes room for sub-entities under so many conditions. Slots of entities rest for some ticks.
func (t *SlotTable) InitClasses(conditions int, rest delta.Tick) {
	t.rest.ticks = rest
	t.pools = make([]slotPool, 1+conditions)
	t.subEntityOf = make([][]uint32, conditions)
}

// Reclaim makes available the slots that were freed in earlier ticks.
func (t *SlotTable) Reclaim(now delta.Tick) {
	r := &t.rest
	for ; r.taken < len(r.queue) && now-r.queue[r.taken].since >= r.ticks; r.taken++ {
		t.free.Add(int(r.queue[r.taken].slot))
	}
	r.queue, r.taken = slices.Delete(r.queue, 0, r.taken), 0
	r.most = max(r.most, t.Live-t.SubEntityCount)
	for i := range t.pools {
		t.pools[i].ungrouped, t.pools[i].any = 0, 0
	}
}

// take returns a free slot of a class: 0 for entities, or 1 + the condition of sub-entities.
func (t *SlotTable) take(class int, now delta.Tick) int {
	pool := &t.pools[class]
	slot, ok := t.takeFree(class, &pool.ungrouped, t.Bound)
	if !ok {
		// This slot is sent with its former group until all peers know the end of the member there.
		slot, ok = t.takeFree(class, &pool.any, nil)
	}
	if !ok && class == 0 {
		slot, ok = t.rest.take()
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

// takeFree takes the lowest free slot of a class that is not in a set. It searches from a block on
// and moves that up to the block where it found one.
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

// freeBelow returns the number of free slots below a limit that are in no group, by class.
func (t *SlotTable) freeBelow(limit int) []int {
	free := make([]int, len(t.pools))
	for b := range min(limit>>6, len(t.free)) {
		word := t.free[b]
		if b < len(t.Bound) {
			word &^= t.Bound[b]
		}
		free[t.Class(b)] += bits.OnesCount64(word)
	}
	return free
}

// A slotRest has the slots of entities that ended a short while ago and are not free yet.
type slotRest struct {
	ticks delta.Tick    // 0: slots are free at once
	queue []restingSlot // in the order in which they ended
	taken int           // of the queue, in this tick
	slots int           // of entities, whatever they hold
	most  int           // entities at the beginning of a tick, so far
}

type restingSlot struct {
	slot  uint32
	since delta.Tick
}

// take returns the slot that has rested longest if entities have as many slots as they may, and counts another slot of
// theirs otherwise. The slot of resources never rests.
func (r *slotRest) take() (slot int, ok bool) {
	if r.slots+1 < 2*r.most || r.taken == len(r.queue) {
		r.slots++
		return 0, false
	}
	r.taken++
	return int(r.queue[r.taken-1].slot), true
}
