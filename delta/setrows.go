package delta

import "math/bits"

// Setting rows goes in two passes over up to 64 of them: first all comparisons, without
// branches, and then what is news. Which rows those are can't be predicted, and a processor
// that guesses wrong waits for as long as some comparisons take.

// SetRows is [History.Set] for many slots, none of them twice. rows holds their rows
// one behind the other, and born tells when a slot's incarnation began. Bit i%64 of
// news[i/64] is set if row i is news; the other bits stay as they are.
//
// Panics if rows or news are too short.
func (h *History) SetRows(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32, news []uint64) {
	words := h.stride - recordRow
	for word := range news[:(len(slots)+63)/64] {
		some := slots[64*word:]
		some = some[:min(len(some), 64)]
		if neighbours(some) {
			news[word] |= h.SetNeighbours(int(some[0]), len(some), now, born, rows)
		} else {
			news[word] |= h.setScattered(some, now, born, rows)
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
// first on. Bit i of what it returns is set if row i is news.
//
// Panics on more than 64 slots or if rows is too short.
func (h *History) SetNeighbours(first, n int, now Tick, born func(slot int) Tick, rows []uint32) (news uint64) {
	if n > 64 {
		panic("delta: SetNeighbours of more than 64 slots: use SetRows")
	}
	words := h.stride - recordRow
	for done := 0; done < n; { // they may be of two blocks
		b, i := h.make(first+done), place(first+done)
		some := min(uint(n-done), blockSlots-i)
		if differ := b.differ(i, rows[:some*words], some); differ != 0 {
			b.put(h.window, first+done-int(i), differ<<i, now, born, rows, i)
			news |= differ << done
		}
		rows = rows[some*words:]
		done += int(some)
	}
	return news
}

// setScattered is SetNeighbours for up to 64 slots anywhere.
func (h *History) setScattered(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32) (news uint64) {
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
		news |= bit(d) << (k & 63)
	}
	for rest := news; rest != 0; rest &= rest - 1 {
		k := uint(bits.TrailingZeros64(rest))
		b, i := h.blocks[slots[k]/blockSlots], uint(slots[k]%blockSlots)
		rec, row, one, e := b.record(i, stride), rows[k*words:][:words], uint64(1)<<i, &b.past.newest
		if e.at != now || e.ended == 0 || b.known&one == 0 || Tick(rec[recordTick]) == now {
			b.put(h.window, int(slots[k])-int(i), one, now, born, row, i)
			continue
		}
		// The same, with less ado: the second and later changes of a tick to the block.
		copyWords(b.past.records[uint(e.start)+i*stride:], rec)
		e.add(one, b.present)
		b.present |= one
		rec[recordTick] = uint32(now)
		copyWords(rec[recordRow:], row)
	}
	return news
}
