package replication

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerFindsEntitiesByNetID(t *testing.T) {
	x := newReferring(t)
	e := x.spawn()
	_, ok := x.server.Entity(NetID{})
	require.False(t, ok)
	x.round()
	id, _ := x.server.NetID(e)
	found, ok := x.server.Entity(id)
	require.True(t, ok)
	require.Equal(t, e, found)
	for _, id := range []NetID{{id.Slot, id.Generation + 1}, {id.Slot + 1, 1}, {1 << 31, 1}} {
		_, ok = x.server.Entity(id)
		require.False(t, ok, id)
	}
	x.world.RemoveEntity(e)
	_, ok = x.server.Entity(id)
	require.False(t, ok, "it has no NetID either")
	x.round()
	_, ok = x.server.Entity(id)
	require.False(t, ok)
}

// TestNetIDsEndWithAReset, also if the server notices the reset before the next Replicate, and if a new entity has the
// handle of the old one.
func TestNetIDsEndWithAReset(t *testing.T) {
	x := newReferring(t)
	e := x.spawn()
	x.round()
	id, ok := x.server.NetID(e)
	require.True(t, ok)
	x.world.Reset()
	require.Equal(t, e, x.spawn())
	x.server.SetOwner(e, x.peer)
	_, ok = x.server.Entity(id)
	require.False(t, ok)
}
