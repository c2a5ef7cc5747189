package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWorkIsBoundedToTheLastUnit: a packet may cause the free work and 1 for each bit, and no more.
func TestWorkIsBoundedToTheLastUnit(t *testing.T) {
	for _, bound := range []WorkBound{FreeWork, 0, -100} {
		require.True(t, bound.Allows(int(bound)+200, 200))
		require.False(t, bound.Allows(int(bound)+201, 200))
	}
}
