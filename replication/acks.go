package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// An ackTable is what the server knows of what a peer holds. Most of what is sent arrives, so
// what is kept is the exception: for each recent tick up to which the fate of every packet is known,
// the slots whose state as of that tick the peer is not known to hold. All else is in the histories
// of the slots, which all peers share. A tick in which nothing is missing costs nothing.
type ackTable struct {
	slots   *slotTable
	through delta.Tick              // up to this tick it is known what came, or taken to be
	missing [recentTicks]bitset.Set // by tick modulo their number
	some    uint32                  // the ticks, modulo recentTicks, at which anything is missing; what missing says of others has no meaning
	skipped uint32                  // of these, ticks of which it is not known what is missing: the peer was sent nothing in them
	none    bitset.Set              // slots of which the peer holds nothing, at any tick; missing has them, but for ticks of before they were forgotten
	ended   bitset.Set              // of these, those of which the client may show what was before
	since   []delta.Tick            // of slots missing at through: the last tick as of which the peer holds them; of others, what was sent before that tick does not count
	shown   bitset.Set              // something was sent: the client may show the slot
	large   bitset.Set              // a state is on its way in parts
	owed    bitset.Set              // by block: there may be slots in Peer.due
	unknown bitset.Set              // by block: there may be slots in none that live
}

// reset forgets everything, at the end of tick now.
func (t *ackTable) reset(slots *slotTable, now delta.Tick) {
	*t = ackTable{slots: slots, through: now}
}

// grow makes room for slots below n, in tick now.
func (t *ackTable) grow(n int, now delta.Tick) {
	old := len(t.none)
	t.none, t.ended = t.none.Grown(n), t.ended.Grown(n)
	t.shown, t.large = t.shown.Grown(n), t.large.Grown(n)
	blocks := len(t.none)
	t.owed, t.unknown = t.owed.Grown(blocks), t.unknown.Grown(blocks)
	if blocks > cap(t.missing[0]) { // few that lie idle make up for copying them now and then
		room := blocks + blocks/16
		for i, row := range t.missing {
			t.missing[i] = append(make(bitset.Set, 0, room), row...)
		}
		t.since = append(make([]delta.Tick, 0, 64*room), t.since...)
	}
	for i, row := range t.missing {
		t.missing[i] = row[:blocks]
	}
	t.since = t.since[:64*blocks]
	for b := old; b < blocks; b++ {
		t.forget(b, ^uint64(0), now)
	}
}

// recent reports whether it is known what is missing at a tick, which is not after through.
func (t *ackTable) recent(at delta.Tick) bool { return t.through-at < recentTicks }

// lacks returns the slots of a block that the peer is not known to hold as of a tick, which is
// recent.
func (t *ackTable) lacks(at delta.Tick, b int) uint64 {
	switch {
	case t.lacksNothing(at):
		return t.none[b]
	case t.skipped>>(at%recentTicks)&1 != 0:
		return ^uint64(0)
	}
	return t.none[b] | t.missing[at%recentTicks][b]
}

// lacksNothing reports whether the peer holds as of a tick, which is recent, all of which it holds
// anything.
func (t *ackTable) lacksNothing(at delta.Tick) bool { return t.some>>(at%recentTicks)&1 == 0 }

// behind returns the slots of a block of which the peer is not known to hold the state of the last
// tick that has ended.
func (t *ackTable) behind(b int) uint64 {
	lacks, alive := t.lacks(t.through, b), t.slots.alive[b]
	return lacks&alive | t.slots.changedAfter(t.through, b, alive&^lacks)
}

// begin notes that slots of a block, of which nothing was held, are held as of some tick, and
// missing at all others.
func (t *ackTable) begin(b int, mask uint64) {
	if t.some != ^uint32(0) {
		t.tell()
	}
	for slot := range bitset.Slots(b, mask) {
		if t.through-t.since[slot] < recentTicks { // it was held not long ago
			for _, row := range t.missing {
				row.Add(slot)
			}
		}
	}
	t.none[b] &^= mask
	t.ended[b] &^= mask
}

// tell makes missing say what is missing at all recent ticks.
func (t *ackTable) tell() {
	for i := range delta.Tick(recentTicks) {
		if t.lacksNothing(i) {
			copy(t.missing[i], t.none)
		}
	}
	t.some = ^uint32(0)
}

// pass moves through to a tick: what changed up to it is missing, and so is all that was. The peer was sent
// nothing in the ticks between. What it acknowledged of that tick is then taken out by arrive, and settle ends it.
func (t *ackTable) pass(to, now delta.Tick) {
	before := t.through
	row, was := t.missing[to%recentTicks], t.missing[before%recentTicks]
	lacking, first := !t.lacksNothing(before), before+1
	logged := now-first < recentTicks
	last := t.slots.log[to%recentTicks]
	for b, none := range t.none {
		held := t.slots.alive[b] &^ none
		if held == 0 {
			row[b] = ^uint64(0)
			continue
		}
		var word uint64
		if logged {
			word = last[b]
			for at := first; at != to; at++ {
				word |= t.slots.log[at%recentTicks][b]
			}
		} else { // all that may have changed
			word = t.slots.changedAfter(before, b, held)
		}
		if lacking {
			word |= was[b]
		}
		row[b] = word | ^held
	}
	for at := before + 1; at != to; at++ {
		t.some |= 1 << (at % recentTicks)
		t.skipped |= 1 << (at % recentTicks)
	}
	t.through = to
	t.some |= 1 << (to % recentTicks)
	t.skipped &^= 1 << (to % recentTicks)
}

// skip moves through to the next tick: nothing was missing, and nothing is.
func (t *ackTable) skip() {
	t.through++
	t.some &^= 1 << (t.through % recentTicks)
	t.skipped &^= 1 << (t.through % recentTicks)
}

// leap moves through to a tick that is far ahead, where nothing was sent in between. It is not known
// any more what was missing when.
func (t *ackTable) leap(to delta.Tick) {
	for b, alive := range t.slots.alive[:len(t.none)] {
		lacks := t.lacks(t.through, b)
		changed := t.slots.changedAfter(t.through, b, alive&^lacks)
		t.hold(b, changed, t.through)
		for _, row := range t.missing {
			row[b] = ^uint64(0)
		}
		t.missing[to%recentTicks][b] = lacks | changed | ^alive
	}
	t.some, t.skipped = ^uint32(0), 0
	t.through = to
}

// arrive notes that the peer holds states of slots of a block of tick through. It returns those
// that count.
func (t *ackTable) arrive(b int, mask uint64) uint64 {
	if old := mask & t.none[b]; old != 0 {
		mask = t.counts(b, mask, t.through)
		if old &= mask; old != 0 {
			t.begin(b, old)
		}
	}
	t.missing[t.through%recentTicks][b] &^= mask
	return mask
}

// settle ends the tick through: of what is missing since then the peer holds what was at the one before.
func (t *ackTable) settle(before delta.Tick) {
	row, was := t.missing[t.through%recentTicks], t.missing[before%recentTicks]
	lacking, some := !t.lacksNothing(before), uint64(0)
	for b, none := range t.none {
		held := t.slots.alive[b] &^ none
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
		t.some &^= 1 << (t.through % recentTicks)
	}
}

// counts returns those of the slots of a block of which an acknowledgement of something sent at
// tick at is about what there is now.
func (t *ackTable) counts(b int, mask uint64, at delta.Tick) uint64 {
	for slot := range bitset.Slots(b, mask&t.none[b]) {
		if at.Before(t.since[slot]) {
			mask &^= 1 << (slot & 63)
		}
	}
	return mask
}

// arriveLate notes that the peer holds what slots of a block were at a tick, which is not after
// through. It returns those that it holds as they were at through.
func (t *ackTable) arriveLate(b int, mask uint64, at, now delta.Tick) uint64 {
	mask = t.counts(b, mask, at)
	for slot := range bitset.Slots(b, mask&^t.none[b]) {
		if !at.After(t.since[slot]) {
			mask &^= 1 << (slot & 63) // a newer one is known, or this is about what was before
		}
	}
	if mask == 0 {
		return 0
	}
	lacked := mask & t.lacks(t.through, b)
	if old := mask & t.none[b]; old != 0 {
		t.begin(b, old)
	}
	t.hold(b, lacked, at)
	if now-at >= recentTicks { // it is not known any more in which ticks it changed
		mask &^= t.slots.changedAfter(at, b, mask)
		if !t.recent(at) {
			at = t.through - recentTicks + 1
		}
		for ; ; at++ {
			t.missing[at%recentTicks][b] &^= mask
			if at == t.through {
				return mask
			}
		}
	}
	for ; ; at++ {
		if t.recent(at) {
			t.missing[at%recentTicks][b] &^= mask
		}
		if at == t.through || mask == 0 {
			return mask
		}
		changed := mask & t.slots.changedIn(at+1, now, b)
		t.hold(b, changed&lacked, at)
		mask &^= changed
	}
}

// hold notes up to which tick the peer holds slots of a block.
func (t *ackTable) hold(b int, mask uint64, at delta.Tick) {
	for slot := range bitset.Slots(b, mask) {
		t.since[slot] = at
	}
}

// sever ends all that is known of slots of a block. What is acknowledged of packets of before tick
// now does not count any more.
func (t *ackTable) sever(b int, mask uint64, now delta.Tick) {
	t.forget(b, mask, now)
	t.ended[b] |= mask & t.shown[b]
}

// forget is sever for what the client may go on to show.
func (t *ackTable) forget(b int, mask uint64, now delta.Tick) {
	t.none[b] |= mask
	t.unknown.Add(b)
	t.hold(b, mask, now)
}

// holdsAll reports whether the peer holds something of every slot that lives.
func (t *ackTable) holdsAll() bool {
	for w, unknown := range t.unknown {
		for b := range bitset.Slots(w, unknown) {
			if t.none[b]&t.slots.alive[b] != 0 {
				return false
			}
			t.unknown.Remove(b)
		}
	}
	return true
}

// severed returns the slots of a block of whose present life nothing is acknowledged, and
// something of an earlier one may be shown.
func (t *ackTable) severed(b int) uint64 { return t.ended[b] }

// severedAt reports whether what was known of a slot ended in tick now, and nothing was acknowledged since.
func (t *ackTable) severedAt(slot int, now delta.Tick) bool {
	return t.ended.Has(slot) && t.since[slot] == now
}

// holds returns the last tick as of which the peer is known to hold a slot, up to through.
func (t *ackTable) holds(slot int) (at delta.Tick, ok bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	switch {
	case t.none[b]&bit != 0:
		return 0, false
	case t.lacks(t.through, b)&bit != 0:
		return t.since[slot], true
	}
	return t.through, true
}

// refresh keeps the ticks of slots of a block within reach of serial arithmetic. It returns those
// that lose their baselines by that.
func (t *ackTable) refresh(b int, slots uint64, limit, now delta.Tick) (lost uint64) {
	for slot := range bitset.Slots(b, slots) {
		bit := uint64(1) << (slot & 63)
		if !t.since[slot].Before(limit) {
			continue
		}
		if t.none[b]&bit == 0 && t.lacks(t.through, b)&bit != 0 {
			t.forget(b, bit, now)
			lost |= bit
		}
		t.since[slot] = limit
	}
	return lost
}
