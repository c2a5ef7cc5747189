package predict

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
)

// count returns how many entities of a world a filter finds.
func count(w *ecs.World, f ecs.Filter) int {
	q := w.Query(f)
	defer q.Close()
	return q.Count()
}

func id[T any](w *ecs.World) ecs.ID { return ecs.ComponentID[T](w) }

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

// TestShotsThatEndBeforeTheServersArrive are not to be seen again when it does.
func TestShotsThatEndBeforeTheServersArrive(t *testing.T) {
	r := &rules{}
	r.step = func(t *Tick) {
		shot := ecs.ComponentID[Shot](t.World)
		for q := t.Query(shot); q.Next(); {
			if s := (*Shot)(q.Get(shot)); s.Left > 8 {
				s.Left = 8
			}
		}
	}
	p := newPlay(t, setting{seed: 4, oneWay: 75, interval: 1}, r)
	p.run(3)
	p.input = func() Move { return Move{Fire: uint8(p.client.InputTick() % 30 / 29)} }
	ghosts := 0
	p.afterFrame = func() {
		f := ecs.All(id[Position](&p.mirror), id[Parked](&p.mirror))
		ghosts = max(ghosts, count(&p.mirror, &f))
	}
	p.run(5)
	require.NotZero(t, p.predict.Stats().Spawns)
	require.Zero(t, ghosts)
}

// TestReconnectWhileParked: what a client has despawned wrongly has everything again after a new session.
func TestReconnectWhileParked(t *testing.T) {
	for name, end := range map[string]func(p *play){
		"reconnect": func(p *play) { p.client.Reconnect(); p.run(4) },
		"detach":    func(p *play) { p.client.Detach() },
		"release":   func(p *play) { p.predict.Release(p.ownOf(p.ship), 0); p.run(0.04) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &rules{}
			die := false
			r.step = func(t *Tick) {
				if t.end.predictor() == nil || !die {
					return
				}
				var list []ecs.Entity
				for q := t.Query(ecs.ComponentID[Mine](t.World)); q.Next(); {
					list = append(list, q.Entity())
				}
				for _, e := range list {
					t.Despawn(e)
				}
			}
			p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
			p.run(3)
			e := p.own()
			die = true
			for range 20 {
				if p.run(1. / 60); p.mirror.Has(e, id[Parked](&p.mirror)) {
					break
				}
			}
			require.True(t, p.mirror.Has(e, id[Parked](&p.mirror)))
			require.Nil(t, p.client.Verify())
			die = false
			end(p)
			require.False(t, p.mirror.Has(e, id[Parked](&p.mirror)))
			require.True(t, p.mirror.Has(e, id[Position](&p.mirror)))
		})
	}
}

func (p *play) ownOf(e ecs.Entity) ecs.Entity {
	id, _ := p.server.NetID(e)
	m, _ := p.client.Entity(id)
	return m
}

// TestReleaseOfAShot lasts.
func TestReleaseOfAShot(t *testing.T) {
	r := &rules{}
	r.step = func(t *Tick) { // they live for ever
		shot := ecs.ComponentID[Shot](t.World)
		for q := t.Query(shot); q.Next(); {
			(*Shot)(q.Get(shot)).Left = 60
		}
	}
	p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
	p.run(3)
	fire := true
	p.input = func() Move {
		in := Move{}
		if fire {
			in.Fire, fire = 1, false
		}
		return in
	}
	p.run(2)
	mirror := ecs.All(id[Shot](&p.mirror))
	q := p.mirror.Query(&mirror)
	require.True(t, q.Next())
	e := q.Entity()
	q.Close()
	require.True(t, p.mirror.Has(e, id[Predicted](&p.mirror)))
	p.predict.Release(e, 0)
	p.run(1)
	require.False(t, p.mirror.Has(e, id[Predicted](&p.mirror)))
	p.predict.Predict(e, 0)
	p.run(1)
	require.True(t, p.mirror.Has(e, id[Predicted](&p.mirror)))
}

// TestReleasedBeforeReconnect stays released.
func TestReleasedBeforeReconnect(t *testing.T) {
	for _, blend := range []time.Duration{0, time.Second} {
		p, _, e := remote(t, setting{seed: 3, oneWay: 75}, func(replication.Tick) Move { return Move{} })
		p.predict.Predict(e, 0)
		p.run(1)
		require.True(t, p.mirror.Has(e, id[Predicted](&p.mirror)))
		p.predict.Release(e, blend)
		if blend > 0 {
			p.run(0.1)
		}
		p.client.Reconnect()
		p.run(4)
		require.True(t, p.mirror.Alive(e))
		require.False(t, p.mirror.Has(e, id[Predicted](&p.mirror)), "%v", blend)
	}
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

// TestRefusedSpawnsGoWhileNothingSettles: the budget always leaves something unsent.
func TestRefusedSpawnsGoWhileNothingSettles(t *testing.T) {
	replicationtest.OneGoroutine(t)
	r := &rules{}
	p := newPlay(t, setting{seed: 4, oneWay: 40, lossUp: 0.3}, r)
	for range 400 {
		p.spawnShip()
	}
	p.peer.SetBudget(3000)
	p.run(3)
	p.afterTick = func() {
		q := p.world.Query(ecs.All(id[Position](&p.world)))
		for q.Next() {
			(*Position)(q.Get(id[Position](&p.world))).X += p.rng.Float32() - 0.5
		}
	}
	p.input = func() Move { return Move{Fire: uint8(p.client.InputTick() % 7 / 6)} }
	p.afterFrame = func() { p.blocked = int(p.now)/400%2 == 0 }
	p.run(30)
	a := p.predict.Stats()
	p.run(30)
	b := p.predict.Stats()
	t.Logf("%+v\n%+v rows %d", a, b, len(p.predict.sim.rows))
	require.Less(t, b.Predicted, a.Predicted+30)
}

// TestChaos does everything at once, for what panics, grows or leaks.
func TestChaos(t *testing.T) {
	replicationtest.OneGoroutine(t)
	n := uint64(20)
	if testing.Short() {
		n = 6
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, seed) })
	}
}

func chaos(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	die := 0
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Move](s, replication.Name("Steering"))
		replication.Register[Fuel](s, replication.OwnerOnly())
		replication.Register[Ammo](s, replication.ExceptOwner())
		replication.Register[Target](s)
		State[Fuel](m)
		State[Ammo](m)
		State[Target](m)
	}}
	r.step = func(t *Tick) {
		fuel := id[Fuel](t.World)
		for q := t.Query(fuel); q.Next(); {
			(*Fuel)(q.Get(fuel)).Left += 0.5
		}
		if die > 0 && t.end.predictor() != nil && t.Number%50 == 0 {
			die--
			var list []ecs.Entity
			for q := t.Query(id[Mine](t.World)); q.Next(); {
				list = append(list, q.Entity())
			}
			for _, e := range list {
				t.Despawn(e)
			}
		}
	}
	set := setting{
		seed: seed, oneWay: rng.Float64() * 150, loss: rng.Float64() * 0.4, lossUp: rng.Float64() * 0.4,
		fps: []float64{12, 60, 250}[rng.IntN(3)], interval: 1 + rng.IntN(4),
		options: []replication.ServerOption{replicationtest.FirstTick(startTicks[rng.IntN(3)])},
	}
	if rng.IntN(2) == 0 {
		set.attach = func(c *replication.Client) { interpolation.Attach(c) }
	}
	p := newPlay(t, set, r)
	still := netsim.Config{Latency: set.oneWay}
	wild := netsim.Config{Latency: set.oneWay, Jitter: 40, Loss: set.loss, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 30}
	p.link.SetConfig(wild)
	begun := map[Bang]int{}
	OnEffect(p.predict, func(b Bang, _ time.Duration) {
		begun[b]++
		if rng.IntN(50) == 0 {
			p.mirror.NewEntity(id[Position](&p.mirror))
		}
	}, func(b Bang) { begun[b]-- })
	p.wander()
	steer := p.input
	p.input = func() Move {
		in := steer()
		if rng.IntN(20) == 0 {
			in.Fire = uint8(1 + rng.IntN(4))
		}
		return in
	}
	ships := []ecs.Entity{p.ship}
	serverEntity := func() ecs.Entity {
		for i := 0; i < len(ships); {
			if !p.world.Alive(ships[i]) {
				ships = append(ships[:i], ships[i+1:]...)
			} else {
				i++
			}
		}
		if len(ships) == 0 {
			ships = append(ships, p.spawnShip())
		}
		return ships[rng.IntN(len(ships))]
	}
	pick := func() (e ecs.Entity) {
		var list []ecs.Entity
		for q := p.mirror.Query(ecs.All(p.predict.sim.ids.replica)); q.Next(); {
			list = append(list, q.Entity())
		}
		if len(list) > 0 {
			e = list[rng.IntN(len(list))]
		}
		return e
	}
	toggle := func(w *ecs.World, e ecs.Entity, id ecs.ID) {
		if w.Has(e, id) {
			w.Remove(e, id)
		} else {
			w.Add(e, id)
		}
	}
	blend := func() time.Duration { return time.Duration(rng.IntN(3)) * 400 * time.Millisecond }
	most := 0
	removed := false
	var ops []int
	for range 250 {
		op := rng.IntN(24)
		ops = append(ops, op)
		switch op {
		case 0:
			if len(ships) < 6 {
				ships = append(ships, p.spawnShip())
			}
		case 1:
			p.world.RemoveEntity(serverEntity())
		case 2, 3:
			p.host.Own(serverEntity(), p.peer)
		case 4:
			p.host.Own(serverEntity(), nil)
		case 5:
			toggle(&p.world, serverEntity(), id[Fuel](&p.world))
		case 6:
			toggle(&p.world, serverEntity(), id[Ammo](&p.world))
		case 7:
			if e := serverEntity(); p.world.Has(e, id[Velocity](&p.world)) {
				p.world.Remove(e, id[Velocity](&p.world))
			} else {
				p.world.Add(e, id[Velocity](&p.world))
			}
		case 8:
			e := serverEntity()
			if !p.world.Has(e, id[Target](&p.world)) {
				p.world.Add(e, id[Target](&p.world))
			}
			get[Target](&p.world, e).Of = serverEntity()
		case 9:
			*get[Position](&p.world, serverEntity()) = Position{rng.Float32() * 100, rng.Float32() * 100}
		case 10:
			p.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{p.server.NewEntitySet()}})
		case 11:
			p.peer.SetInterest(replication.Interest{})
			p.peer.SetBudget([]int{0, 2500}[rng.IntN(2)])
		case 12, 13:
			if e := pick(); !e.IsZero() {
				p.predict.Predict(e, blend())
			}
		case 14, 15:
			if e := pick(); !e.IsZero() {
				p.predict.Release(e, blend())
				if rng.IntN(3) == 0 {
					p.predict.Predict(e, blend())
				}
			}
		case 16:
			if rng.IntN(4) == 0 {
				p.client.Reconnect()
			}
		case 17:
			if rng.IntN(4) == 0 {
				p.mirror.Reset()
				p.mirror.NewEntity()
			}
		case 18:
			p.nextFrame += []float64{400, 1500, 3000}[rng.IntN(3)]
		case 19:
			if e := pick(); !e.IsZero() && rng.IntN(3) == 0 { // the user removes it, or a part
				removed = true
				if rng.IntN(2) == 0 {
					p.mirror.RemoveEntity(e)
				} else if p.mirror.Has(e, id[Velocity](&p.mirror)) {
					p.mirror.Remove(e, id[Velocity](&p.mirror))
				}
			}
		case 22, 23: // odd names
			w := &p.world
			var odd []ecs.Entity
			for range 1 + rng.IntN(3) {
				if len(ships) < 12 {
					odd = append(odd, w.NewEntity(id[Born](w), id[Position](w), id[replication.Replicated](w)))
				}
			}
			for i, e := range odd {
				by := []ecs.Entity{e, odd[(i+1)%len(odd)], serverEntity(), p.ship}[rng.IntN(4)]
				*get[Born](w, e) = Born{By: by, Tick: uint16(p.server.Tick()) + uint16(rng.IntN(5)*rng.IntN(20000)), Key: uint8(rng.IntN(3))}
				ships = append(ships, e)
			}
		case 20:
			die = rng.IntN(3)
		case 21:
			p.blocked = !p.blocked
			if rng.IntN(6) == 0 {
				p.another(seed + rng.Uint64N(1000) + 7)
				ships = []ecs.Entity{p.ship}
			}
		}
		p.run(rng.Float64() * 0.3)
		for range rng.IntN(2) {
			require.NoError(t, p.client.Frame(time.Duration(rng.IntN(3)-1)*time.Millisecond))
		}
		if d := p.client.Verify(); d != nil {
			require.Nil(t, d, "after %v: %+v, predicted %v parked %v mine %v born %v", ops[max(0, len(ops)-12):], *d,
				p.mirror.Has(d.Entity, p.predict.sim.ids.predicted), p.mirror.Has(d.Entity, p.predict.sim.ids.parked),
				p.mirror.Has(d.Entity, p.predict.sim.ids.mine), p.mirror.Has(d.Entity, p.predict.sim.ids.born))
		}
		most = max(most, len(p.predict.sim.rows))
		for b, n := range begun {
			require.GreaterOrEqual(t, n, 0, "%v", b)
		}
	}
	p.link.SetConfig(still)
	p.input, p.blocked, die = func() Move { return Move{} }, false, 0
	p.peer.SetInterest(replication.Interest{})
	p.peer.SetBudget(0)
	for range 60 {
		if p.client.Status() != replication.StatusConnected {
			p.run(0.5)
		}
	}
	if p.client.Status() != replication.StatusConnected {
		t.Skip("the peer has timed out")
	}
	p.mirror.Reset() // what the user removed comes again
	p.run(10)
	require.Less(t, most, 400)
	s := p.predict.sim
	f := ecs.All(s.ids.parked)
	require.Zero(t, count(&p.mirror, &f), "parked")
	f = ecs.All(s.ids.predicted)
	marked := count(&p.mirror, &f)
	owned := len(p.host.owned)
	t.Log(removed, marked, owned, most, p.predict.Stats())
	used := 0
	for i := range s.rows {
		if r := &s.rows[i]; !r.entity.IsZero() {
			used++
			require.Equal(t, uint32(i), get[Predicted](&p.mirror, r.entity).row)
		}
	}
	require.Equal(t, used, marked)
	require.Equal(t, len(s.rows), used+len(s.free))
	begin := p.predict.Stats().Rollbacks
	p.run(3)
	require.LessOrEqual(t, p.predict.Stats().Rollbacks-begin, uint64(1))
	for q := p.world.Query(ecs.All(id[Position](&p.world))); q.Next(); {
		n, ok := p.server.NetID(q.Entity())
		if !ok {
			continue
		}
		e, ok := p.client.Entity(n)
		require.True(t, ok)
		require.True(t, p.mirror.Has(e, id[Position](&p.mirror)))
		if p.world.Has(q.Entity(), id[Velocity](&p.world)) && !p.world.Has(q.Entity(), id[Shot](&p.world)) {
			a, b := get[Position](&p.mirror, e), (*Position)(q.Get(id[Position](&p.world)))
			require.InDelta(t, b.X, a.X, 0.1, "%v", e)
			require.InDelta(t, b.Y, a.Y, 0.1)
		}
	}
	require.LessOrEqual(t, len(s.inside.Apply.Expected.ByEntity), 4)
	p.client.Close()
	for _, f := range []ecs.Mask{ecs.All(s.ids.parked), ecs.All(s.ids.predicted), ecs.All(s.ids.born)} {
		require.Zero(t, count(&p.mirror, &f))
	}
}

// TestHostIsAttacked: what a game does between and within steps.
func TestHostIsAttacked(t *testing.T) {
	r := &rules{}
	var p *play
	var within func(t *Tick)
	r.step = func(t *Tick) {
		if fn := within; t.end.predictor() == nil && fn != nil {
			within = nil
			fn(t)
		}
	}
	p = newPlay(t, setting{seed: 6, oneWay: 30}, r)
	p.wander()
	p.run(3)
	within = func(*Tick) { p.host.Own(p.ship, p.peer); p.host.Own(p.ship, nil); p.host.Own(p.ship, p.peer) }
	p.run(2)
	p.quiet(t, 1)
	within = func(*Tick) { p.world.RemoveEntity(p.ship); p.ship = p.spawnShip(); p.host.Own(p.ship, p.peer) }
	p.run(2)
	p.quiet(t, 1)
	for range 40 { // Replicate without Step
		p.server.Replicate()
	}
	p.run(3)
	p.quiet(t, 1)
	within = func(*Tick) { p.peer.Disconnect(replication.Reason{}) }
	p.tick()
	p.tick()
	require.Nil(t, p.server.Owner(p.ship))
	require.False(t, p.world.Has(p.ship, id[Mine](&p.world)))
	p.host.Own(p.ship, p.peer) // it has ended
	p.tick()
	require.False(t, p.world.Has(p.ship, id[Mine](&p.world)))
	require.Empty(t, p.host.owned)
}

// TestServeTwice is refused: two hosts would simulate each tick twice.
func TestServeTwice(t *testing.T) {
	schema, model := newGame(&rules{})
	w := ecs.NewWorld()
	server := replication.NewServer(&w, schema)
	Serve(server, model)
	require.ErrorContains(t, caught(func() { Serve(server, model) }), "already")
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

// TestDroneOfOnesOwn: Own of what a step has spawned.
func TestDroneOfOnesOwn(t *testing.T) {
	p := newPlay(t, setting{seed: 4, oneWay: 75}, &rules{})
	p.run(3)
	fire := true
	p.input = func() Move {
		in := Move{X: 1}
		if fire {
			in.Fire, fire = 1, false
		}
		return in
	}
	p.run(0.5)
	q := p.world.Query(ecs.All(id[Shot](&p.world)))
	require.True(t, q.Next())
	e := q.Entity()
	q.Close()
	p.world.Remove(e, id[Shot](&p.world))
	p.host.Own(e, p.peer)
	p.run(3)
	m := p.ownOf(e)
	require.True(t, p.mirror.Has(m, id[Predicted](&p.mirror)))
	p.client.Reconnect()
	p.run(3)
	m = p.ownOf(e)
	require.True(t, p.mirror.Has(m, id[Predicted](&p.mirror)))
	require.Equal(t, 2, p.predict.Stats().Predicted)
	p.host.Own(e, nil)
	p.run(1)
}

// TestHostStepAllocatesNothing in steady state.
func TestHostStepAllocatesNothing(t *testing.T) {
	p := newPlay(t, setting{seed: 3, oneWay: 75}, &rules{})
	p.wander()
	p.run(3)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		p.host.ended = false
		p.host.Step()
	}))
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

// TestRelationsOfWhatIsParked keep their targets.
func TestRelationsOfWhatIsParked(t *testing.T) {
	die := false
	r := &rules{extra: func(s *replication.Schema, _ *Model[Move]) { replication.Register[Tied](s) }}
	r.step = func(t *Tick) {
		if !die || t.end.predictor() == nil {
			return
		}
		die = false
		var list []ecs.Entity
		for q := t.Query(id[Mine](t.World)); q.Next(); {
			list = append(list, q.Entity())
		}
		for _, e := range list {
			t.Despawn(e)
		}
	}
	p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
	other, third := p.spawnShip(), p.spawnShip()
	p.world.Add(p.ship, id[Tied](&p.world))
	p.world.Relations().Set(p.ship, id[Tied](&p.world), other)
	p.wander()
	p.run(3)
	for i := range 6 {
		target := []ecs.Entity{other, third}[i%2]
		p.world.Relations().Set(p.ship, id[Tied](&p.world), target)
		die = true
		p.run(1)
		require.True(t, p.predicted())
		require.Equal(t, p.ownOf(target), p.mirror.Relations().Get(p.own(), id[Tied](&p.mirror)))
	}
	p.quiet(t, 2)
}

// TestRandOfSpawnsOfSpawns is the same from the first run on, when the server's are not known yet.
func TestRandOfSpawnsOfSpawns(t *testing.T) {
	numbers, changed := map[replication.Tick][2]uint64{}, 0
	r := &rules{}
	r.step = func(t *Tick) {
		pos, vel, shot := id[Position](t.World), id[Velocity](t.World), id[Shot](t.World)
		var list []ecs.Entity
		var young []ecs.Entity
		for q := t.Query(pos, vel, shot); q.Next(); {
			switch s := (*Shot)(q.Get(shot)); s.Left {
			case 57:
				list = append(list, q.Entity())
			case 197:
				young = append(young, q.Entity())
			}
		}
		for _, e := range list {
			f := t.Spawn(e, 0, pos, vel, shot)
			*(*Position)(t.World.Get(f, pos)) = *(*Position)(t.World.Get(e, pos))
			*(*Shot)(t.World.Get(f, shot)) = Shot{Left: 200}
		}
		for _, e := range young {
			n := numbers[t.Number]
			if end := 0; t.end.predictor() != nil {
				end = 1
				was := n[end]
				if n[end] = t.Rand(e).Uint64(); was != 0 && was != n[end] {
					changed++
				}
			} else {
				n[end] = t.Rand(e).Uint64()
			}
			numbers[t.Number] = n
		}
	}
	p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
	p.run(3)
	p.input = func() Move { return Move{Fire: uint8(p.client.InputTick() % 60 / 59)} }
	p.run(10)
	checked, wrong := 0, 0
	for _, n := range numbers {
		if n[0] != 0 && n[1] != 0 {
			if checked++; n[0] != n[1] {
				wrong++
			}
		}
	}
	require.Greater(t, checked, 5)
	require.Zero(t, wrong)
	require.Zero(t, changed, "random numbers that the client first had otherwise")
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
