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
	x.round()
	_, ok = x.server.Entity(id)
	require.False(t, ok)
}
