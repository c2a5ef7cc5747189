package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestGenerationsThatRepeat: a client is out of contact for so long that a slot may have had 65,536
// entities meanwhile, and the current one has the generation that the client shows. However contact
// is restored, it is another entity.
func TestGenerationsThatRepeat(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for _, c := range []struct {
		name   string
		server []ServerOption
		client []ClientOption
		newly  bool // another peer gets the packets
	}{
		{name: "in the session", client: []ClientOption{WithTimeout(0)}},
		{name: "in the session, no checksum", server: []ServerOption{WithoutChecksum()}, client: []ClientOption{WithTimeout(0)}},
		{name: "the client asks"},
		{name: "the server gave up", server: []ServerOption{WithTimeout(ofTicks(1000))}, newly: true},
	} {
		for _, gone := range []int{receive.GenerationSpan / 2, receive.GenerationSpan + 2} {
			t.Run(c.name, func(t *testing.T) {
				x := newWire(t, testSchema(), append([]ServerOption{WithTimeout(0)}, c.server...)...)
				x.restart(faceOf(x.server.schema), 8, c.client...)
				position := ecs.ComponentID[tPosition](x.world)
				local := ecs.ComponentID[tLocal](x.mirror)
				e, stays := x.spawn(position), x.spawn(position)
				x.rounds(8)
				was, ok := x.server.NetID(e)
				require.True(t, ok)
				for _, e := range []ecs.Entity{e, stays} {
					m, ok := x.mirrored(e)
					require.True(t, ok)
					x.mirror.Add(m, local)
				}
				long := gone > receive.GenerationSpan
				if long {
					x.world.RemoveEntity(e)
				}
				for i := range gone {
					x.replicate()
					if i%64 == 0 && c.client == nil {
						x.apply() // the client notices the silence
					}
				}
				if long {
					x.server.snap.Slots.Info[was.Slot].Generation = was.Generation - 1
					e = x.spawn(position)
				}
				if c.newly {
					x.connect()
				}
				for range 200 {
					x.round()
				}
				is, ok := x.server.NetID(e)
				require.True(t, ok)
				require.Equal(t, was, is)
				require.True(t, x.client.Connected() && x.client.Complete())
				x.requireEqual()
				for _, e := range []ecs.Entity{e, stays} {
					m, ok := x.mirrored(e)
					require.True(t, ok)
					require.Equal(t, !long, x.mirror.Has(m, local), "what the user added to the one before")
				}
				if long {
					require.EqualValues(t, 4, x.client.Stats().Spawns)
				}
			})
		}
	}
}

// TestFreedSlotsRestUntilTheNextTick: a slot is free for at least one tick, so entities that spawn
// in the tick of a despawn get other slots.
func TestFreedSlotsRestUntilTheNextTick(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	last := map[int]uint16{}
	for range 200 {
		x.round()
		slot := x.slotOf(e)
		require.Less(t, slot, 2)
		generation := x.server.snap.Slots.Info[slot].Generation
		require.Equal(t, last[slot]+1, generation)
		last[slot] = generation
		x.world.RemoveEntity(e)
		e = x.spawn(position)
	}
	require.EqualValues(t, 100, last[0])
	require.EqualValues(t, 100, last[1])
}
