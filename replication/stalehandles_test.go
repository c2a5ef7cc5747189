package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A world that is reset returns the same handles again. Arche takes the handle of an earlier entity
// for a live one if the entity that has its ID now was reused as often: these tests make such
// handles.

// second spawns an entity, the second one in the world, in its second generation, and replicates it
// to the client.
func (x *mentioning) second() ecs.Entity {
	x.spawn()
	x.world.RemoveEntity(x.spawn())
	e := x.spawn()
	require.EqualValues(x.t, 1, e.Generation())
	x.rounds(3)
	return e
}

// spoil resets a world so that Arche takes e, of the second generation, for alive.
func spoil(t testing.TB, w *ecs.World, e ecs.Entity) {
	w.Reset()
	for {
		other := w.NewEntity()
		if other.ID() == e.ID() {
			w.RemoveEntity(other)
			break
		}
	}
	require.True(t, w.Alive(e), "Arche now notices this: see alive")
	require.Panics(t, func() { w.Mask(e) })
}

// TestAMessageAboutAnEntityFromBeforeAReset: a client's message about an entity from before a reset
// of the server's world has a zero reference.
func TestAMessageAboutAnEntityFromBeforeAReset(t *testing.T) {
	x := newMentioning(t)
	e := x.second()
	m := x.mirrorOf(e)
	require.NoError(t, SendToServer(x.client, rWhom{Number: 1, Target: m}))
	require.NoError(t, SetInput(x.client, x.client.InputTick(), rOrder{Fire: true, Target: m}))
	tick := x.client.InputTick()
	up := x.apply()
	spoil(t, x.world, e)
	require.NotPanics(t, func() { x.answer(up...) })
	require.Equal(t, []rWhom{{Number: 1}}, x.up)
	require.NotPanics(t, func() {
		order, ok := Input[rOrder](x.peer, tick)
		require.True(t, ok)
		require.Equal(t, rOrder{Fire: true}, order)
	})
	x.rounds(3)
	_, ok := x.client.NetID(m)
	require.False(t, ok)
}

// TestAMessageToViewersFromBeforeAReset: clients that saw the entity get the message, as if it had
// been removed, and the server goes on, even if the new world has an entity with the same handle.
func TestAMessageToViewersFromBeforeAReset(t *testing.T) {
	for _, again := range []bool{false, true} {
		x := newMentioning(t)
		e := x.second()
		nobody := x.world.NewEntity()
		require.NoError(t, SendToViewers(x.server, e, rWhom{Number: 1, Target: e}))
		require.NoError(t, SendToViewers(x.server, e, rWhomUnreliable{Number: 2, Target: e}))
		require.NoError(t, SendToViewers(x.server, nobody, rWhom{Number: 3}))
		require.NoError(t, SendToAll(x.server, rWhom{Number: 4, Target: e}))
		spoil(t, x.world, e)
		if again {
			same := x.spawn()
			require.Equal(t, e, same)
			require.NoError(t, SendToViewers(x.server, same, rWhom{Number: 5, Target: same}))
		}
		for range 3 {
			require.NotPanics(t, x.server.Replicate)
			x.deliver(x.takeDown()...)
			x.answer(x.apply()...)
		}
		want := []rWhom{{Number: 1}, {Number: 4}}
		if again {
			want = append(want, rWhom{Number: 5, Target: x.mirrorOf(e)})
		}
		require.Equal(t, want, x.got)
		require.NoError(t, SendToAll(x.server, rWhom{Number: 6}))
		x.rounds(3)
		require.Equal(t, append(want, rWhom{Number: 6}), x.got)
	}
}

// TestStaleHandlesAtTheServer: calls with an entity from before a reset have no effect, or are
// misuse.
func TestStaleHandlesAtTheServer(t *testing.T) {
	for _, sentBefore := range []bool{false, true} { // send before the reset, too
		x := newMentioning(t)
		e := x.second()
		id, ok := x.server.NetID(e)
		require.True(t, ok)
		set, group, other := x.server.NewEntitySet(), x.server.NewGroup(), x.server.NewGroup()
		if sentBefore {
			set.Add(e)
			group.Add(e)
			x.server.SetOwner(e, x.peer)
			x.server.SetPriority(e, 3)
			x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
		}
		spoil(t, x.world, e)
		for range 3 {
			require.NotPanics(t, func() {
				_, ok := x.server.NetID(e)
				require.False(t, ok)
				_, ok = x.server.Entity(id)
				require.False(t, ok)
				require.Nil(t, x.server.Owner(e))
				x.server.SetPriority(e, 2)
				set.Add(e)
				other.Remove(e)
				other.Add(e)
				set.Remove(e)
				set.Add(e)
				require.NoError(t, SendToViewers(x.server, e, rWhom{}))
				require.NoError(t, SendToClient(x.peer, rWhom{Target: e}))
			})
			require.PanicsWithValue(t, "replication: SetOwner of a dead entity: set owners of entities that live", func() { x.server.SetOwner(e, x.peer) })
			require.NotPanics(t, x.server.Replicate)
			x.deliver(x.takeDown()...)
			x.answer(x.apply()...)
		}
		require.Zero(t, set.Len())
		require.Zero(t, group.Len()+other.Len())
		for _, m := range x.got {
			require.Zero(t, m)
		}
		x.peer.SetInterest(Interest{})
		fresh := x.spawn()
		require.Equal(t, e, fresh)
		require.Nil(t, x.server.Owner(fresh))
		x.rounds(3)
		x.mirrorOf(fresh)
	}
}

// TestStaleHandlesAtTheClient: the same for the client's world, which may have been reset since the
// last Apply or before it.
func TestStaleHandlesAtTheClient(t *testing.T) {
	for _, applied := range []bool{false, true} {
		x := newMentioning(t)
		at := x.second()
		label := ecs.ComponentID[rLabel](x.mirror)
		first := x.mirror.NewEntity(label)
		x.mirror.RemoveEntity(first)
		e := x.mirror.NewEntity(label)
		require.EqualValues(t, 1, e.Generation())
		Expect[rLabel](x.client, e, ofTicks(1))
		id, _ := x.server.NetID(at)
		spoil(t, x.mirror, e)
		if applied {
			x.rounds(2)
			spoil(t, x.mirror, e)
		}
		for range 3 {
			require.NotPanics(t, func() {
				require.False(t, x.client.Expects(e))
				_, ok := x.client.NetID(e)
				require.False(t, ok)
				_, _ = x.client.Entity(id)
				x.client.Verify()
				require.NoError(t, SendToServer(x.client, rWhom{Number: 1, Target: e}))
			})
			require.PanicsWithValue(t, "replication: Expect: the entity is dead: expect one that is in the client's world", func() {
				Expect[rLabel](x.client, e, ofTicks(1))
			})
			far := replicationtest.Entity(t, 1<<20, 0)
			require.PanicsWithValue(t, "replication: Expect: the entity is dead: expect one that is in the client's world", func() {
				Expect[rLabel](x.client, far, ofTicks(1))
			})
			x.round()
			spoil(t, x.mirror, e)
		}
		x.rounds(3)
		for _, m := range x.up {
			require.Equal(t, rWhom{Number: 1}, m)
		}
		x.mirrorOf(at)
	}
}

// TestAReferenceFromBeforeAReset: a component that still holds a handle from before a reset is
// replicated with a zero reference.
func TestAReferenceFromBeforeAReset(t *testing.T) {
	type tHolder struct{ At ecs.Entity }
	s := NewSchema()
	Register[tHolder](s)
	x := connectedWire(t, s)
	holder := ecs.ComponentID[tHolder](x.world)
	first := x.spawn(holder)
	x.world.RemoveEntity(first)
	e := x.spawn(holder)
	for _, far := range []ecs.Entity{e, replicationtest.Entity(t, 1<<20, 3), replicationtest.Entity(t, 0, 1<<32-1)} {
		spoil(t, x.world, replicationtest.Entity(t, 1, 1))
		h := x.world.NewEntity(ecs.ComponentID[tFrozen](x.world), ReplicatedID(x.world), holder)
		(*tHolder)(x.world.Get(h, holder)).At = far
		for range 3 {
			require.NotPanics(t, x.round)
		}
		m, ok := x.mirrored(h)
		require.True(t, ok)
		at := (*tHolder)(x.mirror.Get(m, ecs.ComponentID[tHolder](x.mirror))).At
		if far == h {
			require.Equal(t, m, at, "the same handle means the entity that has it now")
		} else {
			require.Zero(t, at)
		}
	}
}

// TestSetsAndGroupsDontTakeTheDead: a handle that became invalid by a reset is not a member when
// the world returns it again.
func TestSetsAndGroupsDontTakeTheDead(t *testing.T) {
	c := newLoadWorld(t, 3, loadSchema())
	set, group := c.server.NewEntitySet(), c.server.NewGroup()
	c.replicate()
	old := c.entities[2]
	c.world.Reset()
	set.Add(old)
	group.Add(old)
	for range 3 {
		c.world.NewEntity(c.position, ReplicatedID(&c.world))
	}
	require.True(t, c.world.Alive(old), "the world has given the handle out again")
	for range 3 {
		c.replicate()
		require.Zero(t, set.Len())
		require.Zero(t, group.Len())
	}
	set.Add(old)
	group.Add(old)
	c.replicate()
	require.Equal(t, 1, set.Len())
	require.Equal(t, 1, group.Len())
}
