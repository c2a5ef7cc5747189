package predict

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type Ammo struct {
	Left float32 `repl:"range=0:100000,step=0.5"`
}

// TestConditionalStatesOfWhichAnEntityHasOnlyTheSecond: two States of one condition.
func TestConditionalStatesOfWhichAnEntityHasOnlyTheSecond(t *testing.T) {
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Fuel](s, replication.OwnerOnly())
		replication.Register[Ammo](s, replication.OwnerOnly())
		State[Fuel](m)
		State[Ammo](m)
	}}
	p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
	p.world.Add(p.ship, id[Ammo](&p.world))
	p.run(3)
	get[Ammo](&p.world, p.ship).Left = 50
	p.run(2)
	require.InDelta(t, 50, get[Ammo](&p.mirror, p.own()).Left, 1)
}

// TestStepAddsAComponentWhileSomethingSlides does not panic within the library.
func TestStepAddsAComponent(t *testing.T) {
	var p *play
	now := Move{}
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Move](s, replication.Name("Steering"))
		replication.Register[Fuel](s)
		State[Fuel](m)
	}}
	add := false
	r.step = func(t *Tick) {
		if !add {
			return
		}
		fuel := ecs.ComponentID[Fuel](t.World)
		var list []ecs.Entity
		for q := t.Query(ecs.ComponentID[Position](t.World)); q.Next(); {
			if !t.World.Has(q.Entity(), fuel) {
				list = append(list, q.Entity())
			}
		}
		for _, e := range list {
			t.World.Add(e, fuel)
		}
	}
	p = newPlay(t, setting{seed: 3, oneWay: 75}, r)
	p.input = func() Move { return now }
	bot := p.spawnShip()
	p.run(3)
	p.predict.Predict(p.ownOf(bot), time.Second)
	p.run(0.3)
	add = true
	p.run(3)
	p.quiet(t, 2)
}

// TestFrameAllocatesNothing in steady state.
func TestFrameAllocatesNothing(t *testing.T) {
	p := newPlay(t, setting{seed: 3, oneWay: 75}, &rules{})
	OnEffect(p.predict, func(Bang, time.Duration) {}, nil)
	p.wander()
	p.run(5)
	frame := (*p.predict.inside.Attached)[0]
	(*p.predict.inside.Attached)[0] = func(time.Duration) {}
	run := func() float64 {
		return testing.AllocsPerRun(30, func() { // the server is silent, and its time passes
			_ = p.client.Frame(time.Second / 60)
			frame(time.Second / 60)
		})
	}
	p.client.SetSend(func([]byte) error { return nil })
	tick := p.predict.sim.newest
	require.Zero(t, run())
	require.Greater(t, p.predict.sim.newest, tick+10)
}

// TestOneModelForBothEnds in two goroutines: run it with -race.
func TestOneModelForBothEnds(_ *testing.T) {
	r := &rules{damping: 0.9, wall: 100}
	s, m := newGame(r)
	var wg sync.WaitGroup
	up, down := make(chan []byte, 1000), make(chan []byte, 1000)
	send := func(c chan []byte) func(p []byte) error {
		return func(p []byte) error {
			select {
			case c <- append([]byte(nil), p...):
			default:
			}
			return nil
		}
	}
	start := make(chan struct{})
	wg.Add(2)
	go func() {
		defer wg.Done()
		w := ecs.NewWorld()
		<-start
		server := replication.NewServer(&w, s, replication.WithTickRate(60))
		host := Serve(server, m)
		peer := server.Connect(send(down))
		e := w.NewEntity(id[Position](&w), id[Velocity](&w), id[replication.Replicated](&w))
		host.Own(e, peer)
		for range 600 {
			for n := len(up); n > 0; n-- {
				_ = peer.Receive(<-up)
			}
			host.Step()
			server.Replicate()
			time.Sleep(time.Millisecond)
		}
	}()
	go func() {
		defer wg.Done()
		w := ecs.NewWorld()
		<-start
		client := replication.NewClient(&w, s)
		client.SetSend(send(up))
		n := 0
		p := Attach(client, m, func() Move { n++; return Move{X: float32(n % 3), Fire: uint8(n % 40 / 39)} })
		for range 600 {
			for n := len(down); n > 0; n-- {
				_ = client.Receive(<-down)
			}
			_ = client.Frame(time.Second / 60)
			time.Sleep(time.Millisecond)
		}
		p.Stats()
	}()
	close(start)
	wg.Wait()
}

// TestExternalIsRestoredOnlyToWhatWasSaved of the given tick in this session.
func TestExternalIsRestoredOnlyToWhatWasSaved(t *testing.T) {
	var saved map[replication.Tick]bool
	var unknown []replication.Tick
	r := &rules{extra: func(_ *replication.Schema, m *Model[Move]) {
		mine := map[replication.Tick]bool{}
		saved = mine // the client's is the last
		External(m, func(tick replication.Tick) { mine[tick] = true }, func(tick replication.Tick) {
			if !saved[tick] {
				unknown = append(unknown, tick)
			}
		})
	}}
	p := newPlay(t, setting{seed: 3, oneWay: 75}, r)
	p.wander()
	p.run(5)
	p.client.Reconnect()
	p.run(5)
	require.Empty(t, unknown)
}

// TestTwoPredictorsInOneWorld would simulate each other's entities.
func TestTwoPredictorsInOneWorld(t *testing.T) {
	p := newPlay(t, setting{seed: 4, oneWay: 20}, &rules{})
	schema, model := newGame(p.rules)
	second := replication.NewClient(&p.mirror, schema)
	attach := func() { Attach(second, model, func() Move { return Move{} }) }
	require.ErrorContains(t, caught(attach), "another client predicts in this world")
	p.run(2)
	p.client.Close()
	attach()
}

// TestTicksThatJumpFar do not take the time of all ticks in between.
func TestTicksThatJumpFar(t *testing.T) {
	p := newPlay(t, setting{seed: 4, oneWay: 20}, &rules{})
	p.run(2)
	s := p.predict.sim
	begin := time.Now()
	s.proceed(s.newest+1<<30, p.client.PredictionTime(), false, &p.predict.drawing)
	require.Less(t, time.Since(begin), 100*time.Millisecond)
}

// TestTickRates from 1 to 1000, with frames of 0 s, of the past, and of 10 s.
func TestTickRates(t *testing.T) {
	replicationtest.OneGoroutine(t)
	for _, rate := range []int{1, 5, 20, 128, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			p := newPlay(t, setting{seed: 6, oneWay: 75, options: []replication.ServerOption{replication.WithTickRate(rate)}}, &rules{})
			p.tickLength = 1000 / float64(rate)
			p.wander()
			fire := p.input
			p.input = func() Move { in := fire(); in.Fire = uint8(p.rng.IntN(9) / 8); return in }
			OnEffect(p.predict, func(Bang, time.Duration) {}, nil)
			p.run(max(3, 5/float64(rate)))
			for _, dt := range []time.Duration{0, -time.Second, 10 * time.Second, 1, -1 << 62, 1 << 62} {
				require.NoError(t, p.client.Frame(dt))
				p.run(0.5)
			}
			p.run(4)
			t.Logf("%+v", p.predict.Stats())
			p.input = func() Move { return Move{} }
			p.run(30)
			t.Logf("%+v %v %v", p.predict.Stats(), p.predicted(), p.client.Status())
			require.True(t, p.predicted())
			a, b := get[Position](&p.mirror, p.own()), get[Position](&p.world, p.ship)
			require.InDelta(t, b.X, a.X, 0.5)
		})
	}
}

type Text struct {
	Word string `repl:"max=8"`
	At   ecs.Entity
	X    int8
	own  int
}

// TestOddInputs have strings, references and fields of one's own.
func TestOddInputs(t *testing.T) {
	newText := func(*ecs.World) (*replication.Schema, *Model[Text]) {
		s := replication.NewSchema()
		replication.Register[Position](s)
		replication.RegisterInput[Text](s)
		m := NewModel[Text](s, func(t *Tick) {
			pos, text := id[Position](t.World), id[Text](t.World)
			for q := t.Query(pos, text); q.Next(); {
				in := (*Text)(q.Get(text))
				(*Position)(q.Get(pos)).X += float32(len(in.Word)+in.own) / 10
				if in.At == q.Entity() {
					(*Position)(q.Get(pos)).Y += float32(in.X) / 10
				}
			}
		})
		State[Position](m)
		return s, m
	}
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	s, m := newText(&world)
	server := replication.NewServer(&world, s, replication.WithTickRate(60), replication.WithSeed(1))
	host := Serve(server, m)
	link := netsim.NewLink(1, netsim.Config{Latency: 3})
	peer := server.Connect(link.Down.Send)
	s, m = newText(&mirror)
	client := replication.NewClient(&mirror, s, replication.WithSeed(2))
	client.SetSend(link.Up.Send)
	var own ecs.Entity
	n := 0
	p := Attach(client, m, func() Text {
		n++
		return Text{Word: "abcdefgh"[:n/7%8], At: own, X: int8(n % 5), own: 7}
	})
	e := world.NewEntity(id[Position](&world), id[replication.Replicated](&world))
	host.Own(e, peer)
	for range 900 {
		link.Step()
		link.Up.Receive(func(b []byte) { _ = peer.Receive(b) })
		link.Down.Receive(func(b []byte) { _ = client.Receive(b) })
		host.Step()
		server.Replicate()
		require.NoError(t, client.Frame(time.Second/60))
		if nid, ok := server.NetID(e); ok {
			own, _ = client.Entity(nid)
		}
	}
	t.Logf("%+v", p.Stats())
	require.Equal(t, 1, p.Stats().Predicted)
	require.Zero(t, p.Stats().Rollbacks)
}

// TestEffectsOfHandlersThatPanic begin once, and so do those around them.
func TestEffectsOfHandlersThatPanic(t *testing.T) {
	p := newPlay(t, setting{seed: 3, oneWay: 75, lossUp: 0.2}, &rules{})
	begun, cancelled := map[Bang]int{}, map[Bang]int{}
	OnEffect(p.predict, func(b Bang, _ time.Duration) {
		if begun[b]++; p.rng.IntN(4) == 0 {
			panic("oh dear")
		}
		if p.rng.IntN(20) == 0 {
			_ = caught(func() { _ = p.client.Frame(0) })
			require.ErrorContains(p.t, caught(p.client.Close), "replication")
		}
	}, func(b Bang) {
		if cancelled[b]++; p.rng.IntN(4) == 0 {
			panic("oh dear")
		}
	})
	p.input = func() Move { return Move{Fire: uint8(p.rng.IntN(8) / 7 * 3)} }
	for range 3000 {
		p.blocked = int(p.now)/300%3 == 0
		_ = caught(func() { p.run(1. / 60) })
	}
	require.Greater(t, len(begun), 100)
	require.Greater(t, len(cancelled), 10)
	for b, n := range cancelled {
		require.LessOrEqual(t, n, begun[b], "%v", b)
	}
	for b, n := range begun {
		if b.Kind == 2 {
			require.LessOrEqual(t, n, 1+cancelled[b], "%v", b)
		}
	}
}

// TestVerdictsOfAnyBits from a server that lies.
func TestVerdictsOfAnyBits(t *testing.T) {
	p := newPlay(t, setting{seed: 4, oneWay: 40}, &rules{})
	p.wander()
	p.run(3)
	v := &p.predict.inside.Messages.Verdicts
	tick := v.Tick
	for i := range 400 {
		v.Count++
		v.Tick = p.predict.sim.newest + replication.Tick(p.rng.IntN(300)-150)*replication.Tick(1+i%3*(1<<24))
		v.Missed = p.rng.Uint64() | uint64(i%2)*(1<<64-1)
		p.run(0.02)
	}
	v.Tick, v.Missed = tick, 0
	p.run(5)
	p.quiet(t, 3)
}

// TestAnotherTickRate of another server.
func TestAnotherTickRate(t *testing.T) {
	p := newPlay(t, setting{seed: 4, oneWay: 40}, &rules{})
	p.wander()
	p.run(3)
	p.server.Close()
	p.world = ecs.NewWorld()
	schema, model := newGame(p.rules)
	p.server = replication.NewServer(&p.world, schema, replication.WithSeed(9), replication.WithTickRate(20))
	p.tickLength = 50
	p.host = Serve(p.server, model)
	p.peer = p.server.Connect(p.link.Down.Send)
	p.ship = p.spawnShip()
	p.host.Own(p.ship, p.peer)
	p.client.Reconnect()
	p.run(8)
	require.True(t, p.predicted())
	begin := p.predict.Stats().Rollbacks
	p.run(8)
	require.Equal(t, begin, p.predict.Stats().Rollbacks)
	p.agree(t)
}
