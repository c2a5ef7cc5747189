package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestResourcesDoNotAllocate: once all buffers have grown, resources that change in every tick, and
// reference entities that spawn and despawn, allocate nothing.
func TestResourcesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := newReusingLink(t, resourceSchema())
	world, peer := x.world, x.peer
	var players []ecs.Entity
	for range 6 {
		players = append(players, world.NewEntity(ReplicatedID(world)))
	}
	match, weather, area := setResource(world, rsMatch{}), setResource(world, rsWeather{}), setResource(world, rsMap{})
	peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != players[5] || x.server.Tick()%4 > 1 }})
	tick := 0
	play := func() {
		tick++
		match.Clock, match.Leader, match.Seats[tick%2] = int32(tick), players[tick%6], players[5]
		weather.Wind[0] = float32(tick%1000)/10 - 50
		area.Cells[tick%300]++
		x.round()
	}
	for range 600 {
		play()
	}
	before := peer.Stats().Updates
	n := testing.AllocsPerRun(200, play)
	t.Logf("%v allocations per tick", n)
	require.LessOrEqual(t, n, 0.1)
	require.GreaterOrEqual(t, peer.Stats().Updates-before, uint64(200))
	require.EqualValues(t, tick, resourceOf[rsMatch](x.mirror).Clock)
}
