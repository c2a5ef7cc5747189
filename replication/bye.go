package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Reason says why a connection ended.
type Reason struct {
	Code ReasonCode

	// Text is for people, in UTF-8. What is longer than 128 bytes, or does not fit into a
	// packet, is cut.
	Text string
}

// A ReasonCode says why a connection ended, for programs.
type ReasonCode uint8

// The reasons that the library knows. Codes from ReasonGame on are the game's.
const (
	ReasonClosed  ReasonCode = 0  // that end does not go on
	ReasonTimeout ReasonCode = 1  // nothing was heard for too long; a client introduces itself again
	ReasonKicked  ReasonCode = 2  // the server does not want this client
	ReasonGame    ReasonCode = 64 // the first of the game's own
)

func (c ReasonCode) String() string {
	switch c {
	case ReasonClosed:
		return "closed"
	case ReasonTimeout:
		return "timeout"
	case ReasonKicked:
		return "kicked"
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// String returns the code and, if there is one, the text: `kicked: "too slow"`.
func (r Reason) String() string {
	if r.Text == "" {
		return r.Code.String()
	}
	return fmt.Sprintf("%v: %q", r.Code, r.Text)
}

// A DisconnectError is what [Client.Apply] and [Peer.Err] return of a connection that was
// ended by one of its ends.
type DisconnectError struct {
	Reason Reason
	Remote bool // the other end ended it
}

func (e *DisconnectError) Error() string {
	if e == nil {
		return nilError
	}
	if e.Remote {
		return "replication: disconnected by the other end: " + e.Reason.String()
	}
	return "replication: disconnected: " + e.Reason.String()
}

// clientErrors make the errors of a client's session.
var clientErrors = session.PublicErrors{
	Disconnected: func(why session.Farewell) error {
		return &DisconnectError{Reason: Reason{ReasonCode(why.Code), why.Text}, Remote: why.Remote}
	},
	Differs: func(d *session.SchemaDifference) error { return (*SchemaError)(d) },
}

// nilError is what methods of nil errors return, as fmt prints it.
const nilError = "<nil>"

// Disconnect ends the connection and tells the client why, in packets that are sent at
// once. The peer is not to be used any more: its Receive returns [ErrUnexpected] from
// then on, and [Peer.Err] the reason. Give it what still comes from that client for a
// while: it tells a client that asks on why it gets no answer.
//
// Call it between Replicates. The client does not come back by itself unless the code is [ReasonTimeout].
func (p *Peer) Disconnect(r Reason) {
	p.mustExist()
	if p.conn.State == session.Ended {
		return
	}
	r.Text = wire.Cut(r.Text, wire.MaxReasonText)
	p.conn.SendDisconnect(uint8(r.Code), r.Text)
	p.end(session.Farewell{Code: uint8(r.Code), Text: r.Text, Remote: false})
}

// Err returns nil until the connection has ended, and why it has after that: a
// [*DisconnectError].
func (p *Peer) Err() error {
	p.mustExist()
	if p.ended == nil {
		return nil
	}
	return p.ended
}

// end takes the peer from the server.
func (p *Peer) end(why session.Farewell) {
	s := p.server
	for i, q := range s.peers {
		if q == p {
			s.peers = append(s.peers[:i], s.peers[i+1:]...)
			break
		}
	}
	s.interest.DisownAll(&p.sight)
	p.conn.End(why)
	p.ended = &DisconnectError{Reason: Reason{ReasonCode(why.Code), why.Text}, Remote: why.Remote}
	p.close()
	s.callHooks(s.parting, p)
}

// Disconnect ends the connection and tells the server why, in packets that are sent at
// once. The world stays as it is: see [Client.Close] to remove what is mirrored. Apply
// returns a [*DisconnectError] from then on, until [Client.Reconnect].
func (c *Client) Disconnect(r Reason) {
	c.mustExist()
	c.session.Disconnect(uint8(r.Code), r.Text)
}

// Close ends the connection as [Client.Disconnect] does, if it has not ended, and removes
// all mirrored entities and resources from the world. Reconnect panics afterwards.
//
// Panics if the world is locked, and in a hook.
func (c *Client) Close() {
	c.mustExist()
	c.apply.Hooks.NotInHook("Close")
	if c.apply.View.World.IsLocked() {
		panic("replication: Close on a locked world: call it outside of queries, since it removes entities")
	}
	c.Disconnect(Reason{})
	c.apply.RemoveAll()
	c.session.Close()
}
