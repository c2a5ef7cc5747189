package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestMessagesWaitForConditionalComponents: a client that learns from a message that an entity is
// now its own finds the owner's components, and no other client does; when it learns that it no
// longer is, they are gone.
// gone.
func TestMessagesWaitForConditionalComponents(t *testing.T) {
	seed := seedOf(t)
	schema := NewSchema()
	Register[cPlace](schema)
	Register[cAmmo](schema, OwnerOnly())
	Register[cGhost](schema, ExceptOwner())
	RegisterMessage[kAbout](schema)
	w := ecs.NewWorld()
	s := NewServer(&w, schema, WithSeed(seed))
	place, ammo, ghost := ecs.ComponentID[cPlace](&w), ecs.ComponentID[cAmmo](&w), ecs.ComponentID[cGhost](&w)
	received := 0
	var ends []*end
	for i := range uint64(3) {
		e := connect(s, seed+i, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.25, Duplicate: 0.1, Reorder: 0.3, ReorderBy: 8}, WithSeed(seed+i))
		e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return (Tick(e.ID())+s.Tick()/50)%4 > 0 }})
		OnServerMessage(e.client, func(m kAbout) {
			if m.Who.IsZero() {
				return // out of view
			}
			received++
			require.True(t, e.world.Has(m.Who, ecs.ComponentID[cPlace](e.world)))
			if latest := s.Tick(); latest-e.client.MessageTick() > 40 {
				return // they may have changed since and be back
			}
			yours := m.N == 1
			require.Equal(t, yours, e.world.Has(m.Who, ecs.ComponentID[cAmmo](e.world)), "tick %d", e.client.MessageTick())
			require.Equal(t, !yours, e.world.Has(m.Who, ecs.ComponentID[cGhost](e.world)), "tick %d", e.client.MessageTick())
		})
		ends = append(ends, e)
	}
	var all []ecs.Entity
	for tick := range 1500 {
		if tick%45 == 0 { // rarely enough that a later change has not arrived
			e := w.NewEntity(place, ammo, ghost, ReplicatedID(&w))
			if all = append(all, e); tick%2 == 0 && tick > 45 {
				e = all[len(all)-2]
			}
			owner := ends[tick/45%3]
			s.SetOwner(e, owner.peer)
			for _, end := range ends {
				if end.peer.Connected() {
					n := uint32(0)
					if end == owner {
						n = 1
					}
					require.NoError(t, SendToClient(end.peer, kAbout{e, n}))
				}
			}
		}
		s.Replicate()
		for _, e := range ends {
			e.step(t)
		}
	}
	require.Greater(t, received, 50)
}
