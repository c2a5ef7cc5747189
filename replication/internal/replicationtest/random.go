package replicationtest

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Pick returns one of the values at random.
func Pick[T any](r *rand.Rand, x ...T) T { return x[r.IntN(len(x))] }

// Entity returns the handle with an ID and a generation, whether or not a world ever returned it.
func Entity(t testing.TB, id, generation uint32) (e ecs.Entity) {
	text, err := json.Marshal([2]uint32{id, generation})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &e))
	return e
}
