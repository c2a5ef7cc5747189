package rewind

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Position is where somebody is, in metres.
type Position struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01,place"`
}

// Shot is an input.
type Shot struct {
	Fire   bool
	Target ecs.Entity
	Aim    float32
}

// A network delays packets by seconds.
type network struct {
	rng     *rand.Rand
	oneWay  float64
	jitter  float64 // mean of the additional delay
	loss    float64
	hold    float64 // packets arrive at multiples of so many seconds; 0: at any time
	packets []flight
	arrival float64             // when the packet arrived that is handed over
	watch   func(packet []byte) // of every packet that is sent, lost or not
}

type flight struct {
	at   float64
	data []byte
}

func (n *network) send(now float64, packet []byte) {
	if n.watch != nil {
		n.watch(packet)
	}
	if n.rng.Float64() < n.loss {
		return
	}
	at := now + n.oneWay - n.jitter + n.jitter*n.rng.ExpFloat64()
	if n.hold > 0 {
		at = math.Ceil(at/n.hold) * n.hold
	}
	n.packets = append(n.packets, flight{at, bytes.Clone(packet)})
}

// receive hands over what has arrived, in the order of arrival.
func (n *network) receive(now float64, take func([]byte)) {
	slices.SortStableFunc(n.packets, func(a, b flight) int { return int(math.Copysign(1, a.at-b.at)) })
	i := 0
	for ; i < len(n.packets) && n.packets[i].at <= now; i++ {
		n.arrival = n.packets[i].at
		take(n.packets[i].data)
	}
	n.packets = n.packets[i:]
}

// A game is a server and a client that draws frames, in seconds.
type game struct {
	t         testing.TB
	rng       *rand.Rand
	rate      float64 // ticks per second
	fps       float64
	delay     float64 // of what is shown behind the server
	parts     int     // precision of stamps, bits
	now, last float64
	nextTick  float64

	world, mirror *ecs.World
	server        *replication.Server
	peer          *replication.Peer
	client        *replication.Client
	history       *History
	up, down      network
	inside        *seam.Client
	kernel        *blend.Kernel
	words         int
	position      ecs.ID
	mover         ecs.Entity

	playing   bool // the client stamps its inputs
	hooked    bool // it does so, and gives inputs, within Frame
	shift     float64
	frame     func()            // called in every frame of the client, before it gives inputs
	received  func()            // called by the server after each packet
	tick      func()            // called in every tick of the server, before Replicate
	input     func(tick uint32) // called once for a tick in which the client gives an input; sets it
	given     uint32
	resting   bool // no mover keeps states coming
	unclamped bool // it shows times after the newest state
	exact     bool // inputs are given for the tick that they need at least, by an exact clock, and not for InputTick
}

func newGame(t testing.TB, seed uint64, rate float64, loss float64, opts ...replication.ServerOption) *game {
	return newGameOf(t, seed, rate, loss, newSchema(), opts...)
}

// newSchema returns a schema with positions that are registered with some options.
func newSchema(opts ...replication.ComponentOption) *replication.Schema {
	schema := replication.NewSchema()
	replication.Register[Position](schema, opts...)
	replication.RegisterInput[Shot](schema)
	return schema
}

func newGameOf(t testing.TB, seed uint64, rate, loss float64, schema *replication.Schema, opts ...replication.ServerOption) *game {
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	g := &game{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), rate: rate, fps: 144, delay: 0.150, parts: 6,
		world: &world, mirror: &mirror, playing: true, exact: true,
	}
	link := func(direction uint64) network {
		return network{rng: rand.New(rand.NewPCG(seed, direction)), oneWay: 0.075, jitter: 0.008, loss: loss}
	}
	g.nextTick = 1 / rate // tick n is at n / rate seconds
	g.up, g.down = link(2), link(3)
	opts = append([]replication.ServerOption{replication.WithSeed(seed), replication.WithTickRate(int(rate))}, opts...)
	g.server = replication.NewServer(g.world, schema, opts...)
	g.history = New(g.server)
	g.peer = g.server.Connect(func(p []byte) error { g.down.send(g.now, p); return nil })
	g.client = replication.NewClient(g.mirror, schema,
		replication.WithSeed(seed+1))
	g.client.SetSend(func(p []byte) error { g.up.send(g.now, p); return nil })
	g.inside = seam.OfClient(g.client)
	for i := range g.inside.Schema.Components {
		if c := &g.inside.Schema.Components[i]; c.Typ == reflect.TypeFor[Position]() {
			g.kernel, g.words = blend.New(c), c.Words
		}
	}
	g.position = ecs.ComponentID[Position](g.world)
	return g
}

// startAt makes the server's first tick another one.
func (g *game) startAt(first uint32) {
	g.nextTick = float64(first) / g.rate
	g.now, g.last = g.nextTick-1/g.rate, g.nextTick-1/g.rate
	g.given = first
}

// spawn makes an entity at a place.
func (g *game) spawn(x float32) ecs.Entity {
	e := g.world.NewEntity(g.position, ecs.ComponentID[replication.Replicated](g.world))
	g.at(e).X = x
	return e
}

func (g *game) at(e ecs.Entity) *Position { return (*Position)(g.world.Get(e, g.position)) }

// run plays for some seconds.
func (g *game) run(seconds float64) {
	for end := g.now + seconds; g.now < end; {
		frame := (1 + 0.2*(g.rng.Float64()-0.5)) / g.fps
		for g.nextTick <= g.now+frame {
			g.now, frame = g.nextTick, frame-(g.nextTick-g.now)
			g.serverTick()
			g.nextTick += 1 / g.rate
		}
		g.now += frame
		g.clientFrame()
	}
}

func (g *game) serverTick() {
	g.up.receive(g.now, func(p []byte) {
		_ = g.peer.Receive(p)
		if g.received != nil {
			g.received()
		}
	})
	if g.tick != nil {
		g.tick()
	}
	if g.mover.IsZero() && !g.resting { // something moves in every tick, so that states are sent
		g.mover = g.spawn(900)
	}
	if !g.resting {
		g.at(g.mover).Y = float32(g.server.Tick() % 100)
	}
	g.server.Replicate()
}

// shown is the time that the client shows.
func (g *game) shown() blend.Time {
	units := math.Floor((g.now - g.delay + g.shift) * g.rate * float64(int(1)<<g.parts))
	tick := delta.Tick(int64(units) >> g.parts)
	if newest := delta.Tick(g.inside.Recv.NearTick); !g.unclamped && !tick.Before(newest) { // starved
		return blend.Time{Tick: newest}
	}
	return blend.Time{Tick: tick, Part: uint8(int64(units)&(1<<g.parts-1)) << (6 - g.parts)}
}

func (g *game) clientFrame() {
	g.down.receive(g.now, func(p []byte) { _ = g.client.Receive(p) })
	if g.frame != nil {
		g.frame()
	}
	if !g.hooked { // behind the interpolation, if there is one
		g.hooked = true
		*g.inside.Attached = append(*g.inside.Attached, func(time.Duration) {
			if g.show(); g.exact {
				g.giveInput(g.inputTick())
			}
		})
	}
	g.inside.Messages.Inputs.Give = nil
	if !g.exact {
		g.inside.Messages.Inputs.Give = func(tick delta.Tick) {
			if uint32(tick) == g.inputTick() {
				g.giveInput(uint32(tick))
			}
		}
	}
	g.clientStep()
}

// clientStep lets the time pass for the client since it last did.
func (g *game) clientStep() {
	dt := time.Duration((g.now - g.last) * float64(time.Second))
	g.last = g.now
	require.NoError(g.t, g.client.Frame(dt))
}

// giveInput gives the input for a tick, unless it has one.
func (g *game) giveInput(tick uint32) {
	if g.client.Status() != replication.StatusConnected || tick == 0 || int32(tick-g.given) <= 0 {
		return
	}
	g.given = tick
	if g.input != nil {
		g.input(tick)
	} else {
		_ = replication.SetInput(g.client, replication.Tick(tick), Shot{})
	}
}

// show notes the time that is shown for the next inputs, as package interpolation does.
func (g *game) show() {
	if at := g.shown(); g.playing && g.client.Status() == replication.StatusConnected {
		g.inside.Messages.Shown = wire.Stamp{Tick: at.Tick, Part: at.Part, Precision: uint8(g.parts), Valid: true}
	}
}

// inputTick returns the tick to give an input for.
func (g *game) inputTick() uint32 {
	if g.exact {
		return uint32(int64((g.now+g.up.oneWay)*g.rate)) + 2
	}
	return uint32(g.client.InputTick())
}

// screen returns where the client shows a mirrored entity.
func (g *game) screen(mirrored ecs.Entity) (p Position, ok bool) {
	id, ok := g.client.NetID(mirrored)
	if !ok {
		return p, false
	}
	at := g.shown()
	a, b := g.inside.Recv.Replicas.At(id.Slot).Held.Around(at.Tick)
	row := func(h *heldState) []uint32 {
		if h == nil || h.Layout == nil || h.Generation != id.Generation {
			return nil
		}
		return h.Row(0, g.words)
	}
	from, to := row(a), row(b)
	switch {
	case from == nil && to == nil:
		return p, false
	case from == nil:
		g.kernel.Blend(unsafe.Pointer(&p), to, nil, 0)
	case to == nil || at.Tick == delta.Tick(g.inside.Recv.NearTick):
		g.kernel.Blend(unsafe.Pointer(&p), from, nil, 0)
	default:
		begin := a.Tick
		if rested, ok := b.Rested(); ok {
			begin = rested
		}
		g.kernel.Blend(unsafe.Pointer(&p), from, to, blend.NewSpan(begin, b.Tick).Fraction(at))
	}
	return p, true
}

// mirrored returns the entity of the client that mirrors one of the server.
func (g *game) mirrored(e ecs.Entity) (m ecs.Entity, ok bool) {
	id, ok := g.server.NetID(e)
	if !ok {
		return m, false
	}
	return g.client.Entity(id)
}

func pointer[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }
