package history

// This file keeps the versions of 64 slots.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// blockSlots is the number of slots in a block, and the number of bits in a set of them.
const blockSlots = 64

// block holds the versions of consecutive slots.
type block struct {
	known   uint64     // slots that had the component in this incarnation
	present uint64     // slots that have it
	latest  delta.Tick // no present version began later
	records []uint32   // the present version of each known slot
	past    versionLog
}

// A record holds a version: the tick at which it began, and the row. Superseding a version copies
// consecutive words.
const (
	recordTick = 0
	recordRow  = 1
)

// Rows is part of [delta.Block].
func (b *block) Rows() (present uint64, records []uint32, latest delta.Tick) {
	return b.present, b.records, b.latest
}

// stride returns the number of words of a record.
func (b *block) stride() uint { return uint(len(b.records)) / blockSlots }

// record returns the present version of slot i of the block.
func (b *block) record(i, stride uint) []uint32 { return b.records[i*stride:][:stride] }

// differ returns the set of those of n slots, from slot first on, that have another row than the
// given one, or none. far has rows of which it is easily seen that they differ by much.
func (b *block) differ(first uint, rows []uint32, n uint) (set, far uint64) {
	stride := b.stride()
	records := b.records[first*stride:][:n*stride]
	switch stride {
	case recordRow + 1:
		for i, x := range rows {
			set |= bit(records[2*i+recordRow]^x) << (i & 63)
		}
	case recordRow + 3:
		set, far = differThree(records, rows)
	default:
		for i := 0; uint(len(records)) >= stride; i++ {
			d := uint32(0)
			for k, x := range records[recordRow:stride] {
				d |= rows[k] ^ x
			}
			set |= bit(d) << (i & 63)
			records, rows = records[stride:], rows[stride-recordRow:]
		}
	}
	return set | ^(b.present>>first)&(^uint64(0)>>(blockSlots-n)), far
}

// differThree compares records with rows of three words, such as positions.
func differThree(records, rows []uint32) (set, far uint64) {
	const stride = recordRow + 3
	for i := 0; len(rows) >= 3 && len(records) >= stride; i++ {
		x, y, z := rows[0]-records[recordRow], rows[1]-records[recordRow+1], rows[2]-records[recordRow+2]
		set |= bit(x|y|z) << (i & 63)
		far |= bit(farThree(x, y, z)) << (i & 63)
		records, rows = records[stride:], rows[3:]
	}
	return set, far
}

// farThree returns 0 if each of three differences is -1 to 2: then a row may be as it was but for noise, see
// [Rows.Keep].
func farThree(x, y, z uint32) uint32 { return ((x + 1) | (y + 1) | (z + 1)) &^ 3 }

// bit returns 1 if x is not 0.
func bit(x uint32) uint64 { return uint64(x|-x) >> 31 }

// put makes rows the newest versions of a set of the block's slots. rows begins with the row of
// slot first; base is the slot at which the block begins.
func (b *block) put(
	window delta.Tick, base int, set uint64, now delta.Tick, born func(slot int) delta.Tick, rows []uint32, first uint,
) {
	if old := b.ending(base, set, now, born); old != 0 {
		b.supersede(window, old, now)
	}
	b.present |= set
	stride := b.stride()
	if stride == recordRow+3 {
		putThree(b.records, rows, set, first, now)
		return
	}
	words := stride - recordRow
	for ; set != 0; set &= set - 1 {
		i := uint(bits.TrailingZeros64(set))
		rec := b.record(i, stride)
		rec[recordTick] = uint32(now)
		copyWords(rec[recordRow:], rows[(i-first)*words:][:words])
	}
}

// putThree stores the rows of put if they have three words.
func putThree(records, rows []uint32, set uint64, first uint, now delta.Tick) {
	const stride = recordRow + 3
	if set == ^uint64(0) {
		for len(rows) >= 3 && len(records) >= stride {
			records[recordTick] = uint32(now)
			records[recordRow], records[recordRow+1], records[recordRow+2] = rows[0], rows[1], rows[2]
			records, rows = records[stride:], rows[3:]
		}
		return
	}
	for ; set != 0; set &= set - 1 {
		i := uint(bits.TrailingZeros64(set))
		row := (*[3]uint32)(rows[3*(i-first):])
		*(*[stride]uint32)(records[stride*i:]) = [stride]uint32{uint32(now), row[0], row[1], row[2]}
	}
}

// ending prepares slots of the block for the end of their present versions, and returns the slots
// whose present version is to be superseded: a version that began in this tick leaves no trace.
func (b *block) ending(base int, set uint64, now delta.Tick, born func(slot int) delta.Tick) (old uint64) {
	if b.latest != now && set&^b.known == 0 {
		b.latest = now
		return set
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		rec := b.record(uint(i), b.stride())
		if b.known>>i&1 == 0 {
			rec[recordTick] = uint32(born(base + i))
		}
		if delta.Tick(rec[recordTick]) != now {
			old |= 1 << i
		}
	}
	b.known |= set
	b.latest = now
	return old
}

// supersede copies the present versions of a set of slots, which end now, to the log.
func (b *block) supersede(window delta.Tick, set uint64, now delta.Tick) {
	stride := b.stride()
	past := b.past.begin(now, window, b, set)
	b.past.newest.add(set, b.present)
	switch {
	case set == ^uint64(0):
		copy(past, b.records)
	case stride == recordRow+3:
		const stride = recordRow + 3
		for ; set != 0; set &= set - 1 {
			i := uint(bits.TrailingZeros64(set))
			*(*[stride]uint32)(past[i*stride:]) = *(*[stride]uint32)(b.records[i*stride:])
		}
	default:
		for ; set != 0; set &= set - 1 {
			i := uint(bits.TrailingZeros64(set))
			copyWords(past[i*stride:], b.record(i, stride))
		}
	}
}

// refresh is [Rows.Refresh] for slot i of the block.
func (b *block) refresh(i uint, t delta.Tick) {
	b.past.forget(b, t)
	rec := b.record(i, b.stride())
	if b.known>>i&1 == 0 || !delta.Tick(rec[recordTick]).Before(t) {
		return
	}
	rec[recordTick] = uint32(t)
	b.past.kept.slots &^= 1 << i
	if t.After(b.latest) {
		b.latest = t
	}
}

// At is part of [delta.Block]: it finds the rows at tick t of a set of slots that have changed since; the row is nil if
// the slot was without the component. It returns the slots whose row is no longer known. The results are those of
// versionLog.at, but At walks the log once for all slots.
func (b *block) At(set uint64, t delta.Tick, rows *[blockSlots][]uint32) (unknown uint64) {
	l, stride := &b.past, b.stride()
	slow := uint64(0)
	if l.newest.ended != 0 && l.newest.at.After(t) {
		for k := l.n - min(l.n, uint(l.newest.at-t-1)); k < l.n && set != 0; k++ {
			e := l.entry(k)
			hit := e.ended & set
			if hit == 0 || !e.at.After(t) {
				continue
			}
			set &^= hit
			slow |= hit & e.absent
			for hit &^= e.absent; hit != 0; hit &= hit - 1 {
				i := bits.TrailingZeros64(hit)
				nth := uint(bits.OnesCount64(e.ended & (1<<i - 1)))
				rec := l.records[uint(e.start)+nth*stride:][:stride:stride]
				if delta.Tick(rec[recordTick]).After(t) {
					slow |= 1 << i
					continue
				}
				rows[i] = rec[recordRow:]
			}
		}
		hit := set & l.newest.ended &^ l.newest.absent
		set &^= hit
		for ; hit != 0; hit &= hit - 1 {
			i := bits.TrailingZeros64(hit)
			rec := l.records[uint(l.newest.start)+uint(i)*stride:][:stride:stride]
			if delta.Tick(rec[recordTick]).After(t) {
				slow |= 1 << i
				continue
			}
			rows[i] = rec[recordRow:]
		}
	}
	for slow |= set; slow != 0; slow &= slow - 1 {
		i := bits.TrailingZeros64(slow)
		row, found := l.at(uint(i), t, stride)
		if found == Forgotten {
			unknown |= 1 << i
		}
		rows[i] = row
	}
	return unknown
}

// copyWords copies src to the beginning of dst. For the usual lengths it calls nothing.
func copyWords(dst, src []uint32) {
	switch len(src) {
	case 1:
		dst[0] = src[0]
	case 2:
		*(*[2]uint32)(dst) = *(*[2]uint32)(src)
	case 3:
		*(*[3]uint32)(dst) = *(*[3]uint32)(src)
	case 4:
		*(*[4]uint32)(dst) = *(*[4]uint32)(src)
	case 5:
		*(*[5]uint32)(dst) = *(*[5]uint32)(src)
	case 7:
		*(*[7]uint32)(dst) = *(*[7]uint32)(src)
	case 8:
		*(*[8]uint32)(dst) = *(*[8]uint32)(src)
	default:
		copy(dst, src)
	}
}
