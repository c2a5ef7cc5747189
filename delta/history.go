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
// Memory is bounded: per slot one row and, once it has changed, a ring of at least 4
// and at most window rows, rounded up to a power of two. The ring grows as far as the
// slot's changes within a window need and is kept for later incarnations. With every
// row go 8 bytes, and 32 bytes per slot with every ring.
//
// The ticks handed to Set, SetRows and Remove must not go back.
type History struct {
	stride int // words of a record
	window Tick
	pages  []*page
	warmed uint32 // what warm read, so that it is not optimised away
}

// A version is kept as a record: when it began, what the slot had then, and the row.
// Superseding one is a copy of consecutive words.
const (
	recordTick  = 0
	recordState = 1
	recordRow   = 2
)

// States of a record. Of a slot that never had the component in this incarnation not
// even the tick is known.
const (
	unknown = iota
	absent
	present
)

// pageSlots is the number of slots that share an allocation: schemas have many
// components of which an entity has a few.
const pageSlots = 256

type page struct {
	records []uint32         // the present version of each slot
	rings   *[pageSlots]ring // nil until something is superseded
}

// ring holds the superseded versions of one row, oldest first from start on.
type ring struct {
	records []uint32
	start   uint32 // in words
	n       uint32 // versions
}

// NewHistory returns an empty history of rows of the given number of words. A
// superseded version is kept until window ticks after it ended: [History.At] knows the
// row at every tick of the incarnation from window ticks before the slot's latest
// change on, and may have forgotten earlier ones.
//
// Panics on a negative number of words or a window outside 0..2^30.
func NewHistory(words, window int) *History {
	if words < 0 || window < 0 || window > 1<<30 {
		panic(fmt.Sprintf("delta: a history of %d words and %d ticks: use at least 0 words and 0 to 2^30 ticks", words, window))
	}
	return &History{stride: recordRow + words, window: Tick(window)}
}

// Begin starts a new incarnation of the slot, without the component. What was known
// of the slot is gone.
func (h *History) Begin(slot int) {
	if p := h.page(slot); p != nil {
		p.record(slot, h.stride)[recordState] = unknown
		if p.rings != nil {
			p.rings[slot%pageSlots].n = 0
		}
	}
}

// Set records that the slot has the component with this row from tick now on, and
// reports whether that is news. born is the tick at which the slot's incarnation
// began, which only the first Set since Begin looks at. The row is copied.
func (h *History) Set(slot int, now, born Tick, row []uint32) bool {
	var news [1]uint64
	h.SetRows([]uint32{uint32(slot)}, now, func(int) Tick { return born }, row, news[:])
	return news[0] != 0
}

// SetRows is [History.Set] for many slots, none of them twice. rows holds their rows
// one behind the other, and born tells when a slot's incarnation began. Bit i%64 of
// news[i/64] is set if row i is news; the other bits stay as they are.
//
// Panics if rows or news are too short.
func (h *History) SetRows(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32, news []uint64) {
	words := h.stride - recordRow
	for first := 0; first < len(slots); first += 64 {
		block := slots[first:min(first+64, len(slots))]
		// First all comparisons, without branches, then what is news: which rows those
		// are can't be predicted.
		differ := h.differ(block, rows[first*words:][:len(block)*words])
		news[first/64] |= differ
		if bits.OnesCount64(differ) < manyRows {
			h.warm(block, differ)
		}
		for ; differ != 0; differ &= differ - 1 {
			i := bits.TrailingZeros64(differ)
			h.put(int(block[i]), now, born, rows[(first+i)*words:][:words])
		}
	}
}

// manyRows is how many rows of 64 are enough that the processor foresees where the next
// one goes.
const manyRows = 48

// warm reads where the present versions of some slots will go when they are superseded.
// That is memory which nobody has looked at for a while: here the processor waits for
// all of it at once, instead of for one slot after the other.
func (h *History) warm(slots []uint32, set uint64) {
	var sum uint32
	for ; set != 0; set &= set - 1 {
		slot := slots[bits.TrailingZeros64(set)]
		if p := h.pages[slot/pageSlots]; p.rings != nil {
			r := &p.rings[slot%pageSlots]
			if at := r.end(h.stride); at < uint(len(r.records)) {
				sum += r.records[at]
			}
		}
	}
	h.warmed = sum
}

// differ returns the set of those of up to 64 slots whose present row is another one,
// or that are without.
func (h *History) differ(slots, rows []uint32) (set uint64) {
	switch h.stride - recordRow {
	case 1:
		for i, slot := range slots {
			rec := h.record(int(slot))[:recordRow+1]
			set |= bit((rec[recordState]^present)|(rec[recordRow]^rows[i])) << (i & 63)
		}
	case 3:
		for i, slot := range slots {
			rec, row := h.record(int(slot))[:recordRow+3], rows[3*i:][:3]
			d := (rec[recordRow] ^ row[0]) | (rec[recordRow+1] ^ row[1]) | (rec[recordRow+2] ^ row[2])
			set |= bit(d|(rec[recordState]^present)) << (i & 63)
		}
	default:
		for i, slot := range slots {
			rec := h.record(int(slot))
			row := rec[recordRow:]
			d := rec[recordState] ^ present
			for k, x := range rows[i*len(row):][:len(row)] {
				d |= row[k] ^ x
			}
			set |= bit(d) << (i & 63)
		}
	}
	return set
}

// bit returns 1 if x is not 0.
func bit(x uint32) uint64 { return uint64(x|-x) >> 31 }

// put makes the row, which differs from the present one, the slot's newest version.
func (h *History) put(slot int, now Tick, born func(slot int) Tick, row []uint32) {
	p := h.pages[slot/pageSlots]
	rec := p.record(slot, h.stride)
	if rec[recordState] == unknown {
		rec[recordState], rec[recordTick] = absent, uint32(born(slot))
	}
	h.supersede(p, slot, rec, now)
	rec[recordState] = present
	copyWords(rec[recordRow:], row)
}

// Remove records that the slot is without the component from tick now on, and
// reports whether that is news.
func (h *History) Remove(slot int, now Tick) bool {
	if !h.Has(slot) {
		return false
	}
	p := h.page(slot)
	rec := p.record(slot, h.stride)
	h.supersede(p, slot, rec, now)
	rec[recordState] = absent
	return true
}

// ChangedSince reports whether the slot's present version began after tick t.
func (h *History) ChangedSince(slot int, t Tick) bool {
	rec := h.known(slot)
	return rec != nil && Tick(rec[recordTick]).After(t)
}

// Has reports whether the slot has the component.
func (h *History) Has(slot int) bool {
	rec := h.known(slot)
	return rec != nil && rec[recordState] == present
}

// Row returns the present row of a slot that has the component. It belongs to the
// history and is valid until the slot changes.
func (h *History) Row(slot int) []uint32 {
	return h.page(slot).record(slot, h.stride)[recordRow:]
}

// At returns the slot's row at tick t, which must not be before the incarnation
// began. The row is meaningful if it is [Present]; it belongs to the history and is
// valid until the slot changes.
func (h *History) At(slot int, t Tick) ([]uint32, Found) {
	rec := h.known(slot)
	if rec == nil {
		return nil, Absent
	}
	if !Tick(rec[recordTick]).After(t) {
		return rec[recordRow:], found(rec)
	}
	rings := h.page(slot).rings
	if rings == nil {
		return nil, Forgotten
	}
	// A row that changes every tick lies as many versions back as ticks.
	r := &rings[slot%pageSlots]
	for k := int(r.n) - 1; k >= 0; k-- {
		rec := r.record(k, h.stride)
		if !Tick(rec[recordTick]).After(t) {
			return rec[recordRow:], found(rec)
		}
	}
	return nil, Forgotten
}

// Refresh moves the beginning of the slot's present version to tick t if it is
// older, so that serial arithmetic keeps working on rows that rest for months. What was
// before t is forgotten then.
func (h *History) Refresh(slot int, t Tick) {
	rec := h.known(slot)
	if rec == nil || !Tick(rec[recordTick]).Before(t) {
		return
	}
	rec[recordTick] = uint32(t)
	if p := h.page(slot); p.rings != nil {
		p.rings[slot%pageSlots].n = 0
	}
}

func found(rec []uint32) Found {
	if rec[recordState] == present {
		return Present
	}
	return Absent
}

// supersede moves the slot's present version into its ring; the next one begins now. A
// version that lasted no tick leaves no trace.
func (h *History) supersede(p *page, slot int, rec []uint32, now Tick) {
	if Tick(rec[recordTick]) != now {
		if p.rings == nil {
			p.rings = new([pageSlots]ring)
		}
		r := &p.rings[slot%pageSlots]
		if int(r.n)*h.stride == len(r.records) {
			h.makeRoom(r, now)
		}
		r.n++
		copyWords(r.record(int(r.n)-1, h.stride), rec)
	}
	rec[recordTick] = uint32(now)
}

// makeRoom drops the oldest version of a full ring if it ended a window ago, when the
// next one began, or the ring has its full size, or else doubles the ring. (With ticks
// that don't go back the first condition follows from the second, which bounds the
// memory whatever the ticks are and mostly saves looking at the ring.)
func (h *History) makeRoom(r *ring, now Tick) {
	if r.n > 0 && (Tick(r.n) >= h.window || now-Tick(r.record(1, h.stride)[recordTick]) >= h.window) {
		r.n--
		if r.start += uint32(h.stride); int(r.start) == len(r.records) {
			r.start = 0
		}
		return
	}
	grown := make([]uint32, max(4*h.stride, 2*len(r.records)))
	n := copy(grown, r.records[r.start:])
	copy(grown[n:], r.records[:r.start])
	r.records, r.start = grown, 0
}

// end returns where the next version goes; in a full ring that is where the oldest one
// is.
func (r *ring) end(stride int) uint {
	at := uint(r.start) + uint(r.n)*uint(stride)
	if at >= uint(len(r.records)) {
		at -= uint(len(r.records))
	}
	return at
}

// record returns version k of the ring, from the oldest on.
func (r *ring) record(k, stride int) []uint32 {
	at := int(r.start) + k*stride
	if at >= len(r.records) {
		at -= len(r.records)
	}
	return r.records[at:][:stride]
}

// record returns the present version of a slot of the page.
func (p *page) record(slot, stride int) []uint32 {
	return p.records[slot%pageSlots*stride:][:stride]
}

// known returns the present version of a slot, or nil if the slot never had the
// component in this incarnation.
func (h *History) known(slot int) []uint32 {
	if p := h.page(slot); p != nil {
		if rec := p.record(slot, h.stride); rec[recordState] != unknown {
			return rec
		}
	}
	return nil
}

// record returns the present version of any slot.
func (h *History) record(slot int) []uint32 {
	if i := slot / pageSlots; i < len(h.pages) {
		if p := h.pages[i]; p != nil {
			return p.record(slot, h.stride)
		}
	}
	return h.addPage(slot).record(slot, h.stride)
}

func (h *History) page(slot int) *page {
	if i := slot / pageSlots; i < len(h.pages) {
		return h.pages[i]
	}
	return nil
}

func (h *History) addPage(slot int) *page {
	i := slot / pageSlots
	for len(h.pages) <= i {
		h.pages = append(h.pages, nil)
	}
	h.pages[i] = &page{records: make([]uint32, pageSlots*h.stride)}
	return h.pages[i]
}

// copyWords copies src to the beginning of dst. The usual lengths need no call.
func copyWords(dst, src []uint32) {
	switch len(src) {
	case 1:
		dst[0] = src[0]
	case 3:
		*(*[3]uint32)(dst) = *(*[3]uint32)(src)
	case 5:
		*(*[5]uint32)(dst) = *(*[5]uint32)(src)
	default:
		copy(dst, src)
	}
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
