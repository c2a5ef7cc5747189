package interpolation_test

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
)

type smooth place

// TestEntitiesOfAnotherClientAreLeftAlone: two clients of two servers share a world. Their entities have the same
// NetIDs. One rests, and the other one moves and is shown by a play-out, itself or in a twin.
func TestEntitiesOfAnotherClientAreLeftAlone(t *testing.T) {
	for _, into := range []bool{false, true} {
		leaveAlone(t, into)
	}
}

func leaveAlone(t *testing.T, into bool) {
	schema := replication.NewSchema()
	replication.Register[place](schema)
	local := ecs.NewWorld()
	at, twin := ecs.ComponentID[place](&local), ecs.ComponentID[smooth](&local)
	type side struct {
		place  *place
		server *replication.Server
		client *replication.Client
	}
	var sides [2]side
	for i := range sides {
		s, world := &sides[i], ecs.NewWorld()
		id := ecs.ComponentID[place](&world)
		s.place = (*place)(world.Get(world.NewEntity(ecs.ComponentID[replication.Replicated](&world), id), id))
		s.server = replication.NewServer(&world, schema, replication.WithTickRate(20))
		peer := s.server.Connect(func(packet []byte) error { return s.client.Receive(packet) })
		s.client = replication.NewClient(&local, schema)
		s.client.SetSend(peer.Receive)
	}
	view := interpolation.Attach(sides[1].client)
	if into {
		interpolation.Into[place, smooth](view)
	}
	called := map[ecs.Entity]int{}
	interpolation.Custom(view, func(e ecs.Entity, _, _ *place, _ float32) { called[e]++ })
	resting := func() (e ecs.Entity, ok bool) {
		return sides[0].client.Entity(replication.NetID{Slot: 0, Generation: 1})
	}
	sides[0].place.X = -7
	for tick := range 100 {
		sides[1].place.X = float32(tick)
		for i := range sides {
			s := &sides[i]
			s.server.Replicate()
			require.NoError(t, s.client.Frame(time.Second/20))
		}
		if e, ok := resting(); ok {
			require.InDelta(t, -7, (*place)(local.Get(e, at)).X, quantum)
			require.False(t, local.Has(e, twin))
			require.Zero(t, called[e])
		}
	}
	e, ok := resting()
	require.True(t, ok)
	moving, ok := sides[1].client.Entity(replication.NetID{Slot: 0, Generation: 1})
	require.True(t, ok, "both have the same NetID")
	require.NotEqual(t, e, moving)
	x := (*place)(local.Get(moving, at)).X
	if into {
		require.Less(t, (*smooth)(local.Get(moving, twin)).X, x)
		x = (*smooth)(local.Get(moving, twin)).X
	}
	require.Greater(t, x, float32(80))
	require.Positive(t, called[moving])
	require.True(t, view.Shown(moving))
	require.False(t, view.Shown(e))
}
