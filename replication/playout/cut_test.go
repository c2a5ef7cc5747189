package playout_test

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/playout"
)

// TestCutTakesPathsWithoutIndices: as in Step, Linear and Field, the name of an array stands for all its elements.
func TestCutTakesPathsWithoutIndices(t *testing.T) {
	type wheels struct {
		Mounted [2]uint8 `repl:"counter"`
	}
	schema, world := replication.NewSchema(), ecs.NewWorld()
	replication.Register[wheels](schema)
	p := playout.New(replication.NewClient(&world, schema, func([]byte) error { return nil }))
	require.NotPanics(t, func() { playout.Cut[wheels](p, "Mounted") })
	require.PanicsWithValue(t, `playout: Cut: playout_test.wheels has no replicated field "Steered"`,
		func() { playout.Cut[wheels](p, "Mounted", "Steered") })
}
