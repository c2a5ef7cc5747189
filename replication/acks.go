package replication

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// An ackTable is what the server knows of every slot at one peer: which state the peer
// has acknowledged, and which may be on its way. All of it is kept as bits by slot and
// recent tick, so that a packet, its acknowledgement and its loss cost a few operations
// for a block of 64 slots; only what has not moved for long needs a tick of its own. It
// takes less than 12 bytes for every slot, and little more where something was sent more than once.
type ackTable struct {
	slots  *slotTable
	chunks []ackChunk // of chunkBlocks blocks each
	since  []uint16   // by slot: see rareBlock
	marks  []ackMark  // by chunk
	newRow delta.Tick // no row after that of this tick has a slot
	inStep bitset     // slots of which nothing is known here, see instep.go
	strays bitset     // by block: an entity in it may be out of step
	owed   bitset     // by block: there may be slots in Peer.due
	flying bitset     // by block: there are slots in ackBlock.flight
	ticks  delta.Tick // how many of the rows are in use: a power of two
}

// An ackMark tells whether there is anything to do for a chunk.
type ackMark struct {
	row     delta.Tick // no row after that of this tick has a slot
	entered delta.Tick // when a slot came into view last
	rows    uint32     // which of the rows may have slots, by tick modulo recentTicks
}

// chunkBlocks is how many blocks are encoded for one peer after the other: what they read
// of the history stays in the processor's cache. What is known of them lies together.
const chunkBlocks = 8

type ackChunk struct {
	rows   slotRows // by tick modulo ackTable.ticks: slots whose state of that tick the peer holds
	blocks [chunkBlocks]ackBlock
	rare   [chunkBlocks]rareBlock
	rest   [64 * chunkBlocks]delta.Tick // by slot: see rareBlock
	resent *[]resent                    // the packets that carried last what is in rareBlock.again; nil if nothing was lately
}

// An ackBlock holds what every packet asks of 64 slots, bit by slot, in a cache line.
type ackBlock struct {
	shown  uint64 // something was sent: the peer may show the slot
	flight uint64 // the newest state was sent and may still arrive
	lost   uint64 // the newest state was sent and is taken for lost
	acked  uint64 // has a baseline: the newest row that has the slot, or an older tick
	rest   uint64 // of these: the older tick, see rareBlock
	rare   uint64 // more is to be found in rareBlock
}

// A rareBlock holds the rest.
type rareBlock struct {
	again uint64 // the newest state was sent more than once, and not known to have come the last time
	floor uint64 // acknowledgements of what was sent before the tick in rest don't count
	large uint64 // a state is on its way in parts

	// Of slots in ackBlock.rest.
	prompt uint64 // the baseline is of the tick at which the slot came to rest; else of that in rest
	woken  uint64 // something newer may have been sent, if not prompt since the tick with low bits in since
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
func (t *ackTable) reset(slots *slotTable) {
	*t = ackTable{slots: slots, ticks: slots.rows, newRow: slots.recent.now - slots.rows}
}

// grow makes room for slots below n.
func (t *ackTable) grow(n int) {
	t.inStep = t.inStep.grown(n)
	blocks := len(t.inStep)
	t.strays, t.owed, t.flying = t.strays.grown(blocks), t.owed.grown(blocks), t.flying.grown(blocks)
	if more := (n+64*chunkBlocks-1)/(64*chunkBlocks) - len(t.chunks); more > 0 {
		if n := len(t.chunks) + more; n > cap(t.chunks) {
			// They are large: few that lie idle make up for copying them now and then.
			n += len(t.chunks) / 8
			t.chunks = append(make([]ackChunk, 0, n), t.chunks...)
			t.since = append(make([]uint16, 0, 64*chunkBlocks*n), t.since...)
		}
		t.chunks = t.chunks[:len(t.chunks)+more]
		t.since = t.since[:64*chunkBlocks*len(t.chunks)]
		for range more {
			t.marks = append(t.marks, ackMark{row: t.slots.recent.now - t.ticks, entered: t.slots.recent.now - recentTicks})
		}
	}
}

func (t *ackTable) block(b int) *ackBlock {
	return &t.chunks[uint(b)/chunkBlocks].blocks[uint(b)%chunkBlocks]
}

func (t *ackTable) rare(b int) *rareBlock {
	return &t.chunks[uint(b)/chunkBlocks].rare[uint(b)%chunkBlocks]
}

// row returns the slots of a block whose state of tick at was acknowledged; at is one of
// the last t.ticks.
func (t *ackTable) row(at delta.Tick, b int) *uint64 {
	return &t.chunks[uint(b)/chunkBlocks].rows[at&(t.ticks-1)%recentTicks][uint(b)%chunkBlocks]
}

func (t *ackTable) rest(slot int) *delta.Tick {
	return &t.chunks[uint(slot)/(64*chunkBlocks)].rest[uint(slot)%(64*chunkBlocks)]
}

// recent reports whether tick at has a row when it is tick now.
func (t *ackTable) recent(at, now delta.Tick) bool { return now-at < t.ticks }

// advance makes room for tick now. What was acknowledged as many ticks ago as there are
// rows, and nothing since, moves to rest.
func (t *ackTable) advance(now delta.Tick) {
	if now-t.newRow > t.ticks {
		if now-t.newRow < ancient {
			return // the rows are empty
		}
		t.newRow = now - t.ticks - 1 // within reach of serial arithmetic
	}
	for c := range t.chunks {
		if m := &t.marks[c]; now-m.row <= t.ticks {
			if bit := uint32(1) << (now & (t.ticks - 1)); m.rows&bit != 0 {
				m.rows &^= bit
				t.advanceChunk(c, now)
			}
		} else if now-m.row > ancient {
			m.row = now - t.ticks - 1
		}
	}
}

func (t *ackTable) advanceChunk(c int, now delta.Tick) {
	ch := &t.chunks[c]
	row, at := &ch.rows[now&(t.ticks-1)], now-t.ticks
	for i, word := range row {
		if word == 0 {
			continue
		}
		row[i] = 0
		blk := &ch.blocks[i]
		last := word & blk.acked &^ blk.rest
		for newer := now - 1; newer != at && last != 0; newer-- {
			last &^= ch.rows[newer&(t.ticks-1)][i]
		}
		if last != 0 {
			t.settle(c*chunkBlocks+i, last, at)
		}
	}
}

// mark notes that a row of tick at has slots of a block.
func (t *ackTable) mark(b int, at delta.Tick) {
	m := &t.marks[b/chunkBlocks]
	m.rows |= 1 << (at & (t.ticks - 1))
	if at.After(m.row) {
		m.row = at
		if at.After(t.newRow) {
			t.newRow = at
		}
	}
}

// settle takes the state of tick at as the baseline of slots of a block.
func (t *ackTable) settle(b int, mask uint64, at delta.Tick) {
	blk, rare := t.block(b), t.rare(b)
	blk.rest |= mask
	// Where something newer was sent, it was not before the next tick.
	rare.woken = rare.woken&^mask | mask&(blk.flight|blk.lost|rare.again)
	rare.prompt &^= mask
	rare.floor &^= mask // rest has another meaning now
	for slot := range slotsOf(b, mask) {
		if bit := uint64(1) << (slot & 63); t.slots.changed[slot] == at && rare.woken&bit == 0 {
			rare.prompt |= bit
			continue
		}
		*t.rest(slot) = at
		t.since[slot] = uint16(at + 1)
	}
}

// wake notes that slots of a block changed that had not for long.
func (t *ackTable) wake(b int, mask uint64, now delta.Tick) {
	blk, rare := t.block(b), t.rare(b)
	if mask &= blk.rest; mask == 0 {
		return
	}
	// What the peer holds is of the rest before the one that ends now.
	if old := mask & rare.prompt & rare.woken; old != 0 {
		rare.prompt &^= old
		for slot := range slotsOf(b, old) {
			r := &t.slots.restsOld[slot]
			*t.rest(slot), t.since[slot] = r.from, uint16(r.to)
		}
	}
	for slot := range slotsOf(b, mask&^rare.prompt&^rare.woken) {
		t.since[slot] = uint16(now)
	}
	rare.woken |= mask
}

// resting returns the baseline of a slot that is at rest, and whether the peer is sure to
// hold it: it keeps its newest state for ever, and others for a window after they were
// that.
func (t *ackTable) resting(slot int, now, window delta.Tick) (at delta.Tick, held bool) {
	rare, i := t.rare(slot>>6), slot&63
	if rare.prompt>>i&1 == 0 {
		return *t.rest(slot), rare.woken>>i&1 == 0 || uint16(now)-t.since[slot] <= uint16(window)
	}
	if rare.woken>>i&1 == 0 {
		return t.slots.changed[slot], true
	}
	r := &t.slots.rests[slot]
	return r.from, now-r.to <= window
}

// send notes that the present state of slots of a block is sent, in the packet with the given sequence or from that one on.
func (t *ackTable) send(b int, mask uint64, now delta.Tick, sequence uint32) {
	blk := t.block(b)
	blk.shown |= mask
	t.fly(b, mask)
	if mask&(blk.lost|blk.rare) != 0 {
		rare := t.rare(b)
		rare.again = rare.again&^mask | blk.lost&mask
		blk.rare |= rare.again
		t.sendAgain(b, blk.lost&mask, sequence)
		blk.lost &^= mask
	}
	if mask &= blk.rest; mask != 0 {
		rare := t.rare(b)
		if mask &^= rare.woken | rare.prompt; mask != 0 {
			rare.woken |= mask
			for slot := range slotsOf(b, mask) {
				t.since[slot] = uint16(now)
			}
		}
	}
}

// fly notes that the present state of slots of a block is on its way.
func (t *ackTable) fly(b int, mask uint64) {
	if mask != 0 {
		t.block(b).flight |= mask
		t.flying.set(b)
	}
}

// land notes that nothing is on its way any more of slots of a block.
func (t *ackTable) land(b int, mask uint64) {
	if t.flying.has(b) {
		blk := t.block(b)
		if blk.flight &^= mask; blk.flight == 0 {
			t.flying.clear(b)
		}
	}
}

// counts returns those of the slots of a block of which an acknowledgement of something
// sent at tick at is about their present life.
func (t *ackTable) counts(b int, mask uint64, at delta.Tick) uint64 {
	for old := mask & t.rare(b).floor; old != 0; old &= old - 1 {
		if i := bits.TrailingZeros64(old); at.Before(*t.rest(b<<6 + i)) {
			mask &^= 1 << i
		}
	}
	return mask
}

// acknowledgeLate notes that the peer holds the states of slots of a block of tick at,
// one that has no row any more.
func (t *ackTable) acknowledgeLate(b int, mask uint64, at delta.Tick) {
	blk := t.block(b)
	for slot := range slotsOf(b, mask&blk.acked) {
		if blk.rest>>(slot&63)&1 == 0 || t.rests(slot, at) {
			mask &^= 1 << (slot & 63) // a newer one is known
		}
	}
	blk.acked |= mask
	t.settle(b, mask, at)
}

// rests reports whether a slot at rest has a baseline of tick at or later.
func (t *ackTable) rests(slot int, at delta.Tick) bool {
	own, _ := t.resting(slot, 0, 0)
	return !at.After(own)
}

// sever ends all that is known of the states of slots of a block. What is acknowledged
// of packets of before tick now does not count any more.
func (t *ackTable) sever(b int, mask uint64, now delta.Tick) {
	blk := t.block(b)
	if mask &= blk.shown; mask == 0 {
		return // nothing was sent
	}
	t.forget(b, mask)
	blk.rare |= mask
	t.rare(b).floor |= mask
	for slot := range slotsOf(b, mask) {
		*t.rest(slot) = now
	}
}

// severed returns the slots of a block of whose present life nothing is acknowledged, and
// something of an earlier one may be shown.
func (t *ackTable) severed(b int) uint64 { return t.rare(b).floor &^ t.block(b).acked }

// severedAt reports whether what was known of a slot ended in tick now, and nothing was acknowledged since.
func (t *ackTable) severedAt(slot int, now delta.Tick) bool {
	return t.severed(slot>>6)>>(slot&63)&1 != 0 && *t.rest(slot) == now
}

// doubt notes that what is on its way of slots of a block will be sent once more.
func (t *ackTable) doubt(b int, mask uint64) {
	blk := t.block(b)
	if mask &= blk.flight; mask != 0 {
		t.land(b, mask)
		blk.lost |= mask
	}
}

// forget ends all that is known of the states of slots of a block.
func (t *ackTable) forget(b int, mask uint64) {
	t.disown(b, mask)
	t.land(b, mask)
	t.block(b).lost &^= mask
	t.rare(b).again &^= mask
}

// disown takes back all acknowledgements of slots of a block. What is on its way or lost
// stays so: whether a state is sent for the second time depends on it.
func (t *ackTable) disown(b int, mask uint64) {
	blk := t.block(b)
	if mask&blk.acked&^blk.rest != 0 {
		rows := &t.chunks[b/chunkBlocks].rows
		for i := range rows {
			rows[i][b%chunkBlocks] &^= mask
		}
	}
	blk.acked &^= mask
	blk.rest &^= mask
}

// newest returns the newest tick of which the slot's state was acknowledged. newest is
// the newest tick of which a packet was.
func (t *ackTable) newest(slot int, newest, now delta.Tick) (delta.Tick, bool) {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	blk := t.block(b)
	switch {
	case blk.acked&bit == 0:
		return 0, false
	case blk.rest&bit != 0:
		at, _ := t.resting(slot, 0, 0)
		return at, true
	}
	for at := newest; t.recent(at, now); at-- {
		if *t.row(at, b)&bit != 0 {
			return at, true
		}
	}
	return 0, false
}

// refresh keeps the slot's ticks within reach of serial arithmetic. It returns false if
// that takes its baseline.
func (t *ackTable) refresh(slot int, limit, now, window delta.Tick) bool {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	switch {
	case t.block(b).rest&bit != 0:
		if at, held := t.resting(slot, now, window); !held || at.Before(limit) {
			t.disown(b, bit)
			t.doubt(b, bit)
			return false
		}
	case t.rare(b).floor&bit != 0 && t.rest(slot).Before(limit):
		*t.rest(slot) = limit
	}
	return true
}
