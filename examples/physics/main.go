// Command physics predicts the bodies of a physics engine, box2d: a player pushes boxes with a ball, over a line with
// 150 milliseconds of round trip.
//
//	go run . -loss 0.2
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ByteArena/box2d"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/mlange-42/arche/ecs"
)

type (
	Body     struct{ N uint8 } // its number; 0 is the ball
	Position struct {
		X, Y float32 `repl:"range=-16:16,step=0.0009765625"`
	}
	Rotation struct {
		Angle float32 `repl:"angle,bits=16"`
	}
	Velocity struct {
		X, Y, Spin float32 `repl:"range=-64:64,step=0.0009765625"`
	}
	Push struct {
		X, Y float32 `repl:"range=-1:1,step=0.125"`
	} // the input
)

const (
	rate  = 60 // ticks a second
	count = 17 // bodies that move
	kept  = 64 // ticks of which there are copies
)

// A stage is the bodies of one end, seen from above. Both ends make the same ones in the same order.
type stage struct {
	world  box2d.B2World
	bodies []*box2d.B2Body // by Body.N, then the walls
	saved  [kept]struct {
		tick   replication.Tick
		bodies [count]state
	}
	furthest float64 // by which a body was moved when a tick was simulated again, in metres
}

// A state is all of a body that a step begins with, since renew is called first.
type state struct {
	at, speed   box2d.B2Vec2
	angle, spin float64
}

func newStage() *stage {
	s := &stage{world: box2d.MakeB2World(box2d.B2Vec2{})}
	s.world.SetAllowSleeping(false) // copies do not have how long a body was slow
	ball, box, walls := box2d.NewB2CircleShape(), box2d.NewB2PolygonShape(), box2d.MakeB2ChainShape()
	ball.M_radius = 0.5
	box.SetAsBox(0.5, 0.5)
	walls.CreateLoop([]box2d.B2Vec2{{X: -8, Y: -8}, {X: 8, Y: -8}, {X: 8, Y: 8}, {X: -8, Y: 8}}, 4)
	for i, form := range []box2d.B2ShapeInterface{0: ball, count: &walls} {
		def := box2d.MakeB2BodyDef() // static
		if i < count {
			def.Type, def.LinearDamping, def.AngularDamping = box2d.B2BodyType.B2_dynamicBody, 2, 2
			def.Position.Set(float64(i%4)*1.125-1.75, float64(i/4)*1.125-2)
		}
		if form == nil {
			form = box
		}
		s.bodies = append(s.bodies, s.world.CreateBody(&def))
		s.bodies[i].CreateFixture(form, 1)
	}
	return s
}

// spawn makes the entities of the bodies, and returns the ball's.
func (s *stage) spawn(w *ecs.World) (ball ecs.Entity) {
	n, p := ecs.ComponentID[Body](w), ecs.ComponentID[Position](w)
	r, v := ecs.ComponentID[Rotation](w), ecs.ComponentID[Velocity](w)
	for i := count - 1; i >= 0; i-- {
		ball = w.NewEntity(n, p, r, v, ecs.ComponentID[replication.Replicated](w))
		*(*Body)(w.Get(ball, n)) = Body{uint8(i)}
		*(*Position)(w.Get(ball, p)), _, _ = stateOf(s.bodies[i]).components()
	}
	return ball
}

// step simulates a tick: components into bodies, a step of box2d, bodies into components.
func (s *stage) step(t *predict.Tick) {
	w := t.World
	n, push := ecs.ComponentID[Body](w), ecs.ComponentID[Push](w)
	p, r, v := ecs.ComponentID[Position](w), ecs.ComponentID[Rotation](w), ecs.ComponentID[Velocity](w)
	for q := t.Query(n, p, r, v); q.Next(); {
		b, in := s.bodies[(*Body)(q.Get(n)).N], (*Push)(q.Get(push))
		at, turn, speed := (*Position)(q.Get(p)), (*Rotation)(q.Get(r)), (*Velocity)(q.Get(v))
		// Where the server has corrected a component, the body follows. Otherwise it keeps its finer value.
		if p, r, v := stateOf(b).components(); p != *at || r != *turn || v != *speed {
			put(b, state{vec(at.X, at.Y), vec(speed.X, speed.Y), float64(turn.Angle), float64(speed.Spin)})
		}
		if in != nil {
			b.ApplyForceToCenter(vec(40*in.X, 40*in.Y), true)
		}
	}
	s.renew()
	s.world.Step(t.Seconds, 8, 3)
	for q := t.Query(n, p, r, v); q.Next(); {
		b := s.bodies[(*Body)(q.Get(n)).N]
		*(*Position)(q.Get(p)), *(*Rotation)(q.Get(r)), *(*Velocity)(q.Get(v)) = stateOf(b).components()
	}
}

// renew makes all contacts anew, in the order of the bodies. Otherwise a step depends on more than the bodies: on the
// forces of the last step, and on the order in which contacts have begun, in which box2d solves them.
func (s *stage) renew() {
	for _, b := range s.bodies {
		b.SetActive(false)
	}
	s.world.M_contactManager.M_broadPhase = box2d.MakeB2BroadPhase()
	for _, b := range s.bodies {
		b.SetActive(true)
	}
	s.world.M_contactManager.FindNewContacts()
}

// save keeps a copy as of the end of a tick.
func (s *stage) save(tick replication.Tick) {
	c := &s.saved[tick%kept]
	for i := range c.bodies {
		now := stateOf(s.bodies[i])
		if c.tick == tick {
			s.furthest = max(s.furthest, box2d.B2Vec2Distance(now.at, c.bodies[i].at))
		}
		c.bodies[i] = now
	}
	c.tick = tick
}

// restore goes back to the end of a tick. Without a copy of that, the components have all that is known.
func (s *stage) restore(tick replication.Tick) {
	if c := &s.saved[tick%kept]; c.tick == tick {
		for i := range c.bodies {
			put(s.bodies[i], c.bodies[i])
		}
	}
}

func stateOf(b *box2d.B2Body) state {
	return state{b.GetPosition(), b.GetLinearVelocity(), b.GetAngle(), b.GetAngularVelocity()}
}

func put(b *box2d.B2Body, to state) {
	b.SetTransform(to.at, to.angle)
	b.SetLinearVelocity(to.speed)
	b.SetAngularVelocity(to.spin)
}

func (s state) components() (Position, Rotation, Velocity) {
	return Position{float32(s.at.X), float32(s.at.Y)}, Rotation{float32(math.Remainder(s.angle, 2*math.Pi))},
		Velocity{float32(s.speed.X), float32(s.speed.Y), float32(s.spin)}
}

func vec(x, y float32) box2d.B2Vec2 { return box2d.B2Vec2{X: float64(x), Y: float64(y)} }

// newGame returns what both ends have.
func newGame() (*replication.Schema, *predict.Model[Push], *stage) {
	schema, bodies := replication.NewSchema(), newStage()
	replication.Register[Body](schema)
	replication.Register[Position](schema)
	replication.Register[Rotation](schema)
	replication.Register[Velocity](schema)
	replication.RegisterInput[Push](schema)
	model := predict.NewModel[Push](schema, bodies.step)
	predict.State[Position](model)
	predict.State[Rotation](model)
	predict.State[Velocity](model)
	predict.External(model, bodies.save, bodies.restore)
	return schema, model, bodies
}

// play returns how far a body was corrected, and how far one is from the server's at the end, in metres. alone is what
// only the server does after each tick, or nil.
func play(ticks int, loss float64, seed uint64, alone func(w *ecs.World, tick int)) (
	s predict.Stats, furthest, apart float64,
) {
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	// Single losses cost few inputs, as they are sent again in time. Outages do.
	link := netsim.NewLink(seed, netsim.Config{
		Loss: loss, Latency: 0.075 * rate, Burst: netsim.Burst{Start: loss / 25, Length: 0.2 * rate},
	})
	schema, model, truth := newGame()
	server := replication.NewServer(&world, schema, replication.WithTickRate(rate))
	host, peer := predict.Serve(server, model), server.Connect(link.Down.Send)
	host.Own(truth.spawn(&world), peer)
	schema, model, bodies := newGame()
	client := replication.NewClient(&mirror, schema)
	client.SetSend(link.Up.Send)
	rng, push, now := rand.New(rand.NewPCG(seed, 1)), Push{}, 0
	predictor := predict.Attach(client, model, func() Push {
		if now < rate || now > ticks-2*rate {
			return Push{} // rests, so that all is known at the end
		}
		if rng.IntN(20) == 0 {
			push = Push{float32(rng.IntN(17)-8) / 8, float32(rng.IntN(17)-8) / 8}
		}
		return push
	})
	// The ball is predicted as it is the player's. What it pushes has to be as well.
	replication.OnSpawn(client, func(e ecs.Entity) { predictor.Predict(e, 0) })
	for ; now < ticks; now++ {
		link.Step()
		link.Up.Receive(func(packet []byte) { _ = peer.Receive(packet) })
		link.Down.Receive(func(packet []byte) { _ = client.Receive(packet) })
		if host.Step(); alone != nil {
			alone(&world, now)
		}
		server.Replicate()
		_ = client.Frame(time.Second / rate) // does not fail here: the ends have one schema
	}
	there, here := &truth.saved[server.Tick()%kept], &bodies.saved[server.Tick()%kept]
	for i := range count {
		apart = max(apart, box2d.B2Vec2Distance(there.bodies[i].at, here.bodies[i].at))
	}
	return predictor.Stats(), bodies.furthest, apart
}

func main() {
	ticks := flag.Int("ticks", 3600, "ticks to play, 60 a second; the player rests in the first 60 and the last 120")
	loss := flag.Float64("loss", 0.05, "share of packets lost, 0 to 0.5, besides outages of 0.2 s; none at 0")
	seed := flag.Uint64("seed", 1, "of the network and the player")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), `physics pushes boxes with a ball. The client predicts the bodies
of box2d. If the server disagrees, predict.External takes them
back to an earlier tick, and the ticks since are simulated again.
It exits with 1 if a body is not where the server has it at the end.
`)
		flag.PrintDefaults()
	}
	if flag.Parse(); flag.NArg() > 0 || *ticks < 300 || !(*loss >= 0 && *loss <= 0.5) {
		log.Fatal("physics: use -ticks of at least 300, -loss 0 to 0.5, and no other arguments; -h explains")
	}
	s, furthest, apart := play(*ticks, *loss, *seed, nil)
	fmt.Printf("%d bodies in %d ticks; the server missed %d inputs\n", s.Predicted, s.Ticks, s.Missed)
	fmt.Printf("%d rollbacks, up to %d ticks deep; %d ticks simulated again\n", s.Rollbacks, s.Deepest, s.Again)
	fmt.Printf("largest correction %.3f m; at the end the bodies are up to %.4f m from the server's\n", furthest, apart)
	if s.Predicted != count || apart > 0.003 {
		log.Fatal("physics: the bodies differ from the server's")
	}
}
