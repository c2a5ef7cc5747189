package ackstate

import "github.com/arche-replicate/arche-replicate/delta"

// What a client can know to be unchanged. Silence about an entity means nothing by itself: a change may
// be lost, or wait for the budget. So state packets certify when it does not, see wire.StateHeader: a client
// that has received the packets since the base tick knows everything as of the state packet before, and as
// of the last tick in which it could have been sent state, a send interval before the packet.

// Settled decides whether the state packets to a peer are settled.
type Settled struct {
	next    uint32     // sequence of the first packet of this tick
	first   delta.Tick // of the first packet in flight at the beginning of this tick; if there was none, this tick
	turn    delta.Tick // the last tick of the interval
	inTurn  bool       // the last tick was one of the interval
	all     bool       // since the last state packet, nothing was left unsent in a tick of the interval
	settled bool       // all, as of the beginning of this tick
}

// Begin starts a tick of the peer. It is called before the tick makes anything dirty or counts packets as
// lost.
func (s *Settled) Begin(p *Tracker) {
	now := p.Snap.Tick
	if now-p.ended != 1 {
		s.all = false // a function of the user's panicked, so the peer may not have been sent what changed
	} else if s.inTurn {
		// What changes in a large state that is being sent is not dirty.
		clean := !p.Silence.Paused && !p.Large.Any() && !p.AnyDirty()
		s.all = clean && (s.all || p.Log.Next != s.next)
	}
	s.next, s.inTurn, s.settled = p.Log.Next, p.InInterval(), false
	if !s.inTurn {
		return
	}
	// Where the interval changes, and where ticks wrap, the tick an interval before may be none of these.
	if s.settled = s.all && now-s.turn == p.Interval; s.settled {
		s.first = now
		if first := p.Log.firstInFlight(); first != p.Log.Next {
			s.first = p.Log.At(first).Tick
		}
	}
	s.turn = now
}

// certifies reports whether a packet of this tick with the given base tick is settled.
func (s *Settled) certifies(base delta.Tick) bool { return s.settled && s.first.After(base) }
