package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type Position struct {
	X, Y float32 `repl:"range=-1000:1000,step=0.01"`
}

type Velocity struct {
	X, Y float32 `repl:"range=-100:100,step=0.01"`
}

type Shot struct {
	Left uint8
}

type Move struct {
	X, Y float32 `repl:"range=-1:1,step=0.125"`
	Fire uint8   // how many shots
}

type Bang struct{ Kind, X, Y float32 }

// rules are what differs between games of tests.
type rules struct {
	damping float32
	wall    float32
	states  []StateOption
	seen    func(t *Tick, e ecs.Entity, in Move)
	extra   func(s *replication.Schema, m *Model[Move])
	step    func(t *Tick)
	bang    func(b Bang) // at the server
}

// newGame returns the schema and the model of a game.
func newGame(r *rules) (*replication.Schema, *Model[Move]) {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.Register[Velocity](s)
	replication.Register[Shot](s)
	replication.RegisterInput[Move](s)
	m := NewModel[Move](s, func(t *Tick) { simulateGame(t, r) })
	State[Position](m, r.states...)
	State[Velocity](m, r.states...)
	State[Shot](m)
	if r.extra != nil {
		r.extra(s, m)
	}
	Missed(m, func(in *Move, _ int) { in.Fire = 0 })
	return s, m
}

type firing struct {
	by  ecs.Entity
	n   uint8
	pos Position
}

func simulateGame(t *Tick, r *rules) {
	if r.step != nil {
		r.step(t)
	}
	pos, vel, move, shot := ecs.ComponentID[Position](t.World), ecs.ComponentID[Velocity](t.World),
		ecs.ComponentID[Move](t.World), ecs.ComponentID[Shot](t.World)
	var fires []firing
	for q := t.Query(pos, vel, move); q.Next(); {
		p, v, in := (*Position)(q.Get(pos)), (*Velocity)(q.Get(vel)), (*Move)(q.Get(move))
		if r.seen != nil {
			r.seen(t, q.Entity(), *in)
		}
		v.X = float32((v.X + in.X*0.5) * r.damping)
		v.Y = float32((v.Y + in.Y*0.5) * r.damping)
		if r.damping == 1 {
			v.X, v.Y = max(-15, min(v.X, 15)), max(-15, min(v.Y, 15))
		}
		p.X += v.X / 60
		p.Y += v.Y / 60
		if p.X > r.wall || p.X < -r.wall {
			p.X, v.X = max(-r.wall, min(p.X, r.wall)), -v.X
		}
		if p.Y > r.wall || p.Y < -r.wall {
			p.Y, v.Y = max(-r.wall, min(p.Y, r.wall)), -v.Y
		}
		if in.Fire > 0 {
			fires = append(fires, firing{q.Entity(), in.Fire, *p})
		}
	}
	var gone []ecs.Entity
	for q := t.Query(pos, vel, shot); q.Next(); {
		p, v, s := (*Position)(q.Get(pos)), (*Velocity)(q.Get(vel)), (*Shot)(q.Get(shot))
		p.X += v.X / 60
		p.Y += v.Y / 60
		if s.Left--; s.Left == 0 {
			gone = append(gone, q.Entity())
		}
	}
	for _, e := range gone {
		p := (*Position)(t.World.Get(e, pos))
		r.once(t, e, 0, Bang{1, p.X, p.Y})
		t.Despawn(e)
	}
	for _, f := range fires {
		for k := range f.n {
			e := t.Spawn(f.by, k, pos, vel, shot)
			*(*Position)(t.World.Get(e, pos)) = f.pos
			*(*Velocity)(t.World.Get(e, vel)) = Velocity{10, float32(k)}
			*(*Shot)(t.World.Get(e, shot)) = Shot{Left: 60}
			r.once(t, f.by, uint32(k), Bang{2, float32(t.Number), float32(k)})
		}
	}
}

func (r *rules) once(t *Tick, by ecs.Entity, key uint32, b Bang) {
	if Once(t, by, key, b); t.end.predictor() == nil && r.bang != nil {
		r.bang(b)
	}
}

// play is a server and a client with a predictor. Times are in milliseconds.
type play struct {
	t       testing.TB
	rng     *rand.Rand
	rules   *rules
	world   ecs.World
	mirror  ecs.World
	server  *replication.Server
	host    *Host
	peer    *replication.Peer
	client  *replication.Client
	predict *Predictor
	link    *netsim.Link
	ship    ecs.Entity
	input   func() Move
	blocked bool // the way up is down

	tickLength, frameLength float64
	now, nextTick           float64
	nextFrame, lastFrame    float64
	afterTick, afterFrame   func()
}

type setting struct {
	seed     uint64
	oneWay   float64 // ms
	loss     float64 // down
	lossUp   float64
	fps      float64
	interval int
	start    replication.Tick
	options  []replication.ServerOption
	attach   func(c *replication.Client)
	plain    bool // the client gives its inputs without predicting
}

func newPlay(t testing.TB, s setting, r *rules) *play {
	if s.fps == 0 {
		s.fps = 60
	}
	if s.interval == 0 {
		s.interval = 3
	}
	if r.damping == 0 {
		r.damping = 0.97
	}
	if r.wall == 0 {
		r.wall = 900
	}
	p := &play{
		t: t, rng: rand.New(rand.NewPCG(s.seed, 3)), rules: r, world: ecs.NewWorld(), mirror: ecs.NewWorld(),
		tickLength: 1000. / 60, frameLength: 1000 / s.fps,
	}
	schema, model := newGame(r)
	p.server = replication.NewServer(&p.world, schema, append([]replication.ServerOption{
		replication.WithSeed(s.seed), replication.WithTickRate(60),
	}, s.options...)...)
	p.host = Serve(p.server, model)
	p.link = netsim.NewLink(s.seed, netsim.Config{Latency: s.oneWay})
	p.link.Down.SetConfig(netsim.Config{Latency: s.oneWay, Loss: s.loss})
	p.link.Up.SetConfig(netsim.Config{Latency: s.oneWay, Loss: s.lossUp})
	p.peer = p.server.Connect(p.link.Down.Send)
	p.peer.SetSendInterval(s.interval)
	schema, model = newGame(r)
	p.client = replication.NewClient(&p.mirror, schema, replication.WithSeed(s.seed+1))
	p.client.SetSend(func(packet []byte) error {
		if p.blocked {
			return nil
		}
		return p.link.Up.Send(packet)
	})
	if s.attach != nil {
		s.attach(p.client)
	}
	p.input = func() Move { return Move{} }
	if s.plain {
		replication.OnInput(p.client, func(replication.Tick) Move { return p.input() })
	} else {
		p.predict = Attach(p.client, model, func() Move { return p.input() })
	}
	p.ship = p.spawnShip()
	p.host.Own(p.ship, p.peer)
	p.nextTick, p.nextFrame = p.rng.Float64()*p.tickLength, p.rng.Float64()*p.frameLength
	return p
}

// spawnShip makes a ship at the server.
func (p *play) spawnShip() ecs.Entity {
	w := &p.world
	return w.NewEntity(ecs.ComponentID[Position](w), ecs.ComponentID[Velocity](w), ecs.ComponentID[Move](w),
		ecs.ComponentID[replication.Replicated](w))
}

// run plays for some seconds.
func (p *play) run(seconds float64) {
	for end := p.now + 1000*seconds; ; {
		next := min(p.nextTick, p.nextFrame)
		if next > end {
			p.pass(end)
			return
		}
		p.pass(next)
		if p.nextTick <= p.nextFrame {
			p.tick()
		} else {
			p.frame()
		}
	}
}

func (p *play) pass(to float64) {
	for math.Floor(p.now) < math.Floor(to) {
		p.now = math.Floor(p.now) + 1
		p.link.Step()
		p.link.Up.Receive(func(packet []byte) {
			_ = p.peer.Receive(packet)
		})
		p.link.Down.Receive(func(packet []byte) {
			_ = p.client.Receive(packet)
		})
	}
	p.now = to
}

func (p *play) tick() {
	p.nextTick += p.tickLength
	p.host.Step()
	p.server.Replicate()
	if p.afterTick != nil {
		p.afterTick()
	}
}

func (p *play) frame() {
	dt := p.now - p.lastFrame
	p.lastFrame = p.now
	p.nextFrame = p.now + p.frameLength
	require.NoError(p.t, p.client.Frame(time.Duration(dt*1e6)))
	if p.afterFrame != nil {
		p.afterFrame()
	}
}

// own returns the client's ship, or the zero entity.
func (p *play) own() ecs.Entity {
	id, ok := p.server.NetID(p.ship)
	if !ok {
		return ecs.Entity{}
	}
	e, _ := p.client.Entity(id)
	return e
}

func get[T any](w *ecs.World, e ecs.Entity) *T {
	return (*T)(w.Get(e, ecs.ComponentID[T](w)))
}

// wander makes the player steer at random.
func (p *play) wander() {
	var now Move
	p.input = func() Move {
		if p.rng.IntN(20) == 0 {
			now = Move{X: float32(p.rng.IntN(3) - 1), Y: float32(p.rng.IntN(3) - 1)}
		}
		return now
	}
}

func TestOwnShipIsPredicted(t *testing.T) {
	p := newPlay(t, setting{seed: 1, oneWay: 75}, &rules{})
	p.wander()
	p.run(2)
	require.True(t, p.mirror.Has(p.own(), ecs.ComponentID[Predicted](&p.mirror)))
	p.run(20)
	t.Logf("%+v", p.predict.Stats())
	require.Zero(t, p.predict.Stats().Rollbacks)
	t.Log(p.host.Missed(), *get[Position](&p.mirror, p.own()), *get[Position](&p.world, p.ship))
}

// count returns how many entities of a world a filter finds.
func count(w *ecs.World, f ecs.Filter) int {
	q := w.Query(f)
	defer q.Close()
	return q.Count()
}

func id[T any](w *ecs.World) ecs.ID { return ecs.ComponentID[T](w) }

// predicted reports whether the own ship is.
func (p *play) predicted() bool {
	e := p.own()
	return !e.IsZero() && p.mirror.Has(e, ecs.ComponentID[Predicted](&p.mirror))
}

// quiet requires that the play goes on for some seconds without a rollback, with the own ship predicted and where the
// server has it.
func (p *play) quiet(t *testing.T, seconds float64) {
	t.Helper()
	require.True(t, p.predicted())
	begin := p.predict.Stats()
	p.run(seconds)
	s := p.predict.Stats()
	require.Equal(t, begin.Rollbacks, s.Rollbacks, "%+v", s)
	require.Greater(t, s.Ticks, begin.Ticks+uint64(seconds*50))
	p.agree(t)
}

// agree requires that the player stops, and the ship is drawn where the server has it.
func (p *play) agree(t *testing.T) {
	t.Helper()
	steer := p.input
	p.input = func() Move { return Move{} }
	p.run(4)
	p.input = steer
	a, b := get[Position](&p.mirror, p.own()), get[Position](&p.world, p.ship)
	require.InDelta(t, b.X, a.X, 0.04)
	require.InDelta(t, b.Y, a.Y, 0.04)
}

// another puts a new server in the place of the play's.
func (p *play) another(seed uint64) {
	p.server.Close()
	p.world = ecs.NewWorld()
	schema, model := newGame(p.rules)
	p.server = replication.NewServer(&p.world, schema, replication.WithSeed(seed), replication.WithTickRate(60))
	p.host = Serve(p.server, model)
	p.peer = p.server.Connect(p.link.Down.Send)
	p.peer.SetSendInterval(3)
	p.ship = p.spawnShip()
	p.host.Own(p.ship, p.peer)
	p.client.Reconnect()
}

// caught returns what fn panics with.
func caught(fn func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	fn()
	return fmt.Errorf("no panic")
}
