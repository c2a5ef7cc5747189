// Package history keeps the recent versions of the rows of components, by slot and tick, shared by all peers.
package history

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
)

// Found reports whether Rows have a row at a tick.
type Found uint8

const (
	// Forgotten means that the tick is older than the versions that are kept.
	Forgotten Found = iota
	// Absent means that the slot did not have the component at that tick.
	Absent
	// Present means that the slot had the component at that tick, with the row returned.
	Present
)

// Rows keeps the versions of one component's rows for every slot: the newest one
// for ever, older ones for a window of ticks. All peers share it. A version is added
// only when codes change, so the state at a tick is the newest version that is not
// later, and a still entity has a single version.
//
// Slots come in blocks of 64. The rows of a block that are superseded in a tick are written
// to one place, one behind the other, whenever they began: a tick in which all of them
// change costs little more than copying the block.
//
// Memory is bounded. A row takes 4 bytes more than its words. A block in which a slot has had
// the component has 64 rows. Once something in the block has changed, it has a log of older
// rows, with room for at least 128 rows and at most 64 for each tick of the window and 64
// more. The log doubles when it has no room for the rows superseded within a window and 64
// more. Besides, the block takes 24 bytes for each tick of the window in which something in
// it changed, rounded up to a power of two; and 64 rows more once something has rested for a
// window. The log keeps its size for later incarnations.
//
// The ticks handed to Set, SetRows, SetNeighbours and Remove must not go back.
type Rows struct {
	stride uint // words of a record
	window delta.Tick
	blocks []*block

	near  []uint32 // see Keep
	far   uint64   // all bits if what farThree finds is not near
	keeps func(i int, row, present []uint32) bool
}

// New returns an empty history of rows of the given number of words. It keeps a
// superseded version until window ticks after that ended, and the one before the present
// version as long as the present one lasts: [Rows.At] has the row at every tick of the
// incarnation within the window, and may have forgotten earlier ones.
//
// Panics on a negative number of words or a window outside 0..2^30.
func New(words, window int) *Rows {
	if words < 0 || window < 0 || window > 1<<30 {
		panic(fmt.Sprintf("history: a history of %d words and %d ticks: use at least 0 words and 0 to 2^30 ticks",
			words, window))
	}
	return &Rows{stride: recordRow + uint(words), window: delta.Tick(window)}
}

// Begin starts a new incarnation of the slot, without the component. It forgets the
// previous one.
func (h *Rows) Begin(slot int) {
	if b := h.block(slot); b != nil { // versions in the log ended before
		b.known &^= 1 << place(slot)
		b.present &^= 1 << place(slot)
	}
}

// Set records that the slot has the component with this row from tick now on, and
// reports whether that is a change. born is the tick at which the slot's incarnation
// began; only the first Set after Begin uses it. The row is copied.
func (h *Rows) Set(slot int, now, born delta.Tick, row []uint32) bool {
	return h.SetNeighbours(slot, 1, now, func(int) delta.Tick { return born }, row) != 0
}

// Remove records that the slot is without the component from tick now on, and
// reports whether that is a change.
func (h *Rows) Remove(slot int, now delta.Tick) bool {
	if !h.Has(slot) {
		return false
	}
	b, i := h.block(slot), place(slot)
	if old := b.ending(0, 1<<i, now, nil); old != 0 {
		b.supersede(h.window, old, now)
	}
	b.record(i, h.stride)[recordTick] = uint32(now)
	b.present &^= 1 << i
	return true
}

// Has reports whether the slot has the component.
func (h *Rows) Has(slot int) bool {
	b := h.block(slot)
	return b != nil && b.present>>place(slot)&1 != 0
}

// Began returns the tick at which the present row of a slot that has the component began.
func (h *Rows) Began(slot int) delta.Tick {
	return delta.Tick(h.block(slot).records[place(slot)*h.stride+recordTick])
}

// Row returns the present row of a slot that has the component. It belongs to the
// history and is valid until the slot changes.
func (h *Rows) Row(slot int) []uint32 {
	return h.block(slot).record(place(slot), h.stride)[recordRow:]
}

// At returns the slot's row at tick t, which must not be before the incarnation
// began. The row is meaningful if it is [Present]; it belongs to the history and is
// valid until any slot changes.
func (h *Rows) At(slot int, t delta.Tick) ([]uint32, Found) {
	var v Versions
	if !h.Find(slot, &v) {
		return nil, Absent
	}
	return v.At(t)
}

// Find is Versions for any slot. It returns false if the slot has never had the component in this
// incarnation. Versions are filled in place: reading a copy that was stored a moment ago in pieces of
// another size would stall.
func (h *Rows) Find(slot int, v *Versions) (ok bool) {
	b := h.knows(slot)
	if b == nil {
		return false
	}
	v.block, v.slot, v.rec = b, place(slot), b.record(place(slot), h.stride)
	return true
}

// Versions has the versions of one slot's row. They belong to the history and are valid
// until any slot changes.
type Versions struct {
	block *block
	slot  uint     // index in the block
	rec   []uint32 // the present version
}

// Versions returns the versions of a slot that has the component.
func (h *Rows) Versions(slot int) Versions {
	b := h.block(slot)
	return Versions{b, place(slot), b.record(place(slot), h.stride)}
}

// Row returns the present row.
func (v *Versions) Row() []uint32 { return v.rec[recordRow:] }

// Began returns the tick at which the present version began.
func (v *Versions) Began() delta.Tick { return delta.Tick(v.rec[recordTick]) }

// At is [Rows.At].
func (v *Versions) At(t delta.Tick) ([]uint32, Found) {
	if v.Began().After(t) {
		return v.block.past.at(v.slot, t, uint(len(v.rec)))
	}
	return v.rec[recordRow:], Absent + Found(v.block.present>>v.slot&1)
}

// Sure reports whether the slot's row at tick t is certain to be known at tick now, given what
// [New] promises to keep. At may have more, depending on the changes of other slots.
func (h *Rows) Sure(slot int, t, now delta.Tick) bool {
	if now-t <= h.window || h.knows(slot) == nil {
		return true
	}
	v := h.Versions(slot)
	if !v.Began().After(t) {
		return true
	}
	for _, kept := range [...]delta.Tick{now - h.window, v.Began() - 1} { // the same version as then?
		if v.Began().After(kept) {
			rec, _ := v.block.past.find(v.slot, kept, uint(len(v.rec)))
			if rec != nil && !delta.Tick(rec[recordTick]).After(t) {
				return true
			}
		}
	}
	return false
}

// Refresh moves the beginning of the slot's present version to tick t if it is
// older, so that serial arithmetic keeps working on rows that rest for months. It forgets
// older versions of the slot, and versions of the other slots of its block that ended up to t.
func (h *Rows) Refresh(slot int, t delta.Tick) {
	if b := h.block(slot); b != nil {
		b.refresh(place(slot), t)
	}
}

// Block returns the block of 64 slots that a slot is in, for [delta.Columns.Add], or nil if none of them has ever had
// the component.
func (h *Rows) Block(slot int) delta.Block {
	if b := h.block(slot); b != nil {
		return b
	}
	return nil
}

// block returns the block of a slot, or nil if there is none yet.
func (h *Rows) block(slot int) *block {
	if i := uint(slot) / blockSlots; i < uint(len(h.blocks)) {
		return h.blocks[i]
	}
	return nil
}

// place returns the index of a slot in its block.
func place(slot int) uint { return uint(slot) % blockSlots }

// knows returns the block of a slot, or nil if the slot has never had the component in this
// incarnation.
func (h *Rows) knows(slot int) *block {
	if b := h.block(slot); b != nil && b.known>>place(slot)&1 != 0 {
		return b
	}
	return nil
}

// make returns the block of a slot, and adds it if there is none.
func (h *Rows) make(slot int) *block {
	if b := h.block(slot); b != nil {
		return b
	}
	return h.add(slot)
}

// add adds the block of a slot.
func (h *Rows) add(slot int) *block {
	i := slot / blockSlots
	for len(h.blocks) <= i {
		h.blocks = append(h.blocks, nil)
	}
	h.blocks[i] = &block{records: make([]uint32, blockSlots*h.stride)}
	return h.blocks[i]
}
