package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// heldStates has the states of a slot that the client holds, in the order of their ticks, as
// a ring. A baseline is named by any tick at which it was valid: it is the newest state that
// is not after that tick.
//
// The newest state is kept however old it is. An older one goes when one that is newer than
// it has reached an age of keep ticks: a server names no tick that lies farther back, so that
// one is found in its place. The oldest goes first. So what is found for a tick is never older
// than what was valid then: it is that, or nothing at all.
type heldStates struct {
	ring  []heldState // those that are not in use keep their memory
	first int32       // where the oldest state is
	n     int32       // how many there are
}

const minHeld = 4

// nth returns the state that is newer than i others.
func (h *heldStates) nth(i int) *heldState {
	if i += int(h.first); i >= len(h.ring) {
		i -= len(h.ring)
	}
	return &h.ring[i]
}

// find returns the newest state of tick t or before, or nil.
func (h *heldStates) find(t delta.Tick) *heldState {
	if h.n == 0 {
		return nil
	}
	high := int(h.n) - 1
	last := h.nth(high)
	back := last.tick - t
	if !last.tick.After(t) {
		return last
	}
	// No two states are of the same tick: so many places before the last one there is none
	// that is too new. Where the slot changes in each tick, that is the one.
	low := high - int(min(back, delta.Tick(h.n)))
	if low >= 0 {
		if s := h.nth(low); s.tick == t {
			return s
		}
	}
	for high-low > 1 { // the one that is looked for is at low or after it, and before high
		if middle := (low + high) / 2; last.tick-h.nth(middle).tick >= back {
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

// at returns the state of exactly tick t, or nil.
func (h *heldStates) at(t delta.Tick) *heldState {
	if s := h.find(t); s != nil && s.tick == t {
		return s
	}
	return nil
}

// put returns the place for the state of tick t, which has that tick already, when the newest
// tick is now; or nil if the state is not needed any more.
//
// The packet with such a state is acknowledged all the same. The server may then name ticks
// from t on, up to the slot's next change. Those that a state held is not after find that one,
// which is the same version. Those before are more than keep ticks back from a packet that was
// received before the acknowledgement was sent, so that no packet sent after it names them.
func (h *heldStates) put(t, now, keep delta.Tick) *heldState {
	h.tidy(now, keep)
	age := now - t
	if age >= never {
		return nil
	}
	i := int(h.n) // the place
	for i > 0 && now-h.nth(i-1).tick < age {
		i--
	}
	if i > 0 && h.nth(i-1).tick == t {
		return h.nth(i - 1)
	}
	if i == 0 && h.n > 0 && now-h.nth(0).tick >= keep {
		return nil
	}
	if int(h.n) == len(h.ring) {
		h.grow(keep)
	}
	h.n++
	s := h.nth(i)
	if last := int(h.n) - 1; i < last { // a late state
		free := h.nth(last).words
		for j := last; j > i; j-- {
			*h.nth(j) = *h.nth(j - 1)
		}
		*s = heldState{words: free}
	}
	s.tick = t
	if i == 1 && age >= keep {
		h.drop()
	}
	return s
}

// never is the age of a state that is not of the past.
const never = 1 << 31

// tidy drops the states that are not needed any more when the newest tick is now. That leaves
// one that is keep ticks old or older, and newer ones.
func (h *heldStates) tidy(now, keep delta.Tick) {
	// Those that seem to lie in the future are so old that ticks have come round. Then there is
	// no order among these and others.
	for h.n > 0 && now-h.nth(int(h.n)-1).tick >= never {
		h.n--
		h.nth(int(h.n)).empty()
	}
	for h.n > 0 && now-h.nth(0).tick >= never {
		h.drop()
	}
	for h.n > 1 && now-h.nth(1).tick >= keep {
		h.drop()
	}
}

// refresh keeps the tick of a state that rests for months within reach of serial arithmetic: it
// was valid later on, too.
func (h *heldStates) refresh(now delta.Tick) {
	if h.n == 0 || now-h.nth(int(h.n)-1).tick <= snapshot.Ancient {
		return
	}
	for h.n > 1 {
		h.drop()
	}
	h.nth(0).tick = now - snapshot.Ancient
}

// drop drops the oldest state.
func (h *heldStates) drop() {
	h.nth(0).empty()
	h.n--
	if h.first++; int(h.first) == len(h.ring) {
		h.first = 0
	}
}

// grow makes room for more states, up to as many as there may be for a moment: one for each of
// keep ticks, the one before, and the one that takes its place.
func (h *heldStates) grow(keep delta.Tick) {
	ring := make([]heldState, min(max(minHeld, 2*len(h.ring)), max(len(h.ring)+1, int(keep)+2)))
	for i := range int(h.n) {
		ring[i] = *h.nth(i)
	}
	h.ring, h.first = ring, 0
}

// release gives up the shared rows of all states.
func (h *heldStates) release() {
	for i := range h.ring {
		h.ring[i].release()
	}
}
