package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Resources on a client whose user has some, removes some, resets the world, or gets another
// server.

// TestReplicatedResourcesReplaceTheUsers: the user's resource gets the server's values at the same
// address, and its local fields stay.
func TestReplicatedResourcesReplaceTheUsers(t *testing.T) {
	x := newWire(t, resourceSchema())
	own := setResource(x.mirror, rsMatch{Round: 9, Local: new(int)})
	x.rounds(5)
	require.Same(t, own, resourceOf[rsMatch](x.mirror), "the server has none, so nobody touches it")
	require.EqualValues(t, 9, own.Round)
	setResource(x.world, rsMatch{Round: 1, Local: new(int)})
	x.rounds(2)
	require.Same(t, own, resourceOf[rsMatch](x.mirror))
	require.EqualValues(t, 1, own.Round)
	require.NotNil(t, own.Local)
	require.NotSame(t, resourceOf[rsMatch](x.world).Local, own.Local)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	require.Nil(t, resourceOf[rsMatch](x.mirror), "it was the server's")
}

// TestResourcesThatTheUserRemoved stay away until the server adds them again.
func TestResourcesThatTheUserRemoved(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	m := setResource(x.world, rsMatch{Round: 1, Leader: e})
	x.rounds(2)
	dropResource[rsMatch](x.mirror)
	for range 3 {
		m.Round++
		m.Seats[0], m.Leader = m.Leader, m.Seats[0]
		x.rounds(2)
		require.Nil(t, resourceOf[rsMatch](x.mirror))
	}
	x.world.RemoveEntity(e) // the reference is updated in a resource that is not there
	x.rounds(2)
	own := setResource(x.mirror, rsMatch{}) // a resource of the user's
	m.Round = 77
	x.rounds(2)
	require.EqualValues(t, 77, own.Round)
	dropResource[rsMatch](x.mirror)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	setResource(x.world, rsMatch{Round: 5})
	x.rounds(2)
	require.Equal(t, rsMatch{Round: 5}, *resourceOf[rsMatch](x.mirror))
}

// TestResourcesAfterAResetOfTheClientsWorld are restored, though the server sends nothing.
func TestResourcesAfterAResetOfTheClientsWorld(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	setResource(x.world, rsMatch{Round: 3, Leader: e})
	setResource(x.world, rsOpen{})
	setResource(x.world, rsWeather{Rain: 1})
	x.rounds(3)
	dropResource[rsWeather](x.mirror)
	before := x.peer.Stats()
	old := resourceOf[rsMatch](x.mirror)
	x.mirror.Reset()
	x.mirror.NewEntity() // changes the ID of the replica
	require.NoError(t, x.client.Apply())
	m := resourceOf[rsMatch](x.mirror)
	leader, ok := x.mirrored(e)
	require.True(t, ok)
	require.NotSame(t, old, m)
	require.Equal(t, rsMatch{Round: 3, Leader: leader}, *m)
	require.NotNil(t, resourceOf[rsOpen](x.mirror))
	require.NotNil(t, resourceOf[rsWeather](x.mirror), "also what the user had removed")
	x.rounds(2)
	require.Equal(t, before.FullStates, x.peer.Stats().FullStates)
	require.Equal(t, before.Updates, x.peer.Stats().Updates)
	checkLinks(&x.client.apply, t, 1)

	setResource(x.world, rsMatch{Round: 4, Leader: e})
	x.world.RemoveEntity(e)
	x.rounds(2)
	require.Equal(t, rsMatch{Round: 4}, *m)
}

// TestResourcesOfAnotherSession: a resource has no identity, so it stays if the next server has it
// too.
func TestResourcesOfAnotherSession(t *testing.T) {
	for _, restart := range []bool{false, true} {
		x := connectedWire(t, resourceSchema())
		e := x.spawn()
		setResource(x.world, rsMatch{Round: 1, Leader: e})
		setResource(x.world, rsWeather{Rain: 7})
		setResource(x.world, rsOpen{})
		x.rounds(3)
		m := resourceOf[rsMatch](x.mirror)
		m.Local = new(int)
		require.False(t, m.Leader.IsZero())
		dropResource[rsOpen](x.mirror)

		id := x.client.session.ID
		if restart {
			x.replaceServer(faceOf(x.server.schema), 99)
			setResource(x.world, rsMatch{Round: 2})
			setResource(x.world, rsOpen{})
			for range 3 {
				x.spawn() // in the slot of the former leader
			}
		} else {
			x.server.Disconnect(x.peer)
			x.takeDown() // lost
			x.connect()
			dropResource[rsWeather](x.world)
			resourceOf[rsMatch](x.world).Round = 2
		}
		x.untilConnected(id)
		x.rounds(2)
		require.Same(t, m, resourceOf[rsMatch](x.mirror))
		require.EqualValues(t, 2, m.Round)
		require.NotNil(t, m.Local)
		require.Nil(t, resourceOf[rsWeather](x.mirror))
		require.Equal(t, restart, m.Leader.IsZero())
		require.Equal(t, restart, resourceOf[rsOpen](x.mirror) != nil, "what the user removed comes with another server only")
		checkLinks(&x.client.apply, t, 0)
	}
}

// TestResourcesOfAServerThatIsGone: resources go together with the entities of that server, before
// the resources of the next one arrive.
func TestResourcesOfAServerThatIsGone(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	m := setResource(x.world, rsMatch{Round: 1, Leader: e})
	x.rounds(3)
	shown := resourceOf[rsMatch](x.mirror)
	x.replaceServer(faceOf(x.server.schema), 99, WithMTU(200))
	setResource(x.world, *m).Leader = ecs.Entity{}
	setResource(x.world, rsMap{}).Cells[0] = 1 // sent in parts, which are lost
	for range 5 {
		x.spawn()
	}
	for n := 0; resourceOf[rsMatch](x.mirror) != nil; n++ {
		require.Less(t, n, 2*defaultClientTimeout)
		for _, p := range x.replicate() {
			if len(p) < 140 {
				_ = x.client.Receive(p)
			}
		}
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	}
	checkLinks(&x.client.apply, t, 0)
	require.Equal(t, 5, x.mirror.Stats().Entities.Used)
	x.rounds(100)
	require.EqualValues(t, 1, resourceOf[rsMatch](x.mirror).Round)
	require.NotSame(t, shown, resourceOf[rsMatch](x.mirror))
}
