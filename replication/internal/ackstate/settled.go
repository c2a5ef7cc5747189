package ackstate

import (
	"math"

	"github.com/arche-replicate/arche-replicate/delta"
)

// What a client can know to be unchanged. Silence about an entity means nothing by itself: a change may
// be lost, or wait for the budget. So state packets certify when it does not, see wire.StateHeader: a client
// that has received the packets since the base tick knows everything as of the state packet before, and as
// of the last tick in which it could have been sent state, whose distance it measures.

// Settled decides whether the state packets to a peer are settled.
type Settled struct {
	next     uint32     // sequence of the first packet of this tick
	first    delta.Tick // of the first packet in flight at the beginning of this tick; if there was none, this tick
	sent     delta.Tick // of the last packet; before there is one, the first tick
	longest  uint16     // the longest distance that the client may have measured, a multiple of the interval
	since    uint16     // ticks since the interval changed
	waits    uint16     // for so many acknowledgements, after the interval has changed
	ended    uint16     // low bits of the last tick that ended
	interval uint8      // the send interval, before the first tick that of the welcome
	begun    bool       // there was a tick
	all      bool       // since the last state packet, nothing was left unsent in a tick of the interval
	inTurn   bool       // the last tick was one of these
	settled  bool       // all, as of the beginning of this tick
}

// remeasure is how many packets a client receives before it has measured a new send interval anew, if none
// of them is settled. See receive.Settling.
const remeasure = 64

// Begin starts a tick of the peer. It is called before the tick makes anything dirty or counts packets as
// lost.
func (s *Settled) Begin(p *Tracker) {
	now := p.Snap.Tick
	if uint16(now)-s.ended != 1 {
		s.all = false // a function of the user's panicked, so the peer may not have been sent what changed
	} else if s.inTurn {
		// What changes in a large state that is being sent is not dirty.
		clean := !p.Silence.Paused && len(p.Large) == 0 && !p.AnyDirty()
		s.all = clean && (s.all || p.Log.Next != s.next)
	}
	s.follow(p)
	s.next, s.inTurn = p.Log.Next, p.InInterval()
	if s.settled = s.all && s.inTurn && s.waits == 0 && s.since >= s.longest; s.settled {
		s.first = p.Log.firstInFlight(now)
	}
}

// End ends a tick of the peer.
func (s *Settled) End(now delta.Tick) { s.ended = uint16(now) }

// follow notices a new send interval. If it divides the old one, what the client has measured is still a
// multiple, so packets are settled again once it no longer reaches back to before the change: the peer may
// not have been sent anything in that tick. Otherwise no packet is settled until the client has measured
// anew. The same goes for the shorter distance that there may be where ticks wrap, and in a session that begins
// with another interval than its welcome had: the client relies on that one, see clock.Interval.
//
// What the client has measured is the distance of some two packets. In a world at rest there may be a second
// between any two.
func (s *Settled) follow(p *Tracker) {
	now, interval := p.Snap.Tick, uint8(p.Interval)
	anySent := len(p.Log.Ring) > 0
	switch {
	case !s.begun:
		s.begun, s.sent = true, now
	case anySent && p.Log.Next != s.next:
		last := p.Log.At(p.Log.Next - 1).Tick
		s.longest, s.sent = max(s.longest, uint16(min(last-s.sent, math.MaxUint16))), last
	}
	shorter := p.InInterval() && (now-p.Interval+p.Phase)%p.Interval != 0
	if s.since += min(math.MaxUint16-s.since, 1); shorter || interval != s.interval {
		s.since = 0
	}
	if anySent && shorter || s.interval%interval != 0 {
		s.waits = uint16(remeasure + p.Log.open())
		s.longest = 0
	}
	s.interval = interval
}

// acknowledge notes that a packet arrived.
func (s *Settled) acknowledge() {
	if s.waits > 0 {
		s.waits--
	}
}

// certifies reports whether a packet of this tick with the given base tick is settled.
func (s *Settled) certifies(base delta.Tick) bool { return s.settled && s.first.After(base) }
