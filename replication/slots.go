package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A slotTable knows which entity has which slot, and since when it is as it is. Slots
// come in blocks of 64, so that what is asked of every slot for every peer is asked of
// 64 at a time, as bits of a word.
type slotTable struct {
	alive    bitset.Set // slots that hold an entity
	free     bitset.Set // slots that held one: see freeslots.go
	news     bitset.Set // slots in which something changed this tick
	turned   bitset.Set // of these, where an entity came or went
	bound    bitset.Set // slots that are in groups, or were and are not forgotten there; nil without groups
	reshaped bitset.Set // of these, what has other components than before
	recent   changeLog

	log     [recentTicks]bitset.Set // by tick modulo their number: what changed in it
	busy    []int32                 // blocks with news
	turning []int32                 // of these, where an entity came or went
	stirred bitset.Set              // the busy ones as a set of blocks
	changes int                     // slots with news

	changed  []delta.Tick // when the newest version of anything in the slot began
	previous []delta.Tick // what changed was before its latest change
	info     []slotInfo
	widths   []int // by block: the sum of the widths of its slots
	live     int
	weights  weightTable

	pools []slotPool // by class

	// Of facets: see facets.go.
	classes []uint8    // by block; empty if there are no conditions
	facetOf [][]uint32 // by condition and slot: 1 + the facet, or 0
	faceted int        // how many of the live slots are facets
}

type slotInfo struct {
	entity       ecs.Entity
	of           uint32 // the slot of the entity, if this is a facet; else this one
	generation   uint16
	born         delta.Tick // when this incarnation began, or the slot became empty
	restructured delta.Tick // when the component set became what it is
	set          delta.Set
	width        int // bits of all codes at fixed width
	table        *table
	weight       float32 // set by the user
}

func (t *slotTable) len() int { return len(t.info) }

// grow makes room for slots below n.
func (t *slotTable) grow(n int, now delta.Tick) {
	for len(t.info) < n {
		t.changed, t.previous = append(t.changed, now), append(t.previous, now)
		t.info = append(t.info, slotInfo{born: now, restructured: now})
	}
	for len(t.widths) < (n+63)/64 {
		t.widths = append(t.widths, 0)
	}
	t.alive, t.free, t.news = t.alive.Grown(n), t.free.Grown(n), t.news.Grown(n)
	t.turned = t.turned.Grown(n)
	t.reshaped = t.reshaped.Grown(n)
	for i := range t.log {
		t.log[i] = t.log[i].Grown(n)
	}
	t.recent.grow(n)
}

// add gives the entity a slot, one that was free if there is any.
func (t *slotTable) add(e ecs.Entity, now delta.Tick) int { return t.addTo(0, e, now) }

// addTo gives the entity a slot of a class, for itself or a facet.
func (t *slotTable) addTo(class int, e ecs.Entity, now delta.Tick) int {
	slot := t.take(class, now)
	t.alive.Add(slot)
	t.changed[slot], t.previous[slot] = now, now
	t.news.Add(slot)
	t.turned.Add(slot)
	old := t.info[slot].generation
	t.info[slot] = slotInfo{entity: e, of: uint32(slot), generation: old + 1, born: now, restructured: now, weight: 1}
	t.live++
	return slot
}

// remove empties the slot.
func (t *slotTable) remove(slot int, now delta.Tick) {
	t.alive.Remove(slot)
	t.free.Add(slot)
	t.changed[slot] = now
	t.news.Add(slot)
	t.turned.Add(slot)
	i := &t.info[slot]
	i.entity, i.set, i.born = ecs.Entity{}, delta.Set{}, now
	t.setWidth(slot, 0)
	t.live--
}

// setWidth sets the bits of all codes of a slot at fixed width.
func (t *slotTable) setWidth(slot, bits int) {
	i := &t.info[slot]
	t.widths[slot>>6] += bits - i.width
	i.width = bits
}

// widthOf returns the sum of the widths of some slots of a block, which live.
func (t *slotTable) widthOf(b int, of uint64) (sum int) {
	if of == t.alive[b] {
		return t.widths[b]
	}
	for slot := range bitset.Slots(b, of) {
		sum += t.info[slot].width
	}
	return sum
}

// touch notes that something in the slot changed.
func (t *slotTable) touch(slot int, now delta.Tick) {
	if t.changed[slot] != now {
		t.date(slot, now)
		t.news.Add(slot)
	}
}

// touchSet is touch for a set of up to 64 slots that follow one another, from first on.
func (t *slotTable) touchSet(first int, set uint64, now delta.Tick) {
	for rest := set; rest != 0; rest &= rest - 1 {
		if slot := first + bits.TrailingZeros64(rest); t.changed[slot] != now {
			t.date(slot, now)
		}
	}
	b, shift := first>>6, uint(first&63)
	t.news[b] |= set << shift
	if high := set >> (64 - shift); high != 0 {
		t.news[b+1] |= high
	}
}

// date brings the ticks of a slot up to date that changes now, and did not change now
// before.
func (t *slotTable) date(slot int, now delta.Tick) {
	t.previous[slot], t.changed[slot] = t.changed[slot], now
}

// list finds out which blocks have news, when all is captured.
func (t *slotTable) list() {
	t.busy, t.turning, t.changes = t.busy[:0], t.turning[:0], 0
	n := len(t.news)
	t.stirred = t.stirred.Grown(n)
	clear(t.stirred)
	for b, word := range t.news {
		if word != 0 {
			t.busy = append(t.busy, int32(b))
			t.stirred.Add(b)
			t.changes += bits.OnesCount64(word)
			if t.turned[b] != 0 {
				t.turning = append(t.turning, int32(b))
			}
		}
	}
}

// begin begins tick now. Ticks that did not end, since a function of the user's panicked, end
// here: what they have captured changed in them, and is news still.
func (t *slotTable) begin(now delta.Tick) {
	if now-1-t.recent.now > recentTicks {
		t.recent.now = now - 1 - recentTicks
	}
	for t.recent.now != now-1 {
		t.list()
		t.note(t.recent.now + 1)
	}
}

// note puts the news of a tick into the logs.
func (t *slotTable) note(at delta.Tick) {
	t.recent.settle(t.news, t.stirred, at)
	copy(t.log[at%recentTicks], t.news)
}

// settle ends tick now.
func (t *slotTable) settle(now delta.Tick) {
	t.note(now)
	clear(t.news)
	clear(t.turned)
	clear(t.reshaped)
}

// changedAfter returns the slots of a block that changed after tick at, up to the last
// tick that is settled.
func (t *slotTable) changedAfter(at delta.Tick, block int, of uint64) uint64 {
	if row := t.recent.after(at); row != nil {
		return row[block] & of
	}
	var changed uint64
	for slot := range bitset.Slots(block, of) {
		if t.changed[slot].After(at) {
			changed |= 1 << (slot & 63)
		}
	}
	return changed
}

// changedIn returns the slots of a block that changed in a tick, when it is tick now. Where that
// is too long ago to know, it returns all that may have.
func (t *slotTable) changedIn(at, now delta.Tick, b int) uint64 {
	if now-at < recentTicks {
		return t.log[at%recentTicks][b]
	}
	return t.changedAfter(at-1, b, t.alive[b])
}

// changedBy returns when a slot changed last up to tick at. It returns false if that is too long ago to know.
func (t *slotTable) changedBy(slot int, at delta.Tick) (delta.Tick, bool) {
	for _, c := range [...]delta.Tick{t.changed[slot], t.previous[slot]} {
		if !c.After(at) {
			return c, true
		}
	}
	for ; t.recent.now-at < recentTicks; at-- {
		if t.log[at%recentTicks].Has(slot) {
			return at, true
		}
	}
	return 0, false
}

// recentTicks is for how many ticks back a change and an acknowledgement are kept as
// bits. It is a power of two.
const recentTicks = 32

// A changeLog tells which slots changed after a recent tick.
type changeLog struct {
	now    delta.Tick              // the last tick that is settled
	rows   [recentTicks]bitset.Set // by tick modulo recentTicks: what changed after it
	blocks [recentTicks]bitset.Set // the same by block
	nobody bitset.Set
}

func (l *changeLog) grow(slots int) {
	l.nobody = l.nobody.Grown(slots)
	for i := range l.rows {
		l.rows[i] = l.rows[i].Grown(slots)
		l.blocks[i] = l.blocks[i].Grown(len(l.nobody))
	}
}

// settle adds what changed in tick now, the one after the last, in blocks with news.
func (l *changeLog) settle(news, stirred bitset.Set, now delta.Tick) {
	l.now = now
	for w, blocks := range stirred {
		for b := range bitset.Slots(w, blocks) {
			for i := range l.rows {
				l.rows[i][b] |= news[b]
			}
		}
		for i := range l.blocks {
			l.blocks[i][w] |= blocks
		}
	}
	clear(l.rows[now%recentTicks])
	clear(l.blocks[now%recentTicks])
}

// after returns what changed after tick at, up to the last tick that is settled, or nil
// if that is too long ago to know.
func (l *changeLog) after(at delta.Tick) bitset.Set {
	switch age := l.now - at; {
	case age < recentTicks:
		return l.rows[at%recentTicks]
	case age == ^delta.Tick(0):
		return l.nobody // the present tick
	}
	return nil
}
