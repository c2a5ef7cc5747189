package replication

import (
	"cmp"
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
)

type peerOptions struct {
	coding     Coding
	mtu        int
	noChecksum bool
	silent     bool // the peer has no client
}

// of returns the settings of a peer: the server's own if the peer has none.
func (o *peerOptions) of(server *config.ServerOptions) *config.ServerOptions {
	if o.mtu == 0 && !o.noChecksum {
		return server
	}
	own := *server
	own.MTU, own.NoChecksum = cmp.Or(o.mtu, own.MTU), own.NoChecksum || o.noChecksum
	return &own
}

// WithCoding sets the coding of the states that the peer is sent. Clients that do not accept it, see [WithoutCompact],
// are sent [Packed].
//
// Panics if the coding is unknown.
func WithCoding(c Coding) PeerOption {
	if c > Compact {
		panic(fmt.Sprintf("replication: %v: use Packed or Compact", c))
	}
	return peerOption(func(o *peerOptions) { o.coding = c })
}
