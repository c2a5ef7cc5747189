package history

// This file keeps the superseded versions of a block of slots.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// versionLog holds the superseded versions of a block of slots by the tick at which they ended:
//
//	entry:   tick 7, slots 0 3 5   tick 8, slots 3 4   tick 11, slots 0 2
//	records: 0 3 5                 3 4                 0 - 2 - - ... -
//
// The state of a slot at a tick is its first version that ended later. The newest entry has room
// for every slot, since it is not known yet which slots it will hold; before the next entry begins,
// its records move together. Entries and records are rings. The records of an entry are never
// split.
type versionLog struct {
	newest  logEntry
	entries []logEntry // older entries; the length is a power of two or 0
	first   uint       // the oldest entry
	n       uint
	records []uint32
	kept    keptVersions
}

// logEntry has the versions that ended in one tick.
type logEntry struct {
	ended  uint64 // slots of which a version ended; 0 if there is no entry
	absent uint64 // of these, the slots that were without the component
	at     delta.Tick
	start  uint32 // of the records, in words
}

// keptVersions are the last versions that ended longer than a window ago, of slots that have not
// changed since. A receiver that was without updates for long may know nothing newer.
type keptVersions struct {
	slots   uint64
	absent  uint64
	records []uint32 // by slot
}

// add adds slots to the entry. Those in present have the component.
func (e *logEntry) add(set, present uint64) {
	e.ended |= set
	e.absent = e.absent&^set | set&^present
}

// entry returns the k-th of the older entries, from the oldest on.
func (l *versionLog) entry(k uint) *logEntry {
	return &l.entries[(l.first+k)&uint(len(l.entries)-1)]
}

// at returns the row of slot i of the block at tick t, if it has changed since: that of the first
// version that ended later.
func (l *versionLog) at(i uint, t delta.Tick, stride uint) ([]uint32, Found) {
	rec, absent := l.find(i, t, stride)
	switch {
	case rec == nil:
		return nil, Forgotten
	case absent:
		return nil, Absent
	}
	return rec[recordRow:stride:stride], Present
}

// find is at for the record, which is nil if it is forgotten, and reports whether the slot was
// without the component.
func (l *versionLog) find(i uint, t delta.Tick, stride uint) (rec []uint32, isAbsent bool) {
	bit := uint64(1) << i
	var absent uint64
	if l.newest.ended != 0 && l.newest.at.After(t) {
		// There is at most one entry for each tick, so entries farther back ended before t.
		k := l.n - min(l.n, uint(l.newest.at-t-1))
		for k < l.n && (l.entry(k).ended&bit == 0 || !l.entry(k).at.After(t)) {
			k++
		}
		if k < l.n {
			e := l.entry(k)
			nth := uint(bits.OnesCount64(e.ended & (bit - 1)))
			rec, absent = l.records[uint(e.start)+nth*stride:], e.absent
		} else if l.newest.ended&bit != 0 {
			rec, absent = l.records[uint(l.newest.start)+i*stride:], l.newest.absent
		}
	}
	if rec == nil || delta.Tick(rec[recordTick]).After(t) { // that version is no longer in the log
		if l.kept.slots&bit == 0 {
			return nil, false
		}
		rec, absent = l.kept.records[i*stride:], l.kept.absent
		if delta.Tick(rec[recordTick]).After(t) {
			return nil, false
		}
	}
	return rec, absent&bit != 0
}

// begin makes the entry of tick now the newest, and returns its records, one for each slot of the
// block. Versions of the slots in set are about to end.
func (l *versionLog) begin(now, window delta.Tick, b *block, set uint64) (records []uint32) {
	stride := b.stride()
	if l.newest.ended == 0 || l.newest.at != now {
		if l.newest.ended != 0 {
			l.join(stride)
		}
		// If ticks don't go back, there are never as many entries as a window has ticks. The
		// second condition bounds the memory whatever the ticks are.
		for l.n > 0 && (now-l.entry(0).at >= window || l.n >= uint(window)) {
			l.drop(b, ^set)
		}
		l.newest = logEntry{at: now, start: uint32(l.room(stride, window))}
	}
	return l.records[l.newest.start:][:blockSlots*stride]
}

// join moves the records of the newest entry together and adds it to the older ones.
func (l *versionLog) join(stride uint) {
	e := &l.newest
	if e.ended&(e.ended+1) != 0 { // not only the first slots
		from := l.records[e.start:][:blockSlots*stride]
		to := from
		for set := e.ended; set != 0; set &= set - 1 {
			i := uint(bits.TrailingZeros64(set))
			copyWords(to, from[i*stride:][:stride])
			to = to[stride:]
		}
	}
	if l.n == uint(len(l.entries)) {
		grown := make([]logEntry, max(4, 2*l.n))
		for k := range l.n {
			grown[k] = *l.entry(k)
		}
		l.entries, l.first = grown, 0
	}
	l.n++
	*l.entry(l.n - 1) = *e
}

// drop forgets the oldest entry. It keeps the versions of those slots that have not changed since
// and are among the given ones.
func (l *versionLog) drop(b *block, among uint64) {
	e, stride := l.entry(0), b.stride()
	l.kept.slots &^= e.ended
	for among &= e.ended; among != 0; among &= among - 1 {
		i := uint(bits.TrailingZeros64(among))
		if b.records[i*stride+recordTick] != uint32(e.at) {
			continue
		}
		if l.kept.records == nil {
			l.kept.records = make([]uint32, blockSlots*stride)
		}
		bit := uint64(1) << i
		nth := uint(bits.OnesCount64(e.ended & (bit - 1)))
		copyWords(l.kept.records[i*stride:], l.records[uint(e.start)+nth*stride:][:stride])
		l.kept.slots |= bit
		l.kept.absent = l.kept.absent&^bit | e.absent&bit
	}
	l.first, l.n = l.first+1, l.n-1
}

// room returns the start of 64 records that no older entry uses.
func (l *versionLog) room(stride uint, window delta.Tick) (start uint) {
	need := blockSlots * stride
	if l.n == 0 {
		if l.records == nil {
			l.records = make([]uint32, 2*need)
		}
		return 0
	}
	oldest, last := uint(l.entry(0).start), l.entry(l.n-1)
	end := l.end(last, stride)
	switch {
	case uint(last.start) < oldest:
		if oldest-end >= need {
			return end
		}
	case uint(len(l.records))-end >= need:
		return end
	case oldest >= need:
		return 0
	}
	// Double the ring, up to room for as many entries as a window has ticks and for the
	// newest one on one side of them or the other.
	most := uint64(need) * (uint64(window) + 1)
	grown := make([]uint32, min(2*uint64(len(l.records)), most))
	end = 0
	for k := range l.n {
		e := l.entry(k)
		start := end
		end += uint(copy(grown[start:], l.records[e.start:l.end(e, stride)]))
		e.start = uint32(start)
	}
	l.records = grown
	return end
}

// end returns the end of the records of an older entry.
func (l *versionLog) end(e *logEntry, stride uint) uint {
	return uint(e.start) + uint(bits.OnesCount64(e.ended))*stride
}

// forget drops the versions that ended up to tick t.
func (l *versionLog) forget(b *block, t delta.Tick) {
	for l.n > 0 && !l.entry(0).at.After(t) {
		l.drop(b, 0)
	}
	if l.newest.ended != 0 && !l.newest.at.After(t) {
		l.kept.slots &^= l.newest.ended
		l.newest = logEntry{}
	}
}
