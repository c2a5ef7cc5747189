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
		h.setBlock(block, now, born, rows[first*words:][:len(block)*words], &news[first/64])
	}
}

// setBlock is SetRows for up to 64 slots. It makes all comparisons first, without
// branches, and then what is news: which rows those are can't be predicted.
func (h *History) setBlock(slots []uint32, now Tick, born func(slot int) Tick, rows []uint32, news *uint64) {
	records, rings := h.neighbours(slots)
	var differ uint64
	switch {
	case records == nil:
		differ = h.differ(slots, rows)
	case h.stride == recordRow+3:
		differ = differThree(records, rows)
	default:
		differ = differAny(records, rows, h.stride)
	}
	*news |= differ
	if bits.OnesCount64(differ) < manyRows {
		h.warm(slots, differ)
	}
	if rings != nil && h.stride == recordRow+3 {
		differ = h.putThree(records, rings, differ, now, rows)
	}
	h.putRows(slots, differ, now, born, rows)
}

// neighbours returns the records of the slots, and their rings if they have any, if the
// slots follow one another on a page that exists.
func (h *History) neighbours(slots []uint32) ([]uint32, []ring) {
	first := slots[0]
	for i, slot := range slots {
		if slot != first+uint32(i) {
			return nil, nil
		}
	}
	p, i := h.page(int(first)), int(first%pageSlots)
	if p == nil || i+len(slots) > pageSlots {
		return nil, nil
	}
	records := p.records[i*h.stride:][:len(slots)*h.stride]
	if p.rings == nil {
		return records, nil
	}
	return records, p.rings[i:][:len(slots)]
}

// differThree is differ for consecutive records of rows of three words.
func differThree(records, rows []uint32) (set uint64) {
	const stride = recordRow + 3
	for i := 0; len(rows) >= 3 && len(records) >= stride; i++ {
		d := (records[recordRow] ^ rows[0]) | (records[recordRow+1] ^ rows[1]) | (records[recordRow+2] ^ rows[2])
		set |= bit(d|(records[recordState]^present)) << (i & 63)
		records, rows = records[stride:], rows[3:]
	}
	return set
}

// differAny is differ for consecutive records.
func differAny(records, rows []uint32, stride int) (set uint64) {
	for i := 0; len(records) >= stride; i++ {
		d := records[recordState] ^ present
		for k, x := range records[recordRow:stride] {
			d |= rows[k] ^ x
		}
		set |= bit(d) << (i & 63)
		records, rows = records[stride:], rows[stride-recordRow:]
	}
	return set
}

// putThree is putRows for consecutive records of rows of three words, such as positions.
// It returns the rows that need more than a place in their ring and has not put them.
func (h *History) putThree(records []uint32, rings []ring, set uint64, now Tick, rows []uint32) (others uint64) {
	const stride = recordRow + 3
	full := max(uint32(h.window), 1)
	for ; set != 0; set &= set - 1 {
		i := uint(bits.TrailingZeros64(set))
		rec, row, r := (*[stride]uint32)(records[stride*i:]), (*[3]uint32)(rows[3*i:]), &rings[i]
		at := uint(r.start)
		if rec[recordState] == unknown || rec[recordTick] == uint32(now) {
			others |= 1 << i
			continue
		}
		switch {
		case uint(r.n)*stride < uint(len(r.records)):
			at = r.end(stride)
			r.n++
		case r.n >= full:
			r.start = uint32(r.after(at, stride))
		default:
			others |= 1 << i
			continue
		}
		old := (*[stride]uint32)(r.records[at:])
		old[0], old[1], old[2], old[3], old[4] = rec[0], rec[1], rec[2], rec[3], rec[4]
		rec[0], rec[1], rec[2], rec[3], rec[4] = uint32(now), present, row[0], row[1], row[2]
	}
	return others
}

// manyRows is how many rows of 64 are enough that the processor foresees where the next
// one goes.
const manyRows = 48

// warm reads where the present versions of some slots will go when they are superseded.
// That is memory which nobody has looked at for a while: here the processor waits for
// all of it at once, instead of for one slot after the other.
func (h *History) warm(slots []uint32, set uint64) {
	stride, sum := uint(h.stride), uint32(0)
	for ; set != 0; set &= set - 1 {
		slot := slots[bits.TrailingZeros64(set)]
		if p := h.pages[slot/pageSlots]; p.rings != nil {
			r := &p.rings[slot%pageSlots]
			if at := r.end(stride); at < uint(len(r.records)) {
				sum += r.records[at] + r.records[r.after(at, stride)]
			}
		}
	}
	h.warmed = sum
}

// differ returns the set of those of up to 64 slots whose present row is another one,
// or that are without.
func (h *History) differ(slots, rows []uint32) (set uint64) {
	stride := h.stride
	switch stride - recordRow {
	case 1:
		for i, slot := range slots {
			rec := h.present(slot, stride)[:recordRow+1]
			d := (rec[recordState] ^ present) | (rec[recordRow] ^ rows[i])
			set |= bit(d) << (i & 63)
		}
	case 3:
		for i, slot := range slots {
			rec, row := h.present(slot, stride)[:recordRow+3], rows[3*i:][:3]
			d := (rec[recordRow] ^ row[0]) | (rec[recordRow+1] ^ row[1]) | (rec[recordRow+2] ^ row[2])
			set |= bit(d|(rec[recordState]^present)) << (i & 63)
		}
	default:
		for i, slot := range slots {
			rec := h.present(slot, stride)
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

// putRows makes rows that differ from the present ones the newest versions of their
// slots.
func (h *History) putRows(slots []uint32, set uint64, now Tick, born func(slot int) Tick, rows []uint32) {
	stride := uint(h.stride)
	words := stride - recordRow
	for ; set != 0; set &= set - 1 {
		i := uint(bits.TrailingZeros64(set))
		slot := uint(slots[i])
		p := h.pages[slot/pageSlots]
		rec := p.records[slot%pageSlots*stride:][:stride]
		if rec[recordState] == unknown {
			rec[recordState], rec[recordTick] = absent, uint32(born(int(slot)))
		}
		if Tick(rec[recordTick]) != now {
			h.supersede(p, slot, rec, now)
		}
		rec[recordTick], rec[recordState] = uint32(now), present
		copyWords(rec[recordRow:], rows[i*words:][:words])
	}
}

// Remove records that the slot is without the component from tick now on, and
// reports whether that is news.
func (h *History) Remove(slot int, now Tick) bool {
	if !h.Has(slot) {
		return false
	}
	p := h.page(slot)
	rec := p.record(slot, h.stride)
	if Tick(rec[recordTick]) != now { // a version that lasted no tick leaves no trace
		h.supersede(p, uint(slot), rec, now)
	}
	rec[recordTick], rec[recordState] = uint32(now), absent
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
	if h.known(slot) == nil {
		return nil, Absent
	}
	v := h.Versions(slot)
	return v.At(t)
}

// Versions are the versions of one slot's row. They belong to the history and are valid
// until the slot changes.
type Versions struct {
	latest []uint32 // the record of the present one
	old    *ring    // nil if there are no others
}

// Versions returns the versions of a slot that has the component.
func (h *History) Versions(slot int) Versions {
	p := h.page(slot)
	v := Versions{latest: p.record(slot, h.stride)}
	if p.rings != nil {
		v.old = &p.rings[slot%pageSlots]
	}
	return v
}

// Row returns the present row.
func (v *Versions) Row() []uint32 { return v.latest[recordRow:] }

// Began returns the tick at which the present version began.
func (v *Versions) Began() Tick { return Tick(v.latest[recordTick]) }

// At is [History.At].
func (v *Versions) At(t Tick) ([]uint32, Found) {
	rec, r, stride := v.latest, v.old, len(v.latest)
	began := Tick(rec[recordTick])
	if !began.After(t) {
		return rec[recordRow:], found(rec)
	}
	if r == nil {
		return nil, Forgotten
	}
	n := int(r.n)
	// A row that changes every tick lies as many versions back as ticks. No version that
	// is farther back can be the one.
	if back := began - t; back <= Tick(n) {
		if rec := r.record(n-int(back), stride); Tick(rec[recordTick]) == t {
			return rec[recordRow:], found(rec)
		}
	}
	for k := n - 1; k >= 0; k-- {
		rec := r.record(k, stride)
		if !Tick(rec[recordTick]).After(t) {
			return rec[recordRow:], found(rec)
		}
	}
	return nil, Forgotten
}

// Touch reads something of each of the latest n versions, so that they are in the
// processor's cache when they are needed: it waits for the memory of all slots that are
// touched one after the other at once. What it returns has no meaning, but must be used.
func (v *Versions) Touch(n int) (sum uint32) {
	const line = 64 / 4 // words of a cache line
	if v.old == nil {
		return 0
	}
	r, stride := v.old, len(v.latest)
	if n = min(n, int(r.n)); n == 0 {
		return 0
	}
	at, words := int(r.start)+(int(r.n)-n)*stride, n*stride
	for k := 0; k < words+line; k += line {
		i := at + min(k, words-1)
		if i >= len(r.records) {
			i -= len(r.records)
		}
		sum += r.records[i]
	}
	return sum
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

// supersede copies the slot's present version into its ring. If that is full, the oldest
// version makes room if it ended a window ago, when the next one began, or if there are
// as many as a window has ticks; or else the ring doubles. (With ticks that don't go back
// the latter follows from the former, but it bounds the memory whatever the ticks are,
// and mostly saves looking at the oldest.)
func (h *History) supersede(p *page, slot uint, rec []uint32, now Tick) {
	if p.rings == nil {
		p.rings = new([pageSlots]ring)
	}
	r, stride := &p.rings[slot%pageSlots], uint(len(rec))
	if uint(r.n)*stride == uint(len(r.records)) {
		if r.n == 0 || Tick(r.n) < h.window && now-Tick(r.records[r.after(uint(r.start), stride)+recordTick]) < h.window {
			r.grow(int(stride))
		} else {
			r.start = uint32(r.after(uint(r.start), stride))
			r.n--
		}
	}
	copyWords(r.records[r.end(stride):], rec)
	r.n++
}

// grow doubles a full ring.
func (r *ring) grow(stride int) {
	grown := make([]uint32, max(4*stride, 2*len(r.records)))
	n := copy(grown, r.records[r.start:])
	copy(grown[n:], r.records[:r.start])
	r.records, r.start = grown, 0
}

// after returns where the record behind the one at the given place is.
func (r *ring) after(at, stride uint) uint {
	if at += stride; at == uint(len(r.records)) {
		return 0
	}
	return at
}

// end returns where the next version goes; in a full ring that is where the oldest one
// is.
func (r *ring) end(stride uint) uint {
	at := uint(r.start) + uint(r.n)*stride
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

// present returns the present version of any slot.
func (h *History) present(slot uint32, stride int) []uint32 {
	if i := int(slot / pageSlots); i < len(h.pages) && h.pages[i] != nil {
		return h.pages[i].records[int(slot%pageSlots)*stride:][:stride]
	}
	return h.addPage(slot)
}

func (h *History) page(slot int) *page {
	if i := slot / pageSlots; i < len(h.pages) {
		return h.pages[i]
	}
	return nil
}

// addPage makes the page of a slot and returns the slot's present version.
//
//go:noinline
func (h *History) addPage(slot uint32) []uint32 {
	i := int(slot / pageSlots)
	for len(h.pages) <= i {
		h.pages = append(h.pages, nil)
	}
	h.pages[i] = &page{records: make([]uint32, pageSlots*h.stride)}
	return h.pages[i].record(int(slot), h.stride)
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
