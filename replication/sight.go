package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// sight is what a peer may see.
type sight struct {
	holder   any // the *Peer
	snap     *snapshot
	schema   *schema.Schema
	interest *interestSets

	view  view
	owned bitset.Set // slots whose entities the peer owns
}
