package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Join follows the beginning of a session. It is complete when the client has acknowledged every
// entity that existed at the beginning and that it may see. From then on, state packets carry that
// fact.
type Join struct {
	Begun    bool
	Complete bool
	awaited  bitset.Set // slots that existed at the beginning and are not acknowledged
}

// Settle ends a tick and reports whether the join became complete in it.
func (j *Join) Settle(s *snapshot.SlotTable, v *interest.View, acks *AckTable) bool {
	if j.Complete {
		return false
	}
	if !j.Begun {
		j.Begun, j.awaited = true, slices.Clone(s.Alive)
	} else {
		for b := range j.awaited {
			j.awaited[b] &^= s.Churned[b] // another entity
		}
	}
	var left uint64
	for b, missing := range j.awaited {
		if missing &= s.Alive[b]; missing != 0 {
			missing = v.Sees(b, missing) & acks.None[b]
		}
		j.awaited[b] = missing
		left |= missing
	}
	if left == 0 {
		j.Complete, j.awaited = true, nil
	}
	return j.Complete
}
