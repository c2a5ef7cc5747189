package delta

// This file records the rows of many slots. It goes over up to 64 rows twice: it compares all of
// them without branches, and then stores the changed ones. Which rows change can't be predicted,
// and a wrongly predicted branch costs as much as several comparisons.

import "math/bits"

// SetRows is [History.Set] for many slots, none of them twice. rows holds their rows
// one behind the other, and born returns the tick at which a slot's incarnation began.
// Bit i%64 of changed[i/64] is set if row i changed; the other bits stay as they are.
//
// Panics if rows or changed are too short.
func (h *History) SetRows(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32, changed []uint64) {
	words := h.stride - recordRow
	for word := range changed[:(len(slots)+63)/64] {
		some := slots[64*word:]
		some = some[:min(len(some), 64)]
		if neighbours(some) {
			changed[word] |= h.SetNeighbours(int(some[0]), len(some), now, born, rows)
		} else {
			changed[word] |= h.setScattered(some, now, born, rows)
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

// SetNeighbours is [History.SetRows] for up to 64 slots that follow one another, from
// first on. Bit i of the result is set if row i changed.
//
// Panics on more than 64 slots or if rows is too short.
func (h *History) SetNeighbours(first, n int, now Tick, born func(slot int) Tick, rows []uint32) (changed uint64) {
	if n > 64 {
		panic("delta: SetNeighbours of more than 64 slots: use SetRows")
	}
	words := h.stride - recordRow
	for done := 0; done < n; { // the slots may be in two blocks
		b, i := h.make(first+done), place(first+done)
		some := min(uint(n-done), blockSlots-i)
		if differ := b.differ(i, rows[:some*words], some); differ != 0 {
			b.put(h.window, first+done-int(i), differ<<i, now, born, rows, i)
			changed |= differ << done
		}
		rows = rows[some*words:]
		done += int(some)
	}
	return changed
}

// setScattered is SetNeighbours for up to 64 slots anywhere.
func (h *History) setScattered(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32) (changed uint64) {
	stride := h.stride
	words := stride - recordRow
	for k, slot := range slots {
		b, i := h.make(int(slot)), uint(slot%blockSlots)
		rec, row := b.record(i, stride), rows[uint(k)*words:][:words]
		d := uint32(^b.present>>i) & 1
		if len(row) == 3 {
			d |= (rec[recordRow] ^ row[0]) | (rec[recordRow+1] ^ row[1]) | (rec[recordRow+2] ^ row[2])
		} else {
			for k, x := range rec[recordRow:] {
				d |= row[k] ^ x
			}
		}
		changed |= bit(d) << (k & 63)
	}
	for rest := changed; rest != 0; rest &= rest - 1 {
		k := uint(bits.TrailingZeros64(rest))
		b, i := h.blocks[slots[k]/blockSlots], uint(slots[k]%blockSlots)
		rec, row, one, e := b.record(i, stride), rows[k*words:][:words], uint64(1)<<i, &b.past.newest
		if e.at != now || e.ended == 0 || b.known&one == 0 || Tick(rec[recordTick]) == now {
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
