package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestWhatFitsAgainIsShown: after a moment with more entities than a client has room for, it shows all that is left,
// with its owner, weight, set and group.
func TestWhatFitsAgainIsShown(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for name, conditional := range map[string]bool{"plain": false, "with conditions and resources": true} {
		t.Run(name, func(t *testing.T) {
			schema := NewSchema()
			Register[tHealth](schema)
			Register[tPosition](schema)
			if conditional {
				Register[tRotation](schema, OnlyFor(func(*Peer) bool { return true }))
				RegisterResource[rsWeather](schema)
			}
			w := ecs.NewWorld()
			s := NewServer(&w, schema, WithSeed(seedOf(t)))
			if conditional {
				setResource(&w, rsWeather{Rain: 1})
			}
			ids := []ecs.ID{ReplicatedID(&w), ecs.ComponentID[tHealth](&w)}
			if conditional {
				ids = append(ids, ecs.ComponentID[tRotation](&w))
			}
			spawn := func(n int) (list []ecs.Entity) {
				for range n {
					list = append(list, w.NewEntity(ids...))
				}
				return list
			}
			link := netsim.Config{Latency: 2, Loss: 0.05}
			ends := []*end{connect(s, 1, link, WithSeed(1), WithMaxEntities(1000)), connect(s, 2, link, WithSeed(2))}
			o := newTruth()
			play := func(ticks int) {
				for range ticks {
					s.Replicate()
					o.record(s)
					for _, e := range ends {
						e.step(t)
					}
				}
			}
			old := spawn(900)
			play(40)
			spike := spawn(1500)
			last := w.NewEntity(append(ids, ecs.ComponentID[tPosition](&w))...)
			s.SetOwner(last, ends[0].peer)
			s.SetPriority(last, 5)
			set, group := s.NewEntitySet(), s.NewGroup()
			set.Add(last)
			group.Add(last)
			group.Add(spike[1499])
			play(60)
			require.True(t, ends[0].client.Complete())
			for _, e := range spike[:1499] {
				w.RemoveEntity(e)
			}
			for _, e := range old[:100] {
				w.RemoveEntity(e)
			}
			spawned := ends[1].client.Stats().Spawns
			play(80)
			before := ends[0].peer.Stats().Withheld
			play(1)
			require.Equal(t, before, ends[0].peer.Stats().Withheld)
			for _, e := range ends {
				require.Equal(t, "", e.equalTo(s, o))
				require.Zero(t, e.client.Stats().RefusedPackets)
			}
			require.LessOrEqual(t, ends[1].client.Stats().Spawns-spawned, uint64(2), "others make few replicas anew")
			require.Same(t, ends[0].peer, s.Owner(last))
			slot, ok := s.snap.SlotOf(last)
			require.True(t, ok)
			require.EqualValues(t, 5, s.snap.Slots.Info[slot].Weight)
			require.Equal(t, 1, set.Len())
		})
	}
}
