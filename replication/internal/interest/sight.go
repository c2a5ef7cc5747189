package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// Sight is what a peer may see.
type Sight struct {
	Holder   any // the *Peer
	Snap     *snapshot.Snapshot
	Schema   *schema.Schema
	Interest *Shared

	View  View
	owned bitset.Set // slots whose entities the peer owns
}
