package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// What a peer is sent that stops acknowledging. Most likely nobody is there, so it is sent less and
// less. The pause between two packets grows with the length of the silence: a client that comes
// back waits for a small fraction of the time that it was away, and no fixed moment separates an
// outage from a lost connection.
//
// A peer counts as silent after its patience: one and a half acknowledgement timeouts (see
// clock.RoundTrip.Timeout), but at least minPatience and some send intervals. An outage of a second
// on a path with half a second of round trip is hardly noticed.
//
//   - Up to the patience, the peer is sent everything as usual.
//   - Up to BackoffEnd times the patience, state is sent when 1/BackoffShare of the silence has
//     passed since the last packet.
//   - After that, only empty packets are sent, at first as often as state, later once a second.
//   - The server's timeout ends the session.
//
// Any acknowledgement ends the silence. Other packets from the client do not: they don't prove that
// anything reaches it.

const (
	minPatience   = 32 // ticks
	patienceSends = 4  // packets to a peer with a send interval
	BackoffShare  = 8
	BackoffEnd    = 3
)

// Silence measures for how long a peer has acknowledged nothing.
type Silence struct {
	answered uint32     // sequence of the next packet when the last ack came
	since    delta.Tick // if Waiting, the tick of the first packet with contents since then
	Length   delta.Tick // of the silence at this tick; 0: the peer does not count as silent
	Waiting  bool       // packets with contents were sent since the last ack
	Mute     bool       // only empty packets are sent
	Paused   bool       // no state is sent in this tick
}

// end notes that the peer acknowledged something.
func (q *Silence) end(next uint32) { q.answered, q.Waiting = next, false }

// Skip notes that an empty packet was sent. An idle world sends one per second: that one of them is
// not answered proves little, since it may have been lost.
func (q *Silence) Skip(next uint32) {
	if !q.Waiting {
		q.answered = next
	}
}

// Begin starts a tick. next is the sequence of the next packet, quiet the number of ticks since the
// last one.
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

// Pause returns the number of ticks between two packets to a silent peer.
func (q *Silence) Pause() uint32 { return max(1, uint32(q.Length/BackoffShare)) }
