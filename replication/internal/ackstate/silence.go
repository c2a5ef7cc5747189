package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A peer that stops acknowledging is sent less and less, since most likely nobody is there. How
// long to wait between two sends follows from how long the silence has lasted, so that a client
// that comes back waits for a small part of the time that it was away, and no moment has to be
// picked at which an outage becomes a loss.
//
// The patience is one and a half acknowledgement timeouts (see roundTrip.timeout), at least
// minPatience and some send intervals: an outage of a second on a path of half a second is
// hardly noticed.
//
//   - Up to the patience, the peer is sent what it would be sent anyway.
//   - Up to BackoffEnd times the patience, state goes out when a backoffShare of the silence has
//     passed since the last packet.
//   - From then on nothing does but empty packets, as often at first and then once a second.
//   - dropSilent ends it.
//
// Any acknowledgement ends the silence. Other packets of the client don't: they don't show that
// anything gets through to it.

const (
	minPatience   = 32 // ticks
	patienceSends = 4  // packets to a peer with a send interval
	BackoffShare  = 8
	BackoffEnd    = 3
)

// Silence is for how long a peer has acknowledged nothing of what it was sent.
type Silence struct {
	answered uint32     // sequence of the next packet when an ack came last
	Waiting  bool       // packets that are not empty were sent since
	since    delta.Tick // when the first of these was sent
	Length   delta.Tick // of the silence, in the present tick; 0 if the peer does not count as silent
	Mute     bool       // nothing is sent but empty packets
	Paused   bool       // no state is sent in the present tick
}

// end notes that the peer acknowledged something.
func (q *Silence) end(next uint32) { q.answered, q.Waiting = next, false }

// Skip notes that an empty packet was sent. If it gets lost in a world at rest, that says little:
// whoever is to answer once a second may well be heard of every third.
func (q *Silence) Skip(next uint32) {
	if !q.Waiting {
		q.answered = next
	}
}

// Begin starts a tick. next is the sequence of the next packet, quiet the number of ticks since
// the last one.
func (q *Silence) Begin(now delta.Tick, next, quiet uint32, patience delta.Tick) {
	q.Length, q.Mute, q.Paused = 0, false, false
	switch {
	case next == q.answered:
		return
	case !q.Waiting:
		q.Waiting, q.since = true, now-1
	case now-q.since > wire.Ancient:
		q.since = now - wire.Ancient // within reach of serial arithmetic
	}
	if now-q.since <= patience {
		return
	}
	q.Length = now - q.since
	q.Mute = q.Length > BackoffEnd*patience
	q.Paused = q.Mute || quiet+1 < q.Pause()
}

// Pause returns how many ticks lie between two packets to a silent peer.
func (q *Silence) Pause() uint32 { return max(1, uint32(q.Length/BackoffShare)) }
