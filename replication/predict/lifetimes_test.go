package predict

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

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

// TestReleasedAndDisowned: what was released and predicted again is still no longer predicted when the player loses it.
func TestReleasedAndDisowned(t *testing.T) {
	p := newPlay(t, setting{seed: 1, oneWay: 75}, &rules{})
	p.wander()
	p.run(3)
	p.predict.Release(p.own(), 0)
	p.run(1)
	require.False(t, p.predicted())
	p.predict.Predict(p.own(), 0)
	p.run(1)
	p.quiet(t, 3)
	p.host.Own(p.ship, nil)
	p.run(1)
	require.False(t, p.predicted())
	require.Zero(t, p.predict.Stats().Predicted)
	p.host.Own(p.ship, p.peer)
	p.run(2)
	p.quiet(t, 3)
}

// TestAParkedShipIsLetGo: what is parked when its prediction ends has its States again.
func TestAParkedShipIsLetGo(t *testing.T) {
	r := &rules{}
	dies := false
	r.step = func(t *Tick) {
		if !dies || t.end.predictor() == nil {
			return
		}
		id := ecs.ComponentID[Move](t.World)
		var gone []ecs.Entity
		for q := t.Query(id); q.Next(); {
			gone = append(gone, q.Entity())
		}
		for _, e := range gone {
			t.Despawn(e)
		}
	}
	p := newPlay(t, setting{seed: 1, oneWay: 75}, r)
	p.wander()
	p.run(3)
	dies = true
	p.run(0.05)
	require.True(t, p.mirror.Has(p.own(), ecs.ComponentID[Parked](&p.mirror)))
	require.False(t, p.mirror.Has(p.own(), ecs.ComponentID[Position](&p.mirror)))
	dies = false
	p.predict.Release(p.own(), 0)
	p.run(0.1)
	require.False(t, p.mirror.Has(p.own(), ecs.ComponentID[Parked](&p.mirror)))
	require.True(t, p.mirror.Has(p.own(), ecs.ComponentID[Position](&p.mirror)))
	p.run(1)
	require.Nil(t, p.client.Verify())
	p.predict.Predict(p.own(), 0)
	p.run(1)
	p.quiet(t, 3)
}
