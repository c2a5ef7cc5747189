package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// arrivals remember which states arrived at a client, by tick and slot, as far as it has acknowledged
// them. The acknowledgement table knows as of which recent tick a client holds a slot; rewind asks for
// longer, and for the very ticks of the states, between which the client blends.
//
// A state that arrived is one bit. What the state was is in the histories, which all peers share.
type arrivals struct {
	ticks  []arrivedTick // by tick modulo their number, a power of two
	newest delta.Tick    // the newest of the ticks that are kept
	window delta.Tick    // ticks for which the history has all rows, at most as many
	room   int           // blocks

	arrived bitset.Set   // slots of which a state arrived that has not ended
	last    []delta.Tick // of these, the tick of the newest such state
	packets certificates
	older   bitset.Set // slots that the client held before the ticks that are kept, and not ended by then

	// Slots that went out of view while the client kept them, and since when. It shows them as they were then until the
	// next state arrives. When that is before the window, it is no longer known how they were.
	away bitset.Set
	left []delta.Tick
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

// newArrivals returns arrivals for a window of ticks, or a few more, up to now. The client holds slots already as table
// knows.
func newArrivals(window int, now delta.Tick, table *AckTable) *arrivals {
	a := &arrivals{ticks: make([]arrivedTick, 1<<bits.Len(uint(window-1))), newest: now, window: delta.Tick(window)}
	a.grow(len(table.None))
	for b, none := range table.None {
		a.older[b] = table.slots.Alive[b] &^ none
	}
	return a
}

// grow makes room for so many blocks.
func (a *arrivals) grow(blocks int) {
	if blocks <= a.room {
		return
	}
	a.room = blocks + blocks/16
	slots := 64 * a.room
	a.arrived, a.older, a.away = a.arrived.Grown(slots), a.older.Grown(slots), a.away.Grown(slots)
	a.last = append(a.last, make([]delta.Tick, slots-len(a.last))...)
	a.left = append(a.left, make([]delta.Tick, slots-len(a.left))...)
	for i := range a.ticks {
		a.ticks[i].states = a.ticks[i].states.Grown(slots)
	}
}

func (a *arrivals) at(tick delta.Tick) *arrivedTick { return &a.ticks[tick&delta.Tick(len(a.ticks)-1)] }

// oldest returns the oldest of the ticks that are kept.
func (a *arrivals) oldest() delta.Tick { return a.newest - delta.Tick(len(a.ticks)) + 1 }

// keeps reports whether a tick is kept.
func (a *arrivals) keeps(tick delta.Tick) bool { return a.newest-tick < delta.Tick(len(a.ticks)) }

// advance moves the ticks that are kept up to now.
func (a *arrivals) advance(now delta.Tick) {
	if a.newest != now { // views ask many times in a tick
		a.moveTo(now)
	}
}

// moveTo is advance to another tick.
func (a *arrivals) moveTo(now delta.Tick) {
	for range min(now-a.newest, delta.Tick(len(a.ticks))) {
		a.newest++
		a.forget(a.at(a.newest), a.newest-delta.Tick(len(a.ticks)))
	}
	a.newest = now
}

// forget empties the place of the oldest tick. What the client held then, it holds before those that
// are kept.
func (a *arrivals) forget(t *arrivedTick, tick delta.Tick) {
	for _, e := range t.ended {
		a.older[e.block] &^= e.mask
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

// add notes that states of slots of a block arrived, as of a tick.
func (a *arrivals) add(block int, mask uint64, at, now delta.Tick) {
	a.advance(now)
	if !a.keeps(at) {
		return
	}
	a.grow(block + 1)
	t := a.at(at)
	t.states[block] |= mask
	t.some = true
	for tick := now; tick != at; tick-- { // the acknowledgement of a state that has ended since
		for _, e := range a.at(tick).ended {
			if e.block == block {
				mask &^= e.mask
			}
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
func (a *arrivals) present(block int, now delta.Tick) *arrivedTick {
	a.advance(now)
	a.grow(block + 1)
	return a.at(now)
}

// end notes that slots of a block hold another entity from tick now on, or none, or one that the client
// must not see.
func (a *arrivals) end(block int, mask uint64, now delta.Tick) {
	t := a.present(block, now)
	a.arrived[block] &^= mask
	a.away[block] &^= mask
	t.ended = append(t.ended, slotMasks{block, mask})
}

// leave notes that slots of a block are out of view from tick now on and stay with the client.
func (a *arrivals) leave(block int, mask uint64, now delta.Tick) {
	a.present(block, now)
	a.away[block] |= mask
	for slot := range bitset.Slots(block, mask) {
		a.left[slot] = now
	}
}

// comeBack notes that slots of a block are in view again, and that they have not changed meanwhile.
func (a *arrivals) comeBack(block int, mask uint64, now delta.Tick) {
	a.present(block, now)
	a.away[block] &^= mask
}

// lost reports whether it is not known how the client shows a slot until a state arrives that was sent after the slot
// was out of view.
func (a *arrivals) lost(slot int) bool {
	return a.away.Has(slot) && a.newest-a.left[slot] >= a.window
}

// endedAt reports whether a slot ended in a tick that is kept.
func (a *arrivals) endedAt(slot int, tick delta.Tick) bool {
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

// around returns what the client is known to hold of a slot around tick t: the newest state up to t, and the
// next one. born is when the entity got the slot. r is that of nothing.
func (a *arrivals) around(r *Around, slot int, born, t delta.Tick) {
	if slot>>6 >= a.room {
		return
	}
	if a.arrived.Has(slot) && !a.last[slot].After(t) && !a.last[slot].Before(born) {
		r.Before, r.From = true, a.last[slot] // at rest, or the client is starved
		r.Lost = a.lost(slot) && !r.From.After(a.left[slot])
		return
	}
	if r.From, r.Before = a.before(slot, born, t); !r.Before && a.lost(slot) {
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

// before returns the newest tick up to t of which the client holds a state of a slot.
func (a *arrivals) before(slot int, born, t delta.Tick) (at delta.Tick, ok bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if t.After(a.newest) {
		t = a.newest // nothing has arrived or ended since
	}
	for tick := t; a.keeps(tick); tick-- {
		if tick.Before(born) {
			return 0, false
		}
		if e := a.at(tick); e.states[b]&bit != 0 {
			return tick, true
		} else if len(e.ended) > 0 && a.endedAt(slot, tick) {
			return 0, false
		}
	}
	if oldest := a.oldest(); !born.After(oldest) {
		return oldest, a.older.Has(slot) && !a.lost(slot)
	}
	return 0, false
}

// addSent notes the states of a packet that was acknowledged.
func (a *arrivals) addSent(sent *SentPacket, sequence uint32, log *SentLog, now delta.Tick) {
	a.packets.acknowledge(sequence)
	for i := range sent.Count {
		if r := log.Record(sent, i); r.Kind == baseline.RecordState {
			a.add(int(r.Block), r.Mask, sent.Tick, now)
		}
	}
}

// expect adds what is in flight to what the client holds of a slot around tick t.
func (r *Around) expect(log *SentLog, slot int, t delta.Tick) {
	for q := log.Oldest; q != log.Next; q++ {
		sent := log.At(q)
		switch {
		case sent.Status != SentInFlight || !log.hasState(sent, slot):
		case sent.Tick.After(t):
			r.To, r.After = sent.Tick, true
			return
		case sent.Tick.After(r.From):
			r.From = sent.Tick
		}
	}
}
