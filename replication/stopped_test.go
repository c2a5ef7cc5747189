package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// firstName returns the baselines of the first entry of a state packet, which is an update.
func (x *fixture) firstName(packet []byte) delta.Baselines {
	body := packet[wire.ChecksumSize:]
	h, rest, _, err := x.client.recv.Window.ParseHeader(body, false)
	require.NoError(x.t, err)
	r := bitbuf.NewReader(rest)
	names := delta.NewNames(delta.Tick(h.Tick))
	wire.ReadFront(&r, &names)
	var slots wire.SlotReader
	complete, refers, _ := slots.HasReference(&r)
	var ref []wire.SlotBlock
	if refers {
		ref = []wire.SlotBlock{{Block: 0, Mask: 1}} // the only entity
	}
	slots.Read(&r, ref, complete, 1<<20)
	require.NoError(x.t, r.Err())
	_, kind, _ := slots.Next()
	require.LessOrEqual(x.t, kind, wire.EntryNamed)
	return names.Read(&r, kind == wire.EntryUpdate)
}

// TestEntitiesThatStoppedArePredictedToRest: an entity that moved, stopped for some ticks and moves
// again is sent against one baseline; while it moves there are two, the second at a tick that is
// cheap to encode.
func TestEntitiesThatStoppedArePredictedToRest(t *testing.T) {
	x := connectedWire(t, testSchema())
	id := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(id)
	x.rounds(3)
	move := func() delta.Baselines {
		(*tPosition)(x.world.Get(e, id)).X++
		packets := x.replicate()
		require.Len(t, packets, 1)
		name := x.firstName(packets[0])
		x.deliver(packets...)
		x.answer(x.apply()...)
		return name
	}
	moved := func(name delta.Baselines) bool { // from the second baseline to the first
		for at := name.A1; name.Two && at != name.A2; at-- {
			if x.server.snap.Slots.Log[at%snapshot.RecentTicks].Has(x.slotOf(e)) {
				return true
			}
		}
		return false
	}
	var name delta.Baselines
	for range 12 {
		name = move()
	}
	require.True(t, name.Two)
	require.Equal(t, delta.Second(name.A1), name.A2)
	for range 3 {
		x.rounds(snapshot.RestAfter + 3)
		require.False(t, moved(move()), "it was at rest")
		x.rounds(snapshot.RestAfter + 300) // for any length of time
		name = move()
		require.False(t, moved(name), "it was at rest for long")
		require.Equal(t, x.server.Tick()-1, name.A1, "the newest tick at which it was as it is at the client")
		for range 5 {
			name = move()
		}
		require.True(t, name.Two, "it moves again")
	}
	x.requireEqual()
}

// TestAcksWithinATickAreNotBaselinesOfIt: if a transport delivers packets immediately, acks arrive
// while the tick that they acknowledge is still being sent.
func TestAcksWithinATickAreNotBaselinesOfIt(t *testing.T) {
	schema := testSchema()
	for _, lossy := range []bool{false, true} {
		world, mirror := ecs.NewWorld(), ecs.NewWorld()
		server := NewServer(&world, schema, WithSeed(1), WithMTU(96))
		var client *Client
		n := 0
		peer := server.Connect(func(p []byte) error {
			if n++; lossy && n%5 == 0 {
				return nil
			}
			_ = client.Receive(p)
			return client.Apply()
		})
		client = NewClientWith(&mirror, schema, func(p []byte) error { return peer.Receive(p) }, WithSeed(1))
		id := ecs.ComponentID[tPosition](&world)
		group := server.NewGroup()
		var entities []ecs.Entity
		for i := range 60 {
			e := world.NewEntity(id, ReplicatedID(&world))
			entities = append(entities, e)
			if i%7 == 0 {
				group.Add(e)
			}
		}
		require.NoError(t, client.Apply())
		for tick := range 100 {
			for i, e := range entities {
				if (i+tick)%3 > 0 {
					(*tPosition)(world.Get(e, id)).X += float32(i % 5)
				}
			}
			require.NotPanics(t, server.Replicate)
			require.NoError(t, client.Apply())
		}
		require.True(t, client.Connected())
		require.Zero(t, client.Stats().MissingBaselines)
	}
}
