package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// staging collects what a packet says before any of it is believed: a packet with a
// single wrong bit changes nothing.
type staging struct {
	schema    *schema.Schema
	resources archeutil.ResourceSet

	entries []stagedEntry
	words   []uint32 // rows of the entries, and indices of shared ones
	rows    []uint32 // the shared rows of the entries: new ones, and those of baselines
	parts   []stagedPart
	work    int // see config/work.go
	bits    int // of the packet's entries
	bound   config.WorkBound
}

type stagedEntry struct {
	slot       uint32
	tick       delta.Tick
	layout     *Layout // nil: the slot is empty
	generation uint16
	first      int // where its words begin
}

type stagedPart struct {
	slot        uint32
	tick        delta.Tick
	total, size int
	index       int
	bytes       []byte // in the packet
}

// begin empties the staging area, for a packet with so many bits of entries.
func (s *staging) begin(bits int, bound config.WorkBound) {
	s.entries, s.words, s.parts = s.entries[:0], s.words[:0], s.parts[:0]
	s.work, s.bits, s.bound = 0, bits, bound
}

// end gives back the rows that no state holds: new ones that no state took over, and those of
// baselines that the packet itself made the client drop.
func (s *staging) end(rows *archeutil.RowPool) {
	for _, i := range s.rows {
		r := rows.Rows[i]
		if r.Staged = false; r.Holders == 0 {
			rows.Give(i)
		}
	}
	s.rows = s.rows[:0]
}

// fair reports whether the packet makes no more work than it may.
func (s *staging) fair() bool {
	return s.bound.Allows(s.work, s.bits) || len(s.entries)+len(s.parts) == 1
}

// addPart takes a part. A packet has one at most, so that it completes no more than one state.
func (s *staging) addPart(p stagedPart) error {
	if len(s.parts) > 0 {
		return wire.ErrMalformed
	}
	s.parts = append(s.parts, p)
	return nil
}

// stage makes room for a state of a slot, or returns nil if the slot can't have such a state. The
// entry is valid until the next one.
func (s *staging) stage(slot uint32, tick delta.Tick, generation uint16, sh *Layout) *stagedEntry {
	if s.resources.Any && !s.resources.Fits(slot, &sh.Set) {
		return nil
	}
	first, n := len(s.words), len(s.entries)
	if end := first + sh.Words; end <= cap(s.words) {
		s.words = s.words[:end]
	} else {
		s.words = append(s.words, make([]uint32, sh.Words)...)
	}
	if n < cap(s.entries) {
		s.entries = s.entries[:n+1]
	} else {
		s.entries = append(s.entries, stagedEntry{})
	}
	e := &s.entries[n]
	// Field by field: it takes several times as long to make an entry and to copy it here.
	e.slot, e.tick, e.layout, e.generation, e.first = slot, tick, sh, generation, first
	return e
}

// despawn takes it that a slot is empty.
func (s *staging) despawn(slot uint32, tick delta.Tick) error {
	if s.resources.In(int(slot)) {
		return wire.ErrMalformed // it is never empty
	}
	s.entries = append(s.entries, stagedEntry{slot: slot, tick: tick})
	return nil
}

// room returns memory for the entry's row of component k, which it has and which has n words, and whose offset in its
// layout is o. What is in the memory has no meaning. words are those of the entry.
func (s *staging) room(e *stagedEntry, words []uint32, o, k, n int) []uint32 {
	if o >= 0 {
		return words[o:][:n]
	}
	return s.sharedRoom(e, o, k, n)
}

func (s *staging) sharedRoom(e *stagedEntry, o, k, n int) []uint32 {
	i := e.layout.rows.Take(k, n)
	r := e.layout.rows.Rows[i]
	r.Staged = true
	s.rows = append(s.rows, i)
	s.words[e.first+sharedAt-o] = i
	return r.Words
}

// share gives the entry the baseline's row of component k in place of the one that there was room
// for. If there is a prediction from a second baseline, the row there is the same.
func (s *staging) share(e *stagedEntry, k int, base, base2 *HeldState) {
	if s.schema.Components[k].Layout.Width() == 0 {
		s.work--
	}
	last, rows := len(s.rows)-1, e.layout.rows
	rows.Rows[s.rows[last]].Staged = false
	rows.Give(s.rows[last])
	same := base.Words[sharedAt-base.Layout.offsets[k]]
	s.rows[last], rows.Rows[same].Staged = same, true // the baseline may be dropped before the state is kept
	s.words[e.first+sharedAt-e.layout.offsets[k]] = same
	if base2 != nil && s.schema.Components[k].Layout.Moves() {
		base2.merge(k, same)
	}
}

// takeRow completes a row of a component that was decoded.
func (s *staging) takeRow(comp *schema.Component, row []uint32) bool {
	s.work += comp.Layout.Work()
	return s.fair() && comp.ValidRow(row)
}

// keepRow completes a row of component k that is that of the first baseline, for which there was
// room. base2 is nil if there is no prediction.
func (s *staging) keepRow(e *stagedEntry, k int, row, row1 []uint32, base, base2 *HeldState) {
	if s.work++; e.layout.offsets[k] < 0 {
		s.share(e, k, base, base2)
	} else {
		copy(row, row1)
	}
}
