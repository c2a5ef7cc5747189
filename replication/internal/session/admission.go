package session

// This file asks the user whether a client may join.

import (
	"errors"
	"strings"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ErrJoinPending means that it is not decided yet whether a client may join. The user is asked again when the client
// repeats its hello.
var ErrJoinPending = errors.New("replication: it is not decided yet whether the client may join")

// refusedCode is the code of a disconnect (replication.ReasonRefused) that refuses a hello.
const refusedCode = 3

// admission decides whether a client may have a session, before the server keeps any state for it.
type admission struct {
	approve func(data []byte) error
	asked   uint32     // calls of approve in askedAt
	askedAt delta.Tick // when approve was called last
	askedOf uint64     // the nonce of that call
	last    *refusal   // nil: no hello was refused
}

// maxAsked bounds the calls of approve in a tick. An honest client needs one, but there may be hellos of a forger
// before its own.
const maxAsked = 16

// A refusal is the answer to a hello and to every copy of it.
type refusal struct {
	nonce uint64 // of the hello
	why   Farewell
}

// admit decides about a hello of size bytes that has no session yet. If it refuses the client, it answers the hello.
func (c *Connection) admit(h *wire.Hello, now delta.Tick, size int) (ok bool, err error) {
	a := &c.admission
	switch {
	case !c.sessions.Approves:
		return true, nil
	case a.knows(h):
		c.sendRefusal(a.last, size)
		return false, nil
	case a.askedAt != now:
		a.asked, a.askedAt = 0, now
	case a.asked == maxAsked, a.asked > 0 && a.askedOf == h.Nonce:
		return false, wire.ErrUnexpected
	}
	a.asked, a.askedOf = a.asked+1, h.Nonce
	err = a.approve(h.Data)
	var why Farewell
	switch {
	case c.State == Ended: // by approve
		why = c.Why
	case err == nil:
		return true, nil
	case errors.Is(err, ErrJoinPending):
		return false, nil
	default:
		why = Farewell{Code: refusedCode, Text: strings.Clone(wire.Cut(err.Error(), wire.MaxReasonText))}
	}
	a.last = &refusal{h.Nonce, why}
	c.stats.RefusedJoins++
	c.Refused, c.unwanted = true, err
	c.sendRefusal(a.last, size)
	return false, nil
}

// knows reports whether a hello was refused before.
func (a *admission) knows(h *wire.Hello) bool { return a.last != nil && a.last.nonce == h.Nonce }

// sendRefusal answers a hello of size bytes, in at most as many.
func (c *Connection) sendRefusal(r *refusal, size int) {
	c.send(wire.DisconnectPacket(r.why.Code, r.why.Text, r.nonce, wire.HandshakeKey(), min(size, c.opts.MTU)))
}
