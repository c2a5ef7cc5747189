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
	schema    *schema.Schema
	resources archeutil.ResourceSet

	entries []stagedEntry
	words   []uint32 // rows of the entries, and indices of shared ones
	rows    []uint32 // the shared rows of the entries, new ones and those of baselines
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
	first      int // where its words begin
}

// A stagedPart is a part of a large state.
type stagedPart struct {
	slot        uint32
	tick        delta.Tick
	total, size int
	index       int
	bytes       []byte // in the packet
}

// begin empties the staging area for a packet whose entries take so many bits.
func (s *staging) begin(bits int, bound config.WorkBound) {
	s.entries, s.words, s.parts = s.entries[:0], s.words[:0], s.parts[:0]
	s.work, s.bits, s.bound = 0, bits, bound
}

// end gives back the shared rows that no state holds: new ones that no state took over, and rows of
// baselines that the packet made the client drop.
func (s *staging) end(rows *archeutil.RowPool) {
	for _, i := range s.rows {
		r := rows.Rows[i]
		if r.Staged = false; r.Holders == 0 {
			rows.Give(i)
		}
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

// despawn stages that a slot is empty.
func (s *staging) despawn(slot uint32, tick delta.Tick) error {
	if s.resources.In(int(slot)) {
		return wire.ErrMalformed // the slot of resources is never empty
	}
	s.entries = append(s.entries, stagedEntry{slot: slot, tick: tick})
	return nil
}

// room returns memory for the entry's row at a place. The memory may have any contents. words are
// those of the entry.
func (s *staging) room(e *stagedEntry, words []uint32, at *Place) []uint32 {
	if at.Offset >= 0 {
		return words[at.Offset:][:at.Words]
	}
	return s.sharedRoom(e, at.Offset, at.Number, at.Words)
}

// sharedRoom is room for a shared row.
func (s *staging) sharedRoom(e *stagedEntry, o, k, n int) []uint32 {
	i := e.layout.rows.Take(k, n)
	r := e.layout.rows.Rows[i]
	r.Staged = true
	s.rows = append(s.rows, i)
	s.words[e.first+sharedAt-o] = i
	return r.Words
}

// share replaces the entry's row of component k by the baseline's. If there is a prediction from a
// second baseline, its row is the same.
func (s *staging) share(e *stagedEntry, k int, base, base2 *HeldState) {
	if s.schema.Components[k].Layout.Width() == 0 {
		s.work-- // rows of no bits are free
	}
	last, rows := len(s.rows)-1, e.layout.rows
	rows.Rows[s.rows[last]].Staged = false
	rows.Give(s.rows[last])
	same := base.Words[sharedAt-base.Layout.offsets[k]]
	s.rows[last], rows.Rows[same].Staged = same, true // the packet may drop the baseline before the state is kept
	s.words[e.first+sharedAt-e.layout.offsets[k]] = same
	if base2 != nil && s.schema.Components[k].Layout.Moves() {
		base2.merge(k, same)
	}
}

// takeRow counts the work of a row that was decoded, and reports whether the row is valid.
func (s *staging) takeRow(at *Place, row []uint32) bool {
	s.work += at.work
	return s.fair() && at.Comp.ValidDecoded(row)
}

// keepRow gives the entry the first baseline's row of a place. row is the memory for it. base2
// is nil if there is no prediction.
func (s *staging) keepRow(e *stagedEntry, at *Place, row, row1 []uint32, base, base2 *HeldState) {
	if s.work++; at.Offset < 0 {
		s.share(e, at.Number, base, base2)
	} else {
		copy(row, row1)
	}
}
