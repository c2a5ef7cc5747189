package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// staging collects what a packet says before any of it is believed: a packet with a
// single wrong bit changes nothing.
type staging struct {
	entries []stagedEntry
	words   []uint32 // rows of the entries, and indices of shared ones
	rows    []uint32 // the shared rows of the entries: new ones, and those of baselines
	parts   []stagedPart
	work    int // see work.go
	bits    int // of the packet's entries
	bound   workBound
}

type stagedEntry struct {
	slot       uint32
	tick       delta.Tick
	shape      *shape // nil: the slot is empty
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
func (s *staging) begin(bits int, bound workBound) {
	s.entries, s.words, s.parts = s.entries[:0], s.words[:0], s.parts[:0]
	s.work, s.bits, s.bound = 0, bits, bound
}

// end gives back the rows that no state holds: new ones that no state took over, and those of
// baselines that the packet itself made the client drop.
func (s *staging) end(rows *rowPool) {
	for _, i := range s.rows {
		r := rows.rows[i]
		if r.staged = false; r.holders == 0 {
			rows.give(i)
		}
	}
	s.rows = s.rows[:0]
}

// fair reports whether the packet makes no more work than it may.
func (s *staging) fair() bool {
	return s.bound.allows(s.work, s.bits) || len(s.entries)+len(s.parts) == 1
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
func (rc *receiver) stage(slot uint32, tick delta.Tick, generation uint16, sh *shape) *stagedEntry {
	s := &rc.staged
	if rc.resources.any && !rc.resources.fits(slot, &sh.set) {
		return nil
	}
	e := stagedEntry{slot: slot, tick: tick, shape: sh, generation: generation, first: len(s.words)}
	if n := e.first + sh.words; n <= cap(s.words) {
		s.words = s.words[:n]
	} else {
		s.words = append(s.words, make([]uint32, sh.words)...)
	}
	s.entries = append(s.entries, e)
	return &s.entries[len(s.entries)-1]
}

// room returns memory for the entry's row of component k, which it has and which has n words. What
// is in it has no meaning. words are those of the entry.
func (rc *receiver) room(e *stagedEntry, words []uint32, k, n int) []uint32 {
	if o := e.shape.offsets[k]; o >= 0 {
		return words[o:][:n]
	}
	return rc.sharedRoom(e, k, n)
}

func (rc *receiver) sharedRoom(e *stagedEntry, k, n int) []uint32 {
	s := &rc.staged
	i := e.shape.rows.take(k, n)
	r := e.shape.rows.rows[i]
	r.staged = true
	s.rows = append(s.rows, i)
	s.words[e.first+sharedAt-e.shape.offsets[k]] = i
	return r.words
}

// share gives the entry the baseline's row of component k in place of the one that there was room
// for. If there is a prediction from a second baseline, the row there is the same.
func (rc *receiver) share(e *stagedEntry, k int, base, base2 *heldState) {
	s := &rc.staged
	if rc.schema.Components[k].Layout.Width() == 0 {
		s.work--
	}
	last, rows := len(s.rows)-1, e.shape.rows
	rows.rows[s.rows[last]].staged = false
	rows.give(s.rows[last])
	same := base.words[sharedAt-base.shape.offsets[k]]
	s.rows[last], rows.rows[same].staged = same, true // the baseline may be dropped before the state is kept
	s.words[e.first+sharedAt-e.shape.offsets[k]] = same
	if base2 != nil && rc.schema.Components[k].Layout.Moves() {
		base2.merge(k, same)
	}
}

// takeRow completes a row of a component that was decoded.
func (rc *receiver) takeRow(comp *schema.Component, row []uint32) bool {
	rc.staged.work += comp.Layout.Work()
	return rc.staged.fair() && comp.ValidRow(row)
}

// keepRow completes a row of component k that is that of the first baseline, for which there was
// room. base2 is nil if there is no prediction.
func (rc *receiver) keepRow(e *stagedEntry, k int, row, row1 []uint32, base, base2 *heldState) {
	if rc.staged.work++; e.shape.offsets[k] < 0 {
		rc.share(e, k, base, base2)
	} else {
		copy(row, row1)
	}
}
