package replication

import "github.com/arche-replicate/arche-replicate/delta"

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
//   - Up to backoffEnd times the patience, state goes out when a backoffShare of the silence has
//     passed since the last packet.
//   - From then on nothing does but empty packets, as often at first and then once a second.
//   - dropSilent ends it.
//
// Any acknowledgement ends the silence. Other packets of the client don't: they don't show that
// anything gets through to it.

const (
	minPatience   = 32 // ticks
	patienceSends = 4  // packets to a peer with a send interval
	backoffShare  = 8
	backoffEnd    = 3
)

// silence is for how long a peer has acknowledged nothing of what it was sent.
type silence struct {
	answered uint32     // sequence of the next packet when an ack came last
	waiting  bool       // packets that are not empty were sent since
	since    delta.Tick // when the first of these was sent
	length   delta.Tick // of the silence, in the present tick; 0 if the peer does not count as silent
	mute     bool       // nothing is sent but empty packets
	paused   bool       // no state is sent in the present tick
}

// end notes that the peer acknowledged something.
func (q *silence) end(next uint32) { q.answered, q.waiting = next, false }

// skip notes that an empty packet was sent. If it gets lost in a world at rest, that says little:
// whoever is to answer once a second may well be heard of every third.
func (q *silence) skip(next uint32) {
	if !q.waiting {
		q.answered = next
	}
}

// beginSilence starts a tick.
func (p *sender) beginSilence() {
	if !p.opts.noSilence {
		p.acked.silence.begin(p.snap.tick, p.acked.log.next, p.alive.quiet, p.acked.patience())
		if p.acked.silence.mute {
			p.budget.restart(p.snap.tick) // who comes back after that may come another way
		}
	}
}

// patience returns after how many ticks without an acknowledgement the peer is taken for silent.
func (p *tracker) patience() delta.Tick {
	return max(minPatience, p.trip.Timeout()*3/2, p.interval*patienceSends)
}

// begin starts a tick. next is the sequence of the next packet, quiet the number of ticks since
// the last one.
func (q *silence) begin(now delta.Tick, next, quiet uint32, patience delta.Tick) {
	q.length, q.mute, q.paused = 0, false, false
	switch {
	case next == q.answered:
		return
	case !q.waiting:
		q.waiting, q.since = true, now-1
	case now-q.since > ancient:
		q.since = now - ancient // within reach of serial arithmetic
	}
	if now-q.since <= patience {
		return
	}
	q.length = now - q.since
	q.mute = q.length > backoffEnd*patience
	q.paused = q.mute || quiet+1 < q.pause()
}

// pause returns how many ticks lie between two packets to a silent peer.
func (q *silence) pause() uint32 { return max(1, uint32(q.length/backoffShare)) }
