package ackstate

import (
	"math"
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// What a peer holds of each slot, as far as the server knows.

// An AckTable knows as of which ticks a peer holds the state of each slot. Most packets arrive, so
// it keeps the exceptions: for each recent tick up to which the fate of every packet is known, the
// slots that the peer is not known to hold as of that tick. The rest follows from the histories of
// the slots, which all peers share. A tick in which nothing is missing costs nothing.
type AckTable struct {
	slots *snapshot.SlotTable

	// Through is the tick up to which the fate of every packet is known.
	Through delta.Tick
	// Missing has, by tick modulo RecentTicks, the slots that the peer is not known to hold as of
	// that tick. It is valid only for the ticks in some that are not in skipped.
	Missing [snapshot.RecentTicks]bitset.Set
	some    uint32 // bits of ticks modulo RecentTicks: something may be missing as of them
	skipped uint32 // bits of those of them in which the peer was sent nothing, so that Missing was not kept

	// None has the slots of which the peer holds nothing as of any tick. Missing has them as well,
	// but for ticks before they were forgotten.
	None bitset.Set
	// Ended has those slots of None of which the client may still show an earlier entity.
	Ended bitset.Set
	// Left has those slots of Ended whose entity lived on: it left the view, or got another slot. Its end out of view
	// changes nothing.
	Left bitset.Set
	// Since has, for slots that are missing as of Through, the last tick as of which the peer holds
	// them. For other slots, packets sent before that tick no longer count.
	Since []delta.Tick

	lapsed []lapsed // by block

	Shown    bitset.Set // something was sent: the client may show the slot
	Returned bitset.Set // waits since it came back into view: the client shows it as it was
	Unknown  bitset.Set // blocks that may have live slots in None
}

// lapsed has the slots of a block of which the peer holds only states too old for baselines, see FindLapsed.
type lapsed struct {
	slots uint64
	none  delta.Tick // no other one lapses before this tick
}

// reset empties the table, at the end of tick now.
func (t *AckTable) reset(slots *snapshot.SlotTable, now delta.Tick) {
	*t = AckTable{slots: slots, Through: now}
}

// grow makes room for slots below n, at tick now.
func (t *AckTable) grow(n int, now delta.Tick) {
	old := len(t.None)
	t.None, t.Ended, t.Returned = t.None.Grown(n), t.Ended.Grown(n), t.Returned.Grown(n)
	t.Shown, t.Left = t.Shown.Grown(n), t.Left.Grown(n)
	blocks := len(t.None)
	for len(t.lapsed) < blocks {
		t.lapsed = append(t.lapsed, lapsed{none: now})
	}
	t.Unknown = t.Unknown.Grown(blocks)
	if blocks > cap(t.Missing[0]) { // some spare room saves copying at every growth
		room := blocks + blocks/16
		all := make(bitset.Set, len(t.Missing)*room)
		for i, row := range t.Missing {
			t.Missing[i] = append(all[i*room:i*room:(i+1)*room], row...)
		}
		t.Since = append(make([]delta.Tick, 0, 64*room), t.Since...)
	}
	for i, row := range t.Missing {
		t.Missing[i] = row[:blocks]
	}
	t.Since = t.Since[:64*blocks]
	for b := old; b < blocks; b++ {
		t.None[b] = ^uint64(0)
		t.Unknown.Add(b)
	}
	for i := range t.Since[64*old:] {
		t.Since[64*old+i] = now
	}
}

// Recent reports whether the table still knows what is missing as of a tick, which is not after Through.
func (t *AckTable) Recent(at delta.Tick) bool { return t.Through-at < snapshot.RecentTicks }

// Lacks returns the slots of a block that the peer is not known to hold as of a recent tick.
func (t *AckTable) Lacks(at delta.Tick, b int) uint64 {
	switch {
	case t.lacksNothing(at):
		return t.None[b]
	case t.skipped>>(at%snapshot.RecentTicks)&1 != 0:
		return ^uint64(0)
	}
	return t.None[b] | t.Missing[at%snapshot.RecentTicks][b]
}

// Bare returns the slots of a block without a baseline, which are sent in full: those of None, and those that have
// lapsed as far as FindLapsed has found.
func (t *AckTable) Bare(b int) uint64 { return t.None[b] | t.lapsed[b].slots }

// lacksNothing reports whether nothing is missing as of a recent tick but the slots in None.
func (t *AckTable) lacksNothing(at delta.Tick) bool { return t.some>>(at%snapshot.RecentTicks)&1 == 0 }

// Behind returns the slots of a block of which the peer is not known to hold the latest state, as
// of the last tick that has ended.
func (t *AckTable) Behind(b int) uint64 {
	lacks, alive := t.Lacks(t.Through, b), t.slots.Alive[b]
	return lacks&alive | t.slots.ChangedAfter(t.Through, b, alive&^lacks)
}

// CountBehind returns the number of live slots in a set, which is nil if it has all, and not in except, whose present
// state the peer is not known to hold.
func (t *AckTable) CountBehind(in, except bitset.Set) (n int) {
	s, missing := t.slots, t.None
	if !t.lacksNothing(t.Through) {
		missing = t.Missing[t.Through%snapshot.RecentTicks] // Through itself is never skipped
	}
	changed := s.Recent.After(t.Through)
	if in == nil {
		in = s.Alive
	}
	alive, none, missing := s.Alive[:len(in)], t.None[:len(in)], missing[:len(in)]
	for b, slots := range in {
		if slots &= alive[b] &^ except[b]; slots == 0 {
			continue
		}
		behind := s.Changed[b] | none[b] | missing[b]
		if changed != nil {
			behind |= changed[b]
		} else {
			behind |= s.ChangedAfter(t.Through, b, slots&^behind)
		}
		n += bits.OnesCount64(slots & behind)
	}
	return n
}

// heldBefore returns those of some slots of a block, which are missing as of Through, that the peer holds only as of
// ticks before a given one, and how many ticks after that one the oldest tick is.
func (t *AckTable) heldBefore(b int, d uint64, tick delta.Tick) (before uint64, after int32) {
	for after = math.MaxInt32; d != 0; d &= d - 1 {
		i := bits.TrailingZeros64(d)
		ticks := int32(t.Since[b<<6+i] - tick)
		before |= uint64(uint32(ticks)) >> 31 << i // like Before, without a branch
		after = min(after, ticks)
	}
	return before, after
}

// begin notes that the peer, which held nothing of slots of a block, holds them as of one tick.
// They stay missing as of all others.
func (t *AckTable) begin(b int, mask uint64) {
	if t.some != ^uint32(0) {
		t.fillMissing()
	}
	recent := uint64(0)
	for slot := range bitset.Slots(b, mask) {
		if t.Through-t.Since[slot] < snapshot.RecentTicks { // it was held a short while ago
			recent |= 1 << (slot & 63)
		}
	}
	if recent != 0 {
		for _, row := range t.Missing {
			row[b] |= recent
		}
	}
	t.None[b] &^= mask
	t.Ended[b] &^= mask
}

// fillMissing makes Missing valid for all recent ticks.
func (t *AckTable) fillMissing() {
	for i := range delta.Tick(snapshot.RecentTicks) {
		if t.lacksNothing(i) {
			copy(t.Missing[i], t.None)
		}
	}
	t.some = ^uint32(0)
}

// pass moves Through to a tick, in which the peer was sent something, but nothing in the ticks
// before it. What was missing stays missing, and what changed is missing now. arrive then removes
// what the peer acknowledged of that tick, and settle ends it.
func (t *AckTable) pass(to, now delta.Tick) {
	before := t.Through
	row, was := t.Missing[to%snapshot.RecentTicks], t.Missing[before%snapshot.RecentTicks]
	lacking, first := !t.lacksNothing(before), before+1
	logged := now-first < snapshot.RecentTicks
	last, alive := t.slots.Log[to%snapshot.RecentTicks][:len(t.None)], t.slots.Alive[:len(t.None)]
	row, was = row[:len(t.None)], was[:len(t.None)]
	for b, none := range t.None {
		held := alive[b] &^ none
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
		} else { // everything that may have changed
			word = t.slots.ChangedAfter(before, b, held)
		}
		if lacking {
			word |= was[b]
		}
		row[b] = word | ^held
	}
	t.passOver(to)
}

// skip moves Through to a tick, in which the peer was sent something, but nothing in the ticks before it:
// nothing was missing, and nothing is.
func (t *AckTable) skip(to delta.Tick) {
	t.passOver(to)
	t.some &^= 1 << (to % snapshot.RecentTicks)
}

// passOver moves Through to a tick. Something is missing as of those before it, in which the peer was sent
// nothing, and of that tick.
func (t *AckTable) passOver(to delta.Tick) {
	for at := t.Through + 1; at != to; at++ {
		t.some |= 1 << (at % snapshot.RecentTicks)
		t.skipped |= 1 << (at % snapshot.RecentTicks)
	}
	t.Through = to
	t.some |= 1 << (to % snapshot.RecentTicks)
	t.skipped &^= 1 << (to % snapshot.RecentTicks)
}

// skipTo moves Through to a tick far ahead, with no sends in between. It forgets what was missing
// as of the ticks before.
func (t *AckTable) skipTo(to delta.Tick) {
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

// arrive notes that the peer holds states of tick Through of slots of a block. It returns the slots
// for which that still counts.
func (t *AckTable) arrive(b int, mask uint64) uint64 {
	if old := mask & t.None[b]; old != 0 {
		mask = t.counts(b, mask, t.Through)
		if old &= mask; old != 0 {
			t.begin(b, old)
		}
	}
	t.Missing[t.Through%snapshot.RecentTicks][b] &^= mask
	return mask
}

// settle ends the tick Through. Slots that became missing in it are held as of the tick before.
func (t *AckTable) settle(before delta.Tick) {
	row, was := t.Missing[t.Through%snapshot.RecentTicks], t.Missing[before%snapshot.RecentTicks]
	lacking, some := !t.lacksNothing(before), uint64(0)
	alive := t.slots.Alive[:len(t.None)]
	row, was = row[:len(t.None)], was[:len(t.None)]
	for b, none := range t.None {
		word := row[b] & alive[b] &^ none
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

// counts returns those of the slots of a block for which the acknowledgement of something sent at
// tick at still counts: the slot has the same history as then.
func (t *AckTable) counts(b int, mask uint64, at delta.Tick) uint64 {
	for slot := range bitset.Slots(b, mask&t.None[b]) {
		if at.Before(t.Since[slot]) {
			mask &^= 1 << (slot & 63)
		}
	}
	return mask
}

// arriveLate notes that the peer holds slots of a block as of a tick, which is not after Through.
// It returns those that it thereby holds as of Through.
func (t *AckTable) arriveLate(b int, mask uint64, at, now delta.Tick) uint64 {
	mask = t.counts(b, mask, at)
	for slot := range bitset.Slots(b, mask&^t.None[b]) {
		if !at.After(t.Since[slot]) {
			mask &^= 1 << (slot & 63) // a newer state is held, or this is about an earlier entity
		}
	}
	if mask == 0 {
		return 0
	}
	lacked := mask & t.Lacks(t.Through, b)
	if old := mask & t.None[b]; old != 0 {
		t.begin(b, old)
		t.lapsed[b].none = at
	}
	t.hold(b, lacked, at)
	if now-at >= snapshot.RecentTicks { // the log no longer has the ticks in which the slot changed
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

// hold notes the last tick as of which the peer holds slots of a block.
func (t *AckTable) hold(b int, mask uint64, at delta.Tick) {
	for slot := range bitset.Slots(b, mask) {
		t.Since[slot] = at
	}
}

// endHistory forgets what the peer holds of slots of a block: their entity ended or left the view. Acknowledgements
// of packets from before tick now no longer count.
func (t *AckTable) endHistory(b int, mask uint64, now delta.Tick) {
	t.forget(b, mask, now)
	t.Ended[b] |= mask & t.Shown[b]
	t.Left[b] = t.Left[b]&^mask | t.slots.LivesOn(b)&mask
}

// forget is endHistory for an entity that lives on, so that the client may keep showing it.
func (t *AckTable) forget(b int, mask uint64, now delta.Tick) {
	t.None[b] |= mask
	t.Unknown.Add(b)
	t.hold(b, mask, now)
}

// HoldsAll reports whether the peer holds every live slot as of a recent tick.
func (t *AckTable) HoldsAll(at delta.Tick) bool { return t.lacksNothing(at) && t.knowsAll() }

// knowsAll reports whether the peer holds a state of every live slot.
func (t *AckTable) knowsAll() bool {
	for b := range t.Unknown.All() {
		if t.None[b]&t.slots.Alive[b] != 0 {
			return false
		}
		t.Unknown.Remove(b)
	}
	return true
}

// endedAt reports whether the history of a slot ended in tick now, and nothing was acknowledged since.
func (t *AckTable) endedAt(slot int, now delta.Tick) bool {
	return t.Ended.Has(slot) && t.Since[slot] == now
}

// Holds returns the last tick, up to Through, as of which the peer holds a slot.
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

// refresh keeps the ticks of slots of a block within reach of serial arithmetic. It returns the
// slots that lose their baselines by that.
func (t *AckTable) refresh(b int, slots uint64, limit, now delta.Tick) (lost uint64) {
	for slot := range bitset.Slots(b, slots) {
		bit := uint64(1) << (slot & 63)
		if !t.Since[slot].Before(limit) {
			continue
		}
		if t.None[b]&bit == 0 && t.Lacks(t.Through, b)&bit != 0 {
			t.forget(b, bit, now)
			lost |= bit
		}
		t.Since[slot] = limit
	}
	return lost
}
