package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// An ackTable is what the server knows of every slot at one peer: which state the peer
// has acknowledged, and which may be on its way. All of it is kept as bits by slot and
// recent tick, so that a packet, its acknowledgement and its loss cost a few operations
// for a block of 64 slots; only what has not moved for long needs a tick of its own. It
// takes less than 12 bytes for every slot.
type ackTable struct {
	blocks []ackBlock
	rows   []bitset     // by tick modulo their number: slots whose state of that tick the peer holds
	rest   []delta.Tick // by slot: see ackBlock
	since  []uint16     // by slot: see ackBlock
	epoch  delta.Tick   // when the present epoch began
}

// An ackBlock holds what is known of 64 slots, bit by slot.
type ackBlock struct {
	shown  uint64 // something was sent: the peer may show the slot
	flight uint64 // the newest state was sent and may still arrive
	lost   uint64 // the newest state was sent and is taken for lost
	again  uint64 // the newest state was sent more than once, and not known to have come the last time

	acked uint64 // has a baseline: the newest row that has the slot, or the tick in rest
	rest  uint64 // of these: the tick in rest
	woken uint64 // of these: something newer was sent, since low bits of a tick in since
	floor uint64 // not acked, and acknowledgements of what was sent before the tick in rest don't count
	large uint64 // a state is on its way in parts

	young, older uint64 // acked in a row of this epoch, of the epoch before
}

// rowsFor returns how many ticks are kept as rows: what they say is always within the
// window.
func rowsFor(window int) int {
	rows := 8
	for rows < recentTicks && 2*rows <= window {
		rows *= 2
	}
	return rows
}

// reset forgets everything.
func (t *ackTable) reset(window int) {
	*t = ackTable{rows: make([]bitset, rowsFor(window))}
}

// grow makes room for slots below n.
func (t *ackTable) grow(n int) {
	more := (n+63)/64 - len(t.blocks)
	if more <= 0 {
		return
	}
	t.blocks = append(t.blocks, make([]ackBlock, more)...)
	t.rest = append(t.rest, make([]delta.Tick, 64*more)...)
	t.since = append(t.since, make([]uint16, 64*more)...)
	for i := range t.rows {
		t.rows[i] = t.rows[i].grown(n)
	}
}

// row returns the slots whose state of tick at was acknowledged; at is one of the last
// len(t.rows) ticks.
func (t *ackTable) row(at delta.Tick) bitset { return t.rows[int(at)&(len(t.rows)-1)] }

// recent reports whether tick at has a row when it is tick now.
func (t *ackTable) recent(at, now delta.Tick) bool { return now-at < delta.Tick(len(t.rows)) }

// advance makes room for tick now, the one after the last. What was acknowledged as many
// ticks ago as there are rows, and nothing since, moves to rest.
func (t *ackTable) advance(now delta.Tick) {
	half := delta.Tick(len(t.rows) / 2)
	if now-t.epoch >= half {
		t.epoch = now
		for b := range t.blocks {
			blk := &t.blocks[b]
			if blk.young|blk.older != 0 {
				blk.young, blk.older = 0, blk.young
			}
		}
	}
	row, at := t.row(now), now-delta.Tick(len(t.rows))
	for b, word := range row {
		if word == 0 {
			continue
		}
		row[b] = 0
		blk := &t.blocks[b]
		if last := word & blk.acked &^ (blk.rest | blk.young | blk.older); last != 0 {
			for newer := at + 1; newer != t.epoch-half && last != 0; newer++ {
				last &^= t.row(newer)[b]
			}
			t.settle(b, last, at)
		}
	}
}

// settle puts the baseline of slots of a block, the state of tick at, into rest.
func (t *ackTable) settle(b int, mask uint64, at delta.Tick) {
	blk := &t.blocks[b]
	blk.rest |= mask
	// Where something newer was sent, it was not before the next tick.
	woken := mask & (blk.flight | blk.lost | blk.again)
	blk.woken = blk.woken&^mask | woken
	for slot := range slotsOf(b, mask) {
		t.rest[slot] = at
		t.since[slot] = uint16(at + 1)
	}
}

// send notes that the present state of slots of a block was sent.
func (t *ackTable) send(b int, mask uint64, now delta.Tick) {
	blk := &t.blocks[b]
	blk.shown |= mask
	blk.flight |= mask
	blk.again = blk.again&^mask | blk.lost&mask
	blk.lost &^= mask
	if waking := mask & blk.rest &^ blk.woken; waking != 0 {
		blk.woken |= waking
		for slot := range slotsOf(b, waking) {
			t.since[slot] = uint16(now)
		}
	}
}

// counts returns those of the slots of a block of which an acknowledgement of something
// sent at tick at is about their present life.
func (t *ackTable) counts(b int, mask uint64, at delta.Tick) uint64 {
	for old := mask & t.blocks[b].floor; old != 0; old &= old - 1 {
		if i := bits.TrailingZeros64(old); at.Before(t.rest[b<<6+i]) {
			mask &^= 1 << i
		}
	}
	return mask
}

// acknowledge notes that the peer holds the states of slots of a block of tick at, one
// that has a row.
func (t *ackTable) acknowledge(b int, mask uint64, at delta.Tick) {
	blk := &t.blocks[b]
	t.row(at)[b] |= mask
	blk.acked |= mask
	blk.rest &^= mask
	blk.woken &^= mask
	blk.floor &^= mask
	half := delta.Tick(len(t.rows) / 2)
	switch {
	case !at.Before(t.epoch):
		blk.young |= mask
	case !at.Before(t.epoch - half):
		blk.older |= mask
	}
}

// acknowledgeLate is acknowledge for a tick that has no row any more.
func (t *ackTable) acknowledgeLate(b int, mask uint64, at delta.Tick) {
	blk := &t.blocks[b]
	for slot := range slotsOf(b, mask&blk.acked) {
		if blk.rest>>(slot&63)&1 == 0 || !at.After(t.rest[slot]) {
			mask &^= 1 << (slot & 63) // a newer one is known
		}
	}
	blk.acked |= mask
	blk.floor &^= mask
	t.settle(b, mask, at)
}

// sever ends all that is known of the states of slots of a block. What is acknowledged
// of packets of before tick now does not count any more.
func (t *ackTable) sever(b int, mask uint64, now delta.Tick) {
	blk := &t.blocks[b]
	if mask &= blk.shown; mask == 0 {
		return // nothing was sent
	}
	t.forget(b, mask)
	blk.floor |= mask
	for slot := range slotsOf(b, mask) {
		t.rest[slot] = now
	}
}

// forget takes back all acknowledgements of slots of a block.
func (t *ackTable) forget(b int, mask uint64) {
	blk := &t.blocks[b]
	if mask&blk.acked&^blk.rest != 0 {
		for i := range t.rows {
			t.rows[i][b] &^= mask
		}
	}
	blk.flight &^= mask
	blk.lost &^= mask
	blk.again &^= mask
	blk.acked &^= mask
	blk.rest &^= mask
	blk.woken &^= mask
	blk.young &^= mask
	blk.older &^= mask
}

// newest returns the newest tick of which the slot's state was acknowledged. newest is
// the newest tick of which a packet was.
func (t *ackTable) newest(slot int, newest, now delta.Tick) (delta.Tick, bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	blk := &t.blocks[b]
	switch {
	case blk.acked&bit == 0:
		return 0, false
	case blk.rest&bit != 0:
		return t.rest[slot], true
	}
	for at := newest; t.recent(at, now); at-- {
		if t.row(at)[b]&bit != 0 {
			return at, true
		}
	}
	return 0, false
}

// refresh keeps the slot's ticks within reach of serial arithmetic. It returns false if
// that takes its baseline.
func (t *ackTable) refresh(slot int, limit, now, window delta.Tick) bool {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	blk := &t.blocks[b]
	if (blk.rest|blk.floor)&bit == 0 {
		return true
	}
	if blk.rest&bit != 0 {
		if t.rest[slot].Before(limit) || blk.woken&bit != 0 && t.expired(slot, now, window) {
			t.forget(b, bit)
			return false
		}
		return true
	}
	if t.rest[slot].Before(limit) {
		t.rest[slot] = limit
	}
	return true
}

// expired reports whether the peer may have dropped the baseline of a slot that is
// woken: it keeps its newest state for ever, and others for a window after they were
// that.
func (t *ackTable) expired(slot int, now, window delta.Tick) bool {
	return uint16(now)-t.since[slot] > uint16(window)
}
