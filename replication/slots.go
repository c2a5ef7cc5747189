package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// A slotTable knows which entity has which slot, and since when it is as it is.
type slotTable struct {
	// What every peer asks of every slot comes first, in arrays of their own.
	alive   []bool
	changed []delta.Tick // when the newest version of anything in the slot began
	news    bitset       // slots in which something changed this tick
	info    []slotInfo
	free    []uint32
	live    int
}

type slotInfo struct {
	entity       ecs.Entity
	generation   uint16
	born         delta.Tick // when this incarnation began, or the slot became empty
	previous     delta.Tick // what changed was before its latest change
	restructured delta.Tick // when the component set became what it is
	seen         delta.Tick // when capture saw the entity last
	set          delta.Set
	width        int // bits of all codes at fixed width
}

func (t *slotTable) len() int { return len(t.alive) }

// add gives the entity a slot, one that was free if there is any.
func (t *slotTable) add(e ecs.Entity, now delta.Tick) int {
	var slot int
	if n := len(t.free); n > 0 {
		slot = int(t.free[n-1])
		t.free = t.free[:n-1]
	} else {
		slot = len(t.alive)
		t.alive = append(t.alive, false)
		t.changed = append(t.changed, 0)
		t.info = append(t.info, slotInfo{})
		t.news = t.news.grown(slot + 1)
	}
	t.alive[slot] = true
	t.changed[slot] = now
	t.news.set(slot)
	old := t.info[slot].generation
	t.info[slot] = slotInfo{entity: e, generation: old + 1, born: now, previous: now, restructured: now, seen: now}
	t.live++
	return slot
}

// remove empties the slot.
func (t *slotTable) remove(slot int, now delta.Tick) {
	t.alive[slot] = false
	t.changed[slot] = now
	t.news.set(slot)
	i := &t.info[slot]
	i.entity, i.set, i.born, i.width = ecs.Entity{}, delta.Set{}, now, 0
	t.free = append(t.free, uint32(slot))
	t.live--
}

// touch notes that something in the slot changed.
func (t *slotTable) touch(slot int, now delta.Tick) {
	if t.changed[slot] != now {
		t.info[slot].previous = t.changed[slot]
		t.changed[slot] = now
		t.news.set(slot)
	}
}

// settle ends a tick.
func (t *slotTable) settle() { clear(t.news) }
