package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
)

const maxHashEvery = 3600

// WithStateHash makes the server send every client, on every n-th tick at most, a packet
// with hashes of what it sees, in turns until all had theirs. The client compares them with
// what it holds; [Client.Divergence] names what differs. It is for finding faults: of this
// library, of a transport without checksums, of memory. The packets take up to an MTU, and are
// outside of budgets; see [PeerStats]. Without the option there is none.
//
// Entities are compared if the client holds their newest state, so that those that change
// in every tick are only if the packet of the same tick arrives first. An entity whose
// digests take more than a packet is never compared. Whether the client's world still holds
// what the client does, [Client.Verify] tells.
//
// Panics outside 1 to 3600.
func WithStateHash(n int) ServerOption {
	if n < 1 || n > maxHashEvery {
		panic(fmt.Sprintf("replication: WithStateHash(%d): use 1 to %d ticks", n, maxHashEvery))
	}
	return func(o *config.ServerOptions) { o.HashEvery = delta.Tick(n) }
}

// sendHashes sends all peers the hashes that are due.
func (s *Server) sendHashes() {
	every := s.opts.HashEvery
	if every == 0 {
		return
	}
	if s.sender.hashes == nil {
		s.sender.hashes = make([]byte, s.opts.MTU)
	}
	for _, p := range s.peers {
		if p.conn.State == session.Connected && p.acked.MaySendNow() && (!p.out.Hashing.Any || s.snap.Tick-p.out.Hashing.At >= every) {
			p.out.Hashing.Any, p.out.Hashing.At = true, s.snap.Tick
			p.out.SendHashes(s.sender.hashes)
		}
	}
}

// Divergence returns the first field in which what the client holds was found to differ
// from what the server has, or nil: see [WithStateHash]. There is none when a session
// begins. A difference is no reason to go on: the library has a fault, or memory has.
//
// Want is nil, for hashes don't tell, and Got is what the client holds; a [NetID] where
// the field refers to an entity. If the ends differ in whether there is a component, Field
// is empty and Got and Want are bools.
func (c *Client) Divergence() *Divergence {
	c.mustExist()
	if d := c.apply.Hashes.Divergence; d != c.diverged.inside {
		c.diverged.inside, c.diverged.public = d, publicDivergence(d)
	}
	return c.diverged.public
}
