package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// entitySet is an EntitySet behind its public face.
type entitySet struct {
	snap *snapshot

	seated  map[ecs.Entity]int32    // members and their slots
	holders map[int32]ecs.Entity    // the same the other way round
	waiting map[ecs.Entity]struct{} // members that have no slot yet
	slots   bitset.Set
}
