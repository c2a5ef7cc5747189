package session

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// rivals finds out that the packets of two clients arrive at one connection, for instance because the user gives each
// address one peer, whatever the port. Each of the two ends the other's session, or only one ever gets any. A client
// that starts anew is no rival: nothing arrives of its former session any more, but for late packets.
type rivals struct {
	began  delta.Tick // when the session in force began
	latest delta.Tick // when the latest packet of it arrived
	nonce  uint64     // of the latest hello of another client
	since  delta.Tick // when the first hello with that nonce arrived
}

// noteUse notes a packet of the session in force.
func (r *rivals) noteUse(now delta.Tick, begins bool) {
	if r.latest = now; begins {
		r.began, r.nonce = now, 0
	}
}

// meet notes a hello that is not of the session in force; former is the number of that before it. It reports whether
// there are two clients: this one is of the session before, which ended more than late ticks ago, or the present one
// has gone on for so long since this one came.
func (r *rivals) meet(h *wire.Hello, former uint64, now, late delta.Tick) bool {
	if h.Session != 0 && h.Session == former {
		return now-r.began > late
	}
	if h.Nonce != r.nonce {
		r.nonce, r.since = h.Nonce, now
	}
	return r.latest.After(r.since) && r.latest-r.since > late
}
