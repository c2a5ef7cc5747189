// Package timetest plays a server and a client whose times pass independently: ticks at one rate, frames
// at another, pauses of either, and a network between them in steps of a millisecond. It measures how well
// the client estimates the server's time. Only tests import it.
package timetest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// position is what the server replicates.
type position struct {
	X, Y float32 `repl:"range=-100:100,step=0.01"`
}

// command is the input of the client.
type command struct {
	Stamp uint16
}

// play is a server and a client. Times are in milliseconds since the beginning.
type play struct {
	t      testing.TB
	rng    *rand.Rand
	server *replication.Server
	peer   *replication.Peer
	client *replication.Client
	link   *netsim.Link // its ticks are milliseconds
	move   func()

	tickLength, frameLength float64
	uneven                  float64 // a frame is longer or shorter by up to this share
	second                  float64 // the length of every second frame, if it is not 0
	frames                  int

	now       float64
	nextTick  float64
	nextFrame float64
	lastTick  float64
	lastFrame float64

	given      replication.Tick // the newest tick that has an input
	gives      bool             // given is valid
	serverTime replication.Time // what the client estimated in the last frame
	inputTick  replication.Tick

	skipped       int // ticks that the client gave no input for
	asked, missed int // ticks of the server since the first input, and those without an input of their own
	waits         waits
}

// waits are how long inputs were given before their ticks.
type waits struct {
	from [256]float64 // when the input of a tick was given, by tick modulo 256
	sum  float64
}

// setting is how a play begins.
type setting struct {
	tickRate, interval int
	fps, uneven        float64
	second             float64       // the length of every second frame in ms, if it is not 0
	link               netsim.Config // in milliseconds
	options            []replication.ServerOption
}

// newPlay returns a play whose client is about to connect.
func newPlay(t testing.TB, seed uint64, s *setting) *play {
	schema := func() *replication.Schema {
		s := replication.NewSchema()
		replication.Register[position](s)
		replication.RegisterInput[command](s)
		return s
	}
	options := append([]replication.ServerOption{
		replication.WithSeed(seed), replication.WithTickRate(s.tickRate), replication.WithTimeout(0),
	}, s.options...)
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	p := &play{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), server: replication.NewServer(&world, schema(), options...),
		link: netsim.NewLink(seed, s.link), tickLength: 1000 / float64(s.tickRate),
		uneven: s.uneven, second: s.second,
	}
	p.setFPS(s.fps)
	p.nextTick, p.nextFrame = p.rng.Float64()*p.tickLength, p.rng.Float64()*p.frameLength
	p.peer = p.server.Connect(p.link.Down.Send)
	p.peer.SetSendInterval(s.interval)
	p.client = replication.NewClient(&mirror, schema(), replication.WithSeed(seed+1))
	p.client.SetSend(p.link.Up.Send)
	replication.OnInput(p.client, p.give)

	id := ecs.ComponentID[position](&world)
	world.NewEntity(id, ecs.ComponentID[replication.Replicated](&world))
	p.move = func() {
		query := world.Query(ecs.All(id))
		for query.Next() {
			at := (*position)(query.Get(id))
			at.X, at.Y = float32(math.Mod(p.now/100, 100)), float32(p.rng.IntN(100))
		}
	}
	return p
}

func (p *play) setFPS(fps float64) { p.frameLength = 1000 / fps }

// run plays for some seconds, and calls each after every frame.
func (p *play) run(seconds float64, each func()) {
	for end := p.now + 1000*seconds; ; {
		next := min(p.nextTick, p.nextFrame)
		if next > end {
			p.pass(end)
			return
		}
		p.pass(next)
		if p.nextTick <= p.nextFrame {
			p.tick()
			p.nextTick += p.tickLength
			continue
		}
		p.frame()
		length := p.frameLength
		if p.frames++; p.second != 0 && p.frames%2 == 0 {
			length = p.second
		}
		p.nextFrame += length * (1 - p.uneven + 2*p.uneven*p.rng.Float64())
		if each != nil {
			each()
		}
	}
}

// pauseClient plays until just before a frame that comes some seconds late.
func (p *play) pauseClient(seconds float64) {
	p.nextFrame += 1000 * seconds
	p.run((p.nextFrame-p.now)/1000-1e-6, nil)
}

// pauseServer plays until just before a tick that comes some seconds late. If the server catches up, all
// the ticks that it left out have followed at once.
func (p *play) pauseServer(seconds float64, catchUp bool) {
	late := p.nextTick
	p.nextTick += 1000 * seconds
	p.run((p.nextTick-p.now)/1000-1e-6, nil)
	for ; catchUp && late < p.nextTick; late += p.tickLength {
		p.tick()
	}
}

// pass lets time pass until a later one.
func (p *play) pass(now float64) {
	for p.now = now; float64(p.link.Up.Now()) < now; {
		p.link.Step()
	}
}

// tick is a tick of the server.
func (p *play) tick() {
	p.link.Up.Receive(func(packet []byte) { _ = p.peer.Receive(packet) })
	p.move()
	if next := p.server.Tick() + 1; p.peer.Connected() && p.gives {
		in, ok := replication.Input[command](p.peer, next)
		if p.asked++; !ok {
			p.missed++
		} else {
			require.Equal(p.t, uint16(next), in.Stamp)
			p.waits.sum += p.now - p.waits.from[next%replication.Tick(len(p.waits.from))]
		}
	}
	p.server.Replicate()
	p.lastTick = p.now
}

// give gives the input for a tick.
func (p *play) give(tick replication.Tick) command {
	if p.gives {
		p.skipped += int(tick-p.given) - 1
	}
	p.given, p.gives = tick, true
	p.waits.from[tick%replication.Tick(len(p.waits.from))] = p.now
	return command{uint16(tick)}
}

// frame is a frame of the client: the loop that the documentation recommends.
func (p *play) frame() {
	p.link.Down.Receive(func(packet []byte) { _ = p.client.Receive(packet) })
	dt := time.Duration((p.now - p.lastFrame) * float64(time.Millisecond))
	p.lastFrame = p.now
	require.NoError(p.t, p.client.Frame(dt))
	if p.gives {
		p.requireForward()
	}
}

// requireForward requires that the client's times do not go back.
func (p *play) requireForward() {
	now, input := p.client.ServerTime(), p.client.InputTick()
	if p.serverTime != (replication.Time{}) {
		require.GreaterOrEqual(p.t, now.Sub(p.serverTime), -1e-6, "the server's time")
		require.GreaterOrEqual(p.t, input.Sub(p.inputTick), 0, "the tick of inputs")
	}
	p.serverTime, p.inputTick = now, input
}

// off returns by how many ticks the client's estimate of the server's tick is wrong.
func (p *play) off() float64 {
	estimate := p.client.ServerTime().Sub(replication.Time{Tick: p.server.Tick()})
	return math.Abs(estimate - (p.now-p.lastTick)/p.tickLength)
}
