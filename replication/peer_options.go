package replication

import "fmt"

type peerOptions struct {
	coding     Coding
	mtu        int
	noChecksum bool
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
