// Package interest decides what each peer may see. Criteria come in from the face: filters, grids,
// entity sets, owners, conditions and groups. Snapshot supplies the slots. The result is a set of
// visible slots per peer, in its [View], which ackstate reads in each tick.
package interest

import "github.com/arche-replicate/arche-replicate/replication/internal/snapshot"

// Shared holds what decides visibility and is the same for all peers.
type Shared struct {
	Snap *snapshot.Snapshot

	Owners Ownership

	Grids  []*Grid
	Sets   []*EntitySet // those that have members
	Groups groups
}
