package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestSeamFindsTheRowsOfAComponent: those of a component with a condition are in the states of another
// slot than the entity's.
func TestSeamFindsTheRowsOfAComponent(t *testing.T) {
	g := newConditionPlay(1, 0)
	mine, other := g.connect(netsim.Config{Latency: 1}), g.connect(netsim.Config{Latency: 1})
	e := g.world.NewEntity(g.marker, g.ids[0], g.ids[1], g.ids[4])
	g.server.SetOwner(e, mine.peer)
	g.picked[mine.peer], g.picked[other.peer] = true, true
	for n := range 30 {
		(*cPlace)(g.world.Get(e, g.ids[0])).X = int32(n)
		(*cAmmo)(g.world.Get(e, g.ids[1])).Rounds = uint16(n / 10)
		g.tick()
		mine.step(t)
		other.step(t)
	}
	id, _ := g.server.NetID(e)
	for _, end := range g.ends {
		in := seam.OfClient(end.client)
		require.Same(t, &g.server.schema.Components[0], &in.Schema.Components[0], "tests share the schema")
		own := in.Apply.RowsOf(id.Slot, 0)
		require.NotNil(t, own)
		ammo, rank := in.Apply.RowsOf(id.Slot, 1), in.Apply.RowsOf(id.Slot, 4)
		require.Equal(t, end == mine, ammo != nil, "only the owner is sent it")
		require.NotNil(t, rank)
		require.NotSame(t, own, rank)
		if ammo == nil {
			continue
		}
		before, after := ammo.Held.Around(ammo.Newest - 1)
		require.Equal(t, ammo.Newest, after.Tick)
		require.EqualValues(t, []uint32{1}, before.Row(1, 1))
		require.EqualValues(t, []uint32{2}, after.Row(1, 1))
		require.Equal(t, after.Tick-10, before.Tick)
		if rested, ok := after.Rested(); ok {
			require.True(t, rested.After(before.Tick))
		}
		_, gone := after.Ended()
		require.False(t, gone)
		_, after = own.Held.Around(end.client.Tick())
		require.Nil(t, after)
	}
	g.world.RemoveEntity(e)
	for range 5 {
		g.tick()
		mine.step(t)
	}
	require.Nil(t, seam.OfClient(mine.client).Apply.RowsOf(id.Slot, 0))
	require.Nil(t, seam.OfClient(mine.client).Apply.RowsOf(id.Slot+1000, 0))
}

// TestSeamRefusesOtherValues: what is no client is a fault of the caller's.
func TestSeamRefusesOtherValues(t *testing.T) {
	for _, v := range []any{nil, (*Client)(nil), &Client{}, &Server{}, ecs.World{}} {
		require.Panics(t, func() { seam.OfClient(v) })
	}
}
