package replication

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestALateRelay: what a server sends to a relay waits for five seconds, and the relay's answers pass at once. At 10 ticks
// a second the round trip is within the window, so all goes as over a usual path, only late.
func TestALateRelay(t *testing.T) {
	const rate, late = 10, 50
	schema := messageSchema()
	world, relayed := ecs.NewWorld(), ecs.NewWorld()
	server := NewServer(&world, schema, WithTickRate(rate), WithWindow(120))
	var queue [][]byte
	var times []Tick
	peer := server.Connect(func(packet []byte) error {
		queue, times = append(queue, bytes.Clone(packet)), append(times, server.Tick()+late)
		return nil
	})
	relay := NewClientWith(&relayed, schema, peer.Receive, WithSpawnComponents(ReplicatedID(&relayed)))
	ages := map[string][]int{}
	note := func(kind string, sent uint32) { ages[kind] = append(ages[kind], int(server.Tick()-Tick(sent))) }
	OnServerMessage(relay, func(m mHit) { note("waits", m.Number) })
	OnServerMessage(relay, func(m mChat) { note("immediate", m.Number) })
	rng := rand.New(rand.NewPCG(seedOf(t), 5))
	position := ecs.ComponentID[tPosition](&world)
	var movers []ecs.Entity
	for range 200 {
		movers = append(movers, world.NewEntity(position, ReplicatedID(&world)))
	}
	for n := range 120 * rate {
		for _, e := range movers {
			(*tPosition)(world.Get(e, position)).X = rng.Float32() * 50
		}
		i := n % len(movers)
		world.RemoveEntity(movers[i])
		movers[i] = world.NewEntity(position, ReplicatedID(&world))
		if relay.Connected() && n%5 == 0 {
			require.NoError(t, SendToClient(peer, mHit{Number: uint32(server.Tick())}))
			require.NoError(t, SendToClient(peer, mChat{Number: uint32(server.Tick())}))
		}
		server.Replicate()
		for len(times) > 0 && int32(server.Tick()-times[0]) >= 0 {
			_ = relay.Receive(queue[0])
			queue, times = queue[1:], times[1:]
		}
		require.NoError(t, relay.Apply())
		if n > 60*rate {
			require.True(t, relay.Complete())
			for _, e := range relay.Entities() {
				tick, _ := relay.StateTick(e)
				require.InDelta(t, late, int(server.Tick()-tick), 3)
			}
		}
	}
	stats := peer.Stats()
	require.Less(t, stats.FullStates, uint64((200+120*rate)*(late+10)), "only what is new, until it is acknowledged")
	require.Greater(t, stats.Updates, 2*stats.FullStates)
	for kind, all := range ages {
		require.LessOrEqual(t, slices.Max(all[len(all)/2:]), late+3, kind)
	}
}
