package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// staging collects the entries of a packet. They take effect when the packet turns out to be valid
// to its last bit, so a packet with a wrong bit changes nothing.
type staging struct {
	resources archeutil.ResourceSet

	entries []stagedEntry
	words   []uint32 // rows of the entries, and indices of shared ones
	pool    *archeutil.RowPool
	rows    []uint32 // the shared rows of the entries, new ones and those of baselines; some more than once
	row     []uint32 // memory for a row that may become a shared one
	parts   []stagedPart
	work    int // so far; see config/work.go
	bits    int // of the packet's entries
	bound   config.WorkBound
}

// A stagedEntry is a state of a slot, or a despawn.
type stagedEntry struct {
	slot       uint32
	tick       delta.Tick
	layout     *Layout // nil: the slot is empty
	generation uint16
	left       bool // of a despawn: the entity lives on
	first      int  // where its words begin
}

// A stagedPart is a part of a large state.
type stagedPart struct {
	slot        uint32
	tick        delta.Tick
	total, size int
	index       int
	bytes       []byte // in the packet
}

// newStaging returns an empty staging area for components of a schema. pool has the shared rows of the client.
func newStaging(s *schema.Schema, pool *archeutil.RowPool) staging {
	words := 0
	for i := range s.Components {
		words = max(words, s.Components[i].Words)
	}
	return staging{resources: archeutil.ResourcesOf(s), pool: pool, row: make([]uint32, words)}
}

// begin empties the staging area for a packet whose entries take so many bits.
func (s *staging) begin(bits int, bound config.WorkBound) {
	s.entries, s.words, s.parts = s.entries[:0], s.words[:0], s.parts[:0]
	s.work, s.bits, s.bound = 0, bits, bound
}

// end gives back the shared rows that no state holds: new ones that no state took over, and rows of
// baselines that the packet made the client drop.
func (s *staging) end() {
	for _, i := range s.rows {
		s.pool.Unstage(i)
	}
	s.rows = s.rows[:0]
}

// fair reports whether the packet causes no more work than it may.
func (s *staging) fair() bool {
	return s.bound.Allows(s.work, s.bits) || len(s.entries)+len(s.parts) == 1
}

// addPart stages a part. A packet has at most one, so that it completes at most one state.
func (s *staging) addPart(p stagedPart) error {
	if len(s.parts) > 0 {
		return wire.ErrMalformed
	}
	s.parts = append(s.parts, p)
	return nil
}

// stage makes room for a state of a slot. It returns nil if the slot can't have such a state. The
// result is valid until the next call.
func (s *staging) stage(slot uint32, tick delta.Tick, generation uint16, layout *Layout) *stagedEntry {
	if s.resources.Any && !s.resources.Fits(slot, &layout.Set) {
		return nil
	}
	first, n := len(s.words), len(s.entries)
	if end := first + layout.words; end <= cap(s.words) {
		s.words = s.words[:end]
	} else {
		s.words = append(s.words, make([]uint32, layout.words)...)
	}
	if n < cap(s.entries) {
		s.entries = s.entries[:n+1]
	} else {
		s.entries = append(s.entries, stagedEntry{})
	}
	e := &s.entries[n]
	// Fields are set in place: copying an entry here takes several times as long.
	e.slot, e.tick, e.layout, e.generation, e.first = slot, tick, layout, generation, first
	return e
}

// despawn stages that a slot is empty. left reports that its entity lives on out of view.
func (s *staging) despawn(slot uint32, tick delta.Tick, left bool) error {
	if s.resources.In(int(slot)) {
		return wire.ErrMalformed // the slot of resources is never empty
	}
	s.entries = append(s.entries, stagedEntry{slot: slot, tick: tick, left: left})
	s.work += wire.SlotWork
	return nil
}

// room returns memory for the entry's row at a place. The memory may have any contents. words are
// those of the entry.
func (s *staging) room(words []uint32, at *Place) []uint32 {
	if at.offset >= 0 {
		return words[at.offset:][:at.words]
	}
	return s.row[:at.words]
}

// takeRow counts the work of a row that was decoded into the memory for it, and reports whether the row is valid.
func (s *staging) takeRow(e *stagedEntry, at *Place, row []uint32) bool {
	if s.work += at.work; !at.Comp.ValidDecoded(row) {
		return false
	}
	if at.offset < 0 {
		i := s.pool.Take(at.Number, at.words)
		copy(s.pool.Rows[i].Words, row)
		s.share(e, at, i)
	}
	return true
}

// keepRow gives the entry the first baseline's row of a place. row is the memory for it. base2
// is nil if there is no prediction.
func (s *staging) keepRow(e *stagedEntry, at *Place, row []uint32, base, base2 *HeldState) {
	if at.Comp.Layout.Width() > 0 { // rows of no bits are free
		s.work++
	}
	if at.offset >= 0 {
		copy(row, base.Words[base.Layout.offsets[at.Number]:])
		return
	}
	same := base.Words[sharedAt-base.Layout.offsets[at.Number]]
	s.share(e, at, same)
	if base2 != nil && at.Comp.Layout.Moves() { // then its row is the same
		base2.merge(at.Number, same)
	}
}

// share makes a shared row that of the entry at a place.
func (s *staging) share(e *stagedEntry, at *Place, i uint32) {
	s.stageRow(i)
	s.words[e.first+sharedAt-at.offset] = i
}

// stageRow keeps a shared row until the packet is read, which may drop the baseline that has it before the entry is
// kept.
func (s *staging) stageRow(i uint32) {
	s.pool.Rows[i].Staged = true
	s.rows = append(s.rows, i)
}
