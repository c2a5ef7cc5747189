package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestKeepRetainsConditionalComponents: Keep retains conditional components while their conditions
// hold, as they were when the entity left the view.
func TestKeepRetainsConditionalComponents(t *testing.T) {
	g := newConditionPlay(1, 0)
	mine := g.connect(netsim.Config{Latency: 1})
	other := g.connect(netsim.Config{Latency: 1})
	e := g.world.NewEntity(g.marker, g.ids[0], g.ids[1], g.ids[3], g.ids[4])
	all := func(n int) {
		(*cAmmo)(g.world.Get(e, g.ids[1])).Rounds = uint16(n)
		(*cGhost)(g.world.Get(e, g.ids[3])).Seen = uint32(n)
		(*cRank)(g.world.Get(e, g.ids[4])).Points = int16(n)
	}
	shown := true
	mine.peer.SetInterest(Interest{Keep: true, Visible: func(ecs.Entity) bool { return shown }})
	requireThat := func(ammo, ghost, rank int) {
		t.Helper()
		for range 20 {
			g.tick()
			for _, e := range g.ends {
				e.step(t)
			}
		}
		id, _ := g.server.NetID(e)
		m, ok := mine.client.Entity(id)
		require.True(t, ok)
		got := []int{-1, -1, -1}
		if p := (*cAmmo)(mine.world.Get(m, ecs.ComponentID[cAmmo](mine.world))); p != nil {
			got[0] = int(p.Rounds)
		}
		if p := (*cGhost)(mine.world.Get(m, ecs.ComponentID[cGhost](mine.world))); p != nil {
			got[1] = int(p.Seen)
		}
		if p := (*cRank)(mine.world.Get(m, ecs.ComponentID[cRank](mine.world))); p != nil {
			got[2] = int(p.Points)
		}
		require.Equal(t, []int{ammo, ghost, rank}, got)
	}
	g.server.SetOwner(e, mine.peer)
	g.picked[mine.peer] = true
	all(1)
	requireThat(1, -1, 1)
	shown = false
	all(2)
	requireThat(1, -1, 1)
	shown = true
	requireThat(2, -1, 2)
	shown = false
	all(3)
	requireThat(2, -1, 2)
	g.server.SetOwner(e, other.peer)
	requireThat(-1, -1, 2) // the peer no longer sees the rounds, and does not see the ghost yet
	g.picked[mine.peer] = false
	requireThat(-1, -1, -1)
	g.server.SetOwner(e, mine.peer)
	g.picked[mine.peer] = true
	requireThat(-1, -1, -1) // the entity has to be visible
	shown = true
	requireThat(3, -1, 3)
	g.server.SetOwner(e, nil)
	requireThat(-1, 3, 3)
	shown = false
	all(4)
	requireThat(-1, 3, 3)
	g.world.Remove(e, g.ids[3])
	requireThat(-1, 3, 3)
	shown = true
	requireThat(-1, -1, 4)
	shown = false
	requireThat(-1, -1, 4)
	mine.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return shown }})
	for range 20 {
		g.tick()
		mine.step(t)
	}
	require.Zero(t, mine.world.Stats().Entities.Used)
}

// TestConditionsConvergeOverHostileLinks: owners change every few ticks, peers are picked and
// dropped, components and entities come and go, and ends lose sight of them, reset their worlds and
// reconnect. What they show always existed and was visible to them; at the end it is exactly what
// they may see.
func TestConditionsConvergeOverHostileLinks(t *testing.T) {
	t.Parallel()
	ticks := roundsOf(2000, 450, 260)
	seed := seedOf(t)
	g := newConditionPlay(seed, 30, WithWorkers(1+int(seed%3)))
	for i, cfg := range hostileLinks() {
		p := g.connect(cfg).peer
		switch i {
		case 1, 4:
			g.hidden[p] = 3
			p.SetInterest(Interest{Keep: i == 4, Visible: func(e ecs.Entity) bool {
				require.True(t, g.world.Alive(e))
				return g.hidden[p] == 0 || int(e.ID())%g.hidden[p] != 0
			}})
		case 2:
			p.SetBudget(3000)
			p.SetPriorityFunc(func(_ []ecs.Entity, _ []float32) {})
		case 3:
			p.SetSendInterval(3)
		}
	}
	for tick := range ticks {
		g.step()
		for i, e := range g.ends {
			if g.hidden[e.peer] > 0 && g.rng.IntN(50) == 0 {
				g.hidden[e.peer] = 2 + g.rng.IntN(4)
			}
			switch {
			case i == 0 && tick%200 == 199:
				e.world.Reset()
				e.last = map[NetID]uint32{}
			case i == 5 && tick%250 == 249:
				e.client.Reconnect()
			}
			e.step(t)
			if e.client.Status() == StatusConnected {
				g.check(t, i, e)
			}
		}
	}
	for _, e := range g.ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
		e.peer.SetBudget(0)
	}
	settle := func(ticks int) {
		for range ticks {
			g.tick()
			for i, e := range g.ends {
				e.step(t)
				g.check(t, i, e)
			}
		}
	}
	settle(200)
	g.requireNothingLapsed(t, g.ends[4])
	g.hidden[g.ends[4].peer] = 0
	settle(50)
	g.requireRight(t)
	for len(g.entities) > 0 {
		g.world.RemoveEntity(g.entities[0])
		g.entities = g.entities[1:]
	}
	for range 60 {
		g.tick()
		for _, e := range g.ends {
			e.step(t)
		}
	}
	g.requireRight(t)
	require.Zero(t, g.server.snap.Slots.Live)
	require.Zero(t, g.server.snap.Slots.SubEntityCount)
	require.Zero(t, g.server.Stats().RawBits)
	require.Empty(t, g.server.interest.Owners.Of)
	for _, e := range g.ends {
		require.Empty(t, e.client.apply.Referrers.Unsettled)
		for i := range e.client.apply.Referrers.Links {
			require.Zero(t, e.client.apply.Referrers.Links[i].Component, "all references are gone")
		}
	}
}

// TestConditionsWithWorkers: with any number of workers all peers get the same packets, and OnlyFor
// functions are called once per peer and tick, on the goroutine of Replicate.
func TestConditionsWithWorkers(t *testing.T) {
	seed := seedOf(t)
	play := func(workers int) (sent [][]byte) {
		g := newConditionPlay(seed, 40, WithWorkers(workers))
		home, calls := goroutine(), map[*Peer]int{}
		kind := &g.server.schema.Conditions[2]
		require.Equal(t, schema.OnlyFor, kind.Kind)
		picks := kind.Ask.(*func(*Peer) bool)
		ask := *picks
		*picks = func(p *Peer) bool {
			if here := goroutine(); here != home { // no FailNow here: it would end a worker
				t.Errorf("called on goroutine %s instead of %s", here, home)
			}
			calls[p]++
			return ask(p)
		}
		for i := range 7 {
			e := g.connect(netsim.Config{Latency: float64(1 + i%3), Loss: 0.05 * float64(i%4)})
			send := e.peer.out.Send
			e.peer.out.Send = func(p []byte) error {
				sent = append(sent, append([]byte{byte(i)}, p...))
				return send(p)
			}
			if i%3 == 2 {
				e.peer.SetBudget(1500)
			}
		}
		for range 120 {
			before := map[*Peer]int{}
			connected, tick := 0, g.server.snap.Tick
			for p, n := range calls {
				before[p] = n
			}
			for _, e := range g.ends {
				if e.peer.Connected() {
					connected++
				}
			}
			g.step()
			now := 0
			for p, n := range calls {
				now += n - before[p]
			}
			require.Equal(t, connected*int(g.server.snap.Tick-tick), now)
			for _, e := range g.ends {
				e.step(t)
			}
		}
		return sent
	}
	want := play(1)
	require.Greater(t, len(want), 300)
	for _, n := range []int{2, 5} {
		require.Equal(t, want, play(n), "%d workers", n)
	}
}

// TestDamagedSubEntitiesDoNoHarm: without checksums, damaged sub-entities may link to any entity
// and carry components that it already has. The world is wrong then, but nothing panics, and
// nothing of it remains at the end.
func TestDamagedSubEntitiesDoNoHarm(t *testing.T) {
	t.Parallel()
	ticks := 3000
	if testing.Short() {
		ticks = 600
	}
	seed := seedOf(t)
	g := newConditionPlay(seed, 20, WithoutChecksum())
	for range 3 {
		g.connect(netsim.Config{Latency: 1, Jitter: 2, Corrupt: 0.4, Loss: 0.1})
	}
	wrong := 0
	for tick := range ticks {
		g.step()
		for i, e := range g.ends {
			if tick%40 == 39 {
				e.client.Reconnect() // otherwise the clients would soon believe that they had received all packets
			}
			if tick%111 == 50*i {
				e.world.Reset()
			}
			e.step(t)
			for id, entity := range e.client.Entities() {
				for class := 1; class < 5; class++ {
					if g.state(e.world, entity, class) != g.at(conditionKey{id, class}, uint32(g.server.Tick())).state {
						wrong++
					}
				}
			}
		}
	}
	require.Greater(t, wrong, 100)
	for _, e := range g.ends {
		require.NotZero(t, e.client.Stats().Sessions)
		e.client.Close()
		filter := ecs.All(MirroredID(e.world))
		q := e.world.Query(&filter)
		require.Zero(t, q.Count())
		q.Close()
	}
}
