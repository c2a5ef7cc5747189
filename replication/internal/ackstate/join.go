package ackstate

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Join watches over the begin of a session: it is complete when the client has
// acknowledged all that it may see of what was there at the begin. State packets say so
// from then on.
type Join struct {
	Begun    bool
	Complete bool
	awaited  bitset.Set // slots that were there and are not acknowledged
}

// Settle ends a tick and reports whether the join has become complete by it.
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
