package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// As of which tick everything is known. A settled packet certifies that nothing was left unsent as of certain
// ticks before it, and that all up to its base tick has arrived; see wire.StateHeader. So if every packet
// from there on has arrived too, the client knows everything as of these ticks: that no change of an
// entity has come means that there is none.
//
// These ticks are that of the state packet before and, if it is later, the last tick before the packet in
// which the client could have been sent state: the send interval before it.

// Settling finds the settled tick.
type Settling struct {
	Tick  delta.Tick // the newest tick as of which everything is known
	Known bool       // there is one

	first  uint32                      // sequence of the first packet of the session
	ticks  [wire.WindowSize]delta.Tick // of received packets, by sequence
	claims []claim                     // of settled packets after which others are missing; the oldest first
}

// A claim is what a settled packet certifies.
type claim struct {
	sequence   uint32
	tick, base delta.Tick
	interval   delta.Tick
}

// maxClaims is how many claims may wait for packets that are late.
const maxClaims = 8

// begin starts a session whose first packet has the given sequence.
func (s *Settling) begin(first uint32) {
	*s = Settling{first: first, claims: s.claims[:0]}
}

// take takes what a settled packet certifies, before anything that it carries is held.
func (s *Settling) take(w *wire.ReceiveWindow, c claim) {
	if n := len(s.claims); s.try(w, c) || n > 0 && s.claims[n-1].tick == c.tick {
		return
	}
	if len(s.claims) == maxClaims {
		s.claims = append(s.claims[:0], s.claims[1:]...)
	}
	s.claims = append(s.claims, c)
}

// try settles the ticks of a claim if it holds. It returns whether the claim is done with.
func (s *Settling) try(w *wire.ReceiveWindow, c claim) bool {
	var at delta.Tick
	some := false
	for q := c.sequence - 1; q != s.first-1; q-- {
		if !w.Acked(q) {
			return false
		}
		t := s.ticks[q%wire.WindowSize]
		if !some && t.Before(c.tick) {
			some, at = true, t
		}
		if some && !t.After(c.base) {
			break
		}
	}
	if !some {
		return true // nothing was sent before
	}
	if before := c.tick - c.interval; before.After(at) {
		at = before
	}
	if !s.Known || at.After(s.Tick) {
		s.Tick, s.Known = at, true
	}
	return true
}

// arrive notes that a packet was received. late reports that a newer one was before it.
func (s *Settling) arrive(w *wire.ReceiveWindow, sequence uint32, tick delta.Tick, late bool) {
	s.ticks[sequence%wire.WindowSize] = tick
	if !late {
		return
	}
	for n := len(s.claims) - 1; n >= 0; n-- {
		if s.try(w, s.claims[n]) {
			s.claims = append(s.claims[:0], s.claims[n+1:]...) // earlier ones certify less
			return
		}
	}
}

// since returns for how many ticks up to the given one, that of a new state of a slot, it is not known whether the slot
// still had its newest state, or 0 if it is not known that it had that at any later tick than its own. If the slot was
// empty, it returns for how many ticks, marked as gone.
func (s *Settling) since(m *Replica, tick delta.Tick) uint16 {
	switch {
	case m.Any && m.Empty:
		return gone | uint16(min(tick-m.Ended, gone-1))
	case !s.Known || !m.Any || s.Tick.Before(m.Newest) || !s.Tick.Before(tick) || tick-s.Tick >= gone:
		return 0
	}
	return uint16(tick - s.Tick)
}
