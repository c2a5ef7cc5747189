package interpolation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// A profile is a network path. Times are in seconds.
type profile struct {
	oneWay float64 // mean, with the jitter
	jitter float64 // mean; the delay is distributed exponentially above its least
	loss   float64 // share of packets
	spikes float64 // share of packets that take 20 to 100 ms longer
}

var (
	profileB = profile{oneWay: 0.075, jitter: 0.008, loss: 0.02, spikes: 0.01}
	profileD = profile{oneWay: 0.075, jitter: 0.015, loss: 0.2, spikes: 0.03}
)

// delay draws the delay of a packet.
func (p *profile) delay(r *rand.Rand) float64 {
	d := p.oneWay - p.jitter + p.jitter*r.ExpFloat64()
	if r.Float64() < p.spikes {
		d += 0.02 + 0.08*r.Float64()
	}
	return d
}

const (
	quantum = 0.01
	steps   = 4000 // of the network per second
)

type place struct {
	X, Y, Z float32 `repl:"range=-10000:10000,step=0.01"`
}

type teleports struct {
	N uint8 `repl:"counter,cut"`
}

type health struct {
	HP uint8
}

// A game is a server, a network and a client that shows what it gets frame by frame. Time is simulated.
type game struct {
	t       testing.TB
	rand    *rand.Rand
	profile profile
	rate    float64 // ticks per second
	frames  float64 // per second
	wobble  float64 // by which frames vary, as a share of their length

	schema *replication.Schema
	placed []replication.ComponentOption // of place
	first  func()                        // registers components before all others
	world  ecs.World
	server *replication.Server
	peer   *replication.Peer
	ids    ids // of the server's world

	client *replication.Client
	local  ecs.World
	at     ids // of the client's world
	link   *netsim.Link

	now       float64 // seconds
	tick      uint32  // of the last Replicate
	ticked    int     // how many there were
	tickedAt  float64 // when
	nextFrame float64
	lastFrame float64
	shift     float64 // seconds in which the server stood still
	frozen    func(now float64) bool
	muted     func(now float64) bool // packets to the client get lost
	onSend    func(packet []byte)    // to the client
	onTick    func(n int)            // before the n-th Replicate
	around    func(frame func())     // plays a frame; nil: it is just called
	onFrame   func(dt float64)       // after Frame
}

type ids struct{ place, teleports, health ecs.ID }

func newGame(t testing.TB, seed uint64, p profile, rate float64, opts ...replication.ServerOption) *game {
	t.Helper()
	g := &game{t: t, rand: rand.New(rand.NewPCG(seed, 7)), profile: p, rate: rate, frames: 144, wobble: 0.1}
	g.prepare(seed, nil, opts...)
	return g
}

// newSnappingGame is newGame with a distance that is a teleport.
func newSnappingGame(
	t testing.TB, seed uint64, p profile, distance float64, opts ...replication.ServerOption,
) *game {
	t.Helper()
	g := &game{
		t: t, rand: rand.New(rand.NewPCG(seed, 7)), profile: p, rate: 20, frames: 144, wobble: 0.1,
		placed: []replication.ComponentOption{replication.Snap(distance)},
	}
	g.prepare(seed, nil, opts...)
	return g
}

// prepare makes both ends. more registers further components.
func (g *game) prepare(seed uint64, more func(), opts ...replication.ServerOption) {
	g.world, g.schema = ecs.NewWorld(), replication.NewSchema()
	g.link = netsim.NewLink(seed, netsim.Config{})
	if g.first != nil {
		g.first()
	}
	replication.Register[place](g.schema, g.placed...)
	replication.Register[teleports](g.schema)
	replication.Register[health](g.schema)
	if more != nil {
		more()
	}
	g.ids = idsOf(&g.world)
	g.server = replication.NewServer(&g.world, g.schema,
		append([]replication.ServerOption{replication.WithTickRate(int(g.rate))}, opts...)...)
	g.connect()
}

func idsOf(w *ecs.World) ids {
	return ids{ecs.ComponentID[place](w), ecs.ComponentID[teleports](w), ecs.ComponentID[health](w)}
}

// connect makes a client for an empty world.
func (g *game) connect() {
	g.local = ecs.NewWorld()
	g.at = idsOf(&g.local)
	g.peer = g.server.Connect(func(packet []byte) error { return g.send(g.link.Down, packet) })
	g.client = replication.NewClient(&g.local, g.schema)
	g.client.SetSend(func(packet []byte) error { return g.send(g.link.Up, packet) })
}

// send sends a packet with a delay of its own.
func (g *game) send(pipe *netsim.Pipe, packet []byte) error {
	if pipe == g.link.Down && g.muted != nil && g.muted(g.now) {
		return nil
	}
	if pipe == g.link.Down && g.onSend != nil {
		g.onSend(packet)
	}
	pipe.SetConfig(netsim.Config{Loss: g.profile.loss, Latency: g.profile.delay(g.rand) * steps})
	return pipe.Send(packet)
}

// spawn makes an entity of the server.
func (g *game) spawn(at place) ecs.Entity {
	e := g.world.NewEntity(ecs.ComponentID[replication.Replicated](&g.world), g.ids.place)
	*(*place)(g.world.Get(e, g.ids.place)) = at
	return e
}

// spawnMany makes many of them.
func (g *game) spawnMany(n int) []ecs.Entity {
	all := make([]ecs.Entity, n)
	for i := range all {
		all[i] = g.spawn(place{})
	}
	return all
}

func (g *game) place(e ecs.Entity) *place { return (*place)(g.world.Get(e, g.ids.place)) }

// mirror returns the client's entity.
func (g *game) mirror(e ecs.Entity) (ecs.Entity, bool) {
	id, ok := g.server.NetID(e)
	if !ok {
		return ecs.Entity{}, false
	}
	return g.client.Entity(id)
}

// shown returns where the client shows an entity of the server.
func (g *game) shown(e ecs.Entity) (place, bool) {
	own, ok := g.mirror(e)
	if !ok {
		return place{}, false
	}
	return *(*place)(g.local.Get(own, g.at.place)), true
}

// run plays for so many seconds.
func (g *game) run(seconds float64) {
	for end := g.now + seconds; g.now < end; {
		g.now += 1. / steps
		g.link.Step()
		g.link.Up.Receive(func(packet []byte) { _ = g.peer.Receive(packet) })
		if g.now-g.shift >= float64(g.ticked)/g.rate && (g.frozen == nil || !g.frozen(g.now)) {
			if g.onTick != nil {
				g.onTick(g.ticked)
			}
			g.server.Replicate()
			g.tick = uint32(g.server.Tick())
			g.ticked, g.tickedAt = g.ticked+1, g.now
		}
		if g.now >= g.nextFrame && g.around != nil {
			g.around(g.frame)
		} else if g.now >= g.nextFrame {
			g.frame()
		}
	}
}

// delay returns by how many seconds what is shown is behind the server.
func (v *view) delay() float64 {
	return (float64(v.g.ticked-1)-v.time)/v.g.rate + v.g.now - v.g.tickedAt
}

// frame is a frame of the client.
func (g *game) frame() {
	dt := g.now - g.lastFrame
	g.lastFrame = g.now
	g.nextFrame += (1 + g.wobble*(2*g.rand.Float64()-1)) / g.frames
	g.link.Down.Receive(func(packet []byte) { _ = g.client.Receive(packet) })
	require.NoError(g.t, g.client.Frame(time.Duration(dt*float64(time.Second))))
	if g.onFrame != nil {
		g.onFrame(dt)
	}
}

// A view is an interpolation with what a test wants to know of each frame.
type view struct {
	*interpolation.Interpolation
	g      *game
	before float64 // the time that was shown in the frame before, in ticks since the first Replicate
	time   float64 // the same for this frame
	ok     bool    // the frame before showed something
	after  func(dt float64)
}

func newView(g *game, opts ...interpolation.Option) *view {
	v := &view{g: g, Interpolation: interpolation.Attach(g.client, opts...)}
	g.onFrame = v.frame
	return v
}

func (v *view) frame(dt float64) {
	at, ok := v.Time()
	if !ok {
		return
	}
	v.before, v.time = v.time, float64(v.g.ticked-1)-float64(int32(v.g.tick-uint32(at.Tick)))+float64(at.Fraction)
	if v.ok && v.after != nil {
		v.after(dt)
	}
	v.ok = true
}

func newRand(t testing.TB) *rand.Rand { return rand.New(rand.NewPCG(replicationtest.Seed(t), 7)) }
