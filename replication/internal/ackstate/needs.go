package ackstate

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Needs returns how many entries the peer is to be sent.
func (p *Tracker) Needs() (n int) {
	for w, missing := range p.Acks.DirtyBlocks {
		for b := range bitset.Slots(w, missing) {
			n += bits.OnesCount64(p.Dirty[b])
		}
	}
	return n
}
