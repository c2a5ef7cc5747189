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
	asked   bool
	askedAt delta.Tick // when approve was called last: an honest client needs no more than one call per tick
	refused bool       // nonce and why are valid
	nonce   uint64     // of the hello that was refused last
	why     Farewell   // the answer to every copy of that hello
}

// admit decides about a hello of size bytes that has no session yet. If it refuses the client, it answers the hello.
func (c *Connection) admit(h *wire.Hello, now delta.Tick, size int) (ok bool, err error) {
	a := &c.admission
	switch {
	case !c.sessions.Approves:
		return true, nil
	case a.knows(h):
		c.sendRefusal(size)
		return false, nil
	case a.asked && a.askedAt == now:
		return false, wire.ErrUnexpected
	}
	a.asked, a.askedAt = true, now
	err = a.approve(h.Data)
	switch {
	case c.State == Ended: // by approve
		a.why = c.Why
	case err == nil:
		return true, nil
	case errors.Is(err, ErrJoinPending):
		return false, nil
	default:
		a.why = Farewell{Code: refusedCode, Text: strings.Clone(wire.Cut(err.Error(), wire.MaxReasonText))}
	}
	a.refused, a.nonce = true, h.Nonce
	c.stats.RefusedJoins++
	c.sendRefusal(size)
	return false, nil
}

// knows reports whether a hello was refused before.
func (a *admission) knows(h *wire.Hello) bool { return a.refused && a.nonce == h.Nonce }

// sendRefusal answers a hello of size bytes, in at most as many.
func (c *Connection) sendRefusal(size int) {
	a := &c.admission
	c.send(wire.DisconnectPacket(a.why.Code, a.why.Text, a.nonce, wire.HandshakeKey(), min(size, c.opts.MTU)))
}
