package replication

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// TestHiddenGroupsLeaveNoTrace: what a peer is sent does not depend on which groups the entities are in that it does not
// see, also where they have the slots of entities whose end it is still being sent.
func TestHiddenGroupsLeaveNoTrace(t *testing.T) {
	for i := range ticksOf(40, 10) {
		seed := seedOf(t) + uint64(i)
		for _, coding := range []Coding{Packed, Compact} {
			with, without := sentBesideHiddenGroups(seed, coding, true), sentBesideHiddenGroups(seed, coding, false)
			require.Equal(t, without, with, "seed %d, %v", seed, coding)
		}
	}
}

// sentBesideHiddenGroups returns what a peer is sent that sees some of the entities. grouped puts the others into groups.
func sentBesideHiddenGroups(seed uint64, coding Coding, grouped bool) (sent []string) {
	r, secret := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	w, mirror := ecs.NewWorld(), ecs.NewWorld()
	schema := testSchema()
	s := NewServer(&w, schema, WithSeed(seed), WithMTU(pick(r, 200, 400, 1200)))
	position := ecs.ComponentID[tPosition](&w)
	var seen, hidden []ecs.Entity
	link := netsim.NewLink(seed, netsim.Config{Latency: 2, Loss: 0.15, Jitter: 1})
	peer := s.Connect(func(p []byte) error {
		sent = append(sent, fmt.Sprintf("%d %x", s.Tick(), p))
		return link.Down.Send(p)
	}, WithCoding(coding))
	peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return slices.Contains(seen, e) }})
	peer.SetBudget(pick(r, 0, 0, 2000, 6000))
	client := NewClientWith(&mirror, schema, link.Up.Send, WithSeed(1))
	groups := []*Group{s.NewGroup(), s.NewGroup(), s.NewGroup()} // of hidden entities
	crew := s.NewGroup()
	limit := pick(r, 10, 40, 100)
	for range 250 {
		for _, e := range seen {
			if r.IntN(3) == 0 {
				(*tPosition)(w.Get(e, position)).X += r.Float32()
			}
		}
		if len(seen) > 3 && r.IntN(2) == 0 { // one ends, or goes out of view for good
			i := r.IntN(len(seen))
			e := seen[i]
			seen = slices.Delete(seen, i, i+1)
			crew.Remove(e)
			if r.IntN(2) == 0 {
				w.RemoveEntity(e)
			} else {
				hidden = append(hidden, e)
			}
		}
		s.Replicate() // from here on, the slots of what ended are free
		link.Step()
		link.Down.Receive(func(p []byte) { _ = client.Receive(p) })
		_ = client.Apply()
		link.Up.Receive(func(p []byte) { _ = peer.Receive(p) })
		if len(seen) < limit/2 {
			seen = append(seen, w.NewEntity(position, ReplicatedID(&w)))
		}
		if len(hidden) < 3*limit && r.IntN(2) == 0 {
			hidden = append(hidden, w.NewEntity(position, ReplicatedID(&w)))
		}
		if len(seen) > 0 && r.IntN(4) == 0 {
			crew.Add(seen[r.IntN(len(seen))])
		}
		for _, e := range hidden {
			if grouped && secret.IntN(12) == 0 {
				for _, g := range groups {
					g.Remove(e)
				}
				groups[secret.IntN(3)].Add(e)
			}
		}
	}
	return sent
}
