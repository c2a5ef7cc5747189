package predict

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/arche-replicate/arche-replicate/replication/interpolation"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// The traps of prediction, and where else they are tested:
//
//	 4  a state of a tick that is not simulated yet    the frames of TestTrap03NoRollbackAfterInterruptions
//	 7  corrections at the moment drawn last           TestFigures, visible_step_quanta
//	 8  effects of missed inputs                       TestFigures, Shots
//	 9  confirmed and removed after the rollback       TestFigures, Shots
//	10  one miss, two rollbacks                        TestFigures, rollbacks_per_miss
//	12  predicted while it moves                       TestFigures, Motion
//	13  rounding                                       TestTrap13RoundingStopsWhatIsSlow
//	14 to 16  rows, maps, clocks, what is no State     SyncTest
//	25  products and sums that are rounded once        the arena between arm64 and 386

var startTicks = []uint32{1, 1<<31 + 5, 1<<32 - 700}

func TestTrap01TicksWrap(t *testing.T) {
	for _, first := range startTicks {
		for _, loss := range []float64{0, 0.1} {
			t.Run(fmt.Sprint(first, loss), func(t *testing.T) {
				p := newPlay(t, setting{
					seed: 1, oneWay: 40, loss: loss,
					options: []replication.ServerOption{replicationtest.FirstTick(first)},
				}, &rules{})
				p.wander()
				p.run(3)
				p.quiet(t, 15)
			})
		}
	}
}

func TestTrap02WorldReset(t *testing.T) {
	p := newPlay(t, setting{seed: 2, oneWay: 40}, &rules{})
	p.wander()
	fire := p.input
	p.input = func() Move { in := fire(); in.Fire = uint8(p.rng.IntN(2)); return in }
	p.run(3)
	for range 5 {
		p.run(0.7)
		p.mirror.Reset()
		for range 20 { // other entities get the handles of before
			p.mirror.NewEntity()
		}
		p.run(1)
	}
	p.input = fire
	p.run(3)
	p.quiet(t, 5)
	require.Equal(t, 1, p.predict.Stats().Predicted)
}

func TestTrap03NoRollbackAfterInterruptions(t *testing.T) {
	interruptions := map[string]func(p *play){
		"reconnect": func(p *play) { p.client.Reconnect() },
		"outage of 3 s": func(p *play) {
			p.link.SetConfig(netsim.Config{Latency: 40, Loss: 1})
			p.run(3)
			p.link.SetConfig(netsim.Config{Latency: 40})
		},
		"frame of 0.4 s":      func(p *play) { p.nextFrame += 400 },
		"frame of 3 s":        func(p *play) { p.nextFrame += 3000; p.run(3) },
		"server stands still": func(p *play) { p.nextTick += 700; p.run(0.7) },
		"ten frames a second": func(p *play) { p.frameLength = 100; p.run(2); p.frameLength = 1000 / 60. },
	}
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, setting{seed: 3, oneWay: 40}, &rules{})
			p.wander()
			p.run(3)
			interrupt(p)
			p.run(6)
			p.quiet(t, 6)
		})
	}
	t.Run("no latency", func(t *testing.T) {
		p := newPlay(t, setting{seed: 3}, &rules{})
		p.wander()
		p.run(4)
		p.quiet(t, 10)
	})
	t.Run("another server", func(t *testing.T) {
		p := newPlay(t, setting{seed: 3, oneWay: 40}, &rules{})
		p.wander()
		p.run(3)
		p.another(77)
		p.run(8)
		p.quiet(t, 6)
	})
}

type Fuel struct {
	Left float32 `repl:"range=0:100000,step=0.5"`
}

func TestTrap05ConditionalComponents(t *testing.T) {
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Fuel](s, replication.OwnerOnly())
		State[Fuel](m)
	}}
	r.step = func(t *Tick) {
		fuel := ecs.ComponentID[Fuel](t.World)
		for q := t.Query(fuel); q.Next(); {
			(*Fuel)(q.Get(fuel)).Left += 0.5
		}
	}
	p := newPlay(t, setting{seed: 4, oneWay: 75}, r)
	p.world.Add(p.ship, ecs.ComponentID[Fuel](&p.world))
	p.wander()
	p.run(3)
	p.quiet(t, 10)
	fuel := get[Fuel](&p.mirror, p.own()).Left
	require.Greater(t, fuel, get[Fuel](&p.world, p.ship).Left+2) // it is ahead
	p.run(2)
	require.InDelta(t, fuel+60, get[Fuel](&p.mirror, p.own()).Left, 2)
	get[Fuel](&p.world, p.ship).Left += 50 // what only the server knows
	begin := p.predict.Stats().Rollbacks
	p.run(2)
	require.Equal(t, begin+1, p.predict.Stats().Rollbacks)
	require.InDelta(t, fuel+50+120, get[Fuel](&p.mirror, p.own()).Left, 2)
}

// TestTrap06InterpolationLeavesItAlone: what interpolation and Apply show never gets into the simulation.
func TestTrap06InterpolationLeavesItAlone(t *testing.T) {
	p := newPlay(t, setting{seed: 5, oneWay: 75, attach: func(c *replication.Client) { interpolation.Attach(c) }}, &rules{})
	p.wander()
	p.run(3)
	p.afterFrame = func() {
		v := get[Velocity](&p.mirror, p.own())
		want := (*Velocity)(p.predict.sim.columns[1].at(p.predict.sim.newest, 0))
		before := (*Velocity)(p.predict.sim.columns[1].at(p.predict.sim.newest-1, 0))
		low, high := min(want.X, before.X), max(want.X, before.X)
		require.True(t, v.X >= low-1e-4 && v.X <= high+1e-4, "%v", v)
	}
	p.quiet(t, 10)
}

// TestTrap08EffectsOfMissedInputs is in TestFigures, as are 9, 10 and 11.

// TestTrap11TheServerRepeatsWhatItSimulated: when the client knows of a miss, it simulates what the server did.
func TestTrap11TheServerRepeatsWhatItSimulated(t *testing.T) {
	simulated := map[replication.Tick]Move{}
	r := &rules{}
	var p *play
	r.seen = func(t *Tick, e ecs.Entity, in Move) {
		if t.end.predictor() == nil && e == p.ship {
			simulated[t.Number] = in
		}
	}
	p = newPlay(t, setting{seed: 6, oneWay: 75, lossUp: 0.3, loss: 0.1}, r)
	p.wander()
	p.run(4)
	in := p.predict.sim.inputs.(*typedInputs[Move])
	checked := 0
	p.afterTick = func() {
		if p.server.Tick()%7 == 0 {
			p.blocked = p.rng.IntN(5) == 0
		}
	}
	p.afterFrame = func() {
		tick := p.predict.inside.Messages.Verdicts.Tick - 40 // all reports of it have come, or never will
		if e := &in.ring[tick%inputTicks]; e.tick == tick && p.predict.inside.Messages.Verdicts.Known {
			require.Equal(t, simulated[tick], e.sim, "tick %d", tick)
			checked++
		}
	}
	p.run(60)
	require.Greater(t, checked, 1000)
	require.Greater(t, p.host.Missed(), uint64(100))
}

type Target struct {
	Of   ecs.Entity
	Lock uint8
}

func TestTrap17References(t *testing.T) {
	r := &rules{extra: func(s *replication.Schema, m *Model[Move]) {
		replication.Register[Target](s)
		State[Target](m)
	}}
	r.step = func(t *Tick) {
		id := ecs.ComponentID[Target](t.World)
		for q := t.Query(id); q.Next(); {
			(*Target)(q.Get(id)).Lock++
		}
	}
	p := newPlay(t, setting{seed: 7, oneWay: 75}, r)
	target := ecs.ComponentID[Target](&p.world)
	p.world.Add(p.ship, target)
	other := p.spawnShip()
	get[Target](&p.world, p.ship).Of = other
	p.wander()
	p.run(3)
	p.quiet(t, 5)
	id, _ := p.server.NetID(other)
	mirrored, _ := p.client.Entity(id)
	require.Equal(t, mirrored, get[Target](&p.mirror, p.own()).Of)
	get[Target](&p.world, p.ship).Of = p.ship // the server changes its mind
	begin := p.predict.Stats().Rollbacks
	p.run(2)
	require.Equal(t, begin+1, p.predict.Stats().Rollbacks)
	require.Equal(t, p.own(), get[Target](&p.mirror, p.own()).Of)
	get[Target](&p.world, p.ship).Of = other
	p.run(2)
	p.world.RemoveEntity(other)
	p.run(2)
	require.True(t, get[Target](&p.mirror, p.own()).Of.IsZero() || !p.mirror.Alive(get[Target](&p.mirror, p.own()).Of))
}

type (
	Pointed struct {
		X     float32
		Cache []int `repl:"-"`
	}
	Rare    struct{ X float32 }
	Tied    struct{ ecs.Relation }
	Missing struct{ X float32 }
	Score   struct{ X float32 }
)

func TestTraps18And19Misuse(t *testing.T) {
	for want, extra := range map[string]func(s *replication.Schema, m *Model[Move]){
		"memory outside of the component": func(s *replication.Schema, m *Model[Move]) {
			replication.Register[Pointed](s)
			State[Pointed](m)
		},
		"Once or Every": func(s *replication.Schema, m *Model[Move]) {
			replication.Register[Rare](s, replication.Every(3))
			State[Rare](m)
		},
		"is a relation": func(s *replication.Schema, m *Model[Move]) {
			replication.Register[Tied](s)
			State[Tied](m)
		},
		"not in the schema": func(_ *replication.Schema, m *Model[Move]) { State[Missing](m) },
		"is a resource": func(s *replication.Schema, m *Model[Move]) {
			replication.RegisterResource[Score](s)
			State[Score](m)
		},
	} {
		schema, model := newGame(&rules{extra: extra})
		world, mirror := ecs.NewWorld(), ecs.NewWorld()
		server := replication.NewServer(&world, schema)
		require.ErrorContains(t, caught(func() { Serve(server, model) }), want)
		client := replication.NewClient(&mirror, schema)
		require.ErrorContains(t, caught(func() { Attach(client, model, func() Move { return Move{} }) }), want)
	}
	schema, model := newGame(&rules{})
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	server, client := replication.NewServer(&world, schema), replication.NewClient(&mirror, schema)
	host := Serve(server, model)
	require.ErrorContains(t, caught(func() { host.Step(); host.Step() }), "twice")
	Attach(client, model, func() Move { return Move{} })
	require.ErrorContains(t, caught(func() { Attach(client, model, func() Move { return Move{} }) }), "already")
	require.ErrorContains(t, caught(func() { State[Rare](model) }), "in use")
	other, _ := newGame(&rules{})
	require.ErrorContains(t, caught(func() {
		State[Position](NewModel[Move](replication.NewSchema(), func(*Tick) {}))
		Serve(replication.NewServer(&world, func() *replication.Schema {
			s := replication.NewSchema()
			replication.Register[Position](s)
			replication.RegisterInput[Move](s)
			return s
		}()), model)
	}), "not the one")
	_ = other
}

// TestTrap20HooksAreNotCalled: no hook is called for what is withheld.
func TestTrap20HooksAreNotCalled(t *testing.T) {
	p := newPlay(t, setting{seed: 8, oneWay: 75}, &rules{})
	changes := 0
	replication.OnChange(p.client, func(ecs.Entity, *Position, *Position) { changes++ })
	p.wander()
	p.run(3)
	changes = 0
	p.run(5)
	require.Zero(t, changes)
}

func TestTrap21OwnersComeAndGo(t *testing.T) {
	p := newPlay(t, setting{seed: 9, oneWay: 75, lossUp: 0.2, loss: 0.05}, &rules{})
	p.wander()
	fire := p.input
	p.input = func() Move { in := fire(); in.Fire = uint8(p.rng.IntN(3) / 2); return in }
	p.run(3)
	for i := range 60 {
		switch i % 4 {
		case 0: // another ship
			p.world.RemoveEntity(p.ship)
			p.ship = p.spawnShip()
			p.host.Own(p.ship, p.peer)
		case 1: // out of view
			p.peer.SetInterest(replication.Interest{Sets: []*replication.EntitySet{p.server.NewEntitySet()}})
		case 2:
			p.peer.SetInterest(replication.Interest{})
			p.host.Own(p.ship, nil)
		case 3:
			p.host.Own(p.ship, p.peer)
			p.peer.SetBudget([]int{0, 3000}[i/4%2])
		}
		p.run(0.2 + p.rng.Float64())
	}
	p.peer.SetBudget(0)
	p.input, p.blocked = fire, false
	p.link.SetConfig(netsim.Config{Latency: 75})
	p.run(8)
	p.quiet(t, 5)
	require.Equal(t, 1, p.predict.Stats().Predicted, "%+v", p.predict.Stats())
}

func TestTrap22NamesInUse(t *testing.T) {
	r := &rules{}
	twice := false
	r.step = func(t *Tick) {
		if !twice || t.end.predictor() == nil {
			return
		}
		id := ecs.ComponentID[Move](t.World)
		var by ecs.Entity
		for q := t.Query(id); q.Next(); {
			by = q.Entity()
		}
		if !by.IsZero() {
			t.Spawn(by, 200)
			t.Spawn(by, 200)
		}
	}
	p := newPlay(t, setting{seed: 10, oneWay: 75}, r)
	p.run(3)
	twice = true
	require.ErrorContains(t, caught(func() { p.run(1) }), "key 200 twice")
	twice = false
	p.run(3)
	p.quiet(t, 3)
	require.Equal(t, 1, p.predict.Stats().Predicted)
}

func TestTrap23StepsThatGoWrong(t *testing.T) {
	for want, wrong := range map[string]func(p *play, t *Tick){
		"oh dear":     func(*play, *Tick) { panic("oh dear") },
		"query open":  func(_ *play, t *Tick) { q := t.Query(ecs.ComponentID[Position](t.World)); q.Next() },
		"replication": func(p *play, _ *Tick) { _ = p.client.Frame(time.Millisecond) },
		"has spawned something": func(_ *play, t *Tick) {
			id := ecs.ComponentID[Move](t.World)
			var by ecs.Entity
			for q := t.Query(id); q.Next(); {
				by = q.Entity()
			}
			t.Spawn(by, 9)
			t.Despawn(by)
		},
		"not simulated": func(_ *play, t *Tick) {
			t.Despawn(t.World.NewEntity(ecs.ComponentID[Position](t.World)))
		},
	} {
		t.Run(want, func(t *testing.T) {
			r := &rules{}
			var p *play
			wrongNow := false
			r.step = func(t *Tick) {
				if wrongNow && t.end.predictor() != nil {
					wrong(p, t)
				}
			}
			p = newPlay(t, setting{seed: 11, oneWay: 75}, r)
			p.wander()
			p.run(3)
			wrongNow = true
			require.ErrorContains(t, caught(func() { p.run(1) }), want)
			wrongNow = false
			if p.mirror.IsLocked() {
				return // only the user can close it
			}
			p.run(4)
			p.quiet(t, 4)
		})
	}
}

// TestTrap24WhatIsDrawnGoesNowhere: a program that spoils what is drawn changes nothing.
func TestTrap24WhatIsDrawnGoesNowhere(t *testing.T) {
	p := newPlay(t, setting{seed: 12, oneWay: 75}, &rules{})
	p.wander()
	p.run(3)
	p.afterFrame = func() {
		*get[Position](&p.mirror, p.own()) = Position{500, float32(math.NaN())}
		*get[Velocity](&p.mirror, p.own()) = Velocity{50, 50}
	}
	begin := p.predict.Stats()
	p.run(10)
	require.Equal(t, begin.Rollbacks, p.predict.Stats().Rollbacks)
	p.afterFrame = nil
	p.run(1)
	p.quiet(t, 3)
}

// TestTrap13RoundingStopsWhatIsSlow: Exact changes the game, at both ends alike.
func TestTrap13RoundingStopsWhatIsSlow(t *testing.T) {
	for _, c := range []struct {
		states []StateOption
		moves  bool
	}{{nil, true}, {[]StateOption{Exact()}, false}} {
		p := newPlay(t, setting{seed: 1, oneWay: 40}, &rules{damping: 1, states: c.states})
		get[Velocity](&p.world, p.ship).X = 0.25 // 0.0042 a tick, less than half a step
		p.run(8)
		a, b := get[Position](&p.world, p.ship).X, get[Position](&p.mirror, p.own()).X
		require.Equal(t, c.moves, a > 1)
		require.Equal(t, c.moves, b > 1)
	}
}
