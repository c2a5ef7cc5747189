package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A SlotTable knows which entity has which slot, and since when it is as it is. Slots
// come in blocks of 64, so that what is asked of every slot for every peer is asked of
// 64 at a time, as bits of a word.
type SlotTable struct {
	Alive    bitset.Set // slots that hold an entity
	free     bitset.Set // slots that held one: see free_slots.go
	Changed  bitset.Set // slots in which something changed this tick
	Churned  bitset.Set // of these, where an entity came or went
	Bound    bitset.Set // slots that are in groups, or were and are not forgotten there; nil without groups
	Reshaped bitset.Set // of these, what has other components than before
	Recent   changeLog

	Log           [RecentTicks]bitset.Set // by tick modulo their number: what changed in it
	Busy          []int32                 // blocks with news
	ChurnedBlocks []int32                 // of these, where an entity came or went
	ChangedBlocks bitset.Set              // the busy ones as a set of blocks
	Changes       int                     // slots with news

	ChangedAt     []delta.Tick // when the newest version of anything in the slot began
	ChangedBefore []delta.Tick // what changed was before its latest change
	Info          []slotInfo
	Widths        []int // by block: the sum of the widths of its slots
	Live          int
	Weights       weightTable

	pools []slotPool // by class

	// Of sub-entities: see sub_entities.go.
	Classes        []uint8    // by block; empty if there are no conditions
	subEntityOf    [][]uint32 // by condition and slot: 1 + the sub-entity, or 0
	SubEntityCount int        // how many of the live slots are sub-entities
}

type slotInfo struct {
	Entity       ecs.Entity
	Of           uint32 // the slot of the entity, if this is a sub-entity; else this one
	Generation   uint16
	Born         delta.Tick // when this incarnation began, or the slot became empty
	SetChanged delta.Tick // when the component set became what it is
	Set          delta.Set
	Width        int // bits of all codes at fixed width
	Table        *Table
	Weight       float32 // set by the user
}

func (t *SlotTable) Len() int { return len(t.Info) }

// grow makes room for slots below n.
func (t *SlotTable) grow(n int, now delta.Tick) {
	for len(t.Info) < n {
		t.ChangedAt, t.ChangedBefore = append(t.ChangedAt, now), append(t.ChangedBefore, now)
		t.Info = append(t.Info, slotInfo{Born: now, SetChanged: now})
	}
	for len(t.Widths) < (n+63)/64 {
		t.Widths = append(t.Widths, 0)
	}
	t.Alive, t.free, t.Changed = t.Alive.Grown(n), t.free.Grown(n), t.Changed.Grown(n)
	t.Churned = t.Churned.Grown(n)
	t.Reshaped = t.Reshaped.Grown(n)
	for i := range t.Log {
		t.Log[i] = t.Log[i].Grown(n)
	}
	t.Recent.grow(n)
}

// Add gives the entity a slot, one that was free if there is any.
func (t *SlotTable) Add(e ecs.Entity, now delta.Tick) int { return t.AddTo(0, e, now) }

// AddTo gives the entity a slot of a class, for itself or a sub-entity.
func (t *SlotTable) AddTo(class int, e ecs.Entity, now delta.Tick) int {
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

// Remove empties the slot.
func (t *SlotTable) Remove(slot int, now delta.Tick) {
	t.Alive.Remove(slot)
	t.free.Add(slot)
	t.ChangedAt[slot] = now
	t.Changed.Add(slot)
	t.Churned.Add(slot)
	i := &t.Info[slot]
	i.Entity, i.Set, i.Born = ecs.Entity{}, delta.Set{}, now
	t.setWidth(slot, 0)
	t.Live--
}

// setWidth sets the bits of all codes of a slot at fixed width.
func (t *SlotTable) setWidth(slot, bits int) {
	i := &t.Info[slot]
	t.Widths[slot>>6] += bits - i.Width
	i.Width = bits
}

// WidthOf returns the sum of the widths of some slots of a block, which live.
func (t *SlotTable) WidthOf(b int, of uint64) (sum int) {
	if of == t.Alive[b] {
		return t.Widths[b]
	}
	for slot := range bitset.Slots(b, of) {
		sum += t.Info[slot].Width
	}
	return sum
}

// Touch notes that something in the slot changed.
func (t *SlotTable) Touch(slot int, now delta.Tick) {
	if t.ChangedAt[slot] != now {
		t.date(slot, now)
		t.Changed.Add(slot)
	}
}

// touchSet is touch for a set of up to 64 slots that follow one another, from first on.
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

// date brings the ticks of a slot up to date that changes now, and did not change now
// before.
func (t *SlotTable) date(slot int, now delta.Tick) {
	t.ChangedBefore[slot], t.ChangedAt[slot] = t.ChangedAt[slot], now
}

// List finds out which blocks have news, when all is captured.
func (t *SlotTable) List() {
	t.Busy, t.ChurnedBlocks, t.Changes = t.Busy[:0], t.ChurnedBlocks[:0], 0
	n := len(t.Changed)
	t.ChangedBlocks = t.ChangedBlocks.Grown(n)
	clear(t.ChangedBlocks)
	for b, word := range t.Changed {
		if word != 0 {
			t.Busy = append(t.Busy, int32(b))
			t.ChangedBlocks.Add(b)
			t.Changes += bits.OnesCount64(word)
			if t.Churned[b] != 0 {
				t.ChurnedBlocks = append(t.ChurnedBlocks, int32(b))
			}
		}
	}
}

// Begin begins tick now. Ticks that did not end, since a function of the user's panicked, end
// here: what they have captured changed in them, and is news still.
func (t *SlotTable) Begin(now delta.Tick) {
	if now-1-t.Recent.Now > RecentTicks {
		t.Recent.Now = now - 1 - RecentTicks
	}
	for t.Recent.Now != now-1 {
		t.List()
		t.note(t.Recent.Now + 1)
	}
}

// note puts the news of a tick into the logs.
func (t *SlotTable) note(at delta.Tick) {
	t.Recent.settle(t.Changed, t.ChangedBlocks, at)
	copy(t.Log[at%RecentTicks], t.Changed)
}

// Settle ends tick now.
func (t *SlotTable) Settle(now delta.Tick) {
	t.note(now)
	clear(t.Changed)
	clear(t.Churned)
	clear(t.Reshaped)
}

// ChangedAfter returns the slots of a block that changed after tick at, up to the last
// tick that is settled.
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

// ChangedIn returns the slots of a block that changed in a tick, when it is tick now. Where that
// is too long ago to know, it returns all that may have.
func (t *SlotTable) ChangedIn(at, now delta.Tick, b int) uint64 {
	if now-at < RecentTicks {
		return t.Log[at%RecentTicks][b]
	}
	return t.ChangedAfter(at-1, b, t.Alive[b])
}

// ChangedBy returns when a slot changed last up to tick at. It returns false if that is too long ago to know.
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

// RecentTicks is for how many ticks back a change and an acknowledgement are kept as
// bits. It is a power of two.
const RecentTicks = 32

// A changeLog tells which slots changed after a recent tick.
type changeLog struct {
	Now    delta.Tick              // the last tick that is settled
	rows   [RecentTicks]bitset.Set // by tick modulo RecentTicks: what changed after it
	Blocks [RecentTicks]bitset.Set // the same by block
	nobody bitset.Set
}

func (l *changeLog) grow(slots int) {
	l.nobody = l.nobody.Grown(slots)
	for i := range l.rows {
		l.rows[i] = l.rows[i].Grown(slots)
		l.Blocks[i] = l.Blocks[i].Grown(len(l.nobody))
	}
}

// settle adds what changed in tick now, the one after the last, in blocks that changed.
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

// After returns what changed after tick at, up to the last tick that is settled, or nil
// if that is too long ago to know.
func (l *changeLog) After(at delta.Tick) bitset.Set {
	switch age := l.Now - at; {
	case age < RecentTicks:
		return l.rows[at%RecentTicks]
	case age == ^delta.Tick(0):
		return l.nobody // the present tick
	}
	return nil
}

// Lively returns those of some slots of a block that have changed in the last RestAfter ticks.
// What has not is more urgent: it won't be sent again soon.
func (t *SlotTable) Lively(b int, mask uint64) uint64 {
	return mask&t.Changed[b] | t.ChangedAfter(t.Recent.Now-RestAfter, b, mask)
}

// Stopped returns those of the slots of a block that changed between two baselines, and not after the
// later one until now, if that is more than RestAfter ticks.
func (t *SlotTable) Stopped(b int, m uint64, at, at2 delta.Tick) uint64 {
	now := t.Recent.Now + 1
	if now-at <= RestAfter || now-at2 >= RecentTicks {
		return 0
	}
	m &^= t.ChangedAfter(at, b, m&t.Changed[b]) // before this tick, that is
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

// InGroups returns the slots of a block that are in groups.
func (t *SlotTable) InGroups(b int) uint64 {
	if b >= len(t.Bound) {
		return 0
	}
	return t.Bound[b]
}

// Weight returns the weight of a slot. What is gone weighs 1.
func (t *SlotTable) Weight(slot int) float32 {
	info := &t.Info[slot]
	if !t.Alive.Has(slot) || info.Table == nil {
		return 1
	}
	return t.Info[info.Of].Weight * info.Table.Weight
}

// RestAfter is how many ticks without a change make an entity count as at rest.
const RestAfter = 2

// touchAll notes that something changed in slots, of which news has the rows.
func (t *SlotTable) touchAll(slots []uint32, changed uint64, now delta.Tick) {
	for ; changed != 0; changed &= changed - 1 {
		t.Touch(int(slots[bits.TrailingZeros64(changed)]), now)
	}
}
