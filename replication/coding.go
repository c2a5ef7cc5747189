package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
)

// A Coding is how states become bits. The default is [Packed].
type Coding uint8

const (
	// Packed has static codes. What several peers need is encoded once for all of them.
	Packed Coding = iota
	// Compact learns from all that a client is known to have got, and takes about a fifth less
	// bytes or better, for about twice the work: nothing is shared between peers. It is for few
	// peers, or for those with little bandwidth. See docs/compact.md.
	Compact
)

// String returns the name of the coding.
func (c Coding) String() string {
	switch c {
	case Packed:
		return "packed"
	case Compact:
		return "compact"
	}
	return fmt.Sprintf("Coding(%d)", uint8(c))
}

// A PeerOption configures a [Peer].
type PeerOption func(*peerOptions)

type peerOptions struct {
	coding Coding
}

// WithCoding sets the coding of the states that the peer is sent. Clients that do not take it,
// see [WithoutCompact], are sent [Packed]. It may differ from peer to peer.
//
// Panics if the coding is unknown.
func WithCoding(c Coding) PeerOption {
	if c > Compact {
		panic(fmt.Sprintf("replication: %v: use Packed or Compact", c))
	}
	return func(o *peerOptions) { o.coding = c }
}

// WithoutCompact makes the client tell servers that it does not take [Compact], which it would
// need up to 2 MB for.
func WithoutCompact() ClientOption {
	return func(o *config.ClientOptions) { o.NoCompact = true }
}

// Coding returns the coding of the present session.
func (p *Peer) Coding() Coding {
	p.mustExist()
	if p.conn.Session.Compact {
		return Compact
	}
	return Packed
}

// Coding returns the coding of the present session.
func (c *Client) Coding() Coding {
	c.mustExist()
	if c.recv.Compact != nil {
		return Compact
	}
	return Packed
}
