package rewind

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// TestCutTakesPathsWithoutIndices: what play-out is given, the history is given, too.
func TestCutTakesPathsWithoutIndices(t *testing.T) {
	type wheels struct {
		Mounted [2]uint8 `repl:"counter"`
	}
	schema, world := replication.NewSchema(), ecs.NewWorld()
	replication.Register[wheels](schema)
	h := New(replication.NewServer(&world, schema))
	require.NotPanics(t, func() { Cut[wheels](h, "Mounted") })
	require.PanicsWithValue(t, `rewind: Cut: rewind.wheels has no replicated field "Steered"`,
		func() { Cut[wheels](h, "Mounted", "Steered") })
}
