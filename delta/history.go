package delta

import (
	"fmt"
	"math/bits"
)

// Found says what a History knows of a row at a tick.
type Found uint8

const (
	// Forgotten says that the tick is older than what is kept.
	Forgotten Found = iota
	// Absent says that the slot did not have the component then.
	Absent
	// Present says that the slot had the component then, with the row returned.
	Present
)

// A History keeps the versions of one component's rows for every slot: the newest
// one for ever, those before it for a window of ticks. All peers share it. A
// version is added only when codes change, so the state at a tick is the newest
// version that is not later, and a still entity keeps a single one.
//
// Slots come in blocks of 64. What changes of a block in a tick is written in one place,
// one row behind the other, whenever the slots changed before: a tick in which all of them
// change costs little more than to copy the block.
//
// Memory is bounded. Rows take 4 bytes more than their words. A block of which a slot had
// the component has 64 rows. Once something in it has changed it has a log of what was
// before, with room for at least 128 rows and at most 64 for every tick of the window and
// 64 more. It doubles when what changed in the block within a window, and 64 rows beside it,
// find no room. With it go 24 bytes for every tick of the window in which something in the
// block changed, rounded up to a power of two; and 64 rows more once something has rested
// for a window. The log keeps its size for later incarnations.
//
// The ticks handed to Set, SetRows, SetNeighbours and Remove must not go back.
type History struct {
	stride uint // words of a record
	window Tick
	blocks []*block
}

// NewHistory returns an empty history of rows of the given number of words. A
// superseded version is kept until window ticks after it ended, and the one before the
// present one as long as that lasts: [History.At] knows the row at every tick of the
// incarnation from window ticks before the present on, and may have forgotten earlier ones.
//
// Panics on a negative number of words or a window outside 0..2^30.
func NewHistory(words, window int) *History {
	if words < 0 || window < 0 || window > 1<<30 {
		panic(fmt.Sprintf("delta: a history of %d words and %d ticks: use at least 0 words and 0 to 2^30 ticks", words, window))
	}
	return &History{stride: recordRow + uint(words), window: Tick(window)}
}

// Begin starts a new incarnation of the slot, without the component. What was known
// of the slot is gone.
func (h *History) Begin(slot int) {
	if b := h.block(slot); b != nil { // what is in its log ended before
		b.known &^= 1 << place(slot)
		b.present &^= 1 << place(slot)
	}
}

// Set records that the slot has the component with this row from tick now on, and
// reports whether that is news. born is the tick at which the slot's incarnation
// began, which only the first Set since Begin looks at. The row is copied.
func (h *History) Set(slot int, now, born Tick, row []uint32) bool {
	return h.SetNeighbours(slot, 1, now, func(int) Tick { return born }, row) != 0
}

// Remove records that the slot is without the component from tick now on, and
// reports whether that is news.
func (h *History) Remove(slot int, now Tick) bool {
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

// ChangedSince reports whether the slot's present version began after tick t.
func (h *History) ChangedSince(slot int, t Tick) bool {
	b := h.knows(slot)
	return b != nil && Tick(b.record(place(slot), h.stride)[recordTick]).After(t)
}

// Has reports whether the slot has the component.
func (h *History) Has(slot int) bool {
	b := h.block(slot)
	return b != nil && b.present>>place(slot)&1 != 0
}

// Began returns the tick at which the present row of a slot that has the component began.
func (h *History) Began(slot int) Tick {
	return Tick(h.block(slot).records[place(slot)*h.stride+recordTick])
}

// Row returns the present row of a slot that has the component. It belongs to the
// history and is valid until the slot changes.
func (h *History) Row(slot int) []uint32 {
	return h.block(slot).record(place(slot), h.stride)[recordRow:]
}

// At returns the slot's row at tick t, which must not be before the incarnation
// began. The row is meaningful if it is [Present]; it belongs to the history and is
// valid until any slot changes.
func (h *History) At(slot int, t Tick) ([]uint32, Found) {
	if h.knows(slot) == nil {
		return nil, Absent
	}
	v := h.Versions(slot)
	return v.At(t)
}

// Versions are the versions of one slot's row. They belong to the history and are valid
// until any slot changes.
type Versions struct {
	block *block
	slot  uint     // its place in the block
	rec   []uint32 // the present one
}

// Versions returns the versions of a slot that has the component.
func (h *History) Versions(slot int) Versions {
	b := h.block(slot)
	return Versions{b, place(slot), b.record(place(slot), h.stride)}
}

// Row returns the present row.
func (v *Versions) Row() []uint32 { return v.rec[recordRow:] }

// Began returns the tick at which the present version began.
func (v *Versions) Began() Tick { return Tick(v.rec[recordTick]) }

// At is [History.At].
func (v *Versions) At(t Tick) ([]uint32, Found) {
	if v.Began().After(t) {
		return v.block.past.at(v.slot, t, uint(len(v.rec)))
	}
	return v.rec[recordRow:], Absent + Found(v.block.present>>v.slot&1)
}

// Sure reports whether what the slot was at tick t is sure to be known at tick now, by what [NewHistory] says is kept.
// What At knows beyond that depends on what the slots beside this one did.
func (h *History) Sure(slot int, t, now Tick) bool {
	if now-t <= h.window || h.knows(slot) == nil {
		return true
	}
	v := h.Versions(slot)
	if !v.Began().After(t) {
		return true
	}
	for _, kept := range [...]Tick{now - h.window, v.Began() - 1} { // the same version as then?
		if v.Began().After(kept) {
			if rec, _ := v.block.past.find(v.slot, kept, uint(len(v.rec))); rec != nil && !Tick(rec[recordTick]).After(t) {
				return true
			}
		}
	}
	return false
}

// Touch reads what some of 64 slots are, those whose bits are set, first being the slot of
// the first bit and a multiple of 64; and which rows ended in all of them in ticks from..to, if
// one did in tick now. So it is in the processor's cache when it is needed, which waits
// for all of that memory at once. What Touch returns has no meaning, but must be used.
func (h *History) Touch(first int, slots uint64, from, to, now Tick) (sum uint32) {
	const line = 64 / 4 // words of a cache line
	b := h.block(first)
	if b == nil {
		return 0
	}
	if bits.OnesCount64(slots) > blockSlots/8 {
		for i := 0; i < len(b.records); i += line {
			sum += b.records[i]
		}
	} else {
		for ; slots != 0; slots &= slots - 1 {
			sum += b.records[uint(bits.TrailingZeros64(slots))*h.stride]
		}
	}
	if b.latest != now {
		return sum
	}
	l := &b.past
	for k := l.n - min(l.n, uint(now-from)); k < l.n; k++ {
		e := l.entry(k)
		if e.at.Before(from) || e.at.After(to) {
			continue
		}
		end := l.end(e, h.stride)
		for i := uint(e.start); i < end; i += line {
			sum += l.records[i]
		}
	}
	return sum
}

// Refresh moves the beginning of the slot's present version to tick t if it is
// older, so that serial arithmetic keeps working on rows that rest for months. What was
// before t is forgotten then, as is what ended up to then in the other slots of its block.
func (h *History) Refresh(slot int, t Tick) {
	if b := h.block(slot); b != nil {
		b.refresh(place(slot), t)
	}
}

// block returns the block of a slot, or nil if there is none yet.
func (h *History) block(slot int) *block {
	if i := uint(slot) / blockSlots; i < uint(len(h.blocks)) {
		return h.blocks[i]
	}
	return nil
}

// place returns the place of a slot in its block.
func place(slot int) uint { return uint(slot) % blockSlots }

// knows returns the block of a slot, or nil if the slot never had the component in this
// incarnation.
func (h *History) knows(slot int) *block {
	if b := h.block(slot); b != nil && b.known>>place(slot)&1 != 0 {
		return b
	}
	return nil
}

// make returns the block of a slot, a new one if there is none.
func (h *History) make(slot int) *block {
	if b := h.block(slot); b != nil {
		return b
	}
	return h.add(slot)
}

func (h *History) add(slot int) *block {
	i := slot / blockSlots
	for len(h.blocks) <= i {
		h.blocks = append(h.blocks, nil)
	}
	h.blocks[i] = &block{records: make([]uint32, blockSlots*h.stride)}
	return h.blocks[i]
}

func equal(a, b []uint32) bool {
	b = b[:len(a)]
	for i, x := range a {
		if b[i] != x {
			return false
		}
	}
	return true
}
