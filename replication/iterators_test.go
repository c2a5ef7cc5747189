package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// peersOf returns a server with n peers, whose data are 0 to n-1.
func peersOf(n int) (*Server, []*Peer) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema())
	for i := range n {
		s.Connect(func([]byte) error { return nil }).SetData(i)
	}
	return s, slices.Collect(s.Peers())
}

func TestPeersComeInTheOrderOfTheirConnections(t *testing.T) {
	s, peers := peersOf(5)
	for i, p := range peers {
		require.Equal(t, i, p.Data())
	}
	peers[2].Disconnect(Reason{})
	s.Connect(func([]byte) error { return nil }).SetData("last")
	var data []any
	for p := range s.Peers() {
		data = append(data, p.Data())
	}
	require.Equal(t, []any{0, 1, 3, 4, "last"}, data)
	for p := range s.Peers() {
		require.Equal(t, 0, p.Data())
		break
	}
	require.Equal(t, 2, peers[2].Data(), "data outlive the connection")
	s.Close()
	require.Empty(t, slices.Collect(s.Peers()))
}

// TestPeersMayChangeInALoopOverThem: whichever peers are connected or disconnected in the loop, it
// visits each earlier peer once, unless that was disconnected before its turn.
func TestPeersMayChangeInALoopOverThem(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		s, before := peersOf(1 + rng.IntN(8))
		gone := map[*Peer]bool{}
		var seen, want []*Peer
		for p := range s.Peers() {
			require.False(t, gone[p])
			seen = append(seen, p)
			for range rng.IntN(3) {
				if q := before[rng.IntN(len(before))]; rng.IntN(3) == 0 {
					s.Connect(func([]byte) error { return nil })
				} else {
					if !gone[q] && !slices.Contains(seen, q) {
						want = append(want, q) // not visited
					}
					gone[q] = true
					q.Disconnect(Reason{})
				}
			}
		}
		for _, p := range before {
			require.Equal(t, !slices.Contains(want, p), slices.Contains(seen, p))
		}
		require.Len(t, seen, len(before)-len(want), "each once")
	}
	s, _ := peersOf(3)
	n := 0
	for range s.Peers() {
		n++
		s.Close()
	}
	require.Equal(t, 1, n)
}

func TestEntitiesOfAClient(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	var truth []ecs.Entity
	for range 6 {
		truth = append(truth, x.spawn(position))
	}
	x.rounds(3)
	var ids []NetID
	for id, e := range x.client.Entities() {
		own, ok := x.client.NetID(e)
		require.True(t, ok)
		require.Equal(t, id, own)
		ids = append(ids, id)
	}
	require.Len(t, ids, len(truth))
	require.True(t, slices.IsSortedFunc(ids, func(a, b NetID) int { return int(a.Slot) - int(b.Slot) }))

	moved, _ := x.mirrored(truth[3])
	old, ok := x.client.StateTick(moved)
	require.True(t, ok)
	(*tPosition)(x.world.Get(truth[3], position)).X++
	x.rounds(1)
	now, ok := x.client.StateTick(moved)
	require.True(t, ok)
	require.Equal(t, x.server.Tick(), now)
	require.Less(t, old, now)
	still, _ := x.mirrored(truth[2])
	tick, ok := x.client.StateTick(still)
	require.True(t, ok)
	require.Equal(t, old, tick)
	_, ok = x.client.StateTick(x.mirror.NewEntity())
	require.False(t, ok, "it mirrors nothing")
	_, ok = x.client.StateTick(ecs.Entity{})
	require.False(t, ok)

	var seen []NetID
	for id, e := range x.client.Entities() { // entities removed in the loop are not visited
		seen = append(seen, id)
		x.mirror.RemoveEntity(e)
		if next, ok := x.client.Entity(ids[min(len(seen), len(ids)-1)]); ok && len(seen) == 1 {
			x.mirror.RemoveEntity(next)
		}
		x.mirror.NewEntity(position) // in the place of a removed one
	}
	require.Equal(t, append([]NetID{ids[0]}, ids[2:]...), seen)

	x = connectedWire(t, testSchema())
	for range 6 {
		x.spawn(position)
	}
	x.rounds(3)
	n := 0
	for range x.client.Entities() {
		n++
		x.mirror.Reset()
		for range 10 {
			x.mirror.NewEntity() // reuses the handles of removed ones
		}
	}
	require.Equal(t, 1, n, "a reset ends the loop")
}

func TestIteratorsDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	for range 100 {
		x.spawn(position)
	}
	for range 10 {
		x.server.Connect(func([]byte) error { return nil })
	}
	x.rounds(3)
	entities, peers, ticks := 0, 0, Tick(0)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, e := range x.client.Entities() {
			tick, _ := x.client.StateTick(e)
			ticks += tick
			entities++
		}
		for p := range x.server.Peers() {
			if p.Data() == nil {
				peers++
			}
		}
	}))
	require.Equal(t, []int{1100, 121}, []int{entities, peers})
}

func BenchmarkEntities(b *testing.B) {
	x := connectedWire(b, testSchema(), WithMTU(65507))
	position := ecs.ComponentID[tPosition](x.world)
	for range 1000 {
		x.spawn(position)
	}
	x.rounds(3)
	n := 0
	for b.Loop() {
		for range x.client.Entities() {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entity")
}
