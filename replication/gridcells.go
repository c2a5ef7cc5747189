package replication

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
)

// grid is a Grid behind its public face.
type grid struct {
	snap *snapshot

	component int
	columns   []*schema.Column
	low       [maxAxes]float64
	cell      float64
	counts    [maxAxes]int // cells along an axis
	cells     [][]gridEntry
	places    []gridPlace // by slot
	outside   bitset.Set  // live slots without a position
	fresh     bool        // no entity is in it yet
}
