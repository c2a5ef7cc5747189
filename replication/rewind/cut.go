package rewind

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/arrival"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
)

// A cut is a component whose changes are discontinuities.
type cut struct {
	past *history.Rows
	blend.Cut
}

// cutsBetween reports whether there is a discontinuity between two states of a slot.
func cutsBetween(cuts []cut, slot int, r *arrival.Around) bool {
	for i := range cuts {
		c := &cuts[i]
		a, before := c.past.At(slot, r.From)
		b, after := c.past.At(slot, r.To)
		if before == history.Present && after == history.Present && c.Between(a, b) {
			return true
		}
	}
	return false
}
