package replication

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// A join watches over the begin of a session: it is complete when the client has
// acknowledged all that it may see of what was there at the begin. State packets say so
// from then on.
type join struct {
	begun    bool
	complete bool
	owed     bitset.Set // slots that were there and are not acknowledged
}

// settle ends a tick and reports whether the join has become complete by it.
func (j *join) settle(s *slotTable, v *view, acks *ackTable) bool {
	if j.complete {
		return false
	}
	if !j.begun {
		j.begun, j.owed = true, slices.Clone(s.alive)
	} else {
		for b := range j.owed {
			j.owed[b] &^= s.turned[b] // another entity
		}
	}
	var left uint64
	for b, owed := range j.owed {
		if owed &= s.alive[b]; owed != 0 {
			owed = v.sees(b, owed) & acks.none[b]
		}
		j.owed[b] = owed
		left |= owed
	}
	if left == 0 {
		j.complete, j.owed = true, nil
	}
	return j.complete
}
