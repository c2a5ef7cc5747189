package delta

import "fmt"

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
// slot's changes within a window need and is kept for later incarnations.
//
// The ticks handed to Set and Remove must not go back.
type History struct {
	words  int
	window Tick
	pages  []*page
}

// pageSlots is the number of slots that share an allocation: schemas have many
// components of which an entity has a few.
const pageSlots = 256

type page struct {
	rows  []uint32 // pageSlots rows
	tick  [pageSlots]Tick
	has   [pageSlots]bool
	known [pageSlots]bool // false: absent ever since the incarnation began
	rings [pageSlots]ring
}

// ring holds the superseded versions of one row, oldest first from start.
type ring struct {
	ticks []Tick // when the version began
	has   []bool
	rows  []uint32
	start int
	n     int
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
	return &History{words: words, window: Tick(window)}
}

// Begin starts a new incarnation of the slot, without the component. What was known
// of the slot is gone.
func (h *History) Begin(slot int) {
	if p := h.page(slot); p != nil {
		i := slot % pageSlots
		p.has[i], p.known[i] = false, false
		p.rings[i].n = 0
	}
}

// Set records that the slot has the component with this row from tick now on, and
// reports whether that is news. born is the tick at which the slot's incarnation
// began, which only the first Set since Begin looks at. The row is copied.
func (h *History) Set(slot int, now, born Tick, row []uint32) bool {
	p := h.page(slot)
	if p == nil {
		p = h.addPage(slot)
	}
	i := slot % pageSlots
	cur := p.rows[i*h.words:][:h.words]
	if p.has[i] && equal(cur, row) {
		return false
	}
	if !p.known[i] {
		p.known[i], p.tick[i] = true, born
	}
	h.supersede(p, i, now)
	copy(cur, row)
	p.has[i] = true
	return true
}

// Remove records that the slot is without the component from tick now on, and
// reports whether that is news.
func (h *History) Remove(slot int, now Tick) bool {
	p := h.page(slot)
	if p == nil || !p.has[slot%pageSlots] {
		return false
	}
	h.supersede(p, slot%pageSlots, now)
	p.has[slot%pageSlots] = false
	return true
}

// ChangedSince reports whether the slot's present version began after tick t.
func (h *History) ChangedSince(slot int, t Tick) bool {
	p := h.page(slot)
	return p != nil && p.known[slot%pageSlots] && p.tick[slot%pageSlots].After(t)
}

// Has reports whether the slot has the component.
func (h *History) Has(slot int) bool {
	p := h.page(slot)
	return p != nil && p.has[slot%pageSlots]
}

// Row returns the present row of a slot that has the component. It belongs to the
// history and is valid until the slot changes.
func (h *History) Row(slot int) []uint32 {
	return h.page(slot).rows[slot%pageSlots*h.words:][:h.words]
}

// At returns the slot's row at tick t, which must not be before the incarnation
// began. The row is meaningful if it is [Present]; it belongs to the history and is
// valid until the slot changes.
func (h *History) At(slot int, t Tick) ([]uint32, Found) {
	p, i := h.page(slot), slot%pageSlots
	if p == nil || !p.known[i] {
		return nil, Absent
	}
	if !p.tick[i].After(t) {
		return p.rows[i*h.words:][:h.words], found(p.has[i])
	}
	r := &p.rings[i]
	// A row that changes every tick lies as many versions back as ticks.
	for k := r.n - 1; k >= 0; k-- {
		j := (r.start + k) & (len(r.ticks) - 1)
		if !r.ticks[j].After(t) {
			return r.rows[j*h.words:][:h.words], found(r.has[j])
		}
	}
	return nil, Forgotten
}

// Refresh moves the beginning of the slot's present version to tick t if it is
// older, so that serial arithmetic keeps working on rows that rest for months. What was
// before t is forgotten then.
func (h *History) Refresh(slot int, t Tick) {
	if p := h.page(slot); p != nil && p.known[slot%pageSlots] && p.tick[slot%pageSlots].Before(t) {
		p.tick[slot%pageSlots] = t
		p.rings[slot%pageSlots].n = 0
	}
}

func found(has bool) Found {
	if has {
		return Present
	}
	return Absent
}

// supersede moves the present version of row i of the page into its ring; the next
// one begins now. A version that lasted no tick leaves no trace.
func (h *History) supersede(p *page, i int, now Tick) {
	if p.tick[i] != now {
		r := &p.rings[i]
		if r.n == len(r.ticks) {
			h.makeRoom(r, p.tick[i], now)
		}
		j := (r.start + r.n) & (len(r.ticks) - 1)
		r.ticks[j], r.has[j] = p.tick[i], p.has[i]
		copy(r.rows[j*h.words:][:h.words], p.rows[i*h.words:])
		r.n++
	}
	p.tick[i] = now
}

// makeRoom drops the oldest version of a full ring if it ended a window ago or the
// ring has its full size, or else doubles the ring. last is when the ring's newest
// version ended. (With ticks that don't go back the first condition follows from the
// second, which bounds the memory whatever the ticks are.)
func (h *History) makeRoom(r *ring, last, now Tick) {
	ended := last
	if r.n > 1 {
		ended = r.ticks[(r.start+1)&(len(r.ticks)-1)]
	}
	if r.n > 0 && (now-ended >= h.window || Tick(r.n) >= h.window) {
		r.start = (r.start + 1) & (len(r.ticks) - 1)
		r.n--
		return
	}
	size := max(4, 2*len(r.ticks))
	grown := ring{
		ticks: make([]Tick, size),
		has:   make([]bool, size),
		rows:  make([]uint32, size*h.words),
		n:     r.n,
	}
	for k := range r.n {
		j := (r.start + k) & (len(r.ticks) - 1)
		grown.ticks[k], grown.has[k] = r.ticks[j], r.has[j]
		copy(grown.rows[k*h.words:][:h.words], r.rows[j*h.words:])
	}
	*r = grown
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
	h.pages[i] = &page{rows: make([]uint32, pageSlots*h.words)}
	return h.pages[i]
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
