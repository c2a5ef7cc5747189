package sender

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
)

// A batch collects entries of groups for a packet. It is scratch memory that the peers of a worker
// share.
type batch struct {
	entries []batchEntry
	units   int        // of entries
	in      bitset.Set // slots that were visited

	room, used, work int // bits for entries in a packet; bits and work of the entries so far

	// Of the slot in hand.
	close  []int32 // slots that travel together
	groups []*interest.Group
}

// A batchEntry is what a peer needs of a slot.
type batchEntry struct {
	slot  int32
	unit  int32 // entries of a unit travel together
	entry int32 // in the cache, of batchState
	kind  batchKind
	dirty bool  // else it is in flight already
	bits  int32 // without the head
	work  int32 // of decoding; about, with the coding Compact
	count *uint64
}

// A batchKind is the kind of a batchEntry.
type batchKind uint8

const (
	batchState batchKind = iota
	batchDespawn
	batchLarge // larger than a packet
)

// begin empties the batch.
func (u *batch) begin(slots int) {
	u.in = u.in.Grown(slots)
	clear(u.in)
	u.entries, u.units, u.used, u.work = u.entries[:0], 0, 0, 0
}

// join adds a slot to those that travel together.
func (u *batch) join(slot int32) {
	if !slices.Contains(u.close, slot) {
		u.close = append(u.close, slot)
	}
}

// putTogether sends entries in a packet of their own, in slot order. The errors are those of append:
// then nothing is sent. No packet may be open.
func (p *groupSender) putTogether(entries []batchEntry) error {
	k := p.packet
	if len(entries) == 0 {
		return nil
	}
	if k.blocked() {
		return errFull
	}
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.start(int(entries[0].slot), false)
	write := k.writeTogether
	if k.Compact != nil {
		write = k.compactTogether
	}
	size, ok := write(entries)
	if !ok {
		k.abandon()
		return errTooLarge
	}
	for i := range entries {
		size -= int(entries[i].bits)
		p.book(&entries[i])
	}
	p.heads = max(size/len(entries)+2, p.heads-1)
	k.finish()
	return nil
}

// book records and counts an entry of a packet.
func (p *groupSender) book(e *batchEntry) {
	slot := int(e.slot)
	kind := baseline.RecordDespawn
	if e.kind == batchState {
		kind = baseline.RecordState
		if p.packet.Compact == nil {
			p.packet.cache.Entries[e.entry].Copies++
		}
	}
	p.packet.record(slot, kind)
	*e.count++
	p.acked.Dirty.Remove(slot)
	p.acked.Acks.Shown.Add(slot)
	if !e.dirty { // it is in flight already
		p.stats.GroupResends++
	}
}
