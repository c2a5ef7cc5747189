package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Status is how a client stands with its server.
type Status uint8

// What a client can be.
const (
	StatusConnecting   Status = iota // it introduces itself, or looks for the difference of the schemas
	StatusConnected                  // the server has accepted it
	StatusReconnecting               // it was accepted once and looks for the server, which has gone silent or forgotten it
	StatusDisconnected               // the connection has ended or never was: Apply returns why
)

func (s Status) String() string {
	switch s {
	case StatusConnecting:
		return "connecting"
	case StatusConnected:
		return "connected"
	case StatusReconnecting:
		return "reconnecting"
	}
	return "disconnected"
}

// Status returns how the client stands with its server.
func (c *Client) Status() Status {
	c.mustExist()
	return Status(c.session.Status())
}

// Complete reports whether everything has come that the client may see of what was in the
// server's world when the session began: there is no more to wait for before the game can
// be shown. After the Apply that follows, it is in the client's world.
func (c *Client) Complete() bool {
	c.mustExist()
	return c.session.Open() && c.session.Complete
}

// Reconnect begins a new session, whether the present one has ended or not, and whatever
// the server said to the last introduction. A client whose server has gone silent, or has
// dropped it for silence, does so by itself.
//
// What is mirrored stays in the world until the new session shows more. If the server is
// still the same [Server], then every mirrored entity that it shows again is the entity
// that it was, with all that the user added to it; those that it does not show again are
// removed as soon as the session is [Client.Complete]. If it is another server, all are
// removed with the first state that comes, and its own are spawned.
//
// Panics if the client is closed.
func (c *Client) Reconnect() {
	c.mustExist()
	c.session.Reconnect()
}

// begin starts a session. Nothing of those before is a baseline of it.
func (c *Client) begin(m *wire.Welcome) {
	c.session.Begin(m, c.recv.AnyState)
	c.apply.BeginShowing(m.Instance, c.recv.Outdated(m.Tick))
	c.recv.Begin(m)
	c.clock = clock.Ticks{}
	c.clock.Arrive(m.Tick)
	if c.messages != nil {
		c.messages.Reset(m.Tick)
	}
}
