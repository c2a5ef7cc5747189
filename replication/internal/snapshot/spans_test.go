package snapshot

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/stretchr/testify/require"
)

// TestSamplesHaveTheAgeOfBaseTicks: the mean of what is known, and else the last one.
func TestSamplesHaveTheAgeOfBaseTicks(t *testing.T) {
	m := Steadiness{age: 6}
	for _, c := range []struct {
		ages, peers int
		age         delta.Tick
	}{{0, 0, 6}, {30, 3, 10}, {0, 0, 10}, {1, 4, 1}, {5, 2, 2}} {
		m.Begin(c.ages, c.peers)
		require.Equal(t, c.age, m.age)
	}
}
