// Package interest decides what a peer may see: filters, grids, entity sets, owners, conditions and groups.
package interest

import "github.com/arche-replicate/arche-replicate/replication/internal/snapshot"

// Shared is what decides who sees what, and is the same for all peers.
type Shared struct {
	Snap *snapshot.Snapshot

	Owners Ownership

	Grids  []*Grid
	Sets   []*EntitySet
	Groups groups
}
