package history

// This file records the rows of many slots. It goes over up to 64 rows twice: it compares all of
// them without branches, and then stores the changed ones. Which rows change can't be predicted,
// and a wrongly predicted branch costs as much as several comparisons.

import (
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// SetRows is [Rows.Set] for many slots, none of them twice. rows holds their rows
// one behind the other, and born returns the tick at which a slot's incarnation began.
// Bit i%64 of changed[i/64] is set if row i changed; the other bits stay as they are.
//
// Panics if rows or changed are too short.
func (h *Rows) SetRows(
	slots []uint32, now delta.Tick, born func(slot int) delta.Tick, rows []uint32, changed []uint64,
) {
	words := h.stride - recordRow
	for word := range changed[:(len(slots)+63)/64] {
		some := slots[64*word:]
		some = some[:min(len(some), 64)]
		if neighbours(some) {
			changed[word] |= h.setNeighbours(int(some[0]), len(some), now, born, rows, 64*word)
		} else {
			changed[word] |= h.setScattered(some, now, born, rows, 64*word)
		}
		rows = rows[uint(len(some))*words:]
	}
}

// neighbours reports whether the slots follow one another.
func neighbours(slots []uint32) bool {
	for i, slot := range slots {
		if slot != slots[0]+uint32(i) {
			return false
		}
	}
	return true
}

// SetNeighbours is [Rows.SetRows] for up to 64 slots that follow one another, from
// first on. Bit i of the result is set if row i changed.
//
// Panics on more than 64 slots or if rows is too short.
func (h *Rows) SetNeighbours(
	first, n int, now delta.Tick, born func(slot int) delta.Tick, rows []uint32,
) (changed uint64) {
	if n > 64 {
		panic("history: SetNeighbours of more than 64 slots: use SetRows")
	}
	return h.setNeighbours(first, n, now, born, rows, 0)
}

// setNeighbours is SetNeighbours for rows of which the first has an index.
func (h *Rows) setNeighbours(
	first, n int, now delta.Tick, born func(slot int) delta.Tick, rows []uint32, index int,
) (changed uint64) {
	words := h.stride - recordRow
	for done := 0; done < n; { // the slots may be in two blocks
		b, i := h.make(first+done), place(first+done)
		some := min(uint(n-done), blockSlots-i)
		differ, far := b.differ(i, rows[:some*words], some)
		if near := differ &^ (far & h.far); h.keeps != nil && near != 0 {
			differ &^= h.kept(b, i, near, rows, index+done)
		}
		if differ != 0 {
			b.put(h.window, first+done-int(i), differ<<i, now, born, rows, i)
			changed |= differ << done
		}
		rows = rows[some*words:]
		done += int(some)
	}
	return changed
}

// setScattered is SetNeighbours for up to 64 slots anywhere.
func (h *Rows) setScattered(
	slots []uint32, now delta.Tick, born func(slot int) delta.Tick, rows []uint32, index int,
) (changed uint64) {
	stride := h.stride
	words := stride - recordRow
	far := uint64(0) // rows that surely are to be recorded; the others are looked at again
	for k, slot := range slots {
		b, i := h.make(int(slot)), uint(slot%blockSlots)
		rec, row := b.record(i, stride), rows[uint(k)*words:][:words]
		d := uint32(^b.present>>i) & 1
		if len(row) == 3 {
			x, y, z := row[0]-rec[recordRow], row[1]-rec[recordRow+1], row[2]-rec[recordRow+2]
			d |= x | y | z
			far |= bit(farThree(x, y, z)) << (k & 63)
		} else {
			for k, x := range rec[recordRow:] {
				d |= row[k] ^ x
			}
		}
		changed |= bit(d) << (k & 63)
	}
	if h.keeps != nil {
		for rest := changed &^ (far & h.far); rest != 0; rest &= rest - 1 {
			k := uint(bits.TrailingZeros64(rest))
			b, i := h.blocks[slots[k]/blockSlots], uint(slots[k]%blockSlots)
			changed &^= h.kept(b, i, 1, rows[k*words:], index+int(k)) << k
		}
	}
	for rest := changed; rest != 0; rest &= rest - 1 {
		k := uint(bits.TrailingZeros64(rest))
		b, i := h.blocks[slots[k]/blockSlots], uint(slots[k]%blockSlots)
		rec, row, one, e := b.record(i, stride), rows[k*words:][:words], uint64(1)<<i, &b.past.newest
		if e.at != now || e.ended == 0 || b.known&one == 0 || delta.Tick(rec[recordTick]) == now {
			b.put(h.window, int(slots[k])-int(i), one, now, born, row, i)
			continue
		}
		// put in short: the block has changed in this tick before.
		copyWords(b.past.records[uint(e.start)+i*stride:], rec)
		e.add(one, b.present)
		b.present |= one
		rec[recordTick] = uint32(now)
		copyWords(rec[recordRow:], row)
	}
	return changed
}

// Masks of words, see [Rows.Keep].
const (
	KeepOne   = ^uint32(3) // of a number: it may differ by one
	KeepEqual = ^uint32(1) // of a word that may not differ
	KeepQuat  = uint32(2)  // of the first word of a Quat: if it differs, the others may; they have KeepOne
	KeepPair  = uint32(1)  // of the first of two numbers, of which one may differ by more than one
)

// Keep makes the history ask about rows that differ by little from the present ones, before it records them. keeps
// reports whether the present row is to be kept; then the new one is no change. i is the index of the new row in the
// call of [Rows.SetRows] or [Rows.SetNeighbours]. Near has a mask for each word of a row: a number that wraps has
// the bits of KeepOne that its codes have. The function may also be asked about rows that differ by more.
//
// Panics if near has not as many words as a row.
func (h *Rows) Keep(near []uint32, keeps func(i int, row, present []uint32) bool) {
	if len(near) != int(h.stride-recordRow) {
		panic("history: Keep needs a mask for each word of a row")
	}
	h.near, h.far, h.keeps = near, 0, keeps
	if slices.Equal(near, []uint32{KeepOne, KeepOne, KeepOne}) {
		h.far = ^uint64(0)
	}
}

// kept returns those of a set of rows, which differ from the block's from slot first on, that are to be kept. The first
// row has an index.
func (h *Rows) kept(b *block, first uint, differ uint64, rows []uint32, index int) (kept uint64) {
	words := h.stride - recordRow
	for rest := differ & (b.present >> first); rest != 0; rest &= rest - 1 {
		k := uint(bits.TrailingZeros64(rest))
		row, present := rows[k*words:][:words], b.record(first+k, h.stride)[recordRow:]
		if isNear(row, present, h.near) && h.keeps(index+int(k), row, present) {
			kept |= 1 << k
		}
	}
	return kept
}

// isNear reports whether a row differs by little from the present one.
func isNear(row, present, near []uint32) bool {
	present, near = present[:len(row)], near[:len(row)]
	for k := 0; k < len(row); k++ {
		d := row[k] - present[k]
		switch mask := near[k]; {
		case mask == KeepQuat:
			if d != 0 {
				k += 3
			}
		case mask == KeepPair && k+1 < len(row):
			if k++; (d+1)&KeepOne != 0 && (row[k]-present[k]+1)&KeepOne != 0 {
				return false
			}
		case (d+1)&mask != 0:
			return false
		}
	}
	return true
}
