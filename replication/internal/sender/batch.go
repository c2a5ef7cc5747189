package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
)

// A batch collects entries of groups for a packet. It is scratch memory that the peers of a worker share.
type batch struct {
	entries []batchEntry
	units   int        // of entries
	in      bitset.Set // slots that were visited
	from    int32      // the first slot of this pass

	room, used, work int // bits for entries in a packet; bits and work of the entries so far

	company interest.Company // of the slot in hand
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
