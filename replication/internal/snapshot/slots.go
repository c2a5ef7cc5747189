package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A SlotTable knows which entity has which slot, and since when each slot is as it is. Slots form
// blocks of 64: what every slot is asked for every peer is asked of 64 at a time, as bits of a
// word.
type SlotTable struct {
	Alive      bitset.Set // slots that hold an entity
	free       bitset.Set // slots that held one; see free_slots.go
	Changed    bitset.Set // slots in which something changed this tick
	Churned    bitset.Set // those of them whose entity came or went
	moved      bitset.Set // those of them whose entity got another slot
	SetChanged bitset.Set // those of them whose component set changed
	Bound      bitset.Set // slots of members and former members of groups; nil without groups
	Recent     changeLog

	Log           [RecentTicks]bitset.Set // by tick modulo RecentTicks: what changed in it
	liveLog       [RecentTicks]bitset.Set // the same without what was empty at its end
	ChangedBlocks bitset.Set              // blocks with changed slots, after the capture
	ChurnedBlocks bitset.Set              // those of them in which an entity came or went
	Periods       Periods                 // what changed in several ticks

	ChangedAt     []delta.Tick // when the slot changed last
	ChangedBefore []delta.Tick // when it changed before that
	Info          []slotInfo
	components    []blockComponents // by block
	Widths        []int32           // bits of all codes of the slot at fixed width
	Live          int
	Weights       weightTable

	pools []slotPool // by class
	rest  slotRest   // of entities

	// Sub-entities; see sub_entities.go.
	Classes        []uint8    // by block; empty if there are no conditions
	subEntityOf    [][]uint32 // by condition and slot: 1 + the slot of the sub-entity, or 0
	SubEntityCount int        // live slots of sub-entities
}

// slotInfo is what a slot holds.
type slotInfo struct {
	Entity     ecs.Entity
	Of         uint32 // the slot of the entity that a sub-entity belongs to; otherwise this slot
	Generation uint16
	Born       delta.Tick // when the entity got the slot, or the slot became empty
	SetChanged delta.Tick // when the component set changed last
	Set        wire.ComponentSet
	Table      *Table
	Weight     float32 // set by SetPriority
}

// Len returns the number of slots.
func (t *SlotTable) Len() int { return len(t.Info) }

// holds reports whether a number is the slot of an entity. Slots of sub-entities don't count.
func (t *SlotTable) holds(slot int, e ecs.Entity) bool {
	return slot >= 0 && slot < t.Len() && t.Info[slot].Entity == e && !t.HoldsSubEntities(slot>>6)
}

// grow makes room for slots below n.
func (t *SlotTable) grow(n int, now delta.Tick) {
	for len(t.Info) < n {
		t.ChangedAt, t.ChangedBefore = append(t.ChangedAt, now), append(t.ChangedBefore, now)
		t.Info, t.Widths = append(t.Info, slotInfo{Born: now, SetChanged: now}), append(t.Widths, 0)
	}
	for len(t.components) < (n+63)>>6 {
		t.components = append(t.components, blockComponents{changed: now})
	}
	t.Alive, t.free, t.Changed = t.Alive.Grown(n), t.free.Grown(n), t.Changed.Grown(n)
	t.Churned, t.moved = t.Churned.Grown(n), t.moved.Grown(n)
	t.SetChanged = t.SetChanged.Grown(n)
	for i := range t.Log {
		t.Log[i], t.liveLog[i] = t.Log[i].Grown(n), t.liveLog[i].Grown(n)
	}
	t.Recent.grow(n)
}

// Add gives the entity a slot, one that was free if there is any.
func (t *SlotTable) Add(e ecs.Entity, now delta.Tick) int { return t.addTo(0, e, now) }

// addTo gives the entity a slot of a class, for itself or a sub-entity.
func (t *SlotTable) addTo(class int, e ecs.Entity, now delta.Tick) int {
	slot := t.take(class, now)
	t.Alive.Add(slot)
	t.ChangedAt[slot], t.ChangedBefore[slot] = now, now
	t.Changed.Add(slot)
	t.Churned.Add(slot)
	old := t.Info[slot].Generation
	t.Info[slot] = slotInfo{Entity: e, Of: uint32(slot), Generation: old + 1, Born: now, SetChanged: now, Weight: 1}
	t.Live++
	return slot
}

// setComponents gives the entity in a slot a component set.
func (t *SlotTable) setComponents(slot int, set *wire.ComponentSet, now delta.Tick) {
	info := &t.Info[slot]
	info.Set, info.SetChanged = *set, now
	t.components[slot>>6].note(set, now)
}

// Components returns the components of slots of a block, perhaps with some that none of them has, and those of the
// slots whose component set changed after tick at.
func (t *SlotTable) Components(b int, of uint64, at delta.Tick) (all *wire.ComponentSet, changed uint64) {
	c := &t.components[b]
	if c.changed.After(at) {
		for slot := range bitset.Slots(b, of) {
			if t.Info[slot].SetChanged.After(at) {
				changed |= 1 << (slot & 63)
			}
		}
	}
	return &c.all, changed
}

// Remove empties the slot.
func (t *SlotTable) Remove(slot int, now delta.Tick) {
	t.Alive.Remove(slot)
	if t.rest.ticks > 0 && !t.HoldsSubEntities(slot>>6) {
		t.rest.queue = append(t.rest.queue, restingSlot{uint32(slot), now})
	} else {
		t.free.Add(slot)
	}
	t.ChangedAt[slot] = now
	t.Changed.Add(slot)
	t.Churned.Add(slot)
	i := &t.Info[slot]
	i.Entity, i.Set, i.Born = ecs.Entity{}, wire.ComponentSet{}, now
	t.Live--
}

// LivesOn returns the slots of a block whose entity lives, here or, since this tick, in another slot.
func (t *SlotTable) LivesOn(b int) uint64 { return t.Alive[b] | t.moved[b] }

const (
	// sampled has a quarter of the slots of a block. However it is rotated, it has about as much of each kind as the
	// block, where entities of several kinds spawned by turns or one kind after the other. It was found by a search.
	sampled     = 0x444245091088880a
	leastSample = 8 // slots; smaller samples are not used
)

// EstimateWidths estimates the sum of the widths of some slots of a block: in each tick another quarter of them stands
// for all. No other slots have a part in it.
func (t *SlotTable) EstimateWidths(b int, of uint64, now delta.Tick) (sum int) {
	sample := of & bits.RotateLeft64(sampled, int(now)+b)
	if bits.OnesCount64(sample) < leastSample {
		sample = of
	}
	for slot := range bitset.Slots(b, sample) {
		sum += int(t.Widths[slot])
	}
	return sum * bits.OnesCount64(of) / max(bits.OnesCount64(sample), 1)
}

// Touch notes that something in the slot changed.
func (t *SlotTable) Touch(slot int, now delta.Tick) {
	if t.ChangedAt[slot] != now {
		t.date(slot, now)
		t.Changed.Add(slot)
	}
}

// touchSet is Touch for a set of up to 64 consecutive slots, from first on.
func (t *SlotTable) touchSet(first int, set uint64, now delta.Tick) {
	for rest := set; rest != 0; rest &= rest - 1 {
		if slot := first + bits.TrailingZeros64(rest); t.ChangedAt[slot] != now {
			t.date(slot, now)
		}
	}
	b, shift := first>>6, uint(first&63)
	t.Changed[b] |= set << shift
	if high := set >> (64 - shift); high != 0 {
		t.Changed[b+1] |= high
	}
}

// date sets the ticks of a slot that changes now, and had not changed in this tick before.
func (t *SlotTable) date(slot int, now delta.Tick) {
	t.ChangedBefore[slot], t.ChangedAt[slot] = t.ChangedAt[slot], now
}

// List finds the blocks with changes, after the capture.
func (t *SlotTable) List() {
	t.Periods.begin()
	t.ChangedBlocks, t.ChurnedBlocks = t.Changed.Blocks(t.ChangedBlocks), t.Churned.Blocks(t.ChurnedBlocks)
}

// Begin starts tick now. Ticks that did not end, since one of the user's functions panicked, end
// here: what they captured counts as changed in them, and still counts as changed.
func (t *SlotTable) Begin(now delta.Tick) {
	if now-1-t.Recent.Now > RecentTicks {
		t.Recent.Now = now - 1 - RecentTicks
	}
	for t.Recent.Now != now-1 {
		t.List()
		t.note(t.Recent.Now + 1)
	}
}

// note puts the changes of a tick into the logs.
func (t *SlotTable) note(at delta.Tick) {
	t.Recent.settle(t.Changed, t.ChangedBlocks, at)
	copy(t.Log[at%RecentTicks], t.Changed)
	live := t.liveLog[at%RecentTicks]
	for b, changed := range t.Changed {
		live[b] = changed & t.Alive[b]
	}
}

// Settle ends tick now.
func (t *SlotTable) Settle(now delta.Tick) {
	t.note(now)
	clear(t.Changed)
	clear(t.Churned)
	clear(t.moved)
	clear(t.SetChanged)
}

// ChangedAfter returns the slots of a block that changed after tick at, up to the last tick that
// has ended.
func (t *SlotTable) ChangedAfter(at delta.Tick, block int, of uint64) uint64 {
	if row := t.Recent.After(at); row != nil {
		return row[block] & of
	}
	var changed uint64
	for slot := range bitset.Slots(block, of) {
		if t.ChangedAt[slot].After(at) {
			changed |= 1 << (slot & 63)
		}
	}
	return changed
}

// ChangedIn returns the slots of a block that changed in tick at; now is the present tick. If that
// is too long ago to be known, it returns all slots that may have.
func (t *SlotTable) ChangedIn(at, now delta.Tick, b int) uint64 {
	if now-at < RecentTicks {
		return t.Log[at%RecentTicks][b]
	}
	return t.ChangedAfter(at-1, b, t.Alive[b])
}

// AppendLive appends the slots that liveIn returns, of all blocks. Tick at-n must be one of the last RecentTicks that
// have ended.
func (t *SlotTable) AppendLive(to []wire.SlotBlock, n, at delta.Tick) []wire.SlotBlock {
	for w, blocks := range t.Recent.Blocks[(at-n)%RecentTicks] { // with changes after tick at-n
		for b := range bitset.Slots(w, blocks) {
			if mask := t.liveIn(n, at, b); mask != 0 {
				to = append(to, wire.SlotBlock{Block: uint32(b), Mask: mask})
			}
		}
	}
	return to
}

// liveIn returns those slots of a block that changed in n ticks up to a recent one that has ended, and held an
// entity at its end.
func (t *SlotTable) liveIn(n, at delta.Tick, b int) (live uint64) {
	for i := n; i > 0; i-- {
		tick := (at - i + 1) % RecentTicks
		live = live&^t.Log[tick][b] | t.liveLog[tick][b]
	}
	return live
}

// ChangedBy returns when a slot changed last, up to tick at. It returns false if that is too long
// ago to be known.
func (t *SlotTable) ChangedBy(slot int, at delta.Tick) (delta.Tick, bool) {
	for _, c := range [...]delta.Tick{t.ChangedAt[slot], t.ChangedBefore[slot]} {
		if !c.After(at) {
			return c, true
		}
	}
	for ; t.Recent.Now-at < RecentTicks; at-- {
		if t.Log[at%RecentTicks].Has(slot) {
			return at, true
		}
	}
	return 0, false
}

// RecentTicks is the number of ticks for which changes and acknowledgements are kept as bits. It is
// a power of two.
const RecentTicks = 32

// A changeLog knows which slots changed after a recent tick.
type changeLog struct {
	Now    delta.Tick              // the last tick that has ended
	rows   [RecentTicks]bitset.Set // by tick modulo RecentTicks: slots that changed after it
	Blocks [RecentTicks]bitset.Set // the same by block
	nobody bitset.Set
}

// grow makes room for so many slots.
func (l *changeLog) grow(slots int) {
	l.nobody = l.nobody.Grown(slots)
	for i := range l.rows {
		l.rows[i] = l.rows[i].Grown(slots)
		l.Blocks[i] = l.Blocks[i].Grown(len(l.nobody))
	}
}

// settle adds the changes of tick now, the one after the last, in blocks that changed.
func (l *changeLog) settle(changed, changedBlocks bitset.Set, now delta.Tick) {
	l.Now = now
	for w, blocks := range changedBlocks {
		for b := range bitset.Slots(w, blocks) {
			for i := range l.rows {
				l.rows[i][b] |= changed[b]
			}
		}
		for i := range l.Blocks {
			l.Blocks[i][w] |= blocks
		}
	}
	clear(l.rows[now%RecentTicks])
	clear(l.Blocks[now%RecentTicks])
}

// After returns the slots that changed after tick at, up to the last tick that has ended. It
// returns nil if that is too long ago to be known.
func (l *changeLog) After(at delta.Tick) bitset.Set {
	switch age := l.Now - at; {
	case age < RecentTicks:
		return l.rows[at%RecentTicks]
	case age == ^delta.Tick(0):
		return l.nobody // the present tick
	}
	return nil
}

// Lively returns the slots that changed in the last RestAfter ticks that have ended. Those that did not, nor in the
// present tick, are more urgent, since they are not likely to be sent again soon.
func (t *SlotTable) Lively() bitset.Set { return t.Recent.After(t.Recent.Now - RestAfter) }

// Stopped returns those of some slots of a block that changed between two baselines and have not
// changed since the later one, if that is more than RestAfter ticks ago.
func (t *SlotTable) Stopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	now := t.Recent.Now + 1
	if now-at <= RestAfter || now-at2 >= RecentTicks {
		return 0
	}
	m &^= t.ChangedAfter(at, b, m&t.Changed[b]) // changes before this tick
	for slot := range bitset.Slots(b, m&^t.Changed[b]) {
		if t.ChangedBefore[slot].After(at) {
			m &^= 1 << (slot & 63)
		}
	}
	var moved uint64
	for ; at != at2; at-- {
		moved |= t.Log[at%RecentTicks][b]
	}
	return m & moved
}

// InGroups returns the slots of a block that are sent with groups.
func (t *SlotTable) InGroups(b int) uint64 {
	if b >= len(t.Bound) {
		return 0
	}
	return t.Bound[b]
}

// Weight returns the weight of a slot. An empty slot has weight 1.
func (t *SlotTable) Weight(slot int) float32 {
	info := &t.Info[slot]
	if !t.Alive.Has(slot) || info.Table == nil {
		return 1
	}
	return t.Info[info.Of].Weight * info.Table.Weight
}

// RestAfter is the number of ticks without a change after which an entity counts as idle.
const RestAfter = 2

// touchAll touches the slots of the rows in a set.
func (t *SlotTable) touchAll(slots []uint32, changed uint64, now delta.Tick) {
	for ; changed != 0; changed &= changed - 1 {
		t.Touch(int(slots[bits.TrailingZeros64(changed)]), now)
	}
}
