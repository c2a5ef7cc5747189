package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// far is something at a place, with more to send at first than later.
type far struct {
	X, Y    float32 `repl:"range=-4000:4000,step=0.1"`
	A, B, C uint32
}

// barrage is a game of movers and short-lived projectiles, for a client with a short budget to which what is near matters
// most.
type barrage struct {
	spawns, life int // of projectiles, per tick and in ticks

	rng    *rand.Rand
	world  *ecs.World
	server *Server
	end    *end
	place  ecs.ID

	movers, projectiles []ecs.Entity
	ages                []float64 // of messages that arrived, in seconds
}

func newBarrage(t *testing.T, movers, spawns, life, budget int) *barrage {
	s := NewSchema()
	Register[far](s)
	RegisterMessage[mHit](s)
	world := ecs.NewWorld()
	x := &barrage{spawns: spawns, life: life, rng: rand.New(rand.NewPCG(seedOf(t), 3)), world: &world}
	x.server = NewServer(&world, s, WithTickRate(30))
	x.place = ecs.ComponentID[far](x.world)
	x.end = connect(x.server, 3, netsim.Config{Latency: 5})
	x.end.peer.SetBudget(budget)
	x.end.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
		for i, e := range entities {
			weights[i] *= 30 / (330 + x.at(e).X)
		}
	})
	OnServerMessage(x.end.client, func(m mHit) { x.ages = append(x.ages, float64(x.server.Tick()-Tick(m.Number))/30) })
	for range movers {
		x.movers = append(x.movers, x.spawn())
	}
	return x
}

func (x *barrage) at(e ecs.Entity) *far { return (*far)(x.world.Get(e, x.place)) }

func (x *barrage) spawn() ecs.Entity {
	e := x.world.NewEntity(x.place, ReplicatedID(x.world))
	*x.at(e) = far{x.rng.Float32()*600 - 300, x.rng.Float32()*600 - 300, x.rng.Uint32(), x.rng.Uint32(), x.rng.Uint32N(1 << 16)}
	return e
}

func (x *barrage) tick(t *testing.T, n int) {
	for _, e := range x.movers {
		x.at(e).X += x.rng.Float32()*0.6 - 0.3
	}
	if i := x.rng.IntN(len(x.movers)); n%4 == 0 {
		x.world.RemoveEntity(x.movers[i])
		x.movers[i] = x.spawn()
	}
	for range x.spawns {
		x.projectiles = append(x.projectiles, x.spawn())
	}
	if len(x.projectiles) > x.spawns*x.life {
		for _, e := range x.projectiles[:x.spawns] {
			x.world.RemoveEntity(e)
		}
		x.projectiles = x.projectiles[x.spawns:]
	}
	for _, e := range x.projectiles {
		x.at(e).Y += 2
	}
	if n%5 == 0 && n > 30 {
		require.NoError(t, SendToClient(x.end.peer, mHit{Number: uint32(x.server.Tick())}))
	}
	x.server.Replicate()
	x.end.step(t)
}

// play lets ticks pass. All messages arrive but those of the last seconds.
func (x *barrage) play(t *testing.T, ticks int) {
	for n := range ticks {
		x.tick(t, n)
	}
	require.Greater(t, len(x.ages), ticks/5-50)
}

// TestMessagesDoNotWaitForWhatMattersLeast: a message waits for what was there when it was sent. That goes to the client
// in time, however little it weighs and however many others are new; or it ends, and nobody waits for it.
func TestMessagesDoNotWaitForWhatMattersLeast(t *testing.T) {
	x := newBarrage(t, 400, 10, 45, 7440)
	x.play(t, 60*30)
	slices.Sort(x.ages)
	require.Less(t, x.ages[len(x.ages)-1], 13.0, "those of the first second, with the movers")
	require.Less(t, x.ages[len(x.ages)*9/10], 5.0)
	require.Less(t, x.ages[len(x.ages)/2], 1.3)
}

// TestMessagesAmongShortLives: slots are reused faster than a round trip, and all the time some of them wait for the
// budget. A message does not wait for what comes after it.
func TestMessagesAmongShortLives(t *testing.T) {
	x := newBarrage(t, 100, 5, 8, 4000)
	x.play(t, 200*30)
	require.Less(t, slices.Max(x.ages), 10.0)
}
