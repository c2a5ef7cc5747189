// Package arrival owns what is known of the states that arrived at one client in the last ticks. Acknowledged states,
// and what enters and leaves the client's view, go in; the states around a time come out. The ack state keeps one for
// each client, for package rewind.
package arrival

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// History remembers which states arrived at a client, by tick and slot, as far as it has acknowledged
// them. The acknowledgement table knows as of which recent tick a client holds a slot; rewind asks for
// longer, and for the very ticks of the states, between which the client blends.
//
// A state that arrived is one bit. What the state was is in the histories of rows, which all peers share.
type History struct {
	ticks  []arrivedTick // by tick modulo their number, a power of two
	newest delta.Tick    // the newest of the ticks that are kept
	window delta.Tick    // ticks for which the history has all rows, at most as many
	room   int           // blocks

	arrived bitset.Set   // slots of which a state arrived that has not ended
	last    []delta.Tick // of these, the tick of the newest such state
	Packets Certificates
	older   bitset.Set   // slots that the client held before the ticks that are kept, and not ended by then
	ended   bitset.Set   // slots that ended in a tick that is kept
	end     []delta.Tick // of these, the newest such tick

	// Slots that went out of view while the client kept them, and when that was last, until no view is of a time before
	// the next state. When they left first, the client had them as of the tick in valid. When that is before the
	// window, it is no longer known how they were.
	away        bitset.Set
	left, valid []delta.Tick
}

// arrivedTick has what happened as of one tick.
type arrivedTick struct {
	states bitset.Set  // whose states arrived
	some   bool        // there are any
	ended  []slotMasks // whose entity had ended or was out of view from this tick on
}

type slotMasks struct {
	block int
	mask  uint64
}

// NewHistory returns a history for a window of ticks, or a few more, up to now, of a client that holds slots already.
func NewHistory(window int, now delta.Tick, held bitset.Set) *History {
	a := &History{ticks: make([]arrivedTick, 1<<bits.Len(uint(window-1))), newest: now, window: delta.Tick(window)}
	a.grow(len(held))
	copy(a.older, held)
	return a
}

// grow makes room for so many blocks.
func (a *History) grow(blocks int) {
	if blocks <= a.room {
		return
	}
	a.room = blocks + blocks/16
	slots := 64 * a.room
	a.arrived, a.older, a.away = a.arrived.Grown(slots), a.older.Grown(slots), a.away.Grown(slots)
	a.ended = a.ended.Grown(slots)
	a.last = append(a.last, make([]delta.Tick, slots-len(a.last))...)
	a.end = append(a.end, make([]delta.Tick, slots-len(a.end))...)
	a.left = append(a.left, make([]delta.Tick, slots-len(a.left))...)
	a.valid = append(a.valid, make([]delta.Tick, slots-len(a.valid))...)
	for i := range a.ticks {
		a.ticks[i].states = a.ticks[i].states.Grown(slots)
	}
}

func (a *History) at(tick delta.Tick) *arrivedTick { return &a.ticks[tick&delta.Tick(len(a.ticks)-1)] }

// oldest returns the oldest of the ticks that are kept.
func (a *History) oldest() delta.Tick { return a.newest - delta.Tick(len(a.ticks)) + 1 }

// keeps reports whether a tick is kept.
func (a *History) keeps(tick delta.Tick) bool { return a.newest-tick < delta.Tick(len(a.ticks)) }

// Advance moves the ticks that are kept up to now.
func (a *History) Advance(now delta.Tick) {
	if a.newest != now { // views ask many times in a tick
		a.moveTo(now)
	}
}

// moveTo is Advance to another tick.
func (a *History) moveTo(now delta.Tick) {
	for range min(now-a.newest, delta.Tick(len(a.ticks))) {
		a.newest++
		a.forget(a.at(a.newest), a.newest-delta.Tick(len(a.ticks)))
	}
	a.newest = now
}

// forget empties the place of the oldest tick. What the client held then, it holds before those that
// are kept.
func (a *History) forget(t *arrivedTick, tick delta.Tick) {
	for _, e := range t.ended {
		a.older[e.block] &^= e.mask
		for slot := range bitset.Slots(e.block, e.mask&a.ended[e.block]) {
			if a.end[slot] == tick {
				a.ended.Remove(slot)
			}
		}
	}
	t.ended = t.ended[:0]
	if t.some {
		for b, mask := range t.states {
			a.older[b] |= mask
			for slot := range bitset.Slots(b, mask&a.away[b]) {
				if tick.After(a.left[slot]) {
					a.away.Remove(slot)
				}
			}
		}
		clear(t.states)
		t.some = false
	}
}

// Add notes that states of slots of a block arrived, as of a tick.
func (a *History) Add(block int, mask uint64, at, now delta.Tick) {
	a.Advance(now)
	if !a.keeps(at) {
		return
	}
	a.grow(block + 1)
	t := a.at(at)
	t.states[block] |= mask
	t.some = true
	for slot := range bitset.Slots(block, mask&a.ended[block]) {
		if a.end[slot].After(at) { // the acknowledgement of a state that has ended since
			mask &^= 1 << (slot & 63)
		}
	}
	for slot := range bitset.Slots(block, mask) {
		if !a.arrived.Has(slot) || at.After(a.last[slot]) {
			a.last[slot] = at
		}
	}
	a.arrived[block] |= mask
}

// present returns the present tick, with room for a block.
func (a *History) present(block int, now delta.Tick) *arrivedTick {
	a.Advance(now)
	a.grow(block + 1)
	return a.at(now)
}

// End notes that slots of a block hold another entity from tick now on, or none, or one that the client
// must not see.
func (a *History) End(block int, mask uint64, now delta.Tick) {
	t := a.present(block, now)
	a.arrived[block] &^= mask
	a.ended[block] |= mask
	for slot := range bitset.Slots(block, mask) {
		a.end[slot] = now
	}
	t.ended = append(t.ended, slotMasks{block, mask})
}

// Leave notes that slots of a block are out of view from tick now on and stay with the client, which lacks the latest
// state of those behind.
func (a *History) Leave(block int, mask, behind uint64, now delta.Tick) {
	a.present(block, now)
	for slot := range bitset.Slots(block, mask) {
		a.left[slot] = now
		if a.away.Has(slot) {
			continue
		}
		if a.valid[slot] = now; behind>>(slot&63)&1 != 0 {
			a.valid[slot] = a.heldAsOf(slot)
		}
	}
	a.away[block] |= mask
}

// ComeBack notes that slots of a block are in view again, and that they have not changed meanwhile.
func (a *History) ComeBack(block int, mask uint64, now delta.Tick) {
	a.present(block, now)
	a.away[block] &^= mask
}

// heldAsOf returns the tick of the newest state of a slot that the client holds, or one before the window.
func (a *History) heldAsOf(slot int) delta.Tick {
	var r Around
	if a.before(&r, slot, a.oldest(), a.newest); r.Before && r.From != a.oldest() {
		return r.From
	}
	return a.newest - a.window
}

// lost reports whether it is not known how the client shows a slot of which it holds the state of a tick, if that is
// before the window: the slot was out of view since.
func (a *History) lost(slot int, at delta.Tick) bool {
	return a.away.Has(slot) && !at.After(a.left[slot]) && a.outdated(slot)
}

// outdated reports whether what the client shows of a slot that is away is of before the window.
func (a *History) outdated(slot int) bool { return a.newest-a.valid[slot] >= a.window }

// endedAt reports whether a slot ended in a tick that is kept.
func (a *History) endedAt(slot int, tick delta.Tick) bool {
	switch {
	case !a.ended.Has(slot) || a.end[slot].Before(tick):
		return false
	case a.end[slot] == tick:
		return true
	}
	for _, e := range a.at(tick).ended {
		if e.block == slot>>6 && e.mask>>(slot&63)&1 != 0 {
			return true
		}
	}
	return false
}

// Around is what a client holds of a slot around a time.
type Around struct {
	Before bool       // there is a state of that time or before
	After  bool       // there is one after it, of the same entity
	From   delta.Tick // the tick of the state before, or of the oldest kept tick if it is older than that
	To     delta.Tick // the tick of the state after
	Rested delta.Tick // if there are both, when the client knew the state before to be valid still, From at least
	Lost   bool       // the state before may be of an unknown tick, since the entity was out of view
}

// Around returns what the client is known to hold of a slot around tick t: the newest state up to t, and the
// next one. born is when the entity got the slot. r is that of nothing.
func (a *History) Around(r *Around, slot int, born, t delta.Tick) {
	if slot>>6 >= a.room {
		return
	}
	if a.arrived.Has(slot) && !a.last[slot].After(t) && !a.last[slot].Before(born) {
		r.Before, r.From = true, a.last[slot] // at rest, or the client is starved
		r.Lost = a.lost(slot, r.From)
		return
	}
	if a.before(r, slot, born, t); r.Lost && !r.Before {
		return
	}
	b, bit := slot>>6, uint64(1)<<(slot&63)
	tick := t + 1
	if tick.Before(born) {
		tick = born
	}
	for ; a.keeps(tick); tick++ {
		e := a.at(tick)
		if tick != born && len(e.ended) > 0 && a.endedAt(slot, tick) {
			break
		}
		if e.states[b]&bit != 0 {
			r.To, r.After = tick, true
			break
		}
	}
}

// before is Around for the state up to t only.
func (a *History) before(r *Around, slot int, born, t delta.Tick) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if t.After(a.newest) {
		t = a.newest // nothing has arrived or ended since
	}
	for tick := t; a.keeps(tick); tick-- {
		if tick.Before(born) {
			return
		}
		if e := a.at(tick); e.states[b]&bit != 0 {
			r.From, r.Before, r.Lost = tick, true, a.lost(slot, tick)
			return
		} else if len(e.ended) > 0 && a.endedAt(slot, tick) {
			return
		}
	}
	if oldest := a.oldest(); !born.After(oldest) {
		r.From = oldest
		r.Lost = a.away.Has(slot) && a.outdated(slot) // the state is from before it left, or it would not be away
		r.Before = a.older.Has(slot) && !r.Lost
	}
}
