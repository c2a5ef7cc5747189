package replication

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestGroupsLeaveRoomForTheRest: groups are sent first, and these are more than may be in flight.
// The client can't apply any of them before it has the missing parts of entities without a group.
func TestGroupsLeaveRoomForTheRest(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(coding.String(), func(t *testing.T) {
			x := newWire(t, testSchema(), WithMTU(128))
			x.peer.conn.Compact = coding == Compact
			x.rounds(5)
			bulk := ecs.ComponentID[tBulk](x.world)
			for i := range receive.MaxAssemblies {
				fillBulk(x, x.spawn(bulk), uint64(i+1))
			}
			for i, p := range x.replicate() {
				if i%3 > 0 { // parts of all entities, but not all parts
					x.deliver(p)
				}
			}
			require.Len(t, x.client.recv.Parts, receive.MaxAssemblies)
			for i := range 100 {
				g := x.server.NewGroup()
				for j := range 3 {
					e := x.spawn(bulk)
					fillBulk(x, e, uint64(1000+3*i+j))
					g.Add(e)
				}
			}
			x.rounds(100)
			require.GreaterOrEqual(t, x.peer.Stats().Parts, uint64(ackstate.MaxInFlight))
			x.requireEqual()
		})
	}
}

// TestGroupsDoNotStarveTheRest: where the groups that are chosen take the complete budget, and no more, they have their
// turns and so does everything else.
func TestGroupsDoNotStarveTheRest(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	for _, c := range []struct{ groups, size, singles int }{{75, 4, 100}, {1, 300, 100}} {
		for _, budget := range []int{12_000, 14_000, 15_000, 16_000, 17_000, 18_000} {
			x := connectedWire(t, testSchema(), WithSeed(seed))
			x.peer.SetBudget(budget)
			position := ecs.ComponentID[tPosition](x.world)
			r := rand.New(rand.NewPCG(seed, uint64(budget)))
			var entities []ecs.Entity
			for range c.singles {
				entities = append(entities, x.spawn(position))
			}
			for range c.groups {
				g := x.server.NewGroup()
				for i := range c.size {
					e := x.spawn(position)
					if g.Add(e); i == 0 {
						x.server.SetPriority(e, 8)
					}
					entities = append(entities, e)
				}
			}
			age := func(of []ecs.Entity) (sum int) {
				for _, e := range of {
					own, ok := x.mirrored(e)
					require.True(t, ok)
					tick, _ := x.client.StateTick(own)
					sum += int(x.server.Tick() - tick)
				}
				return sum / len(of)
			}
			single, grouped := 0, 0
			for tick := range 400 {
				for _, e := range entities {
					*(*tPosition)(x.world.Get(e, position)) = tPosition{X: 100 - 200*r.Float32(), Z: 100 - 200*r.Float32()}
				}
				if x.round(); tick >= 300 {
					single, grouped = single+age(entities[:c.singles]), grouped+age(entities[c.singles:])
				}
			}
			require.Less(t, single, 3*grouped+1000, "%+v, %d bytes/s", c, budget)
		}
	}
}

// TestLargeGroupsCostWhatTheirMembersDo: with a short budget, a group that is larger than a packet takes time for each
// member, and not for each pair of them.
func TestLargeGroupsCostWhatTheirMembersDo(t *testing.T) {
	oneGoroutine(t)
	cost := func(members int) time.Duration {
		x := connectedWire(t, testSchema(), WithSeed(seedOf(t)))
		x.peer.SetBudget(60_000)
		position := ecs.ComponentID[tPosition](x.world)
		g := x.server.NewGroup()
		entities := make([]ecs.Entity, members)
		for i := range entities {
			entities[i] = x.spawn(position)
			g.Add(entities[i])
		}
		var total time.Duration
		for tick := range 60 {
			for i, e := range entities {
				(*tPosition)(x.world.Get(e, position)).X = float32((tick*7 + i) % 90)
			}
			begin := time.Now()
			packets := x.replicate()
			if tick >= 20 {
				total += time.Since(begin)
			}
			x.deliver(packets...)
			x.answer(x.apply()...)
		}
		return total
	}
	few, many := cost(200), cost(1600)
	t.Logf("40 ticks of 200 members %v, of 1600 members %v", few, many)
	require.Less(t, many, 30*few)
}
