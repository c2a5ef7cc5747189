package replication_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type steer struct {
	X, Y int8 `repl:"range=-1:1"`
}

// sail is what a tick does to the player's ship, on the server and in predictions.
func sail(p *Position, s steer) { p.X, p.Y = p.X+float32(s.X)*0.5, p.Y+float32(s.Y)*0.5 }

// A voyage is a game in which a player predicts where the own ship is, in the way that the guide shows.
type voyage struct {
	t             *testing.T
	rng           *rand.Rand
	world, shown  ecs.World
	server        *replication.Server
	peer          *replication.Peer
	client        *replication.Client
	link          *netsim.Link
	schema        *replication.Schema
	ship          ecs.Entity
	inputs        map[uint32]steer    // of the client, by tick
	truth, guess  map[uint32]Position // by tick: where the ship was, and where the client predicted it
	from          map[uint32]uint32   // by tick: that of the state from which it was predicted
	missed        map[uint32]bool     // ticks whose input the server missed
	newest        uint32              // tick with an input
	idOf, shownID ecs.ID
}

// TestPredictionOfOnesOwnEntity: with the inputs after the tick of its state, the client knows where its entity will be,
// unless the server misses an input.
func TestPredictionOfOnesOwnEntity(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for _, interval := range []int{1, 3} {
		v := newVoyage(t, seed, interval)
		for range 2000 {
			v.tick()
		}
		compared, wrong, missed := 0, 0, 0
		for tick, guess := range v.guess {
			truth, known := v.truth[tick]
			if !known {
				continue
			}
			compared++
			switch far := max(abs(guess.X-truth.X), abs(guess.Y-truth.Y)); {
			case v.missedIn(v.from[tick]+1, tick):
				missed++
			case far > 0.02: // twice the step
				wrong++
			}
		}
		require.Zero(t, wrong, "of %d predictions, send interval %d", compared, interval)
		require.Greater(t, compared, 1900)
		require.Less(t, missed, compared/10)
	}
}

func newVoyage(t *testing.T, seed uint64, interval int) *voyage {
	schema := replication.NewSchema()
	replication.Register[Position](schema)
	replication.RegisterInput[steer](schema)
	v := &voyage{
		schema: schema, t: t, rng: rand.New(rand.NewPCG(seed, 1)), world: ecs.NewWorld(), shown: ecs.NewWorld(),
		link:   netsim.NewLink(seed, netsim.Config{Latency: 5, Jitter: 1, Loss: 0.1}),
		inputs: map[uint32]steer{}, truth: map[uint32]Position{}, guess: map[uint32]Position{},
		from: map[uint32]uint32{}, missed: map[uint32]bool{},
	}
	v.idOf, v.shownID = ecs.ComponentID[Position](&v.world), ecs.ComponentID[Position](&v.shown)
	v.server = replication.NewServer(&v.world, schema, replication.WithSeed(seed))
	v.peer = v.server.Connect(v.link.Down.Send)
	v.peer.SetSendInterval(interval)
	v.client = replication.NewClient(&v.shown, schema, v.link.Up.Send, replication.WithSeed(seed+1))
	v.ship = v.world.NewEntity(v.idOf, replication.ReplicatedID(&v.world))
	return v
}

// tick plays a tick of the server and a frame of the client.
func (v *voyage) tick() {
	next := v.server.Tick() + 1
	s, ok := replication.Input[steer](v.peer, next)
	if !ok {
		v.missed[next] = true
	}
	ship := (*Position)(v.world.Get(v.ship, v.idOf))
	sail(ship, s)
	v.truth[next] = *ship
	v.server.Replicate()
	v.link.Step()
	v.link.Down.Receive(func(packet []byte) { _ = v.client.Receive(packet) })
	newest := v.client.InputTick()
	for tick := newest - 7; tick != newest+1; tick++ {
		s := steer{X: int8(v.rng.IntN(3)) - 1, Y: int8(v.rng.IntN(3)) - 1}
		if replication.SetInput(v.client, tick, s) == nil {
			v.inputs[tick], v.newest = s, tick
		}
	}
	require.NoError(v.t, v.client.Apply())
	v.link.Up.Receive(func(packet []byte) { _ = v.peer.Receive(packet) })
	v.predict()
}

// predict notes where the client predicts the ship after its newest input.
func (v *voyage) predict() {
	id, known := v.server.NetID(v.ship)
	me, shown := v.client.Entity(id)
	if !known || !shown || v.newest == 0 {
		return
	}
	state, ok := v.client.RestedUntil(me)
	require.True(v.t, ok)
	at := *(*Position)(v.shown.Get(me, v.shownID))
	input := v.inputs[state]
	for tick := state + 1; int32(v.newest-tick) >= 0; tick++ {
		if next, set := v.inputs[tick]; set {
			input = next
		}
		sail(&at, input)
	}
	v.guess[v.newest], v.from[v.newest] = at, state
}

// missedIn reports whether the server missed an input of some ticks.
func (v *voyage) missedIn(first, last uint32) bool {
	for tick := first; int32(last-tick) >= 0; tick++ {
		if v.missed[tick] {
			return true
		}
	}
	return false
}

func abs(x float32) float32 { return max(x, -x) }

// TestDrawnPredictionsAreSmooth: the place that the guide draws goes on evenly at frame rates that are no multiple of the
// tick rate, on a link without jitter, though InputTick rises tick by tick.
func TestDrawnPredictionsAreSmooth(t *testing.T) {
	for _, rate := range []int{50, 60, 144} {
		v := newVoyage(t, 1, 1)
		v.link = netsim.NewLink(1, netsim.Config{Latency: 3})
		v.peer.Disconnect(replication.Reason{})
		v.peer = v.server.Connect(v.link.Down.Send)
		v.client = replication.NewClient(&v.shown, v.schema, v.link.Up.Send, replication.WithSeed(2))
		ticks, last, uneven := 0, 0.0, 0.0
		frames := 20 * rate
		for frame := range frames {
			for ; ticks < frame*60/rate; ticks++ {
				v.server.Replicate()
				v.link.Step()
				v.link.Up.Receive(func(packet []byte) { _ = v.peer.Receive(packet) })
			}
			v.client.Advance(time.Second / time.Duration(rate))
			v.link.Down.Receive(func(packet []byte) { _ = v.client.Receive(packet) })
			require.NoError(t, v.client.Apply())
			newest := v.client.InputTick()
			f := v.client.ServerTick() + v.client.InputDelay() - float64(newest)
			at := float64(newest) + min(max(f, 0), 1)
			if frame > frames/2 {
				uneven += math.Abs((at-last)*float64(rate)/60 - 1)
			}
			last = at
		}
		uneven /= float64(frames / 2)
		t.Logf("%d frames per second: the steps differ by %.3f in the mean", rate, uneven)
		require.Less(t, uneven, 0.1)
	}
}
