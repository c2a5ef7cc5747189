package predict

import (
	"fmt"
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
