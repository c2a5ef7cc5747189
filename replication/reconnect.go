package replication

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A client introduces itself with a nonce, and takes the answer that bears it. Whenever
// it has reason to begin anew it takes another nonce, so that late answers to earlier
// introductions mean nothing. What it knows of a server that has gone silent stays until
// the server, or another one in its place, begins a new session.

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
	switch {
	case c.refused != nil:
		return StatusDisconnected
	case c.welcomed && !c.seeking:
		return StatusConnected
	case c.met:
		return StatusReconnecting
	}
	return StatusConnecting
}

// Complete reports whether everything has come that the client may see of what was in the
// server's world when the session began: there is no more to wait for before the game can
// be shown. After the Apply that follows, it is in the client's world.
func (c *Client) Complete() bool {
	c.mustExist()
	return c.welcomed && c.complete
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
	if c.closed {
		panic("replication: Reconnect of a closed client: make a new one with NewClient")
	}
	c.leave()
	c.refused = nil
}

// leave forgets the session and begins to introduce the client anew.
func (c *Client) leave() {
	c.welcomed, c.seeking, c.newAcks = false, false, false
	c.introduce()
}

// introduce makes the client send introductions with a new nonce.
func (c *Client) introduce() {
	c.offset, c.applies, c.silent = 0, 0, 0
	if c.seeded {
		c.nonce = wire.Mix64(c.nonce + wire.Golden64)
		return
	}
	c.nonce = random64()
}

// random64 returns a number that nobody can guess.
func random64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	return binary.LittleEndian.Uint64(b[:])
}

// introducing reports whether an answer to an introduction is of interest.
func (c *Client) introducing() bool { return c.refused == nil && (!c.welcomed || c.seeking) }

// receiveWelcome takes the server's answer to the present introduction.
func (c *Client) receiveWelcome(m *wire.Welcome) {
	c.applies, c.inForce = 0, false // the server may know the session as one that it offered only
	c.heard()
	if !c.welcomed || m.Session != c.sessionID {
		c.begin(m)
	}
}

// begin starts a session. Nothing of those before is a baseline of it.
func (c *Client) begin(m *wire.Welcome) {
	c.welcomed, c.met = true, true
	c.stats.Sessions++
	c.sessionID, c.origin = m.Session, m.Origin
	if c.outdated(m.Tick) {
		c.shownOrigin = ^m.Origin // whoever it was
	}
	if c.former = c.session; c.anyState { // of any session hashes and byes may come late, though no state of it did
		c.formerHeld = c.session
	}
	c.session = wire.SessionKey(c.fingerprint, m.Session, false, m.NoChecksum)
	c.answer = wire.SessionKey(c.fingerprint, m.Session, true, m.NoChecksum)
	c.compact = nil
	if m.Compact {
		c.compact = newCompactReader(c.schema)
	}
	c.keep = 2 * delta.Tick(m.Window)
	c.nearSeq, c.nearTick = m.Sequence, m.Tick
	c.ackedUpTo = [2]uint32{m.Sequence - 1, m.Sequence - 1}
	c.window = wire.NewReceiveWindow(m.Sequence)
	c.anyState, c.newAcks, c.complete = false, false, false
	c.missing, c.divergence = c.missing[:0], nil
	clear(c.parts)
	c.forgetStates()
	c.resetTalk(m.Tick)
}
