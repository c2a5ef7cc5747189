package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// The match is the same each time, in both codings.
func TestTheMatch(t *testing.T) {
	packed, err := play(replication.Packed, 60)
	require.NoError(t, err)
	compact, err := play(replication.Compact, 60)
	require.NoError(t, err)
	require.False(t, packed.Compact)
	require.True(t, compact.Compact)
	require.Equal(t, packed.Entities, compact.Entities)
	require.Less(t, compact.Bytes, packed.Bytes)
	require.Positive(t, packed.Receive)
	require.Positive(t, packed.Frame)
	again, err := play(replication.Packed, 60)
	require.NoError(t, err)
	require.Equal(t, packed.Bytes, again.Bytes)
}
