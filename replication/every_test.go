package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// tSlowTo is read only every few ticks, and has a reference.
type tSlowTo struct {
	To    ecs.Entity
	Stamp uint32
}

// An everyWorld has entities that are stamped in every tick, and read in every n-th.
type everyWorld struct {
	*fixture
	n               uint32
	slow, to, owned ecs.ID
	entities        []ecs.Entity
}

// tSlowOwned is read only every few ticks, and sent to the owner only.
type tSlowOwned struct {
	Stamp uint32
}

func newEveryWorld(t *testing.T, n, entities int) *everyWorld {
	schema := NewSchema()
	Register[tSlow](schema, Every(n))
	Register[tSlowTo](schema, Every(n))
	Register[tSlowOwned](schema, Every(n), OwnerOnly())
	x := &everyWorld{fixture: connectedWire(t, schema), n: uint32(n)}
	x.slow, x.to, x.owned = ecs.ComponentID[tSlow](x.world), ecs.ComponentID[tSlowTo](x.world), ecs.ComponentID[tSlowOwned](x.world)
	for range entities {
		e := x.spawn(x.slow, x.to, x.owned)
		x.server.SetOwner(e, x.peer)
		x.entities = append(x.entities, e)
	}
	return x
}

// tick stamps the entities, plays a tick and returns the age of the oldest stamp that the client
// shows.
func (x *everyWorld) tick() (oldest Tick) {
	x.t.Helper()
	now := x.server.Tick() + 1
	for i, e := range x.entities {
		(*tSlow)(x.world.Get(e, x.slow)).Stamp = uint32(now)
		*(*tSlowTo)(x.world.Get(e, x.to)) = tSlowTo{x.entities[(i+1)%len(x.entities)], uint32(now)}
		(*tSlowOwned)(x.world.Get(e, x.owned)).Stamp = uint32(now)
	}
	x.round()
	for _, e := range x.entities {
		m, ok := x.mirrored(e)
		require.True(x.t, ok)
		oldest = max(oldest,
			now-Tick((*tSlow)(x.mirror.Get(m, ecs.ComponentID[tSlow](x.mirror))).Stamp),
			now-Tick((*tSlowTo)(x.mirror.Get(m, ecs.ComponentID[tSlowTo](x.mirror))).Stamp),
			now-Tick((*tSlowOwned)(x.mirror.Get(m, ecs.ComponentID[tSlowOwned](x.mirror))).Stamp))
	}
	return oldest
}

// TestEveryWithEntitiesThatLeaveTheirGroupForATick: an entity leaves the group just before it is
// read and comes back right after, every time.
func TestEveryWithEntitiesThatLeaveTheirGroupForATick(t *testing.T) {
	const n = 10
	x := newEveryWorld(t, n, n)
	g := x.server.NewGroup()
	for tick := range 400 {
		for i, e := range x.entities {
			switch (tick + i) % n {
			case 0:
				g.Remove(e)
			case 1:
				g.Add(e)
			}
		}
		require.Less(t, x.tick(), x.n, "tick %d", tick)
	}
}

// TestEveryWithRandomMovement moves entities from group to group.
func TestEveryWithRandomMovement(t *testing.T) {
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 3, 7, 60} {
		x := newEveryWorld(t, n, 20)
		groups := []*Group{nil}
		for range 4 {
			groups = append(groups, x.server.NewGroup())
		}
		of := make([]*Group, len(x.entities))
		for tick := range 5 * max(n, 20) {
			for i, e := range x.entities {
				if r.IntN(3) > 0 {
					continue
				}
				if of[i] != nil {
					of[i].Remove(e)
				}
				if of[i] = groups[r.IntN(len(groups))]; of[i] != nil {
					of[i].Add(e)
				}
			}
			require.Less(t, x.tick(), x.n, "every %d, tick %d", n, tick)
		}
	}
}
