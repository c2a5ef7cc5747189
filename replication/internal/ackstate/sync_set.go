package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// An AckTable is what the server knows of what a peer holds. Most of what is sent arrives, so
// what is kept is the exception: for each recent tick up to which the fate of every packet is known,
// the slots whose state as of that tick the peer is not known to hold. All else is in the histories
// of the slots, which all peers share. A tick in which nothing is missing costs nothing.
type AckTable struct {
	slots       *snapshot.SlotTable
	Through     delta.Tick                       // up to this tick it is known what came, or taken to be
	Missing     [snapshot.RecentTicks]bitset.Set // by tick modulo their number
	some        uint32                           // the ticks, modulo snapshot.RecentTicks, at which anything is missing; what missing says of others has no meaning
	skipped     uint32                           // of these, ticks of which it is not known what is missing: the peer was sent nothing in them
	None        bitset.Set                       // slots of which the peer holds nothing, at any tick; missing has them, but for ticks of before they were forgotten
	Ended       bitset.Set                       // of these, those of which the client may show what was before
	Since       []delta.Tick                     // of slots missing at through: the last tick as of which the peer holds them; of others, what was sent before that tick does not count
	Shown       bitset.Set                       // something was sent: the client may show the slot
	Large       bitset.Set                       // a state is on its way in parts
	DirtyBlocks bitset.Set                       // by block: there may be slots in Tracker.Dirty
	Unknown     bitset.Set                       // by block: there may be slots in none that live
}

// Reset forgets everything, at the end of tick now.
func (t *AckTable) Reset(slots *snapshot.SlotTable, now delta.Tick) {
	*t = AckTable{slots: slots, Through: now}
}

// Grow makes room for slots below n, in tick now.
func (t *AckTable) Grow(n int, now delta.Tick) {
	old := len(t.None)
	t.None, t.Ended = t.None.Grown(n), t.Ended.Grown(n)
	t.Shown, t.Large = t.Shown.Grown(n), t.Large.Grown(n)
	blocks := len(t.None)
	t.DirtyBlocks, t.Unknown = t.DirtyBlocks.Grown(blocks), t.Unknown.Grown(blocks)
	if blocks > cap(t.Missing[0]) { // few that lie idle make up for copying them now and then
		room := blocks + blocks/16
		for i, row := range t.Missing {
			t.Missing[i] = append(make(bitset.Set, 0, room), row...)
		}
		t.Since = append(make([]delta.Tick, 0, 64*room), t.Since...)
	}
	for i, row := range t.Missing {
		t.Missing[i] = row[:blocks]
	}
	t.Since = t.Since[:64*blocks]
	for b := old; b < blocks; b++ {
		t.Forget(b, ^uint64(0), now)
	}
}

// Recent reports whether it is known what is missing at a tick, which is not after through.
func (t *AckTable) Recent(at delta.Tick) bool { return t.Through-at < snapshot.RecentTicks }

// Lacks returns the slots of a block that the peer is not known to hold as of a tick, which is
// recent.
func (t *AckTable) Lacks(at delta.Tick, b int) uint64 {
	switch {
	case t.LacksNothing(at):
		return t.None[b]
	case t.skipped>>(at%snapshot.RecentTicks)&1 != 0:
		return ^uint64(0)
	}
	return t.None[b] | t.Missing[at%snapshot.RecentTicks][b]
}

// LacksNothing reports whether the peer holds as of a tick, which is recent, all of which it holds
// anything.
func (t *AckTable) LacksNothing(at delta.Tick) bool { return t.some>>(at%snapshot.RecentTicks)&1 == 0 }

// Behind returns the slots of a block of which the peer is not known to hold the state of the last
// tick that has ended.
func (t *AckTable) Behind(b int) uint64 {
	lacks, alive := t.Lacks(t.Through, b), t.slots.Alive[b]
	return lacks&alive | t.slots.ChangedAfter(t.Through, b, alive&^lacks)
}

// begin notes that slots of a block, of which nothing was held, are held as of some tick, and
// missing at all others.
func (t *AckTable) begin(b int, mask uint64) {
	if t.some != ^uint32(0) {
		t.fillMissing()
	}
	for slot := range bitset.Slots(b, mask) {
		if t.Through-t.Since[slot] < snapshot.RecentTicks { // it was held not long ago
			for _, row := range t.Missing {
				row.Add(slot)
			}
		}
	}
	t.None[b] &^= mask
	t.Ended[b] &^= mask
}

// fillMissing makes missing say what is missing at all recent ticks.
func (t *AckTable) fillMissing() {
	for i := range delta.Tick(snapshot.RecentTicks) {
		if t.LacksNothing(i) {
			copy(t.Missing[i], t.None)
		}
	}
	t.some = ^uint32(0)
}

// Pass moves through to a tick: what changed up to it is missing, and so is all that was. The peer was sent
// nothing in the ticks between. What it acknowledged of that tick is then taken out by arrive, and settle ends it.
func (t *AckTable) Pass(to, now delta.Tick) {
	before := t.Through
	row, was := t.Missing[to%snapshot.RecentTicks], t.Missing[before%snapshot.RecentTicks]
	lacking, first := !t.LacksNothing(before), before+1
	logged := now-first < snapshot.RecentTicks
	last := t.slots.Log[to%snapshot.RecentTicks]
	for b, none := range t.None {
		held := t.slots.Alive[b] &^ none
		if held == 0 {
			row[b] = ^uint64(0)
			continue
		}
		var word uint64
		if logged {
			word = last[b]
			for at := first; at != to; at++ {
				word |= t.slots.Log[at%snapshot.RecentTicks][b]
			}
		} else { // all that may have changed
			word = t.slots.ChangedAfter(before, b, held)
		}
		if lacking {
			word |= was[b]
		}
		row[b] = word | ^held
	}
	for at := before + 1; at != to; at++ {
		t.some |= 1 << (at % snapshot.RecentTicks)
		t.skipped |= 1 << (at % snapshot.RecentTicks)
	}
	t.Through = to
	t.some |= 1 << (to % snapshot.RecentTicks)
	t.skipped &^= 1 << (to % snapshot.RecentTicks)
}

// Skip moves through to the next tick: nothing was missing, and nothing is.
func (t *AckTable) Skip() {
	t.Through++
	t.some &^= 1 << (t.Through % snapshot.RecentTicks)
	t.skipped &^= 1 << (t.Through % snapshot.RecentTicks)
}

// SkipTo moves through to a tick that is far ahead, where nothing was sent in between. It is not known
// any more what was missing when.
func (t *AckTable) SkipTo(to delta.Tick) {
	for b, alive := range t.slots.Alive[:len(t.None)] {
		lacks := t.Lacks(t.Through, b)
		changed := t.slots.ChangedAfter(t.Through, b, alive&^lacks)
		t.hold(b, changed, t.Through)
		for _, row := range t.Missing {
			row[b] = ^uint64(0)
		}
		t.Missing[to%snapshot.RecentTicks][b] = lacks | changed | ^alive
	}
	t.some, t.skipped = ^uint32(0), 0
	t.Through = to
}

// Arrive notes that the peer holds states of slots of a block of tick through. It returns those
// that count.
func (t *AckTable) Arrive(b int, mask uint64) uint64 {
	if old := mask & t.None[b]; old != 0 {
		mask = t.counts(b, mask, t.Through)
		if old &= mask; old != 0 {
			t.begin(b, old)
		}
	}
	t.Missing[t.Through%snapshot.RecentTicks][b] &^= mask
	return mask
}

// Settle ends the tick through: of what is missing since then the peer holds what was at the one before.
func (t *AckTable) Settle(before delta.Tick) {
	row, was := t.Missing[t.Through%snapshot.RecentTicks], t.Missing[before%snapshot.RecentTicks]
	lacking, some := !t.LacksNothing(before), uint64(0)
	for b, none := range t.None {
		held := t.slots.Alive[b] &^ none
		word := row[b] & held
		if word == 0 {
			continue
		}
		some |= word
		if lacking {
			word &^= was[b]
		}
		t.hold(b, word, before)
	}
	if some == 0 {
		t.some &^= 1 << (t.Through % snapshot.RecentTicks)
	}
}

// counts returns those of the slots of a block of which an acknowledgement of something sent at
// tick at is about what there is now.
func (t *AckTable) counts(b int, mask uint64, at delta.Tick) uint64 {
	for slot := range bitset.Slots(b, mask&t.None[b]) {
		if at.Before(t.Since[slot]) {
			mask &^= 1 << (slot & 63)
		}
	}
	return mask
}

// ArriveLate notes that the peer holds what slots of a block were at a tick, which is not after
// through. It returns those that it holds as they were at through.
func (t *AckTable) ArriveLate(b int, mask uint64, at, now delta.Tick) uint64 {
	mask = t.counts(b, mask, at)
	for slot := range bitset.Slots(b, mask&^t.None[b]) {
		if !at.After(t.Since[slot]) {
			mask &^= 1 << (slot & 63) // a newer one is known, or this is about what was before
		}
	}
	if mask == 0 {
		return 0
	}
	lacked := mask & t.Lacks(t.Through, b)
	if old := mask & t.None[b]; old != 0 {
		t.begin(b, old)
	}
	t.hold(b, lacked, at)
	if now-at >= snapshot.RecentTicks { // it is not known any more in which ticks it changed
		mask &^= t.slots.ChangedAfter(at, b, mask)
		if !t.Recent(at) {
			at = t.Through - snapshot.RecentTicks + 1
		}
		for ; ; at++ {
			t.Missing[at%snapshot.RecentTicks][b] &^= mask
			if at == t.Through {
				return mask
			}
		}
	}
	for ; ; at++ {
		if t.Recent(at) {
			t.Missing[at%snapshot.RecentTicks][b] &^= mask
		}
		if at == t.Through || mask == 0 {
			return mask
		}
		changed := mask & t.slots.ChangedIn(at+1, now, b)
		t.hold(b, changed&lacked, at)
		mask &^= changed
	}
}

// hold notes up to which tick the peer holds slots of a block.
func (t *AckTable) hold(b int, mask uint64, at delta.Tick) {
	for slot := range bitset.Slots(b, mask) {
		t.Since[slot] = at
	}
}

// EndHistory ends all that is known of slots of a block. What is acknowledged of packets of before tick
// now does not count any more.
func (t *AckTable) EndHistory(b int, mask uint64, now delta.Tick) {
	t.Forget(b, mask, now)
	t.Ended[b] |= mask & t.Shown[b]
}

// Forget is sever for what the client may go on to show.
func (t *AckTable) Forget(b int, mask uint64, now delta.Tick) {
	t.None[b] |= mask
	t.Unknown.Add(b)
	t.hold(b, mask, now)
}

// HoldsAll reports whether the peer holds something of every slot that lives.
func (t *AckTable) HoldsAll() bool {
	for w, unknown := range t.Unknown {
		for b := range bitset.Slots(w, unknown) {
			if t.None[b]&t.slots.Alive[b] != 0 {
				return false
			}
			t.Unknown.Remove(b)
		}
	}
	return true
}

// ended returns the slots of a block of whose present life nothing is acknowledged, and
// something of an earlier one may be shown.
func (t *AckTable) ended(b int) uint64 { return t.Ended[b] }

// endedAt reports whether what was known of a slot ended in tick now, and nothing was acknowledged since.
func (t *AckTable) endedAt(slot int, now delta.Tick) bool {
	return t.Ended.Has(slot) && t.Since[slot] == now
}

// Holds returns the last tick as of which the peer is known to hold a slot, up to through.
func (t *AckTable) Holds(slot int) (at delta.Tick, ok bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	switch {
	case t.None[b]&bit != 0:
		return 0, false
	case t.Lacks(t.Through, b)&bit != 0:
		return t.Since[slot], true
	}
	return t.Through, true
}

// refresh keeps the ticks of slots of a block within reach of serial arithmetic. It returns those
// that lose their baselines by that.
func (t *AckTable) refresh(b int, slots uint64, limit, now delta.Tick) (lost uint64) {
	for slot := range bitset.Slots(b, slots) {
		bit := uint64(1) << (slot & 63)
		if !t.Since[slot].Before(limit) {
			continue
		}
		if t.None[b]&bit == 0 && t.Lacks(t.Through, b)&bit != 0 {
			t.Forget(b, bit, now)
			lost |= bit
		}
		t.Since[slot] = limit
	}
	return lost
}

// MaxSpan is the longest send interval for which it is known what changed meanwhile.
const MaxSpan = 8
