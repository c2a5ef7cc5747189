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
// which the client could have been sent state: the send interval before it. The client does not know the
// interval. No two packets are closer than that, so the least distance that it has seen will do. If the
// server changes the interval to one of which that would no longer hold, it sends no settled packets until
// the client has received so many others that it has measured anew.

// Settling finds the settled tick.
type Settling struct {
	Tick  delta.Tick // the newest tick as of which everything is known
	Known bool       // there is one

	first  uint32                      // sequence of the first packet of the session
	ticks  [wire.WindowSize]delta.Tick // of received packets, by sequence
	claims []claim                     // of settled packets after which others are missing; the oldest first

	interval delta.Tick // the least distance between two successive packets that was measured, 0 if none
	next     delta.Tick // the same since the last settled packet, or since the interval was set from it
	others   int        // packets since then
}

// A claim is what a settled packet certifies.
type claim struct {
	sequence   uint32
	tick, base delta.Tick
	interval   delta.Tick // the one that was measured with packets before it, 0 if none
}

const (
	// measured is how many packets in a row that are not settled make the client forget the interval that
	// it has measured before them. The server waits for twice as many: see ackstate.Settled.
	measured = 32
	// maxClaims is how many claims may wait for packets that are late.
	maxClaims = 8
)

// begin starts a session whose first packet has the given sequence.
func (s *Settling) begin(first uint32) {
	*s = Settling{first: first, claims: s.claims[:0]}
}

// take takes what a settled packet certifies, before anything that it carries is held.
func (s *Settling) take(w *wire.ReceiveWindow, c claim) {
	if int32(c.sequence-w.Newest) > 0 { // otherwise a shorter one may have been measured since
		c.interval = s.interval
	}
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
	if before := c.tick - c.interval; c.interval > 0 && before.After(at) {
		at = before
	}
	if !s.Known || at.After(s.Tick) {
		s.Tick, s.Known = at, true
	}
	return true
}

// arrive notes that a packet was received. late reports that a newer one was before it.
func (s *Settling) arrive(w *wire.ReceiveWindow, sequence uint32, tick delta.Tick, settled, late bool) {
	s.ticks[sequence%wire.WindowSize] = tick
	s.measure(w, sequence, tick, settled, late)
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

// measure measures the distance to the packet before.
func (s *Settling) measure(w *wire.ReceiveWindow, sequence uint32, tick delta.Tick, settled, late bool) {
	if !late && sequence != s.first && w.Acked(sequence-1) {
		if d := tick - s.ticks[(sequence-1)%wire.WindowSize]; int32(d) > 0 {
			s.interval, s.next = least(s.interval, d), least(s.next, d)
		}
	}
	switch {
	case settled && !late:
		s.next, s.others = 0, 0
	case !settled:
		if s.others++; s.others == measured {
			s.interval, s.next, s.others = s.next, 0, 0
		}
	}
}

// least returns the smaller one of two distances, of which the first one is 0 if it is not known.
func least(a, b delta.Tick) delta.Tick {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// since returns for how many ticks up to the given one, that of a new state of a slot, it is not known whether the slot
// still had its newest state, or 0 if it is not known that it had that at any later tick than its own. If the slot was
// empty, it returns for how many ticks, marked as gone.
func (s *Settling) since(m *Replica, tick delta.Tick) uint16 {
	switch {
	case m.Any && m.Empty:
		return gone | uint16(min(tick-m.Newest, gone-1))
	case !s.Known || !m.Any || s.Tick.Before(m.Newest) || !s.Tick.Before(tick) || tick-s.Tick >= gone:
		return 0
	}
	return uint16(tick - s.Tick)
}
