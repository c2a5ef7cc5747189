package receive

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The states of one slot that a client holds, by tick. Updates name them as baselines.

// A HeldState is the full state of an entity at a tick.
type HeldState struct {
	Tick       delta.Tick
	Generation uint16
	since      uint16   // see Rested and Ended
	Layout     *Layout  // nil: no state here
	Words      []uint32 // rows, and indices of shared rows
}

// gone is a bit of HeldState.since: the slot was empty before the state. The others count ticks before the state.
const gone = 1 << 15

// Rested returns the tick up to which the state before this one in the slot is known to have been valid, if that is
// later than its own.
func (h *HeldState) Rested() (until delta.Tick, ok bool) {
	return h.Tick - delta.Tick(h.since), h.since&gone == 0 && h.since > 0
}

// Ended returns the tick from which on the slot was empty before it got this state, if it was and the client knows it:
// the entity was out of view, or another one had the slot.
func (h *HeldState) Ended() (from delta.Tick, ok bool) {
	return h.Tick - delta.Tick(h.since&^gone), h.since&gone != 0
}

// Row returns the state's row of component c, which has n words, or nil if the state has no such
// component. The row must not be written to.
func (h *HeldState) Row(c, n int) []uint32 {
	o := h.Layout.offsets[c]
	if o >= 0 {
		return h.Words[o : o+n : o+n]
	}
	return h.sharedRow(o)
}

// RowAt returns the state's row at a place of its layout. The row must not be written to.
func (h *HeldState) RowAt(p *Place) []uint32 {
	if p.offset >= 0 {
		return h.Words[p.offset:p.end:p.end]
	}
	return h.sharedRow(p.offset)
}

// SameAt reports whether another state with the same layout has an equal row at a place.
func (h *HeldState) SameAt(p *Place, other *HeldState) bool {
	if p.offset < 0 {
		return SameRow(h.sharedRow(p.offset), other.sharedRow(p.offset))
	}
	a, b := h.Words, other.Words
	differ := uint32(0) // most rows are short
	for i := p.offset; i < p.end; i++ {
		differ |= a[i] ^ b[i]
	}
	return differ == 0
}

// SameRow reports whether two rows of a component are equal.
func SameRow(a, b []uint32) bool {
	return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] || slices.Equal(a, b) // shared rows are the same memory
}

// sharedRow returns the row that the layout places outside of the words.
func (h *HeldState) sharedRow(offset int) []uint32 {
	if offset == noRow {
		return nil
	}
	return h.Layout.rows.Rows[h.Words[sharedAt-offset]].Words
}

// hold sets the layout and the words of the state.
func (h *HeldState) hold(l *Layout, words []uint32) {
	for _, place := range l.Shared {
		l.rows.Rows[words[place]].Holders++
	}
	h.release() // after that, since the old state may share some of the rows
	h.Layout = l
	if h.Words = append(h.Words[:0], words...); h.Words == nil {
		h.Words = noWords
	}
}

// noWords are the words of components without fields. Their rows are not nil either.
var noWords = []uint32{}

// release gives up the state's shared rows, before the state is replaced or dropped.
func (h *HeldState) release() {
	if h.Layout == nil {
		return
	}
	for _, place := range h.Layout.Shared {
		h.Layout.rows.Release(h.Words[place])
	}
}

// empty drops the state and keeps the memory for another one.
func (h *HeldState) empty() {
	h.release()
	h.Layout = nil
}

// merge replaces the state's row of component k, if it has one, by a shared row with the same content, so that the two
// are not compared again.
func (h *HeldState) merge(k int, same uint32) {
	o := h.Layout.offsets[k]
	if o == noRow || h.Words[sharedAt-o] == same {
		return
	}
	h.Layout.rows.Rows[same].Holders++
	h.Layout.rows.Release(h.Words[sharedAt-o])
	h.Words[sharedAt-o] = same
}

// HeldStates holds the states of a slot in the order of their ticks, as a ring. An update can name
// a baseline by any tick at which it was valid: the baseline is the newest state up to that tick.
//
// The newest state is kept however old it is. An older one is dropped when its successor is keep
// ticks old: the server names no earlier tick, so the successor is found instead. The oldest state
// goes first. So a search finds the state that was valid at a tick, or nothing, but never an older
// one.
type HeldStates struct {
	Ring  []HeldState // places not in use keep their memory
	first int32       // where the oldest state is
	N     int32       // how many there are
}

const minHeld = 4

// nth returns the state that has i older ones.
func (h *HeldStates) nth(i int) *HeldState {
	i += int(h.first) - len(h.Ring)
	i += len(h.Ring) & (i >> (bits.UintSize - 1)) // without a branch, which nothing predicts
	return &h.Ring[i]
}

// Find returns the newest state of tick t or before. It returns nil if there is none.
func (h *HeldStates) Find(t delta.Tick) *HeldState {
	if h.N == 0 {
		return nil
	}
	high := int(h.N) - 1
	last := h.nth(high)
	back := last.Tick - t
	if !last.Tick.After(t) {
		return last
	}
	// Each state has a tick of its own, so a state of tick t is at least at this place. If the slot
	// changes in every tick, it is exactly here.
	low := high - int(min(back, delta.Tick(h.N)))
	if low >= 0 {
		if s := h.nth(low); s.Tick == t {
			return s
		}
	}
	for high-low > 1 { // the state is at low or after it, and before high
		if middle := (low + high) / 2; last.Tick-h.nth(middle).Tick >= back {
			low = middle
		} else {
			high = middle
		}
	}
	if low < 0 {
		return nil
	}
	return h.nth(low)
}

// Around returns the newest state of tick t or before, and the state after it. Either is nil if there
// is none.
func (h *HeldStates) Around(t delta.Tick) (before, after *HeldState) {
	if h.N == 0 {
		return nil, nil
	}
	last := h.nth(int(h.N) - 1)
	if !last.Tick.After(t) {
		return last, nil
	}
	for i := int(h.N) - 2; i >= 0; i-- { // there are few after a tick that is shown
		s := h.nth(i)
		if last.Tick-s.Tick >= last.Tick-t {
			return s, h.nth(i + 1)
		}
	}
	return nil, h.nth(0)
}

// At returns the state of exactly tick t, or nil.
func (h *HeldStates) At(t delta.Tick) *HeldState {
	if s := h.Find(t); s != nil && s.Tick == t {
		return s
	}
	return nil
}

// Newest returns the newest state, or nil if there is none.
func (h *HeldStates) Newest() *HeldState {
	if h.N == 0 {
		return nil
	}
	return h.nth(int(h.N) - 1)
}

// After iterates over the states of later ticks than t, the newest first.
func (h *HeldStates) After(t delta.Tick) iter.Seq[*HeldState] {
	return func(yield func(*HeldState) bool) {
		for i := int(h.N) - 1; i >= 0; i-- {
			if s := h.nth(i); !s.Tick.After(t) || !yield(s) {
				return
			}
		}
	}
}

// EndedAfter reports whether the slot is known to have been empty between two states, the later one of which is of a
// later tick than t.
func (h *HeldStates) EndedAfter(t delta.Tick) bool {
	for s := range h.After(t) {
		if _, ended := s.Ended(); ended {
			return true
		}
	}
	return false
}

// HadLayout reports whether all states of later ticks than t have a layout: nothing came or went in between.
func (h *HeldStates) HadLayout(layout *Layout, t delta.Tick) bool {
	for s := range h.After(t) {
		if _, ended := s.Ended(); ended || s.Layout != layout {
			return false
		}
	}
	return true
}

// Kept returns those of some components that every state of a later tick than t has: none if the slot was empty in
// between.
func (h *HeldStates) Kept(components wire.ComponentSet, t delta.Tick) wire.ComponentSet {
	for s := range h.After(t) {
		if _, ended := s.Ended(); ended {
			return wire.ComponentSet{}
		}
		for w := range components {
			components[w] &= s.Layout.Set[w]
		}
	}
	return components
}

// put returns the place for the state of tick t, which has that tick set already; now is the newest
// tick. It returns nil if the state is no longer needed. words is how many words the state has.
//
// The packet with such a state is acknowledged nevertheless. The server may then name ticks from t
// on, up to the slot's next change. A search for one that is not before the oldest held state finds
// the same version. Earlier ones are more than keep ticks older than a packet that was received
// before the acknowledgement was sent, so no packet sent after it names them.
func (h *HeldStates) put(t, now, keep delta.Tick, words int) *HeldState {
	if h.N > 0 {
		h.tidy(now, keep)
	}
	age := now - t
	if age >= never {
		return nil
	}
	i := int(h.N) // where the state belongs
	for i > 0 && now-h.nth(i-1).Tick < age {
		i--
	}
	if i > 0 && h.nth(i-1).Tick == t {
		return h.nth(i - 1)
	}
	if i == 0 && h.N > 0 && now-h.nth(0).Tick >= keep {
		return nil
	}
	if int(h.N) == len(h.Ring) {
		h.grow(keep, words)
	}
	h.N++
	s := h.nth(i)
	if last := int(h.N) - 1; i < last { // a late state
		free := h.nth(last).Words
		for j := last; j > i; j-- {
			*h.nth(j) = *h.nth(j - 1)
		}
		*s = HeldState{Words: free}
		s.since = h.nth(i + 1).goneBefore(t)
	} else {
		s.since = 0
	}
	s.Tick = t
	if i == 1 && age >= keep {
		h.drop()
	}
	return s
}

// goneBefore takes note of a late state of tick t before this one, and returns what is known of the time before that.
func (h *HeldState) goneBefore(t delta.Tick) (since uint16) {
	ticks := h.Tick - t
	if delta.Tick(h.since&^gone) <= ticks {
		return 0
	}
	if since = h.since & gone; since != 0 {
		since = h.since - uint16(ticks) // the slot was empty before that
	}
	h.since = 0 // it was about the state before that
	return since
}

// never is the age from which a state counts as one of the future.
const never = 1 << 31

// tidy drops the states that are no longer needed when now is the newest tick. It leaves one state
// of keep ticks or more, and the newer ones.
func (h *HeldStates) tidy(now, keep delta.Tick) {
	if h.N < 2 || now-h.nth(0).Tick >= never || now-h.nth(int(h.N)-1).Tick >= never {
		h.dropFuture(now)
	}
	for h.N > 1 && now-h.nth(1).Tick >= keep {
		h.drop()
	}
}

// dropFuture drops the states that seem to be of the future: they are so old that ticks have wrapped around, and can't
// be ordered with others.
func (h *HeldStates) dropFuture(now delta.Tick) {
	for h.N > 0 && now-h.nth(int(h.N)-1).Tick >= never {
		h.N--
		h.nth(int(h.N)).empty()
	}
	for h.N > 0 && now-h.nth(0).Tick >= never {
		h.drop()
	}
}

// refresh keeps the tick of a state that rests for months within reach of serial arithmetic: the
// state was valid later, too.
func (h *HeldStates) refresh(now delta.Tick) {
	if h.N == 0 || now-h.nth(int(h.N)-1).Tick <= wire.Ancient {
		return
	}
	for h.N > 1 {
		h.drop()
	}
	h.nth(0).Tick = now - wire.Ancient
	h.nth(0).since = 0
}

// drop drops the oldest state.
func (h *HeldStates) drop() {
	h.nth(0).empty()
	h.N--
	if h.first++; int(h.first) == len(h.Ring) {
		h.first = 0
	}
}

// grow makes room for more states, up to the most that there can be for a moment: one for each of
// keep ticks, the one before, and the one that takes its place. Of a slot that changes often, the new
// states get their memory, of so many words each, in one piece.
func (h *HeldStates) grow(keep delta.Tick, words int) {
	most := max(len(h.Ring)+1, int(keep)+2)
	n := max(minHeld, 2*len(h.Ring))
	if n > most/2 {
		n = most // not once more for a few
	}
	ring := make([]HeldState, n)
	copy(ring[copy(ring, h.Ring[h.first:]):], h.Ring[:h.first]) // all are in use
	if h.N > 0 {
		all := make([]uint32, (len(ring)-int(h.N))*words)
		for i := int(h.N); i < len(ring); i++ {
			ring[i].Words, all = all[:0:words], all[words:]
		}
	}
	h.Ring, h.first = ring, 0
}

// forget drops all states and keeps their memory for others.
func (h *HeldStates) forget() {
	for i := range h.Ring {
		h.Ring[i].empty()
	}
	h.first, h.N = 0, 0
}
