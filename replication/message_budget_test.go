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

// barrage is a game of 400 movers and many short-lived projectiles, for a client with a short budget to which what is
// near matters most.
type barrage struct {
	rng    *rand.Rand
	world  *ecs.World
	server *Server
	end    *end
	place  ecs.ID

	movers, projectiles []ecs.Entity
	ages                []float64 // of messages that arrived, in seconds
}

func newBarrage(t *testing.T) *barrage {
	s := NewSchema()
	Register[far](s)
	RegisterMessage[mHit](s)
	world := ecs.NewWorld()
	x := &barrage{rng: rand.New(rand.NewPCG(seedOf(t), 3)), world: &world, server: NewServer(&world, s, WithTickRate(30))}
	x.place = ecs.ComponentID[far](x.world)
	x.end = connect(x.server, 3, netsim.Config{Latency: 3})
	x.end.peer.SetBudget(7440)
	x.end.peer.SetPriorityFunc(func(entities []ecs.Entity, weights []float32) {
		for i, e := range entities {
			weights[i] *= 30 / (330 + x.at(e).X)
		}
	})
	OnServerMessage(x.end.client, func(m mHit) { x.ages = append(x.ages, float64(x.server.Tick()-m.Number)/30) })
	for range 400 {
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
	for range 10 {
		x.projectiles = append(x.projectiles, x.spawn())
	}
	if len(x.projectiles) > 450 { // they live for 1.5 seconds
		for _, e := range x.projectiles[:10] {
			x.world.RemoveEntity(e)
		}
		x.projectiles = x.projectiles[10:]
	}
	for _, e := range x.projectiles {
		x.at(e).Y += 2
	}
	if n%5 == 0 && x.end.client.Connected() {
		require.NoError(t, SendToClient(x.end.peer, mHit{Number: x.server.Tick()}))
	}
	x.server.Replicate()
	x.end.step(t)
}

// TestMessagesDoNotWaitForWhatMattersLeast: a message waits for what was there when it was sent. That goes to the client
// in time, however little it weighs and however many others are new; or it ends, and nobody waits for it.
func TestMessagesDoNotWaitForWhatMattersLeast(t *testing.T) {
	x := newBarrage(t)
	const ticks = 60 * 30
	for n := range ticks {
		x.tick(t, n)
	}
	require.Greater(t, len(x.ages), ticks/5-30)
	slices.Sort(x.ages)
	require.Less(t, x.ages[len(x.ages)-1], 9.0, "those of the first second, with the movers")
	require.Less(t, x.ages[len(x.ages)*9/10], 3.0)
	require.Less(t, x.ages[len(x.ages)/2], 1.5)
}
