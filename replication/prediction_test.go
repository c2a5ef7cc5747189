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

// A berth is where a ship is.
type berth struct {
	X, Y float32 `repl:"range=-4000:4000,step=0.01"`
}

// sail is what a tick does to the player's ship, on the server and in predictions.
func sail(p *berth, s steer) { p.X, p.Y = p.X+float32(s.X)*0.5, p.Y+float32(s.Y)*0.5 }

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
	me            ownShip           // of the client
	truth, guess  map[uint32]berth  // by tick: where the ship was, and where the client predicted it
	from          map[uint32]uint32 // by tick: that of the state from which it was predicted
	missed        map[uint32]bool   // ticks whose input the server missed
	newest        uint32            // tick with an input
	now           berth             // where the ship is drawn
	hitch         int               // milliseconds of a frame in every 3 seconds, if it is not 0
	arrived       func(berth)       // is called in each frame with the newest state, if it is not nil
	idOf, shownID ecs.ID
}

// TestPredictionOfOnesOwnEntity: with the inputs after the tick of its state, the client knows where its entity will be,
// unless the server misses an input.
func TestPredictionOfOnesOwnEntity(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	for _, interval := range []int{1, 3} {
		v := newVoyage(t, seed, interval, netsim.Config{Latency: 5, Jitter: 1, Loss: 0.1})
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

func newVoyage(t *testing.T, seed uint64, interval int, link netsim.Config, opts ...replication.ServerOption) *voyage {
	schema := replication.NewSchema()
	replication.Register[berth](schema)
	replication.RegisterInput[steer](schema)
	v := &voyage{
		schema: schema, t: t, rng: rand.New(rand.NewPCG(seed, 1)), world: ecs.NewWorld(), shown: ecs.NewWorld(),
		link: netsim.NewLink(seed, link), me: ownShip{inputs: map[uint32]steer{}},
		truth: map[uint32]berth{}, guess: map[uint32]berth{},
		from: map[uint32]uint32{}, missed: map[uint32]bool{},
	}
	v.idOf, v.shownID = ecs.ComponentID[berth](&v.world), ecs.ComponentID[berth](&v.shown)
	v.server = replication.NewServer(&v.world, schema, append(opts, replication.WithSeed(seed))...)
	v.peer = v.server.Connect(v.link.Down.Send)
	v.peer.SetSendInterval(interval)
	v.client = replication.NewClientWith(&v.shown, schema, v.link.Up.Send, replication.WithSeed(seed+1))
	v.ship = v.world.NewEntity(v.idOf, replication.ReplicatedID(&v.world))
	return v
}

// tick plays a tick of the server and a frame of the client.
func (v *voyage) tick() {
	v.serve()
	v.link.Step()
	v.frame(func(uint32) steer { return steer{X: int8(v.rng.IntN(3)) - 1, Y: int8(v.rng.IntN(3)) - 1} })
	v.link.Up.Receive(func(packet []byte) { _ = v.peer.Receive(packet) })
	if at, state, ok := v.predict(v.newest); ok {
		v.guess[v.newest], v.from[v.newest] = at, state
	}
}

// serve plays a tick of the server.
func (v *voyage) serve() {
	next := v.server.Tick() + 1
	s, ok := replication.Input[steer](v.peer, next)
	if !ok {
		v.missed[uint32(next)] = true
	}
	ship := (*berth)(v.world.Get(v.ship, v.idOf))
	sail(ship, s)
	v.truth[uint32(next)] = *ship
	v.server.Replicate()
}

// frame plays a frame of the client, who steers in some way.
func (v *voyage) frame(steers func(tick uint32) steer) {
	v.link.Down.Receive(func(packet []byte) { _ = v.client.Receive(packet) })
	newest := v.client.InputTick()
	for tick := newest - 7; tick != newest+1; tick++ {
		s := steers(uint32(tick))
		if replication.SetInput(v.client, tick, s) == nil {
			v.me.inputs[uint32(tick)], v.newest = s, uint32(tick)
		}
	}
	require.NoError(v.t, v.client.Apply())
}

// replica returns the ship in the client's world.
func (v *voyage) replica() (me ecs.Entity, ok bool) {
	id, known := v.server.NetID(v.ship)
	if !known {
		return me, false
	}
	return v.client.Entity(id)
}

// predict returns where the client predicts the ship in a tick, and the tick of the state from which it does.
func (v *voyage) predict(newest uint32) (at berth, state uint32, ok bool) {
	me, shown := v.replica()
	if !shown || v.newest == 0 {
		return at, 0, false
	}
	known, ok := v.client.KnownUntil(me)
	state = uint32(known)
	require.True(v.t, ok)
	_, at, ok = v.me.predict(v.client, *(*berth)(v.shown.Get(me, v.shownID)), state, newest)
	return at, state, ok
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

// An ownShip is the player's ship as the client draws it.
type ownShip struct {
	inputs map[uint32]steer // that SetInput has accepted, by tick
	last   uint32           // the tick up to which the last frame predicted
	then   berth            // where the ship was to be then
	off    berth            // what is left of corrections
	jumped bool             // then means nothing any more
}

// jump lets the ship appear elsewhere at once.
func (s *ownShip) jump() { s.off, s.jumped = berth{}, true }

// inputAt returns what the server plays a tick with, if that arrives in time.
func (s *ownShip) inputAt(tick uint32) steer {
	for back := range uint32(33) {
		if input, set := s.inputs[tick-back]; set {
			return input
		}
	}
	return steer{}
}

// predict returns where the ship is in a tick and in the one before.
func (s *ownShip) predict(c *replication.Client, p berth, state, newest uint32) (before, now berth, ok bool) {
	if !c.Complete() || int(int32(newest-state)) > 2*c.TickRate()+4*c.SendInterval() {
		return before, p, false
	}
	before = p
	for tick := state + 1; int32(newest-tick) >= 0; tick++ {
		before = p
		sail(&p, s.inputAt(tick))
		if tick == s.last && !s.jumped {
			s.off.X, s.off.Y = s.off.X+s.then.X-p.X, s.off.Y+s.then.Y-p.Y
		}
	}
	s.last, s.then, s.jumped = newest, p, false
	return before, p, true
}

// draw returns where the ship is drawn.
func (s *ownShip) draw(c *replication.Client, p berth, state uint32, dt time.Duration) (at berth, ok bool) {
	tick := c.PredictionTick()
	newest := math.Ceil(tick)
	before, p, ok := s.predict(c, p, state, uint32(uint64(newest)))
	if !ok {
		return at, false
	}
	f := float32(tick - newest + 1)
	fade := float32(math.Exp(-10 * dt.Seconds()))
	s.off.X, s.off.Y = s.off.X*fade, s.off.Y*fade
	return berth{before.X + (p.X-before.X)*f + s.off.X, before.Y + (p.Y-before.Y)*f + s.off.Y}, true
}

// TestDrawnPredictionsAreSmooth: the player's ship goes on evenly, at frame rates that are no multiple of the tick rate,
// where bursts of late packets change the input delay, and where the server misses inputs. InputTick skips ticks there.
func TestDrawnPredictionsAreSmooth(t *testing.T) {
	t.Parallel()
	replicationtest.OneGoroutine(t)
	seed := replicationtest.Seed(t)
	steady := netsim.Config{Latency: 50}
	rough := netsim.Config{Latency: 90, Jitter: 15, Loss: 0.06, Burst: netsim.Burst{Start: 1. / 3000, Length: 50}}
	for name, link := range map[string]netsim.Config{"steady": steady, "rough": rough} {
		allSkips, most := 0, 0.0
		if name == "rough" {
			most = 16 // by which the input delay may grow at once
		}
		for _, rate := range []int{50, 60, 77, 144} {
			v := newVoyage(t, seed, 3, link, replicationtest.FirstTick(1<<32-1000))
			skips, worst, uneven, behind, frames := 0, 0.0, 0.0, 0.0, 0.0
			v.draw(60, rate, func(ms int, speed float64, ticks int32) {
				if ms < 5000 { // until the input delay is known
					return
				}
				newest, shown := v.client.InputTick(), v.client.PredictionTick()
				require.Less(t, shown, float64(1<<32))
				ahead := float64(int32(newest-replication.Tick(uint64(shown)))) - math.Mod(shown, 1)
				require.InDelta(t, 0.5, ahead, 1.6+most, "ticks that PredictionTick is behind InputTick")
				behind, frames = behind+ahead, frames+1
				worst, uneven = max(worst, math.Abs(speed-1)), uneven+math.Abs(speed-1)
				if float64(ticks) >= 60/float64(rate)+1 {
					skips++
				}
			})
			t.Logf("%s, %d frames per second: speed differs by %.2f at most, InputTick skips %d times, %d inputs missed", name,
				rate, worst, skips, len(v.missed))
			require.Less(t, worst, 0.4)
			require.Less(t, uneven/frames, 0.1)
			require.InDelta(t, 0.5, behind/frames, 0.75)
			allSkips += skips
		}
		require.Equal(t, name == "rough", allSkips > 0)
	}
}

// TestDrawnPredictionsAfterAnOutage: the ship is not thrown ahead while the newest state is that of before the outage, only
// back at once to where the server has stopped it.
func TestDrawnPredictionsAfterAnOutage(t *testing.T) {
	for _, rate := range []int{50, 60, 144} {
		link := netsim.Config{Latency: 50}
		v := newVoyage(t, 1, 3, link)
		ahead, back := 0, 0
		v.draw(30, rate, func(ms int, speed float64, _ int32) {
			switch {
			case ms > 16_000:
				link.Loss = 0
			case ms > 10_000:
				link.Loss = 1
			}
			v.link.Down.SetConfig(link)
			v.link.Up.SetConfig(link)
			if ms > 5000 && speed > 1.3 {
				ahead++
			}
			if speed < 0 {
				back++
			}
		})
		require.Zero(t, ahead, "%d frames per second", rate)
		require.Equal(t, 1, back)
	}
}

// TestDrawnPredictionsJumpWhenTheShipDoes: neither a teleport nor what is left of a correction is drawn as a way.
func TestDrawnPredictionsJumpWhenTheShipDoes(t *testing.T) {
	v := newVoyage(t, 1, 3, netsim.Config{Latency: 50})
	var x float32 // of the replica
	before := 0
	v.arrived = func(p berth) {
		if p.Y > 500 && before == 0 {
			v.me.jump()
		}
		before, x = int(p.Y), p.X
	}
	frames, wrong, last := 0, 0, berth{}
	v.draw(20, 60, func(ms int, _ float64, _ int32) {
		if ms > 10_000 && v.truth[uint32(v.server.Tick())].Y == 0 {
			(*berth)(v.world.Get(v.ship, v.idOf)).Y = 1000
		}
		if v.now.Y != 0 && v.now.Y < 999 || v.now.X < last.X-1 || v.now.X > x+20 {
			wrong++
		}
		if v.now.Y > 999 {
			frames++
		}
		last = v.now
	})
	require.Greater(t, frames, 500)
	require.Zero(t, wrong)
}

// TestDrawnPredictionsAfterLongFrames: in these, some ticks get no input, and the server goes on with the one before.
func TestDrawnPredictionsAfterLongFrames(t *testing.T) {
	for _, hitch := range []int{200, 300, 400} {
		v := newVoyage(t, 1, 3, netsim.Config{Latency: 150})
		v.hitch = hitch
		back := 0
		v.draw(30, 60, func(ms int, speed float64, _ int32) {
			if ms > 5000 && speed < 0 {
				back++
			}
		})
		require.Zero(t, back, "frames of %d ms", hitch)
	}
}

// draw plays a player who sails ahead for some seconds, on a link that counts milliseconds. It reports for each frame how
// fast the ship went, 1 being its speed, and by how many ticks InputTick rose.
func (v *voyage) draw(seconds, rate int, report func(ms int, speed float64, ticks int32)) {
	const tickRate = 60
	var last berth
	var input uint32
	frame, frames := time.Second/time.Duration(rate), time.Duration(0)
	for ms := range 1000 * seconds {
		v.link.Step()
		if ms*tickRate/1000 != (ms+1)*tickRate/1000 {
			v.link.Up.Receive(func(packet []byte) { _ = v.peer.Receive(packet) })
			v.serve()
		}
		if ms*rate/1000 == (ms+1)*rate/1000 {
			continue
		}
		if frames++; ms%3000 < v.hitch {
			continue
		}
		frame := frame * frames
		frames = 0
		v.client.Advance(frame)
		v.frame(func(uint32) steer { return steer{X: 1} })
		if me, ok := v.replica(); ok {
			state, _ := v.client.KnownUntil(me)
			newest := *(*berth)(v.shown.Get(me, v.shownID))
			if v.arrived != nil {
				v.arrived(newest)
			}
			if at, ok := v.me.draw(v.client, newest, uint32(state), frame); ok {
				v.now = at
			}
		}
		report(ms, float64(v.now.X-last.X)/0.5*float64(rate)/tickRate, int32(v.client.InputTick()-replication.Tick(input)))
		last, input = v.now, uint32(v.client.InputTick())
	}
}
