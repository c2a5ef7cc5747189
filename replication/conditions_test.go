package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

type cPlace struct {
	X, Y int32 `repl:"range=-1000:1000"`
}

type cAmmo struct{ Rounds uint16 }

type cAim struct {
	At ecs.Entity
	Up uint8
}

type cGhost struct{ Seen uint32 }

type cRank struct{ Points int16 }

type cCard struct{}

type cHoard struct{ Cells [60]uint64 }

type cSeed struct{ N uint32 }

type cDeal struct{ N uint32 }

// conditionPlay plays a game on a server whose entities have owners and components under
// all conditions, and knows what every peer has to see.
type conditionPlay struct {
	rng      *rand.Rand
	world    *ecs.World
	server   *Server
	entities []ecs.Entity
	ids      []ecs.ID
	marker   ecs.ID
	picked   map[*Peer]bool
	hidden   map[*Peer]int // entities with an ID that this divides are not visible; 0: all are
	ends     []*end
	limit    int

	versions map[conditionKey][]conditionVersion
	live     map[NetID]ecs.Entity
	noted    func() // is called after every tick, if there is such
}

// conditionKey is an entity, or what it has under a condition.
type conditionKey struct {
	id    NetID
	class int
}

type conditionVersion struct {
	tick  uint32
	state string // "" if there is none
	owner *Peer
}

// conditionSchema is called for every play, since a schema has functions of the play.
func (g *conditionPlay) schema() *Schema {
	s := NewSchema()
	Register[cPlace](s)
	Register[cAmmo](s, OwnerOnly())
	Register[cAim](s, OwnerOnly())
	Register[cGhost](s, ExceptOwner())
	picked := OnlyFor(func(p *Peer) bool { return g.picked[p] })
	Register[cRank](s, picked)
	Register[cCard](s, picked)
	Register[cHoard](s, OnlyFor(func(p *Peer) bool { return !g.picked[p] }))
	Register[cSeed](s, Once())
	Register[cDeal](s, Once(), OwnerOnly())
	Register[rChildOf](s)
	return s
}

const conditionComponents = 10 // in that schema

func newConditionPlay(seed uint64, limit int, opts ...ServerOption) *conditionPlay {
	g := newConditionGame(seed, limit)
	g.serve(g.schema(), append(opts, WithSeed(seed))...)
	return g
}

// newConditionGame is a play without a server.
func newConditionGame(seed uint64, limit int) *conditionPlay {
	w := ecs.NewWorld()
	return &conditionPlay{
		rng: rand.New(rand.NewPCG(seed, 7)), world: &w, limit: limit, picked: map[*Peer]bool{}, hidden: map[*Peer]int{},
		versions: map[conditionKey][]conditionVersion{}, live: map[NetID]ecs.Entity{},
	}
}

// serve makes the server, of a schema that begins with that of the play.
func (g *conditionPlay) serve(schema *Schema, opts ...ServerOption) {
	g.server = NewServer(g.world, schema, opts...)
	for i := range schema.components[:conditionComponents] {
		g.ids = append(g.ids, ecs.TypeID(g.world, schema.components[i].typ))
	}
	g.marker = ReplicatedID(g.world)
}

func (g *conditionPlay) connect(cfg netsim.Config) *end {
	n := uint64(len(g.ends)) + 1
	e := connect(g.server, g.rng.Uint64(), cfg, WithNonce(n))
	g.ends = append(g.ends, e)
	return e
}

// holds reports whether the peer may see what stands under the condition of a class.
func (g *conditionPlay) holds(p *Peer, class int, owner *Peer) bool {
	switch class {
	case 0:
		return true
	case 1:
		return owner == p
	case 2:
		return owner != p
	case 3:
		return g.picked[p]
	}
	return !g.picked[p]
}

func (g *conditionPlay) spawn() {
	ids := []ecs.ID{g.marker}
	for i, id := range g.ids {
		if i != 6 && g.rng.IntN(2) == 0 || g.rng.IntN(12) == 0 {
			ids = append(ids, id)
		}
	}
	e := g.world.NewEntity(ids...)
	for i := range g.ids {
		g.mutate(e, i)
	}
	if g.rng.IntN(2) == 0 {
		g.server.SetOwner(e, g.anybody()) // before a Replicate has seen it
	}
	g.entities = append(g.entities, e)
}

func (g *conditionPlay) anybody() *Peer {
	if i := g.rng.IntN(len(g.ends) + 1); i < len(g.ends) {
		return g.ends[i].peer
	}
	return nil
}

func (g *conditionPlay) mutate(e ecs.Entity, i int) {
	if !g.world.Has(e, g.ids[i]) {
		return
	}
	r, p := g.rng, g.world.Get(e, g.ids[i])
	switch i {
	case 0:
		v := (*cPlace)(p)
		v.X, v.Y = v.X+int32(r.IntN(5))-2, int32(r.IntN(100))
	case 1:
		(*cAmmo)(p).Rounds = uint16(r.IntN(100))
	case 2:
		v := (*cAim)(p)
		v.Up, v.At = uint8(r.IntN(10)), ecs.Entity{}
		if n := len(g.entities); n > 0 {
			v.At = g.entities[r.IntN(n)]
		}
	case 3:
		(*cGhost)(p).Seen++
	case 4:
		(*cRank)(p).Points += int16(r.IntN(7))
	case 6:
		(*cHoard)(p).Cells[r.IntN(60)] = r.Uint64()
	case 7:
		(*cSeed)(p).N = r.Uint32()
	case 8:
		(*cDeal)(p).N = r.Uint32()
	}
}

func (g *conditionPlay) step() {
	r := g.rng
	if len(g.entities) < g.limit && r.IntN(3) == 0 {
		g.spawn()
	}
	if n := len(g.entities); n > 0 {
		if r.IntN(8) == 0 {
			i := r.IntN(n)
			g.world.RemoveEntity(g.entities[i])
			g.entities[i] = g.entities[n-1]
			g.entities = g.entities[:n-1]
		} else if e := g.entities[r.IntN(n)]; r.IntN(20) == 0 {
			g.world.Remove(e, g.marker) // for a tick it is not replicated, and nobody's after that
			g.tick()
			g.world.Add(e, g.marker)
		}
	}
	if n := len(g.entities); n > 0 {
		if r.IntN(3) == 0 {
			g.server.SetOwner(g.entities[r.IntN(n)], g.anybody())
		}
		if i, e := r.IntN(7), g.entities[r.IntN(n)]; r.IntN(3) == 0 {
			if id := g.ids[i]; g.world.Has(e, id) {
				g.world.Remove(e, id)
			} else if i != 6 || r.IntN(6) == 0 {
				g.world.Add(e, id)
			}
		}
	}
	if r.IntN(25) == 0 {
		p := g.ends[r.IntN(len(g.ends))].peer
		g.picked[p] = !g.picked[p]
	}
	for _, e := range g.entities {
		if r.IntN(3) == 0 {
			g.mutate(e, r.IntN(7))
		}
	}
	g.tick()
}

// tick replicates and notes what is so now.
func (g *conditionPlay) tick() {
	s := g.server
	s.Replicate()
	now := map[NetID]ecs.Entity{}
	filter := ecs.All(g.marker)
	q := g.world.Query(&filter)
	for q.Next() {
		if id, ok := s.NetID(q.Entity()); ok {
			now[id] = q.Entity()
		}
	}
	for id := range g.live {
		if _, ok := now[id]; !ok {
			for class := range 5 {
				g.note(conditionKey{id, class}, "", nil)
			}
		}
	}
	for id, e := range now {
		for class := range 5 {
			g.note(conditionKey{id, class}, g.state(g.world, e, class), s.Owner(e))
		}
	}
	g.live = now
	if g.noted != nil {
		g.noted()
	}
}

func (g *conditionPlay) note(k conditionKey, state string, owner *Peer) {
	v := g.versions[k]
	if n := len(v); n == 0 || v[n-1].state != state || v[n-1].owner != owner {
		g.versions[k] = append(v, conditionVersion{g.server.Tick(), state, owner})
	}
}

func (g *conditionPlay) at(k conditionKey, tick uint32) (v conditionVersion) {
	list := g.versions[k]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].tick <= tick {
			return list[i]
		}
	}
	return v
}

// state returns what an entity has under the condition of a class, but for references.
func (g *conditionPlay) state(w *ecs.World, e ecs.Entity, class int) (text string) {
	for i := range g.ids {
		c := &g.server.schema.components[i]
		id := ecs.TypeID(w, c.typ)
		if c.class != class || !w.Has(e, id) {
			continue
		}
		switch p := w.Get(e, id); i {
		case 2:
			text += fmt.Sprint("aim ", (*cAim)(p).Up, " ")
		case 9: // a relation
			text += "child "
		default:
			row := make([]uint32, c.words)
			c.readColumn(row, p, 1)
			text += fmt.Sprint(c.name, row, " ")
		}
	}
	if class == 0 {
		text += "."
	}
	return text
}

// check sees that all that an end shows was so, slot by slot, at a tick at which it could
// be seen.
func (g *conditionPlay) check(t *testing.T, n int, e *end) {
	attached := map[conditionKey]bool{}
	for i, page := range e.client.mirrors.pages {
		for j := range page {
			m := &page[j]
			if !m.facet || m.entity.IsZero() {
				continue
			}
			slot := i*mirrorPage + j
			id, ok := e.client.NetID(m.entity)
			require.True(t, ok, "a facet of nobody")
			k := conditionKey{id, g.server.slots.class(slot >> 6)}
			require.NotZero(t, k.class)
			require.False(t, attached[k], "two facets of a condition")
			attached[k] = true
			v := g.at(k, uint32(m.tick))
			require.Equal(t, v.state, g.state(e.world, m.entity, k.class), "end %d: class %d of %v at tick %d", n, k.class, id, m.tick)
			if k.class <= 2 {
				require.True(t, g.holds(e.peer, k.class, v.owner), "end %d: class %d of %v at tick %d", n, k.class, id, m.tick)
			}
		}
	}
	e.client.Each(func(id NetID, entity ecs.Entity, tick uint32) {
		require.Equal(t, g.at(conditionKey{id, 0}, tick).state, g.state(e.world, entity, 0), "end %d: %v at tick %d", n, id, tick)
		require.GreaterOrEqual(t, int32(tick-e.last[id]), int32(0))
		e.last[id] = tick
		for class := 1; class < 5; class++ {
			if !attached[conditionKey{id, class}] {
				require.Empty(t, g.state(e.world, entity, class), "end %d: class %d of %v without a facet", n, class, id)
			}
		}
	})
}

// requireRight sees that all ends show what they may see, as it is, and nothing else.
func (g *conditionPlay) requireRight(t *testing.T) {
	t.Helper()
	for n, e := range g.ends {
		shown := 0
		e.client.Each(func(id NetID, _ ecs.Entity, _ uint32) {
			shown++
			require.Contains(t, g.live, id, "end %d", n)
		})
		for id, entity := range g.live {
			mirror, ok := e.client.Entity(id)
			if d := g.hidden[e.peer]; d > 0 && int(entity.ID())%d == 0 {
				require.False(t, ok, "end %d: %v is not visible", n, id)
				continue
			}
			shown--
			require.True(t, ok, "end %d: %v is not here", n, id)
			for class := range 5 {
				want := ""
				if g.holds(e.peer, class, g.server.Owner(entity)) {
					want = g.at(conditionKey{id, class}, g.server.Tick()).state
				}
				require.Equal(t, want, g.state(e.world, mirror, class), "end %d: class %d of %v", n, class, id)
			}
			if aim := ecs.ComponentID[cAim](e.world); e.world.Has(mirror, aim) {
				var want ecs.Entity
				if at := (*cAim)(g.world.Get(entity, g.ids[2])).At; g.world.Alive(at) {
					if id, ok := g.server.NetID(at); ok {
						want, _ = e.client.Entity(id)
					}
				}
				require.Equal(t, want, (*cAim)(e.world.Get(mirror, aim)).At, "end %d: %v", n, id)
			}
		}
		require.Zero(t, shown, "end %d", n)
	}
}

// requireNothingLapsed sees that an end that keeps what it saw keeps nothing of which the condition has ended.
func (g *conditionPlay) requireNothingLapsed(t *testing.T, e *end) {
	t.Helper()
	kept := 0
	e.client.Each(func(id NetID, mirror ecs.Entity, _ uint32) {
		entity, live := g.live[id]
		require.True(t, live)
		for class := 1; class < 5; class++ {
			switch shown := g.state(e.world, mirror, class); {
			case !g.holds(e.peer, class, g.server.Owner(entity)):
				require.Empty(t, shown, "class %d of %v", class, id)
			case shown != "" && g.hidden[e.peer] > 0 && int(entity.ID())%g.hidden[e.peer] == 0:
				kept++
			}
		}
	})
	t.Logf("%d facets are kept out of view", kept)
}

// TestKeepHoldsWhatStandsUnderConditions for as long as these hold, and as it was when it went out of view.
func TestKeepHoldsWhatStandsUnderConditions(t *testing.T) {
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
	requireThat(-1, -1, 2) // it may not see the rounds any more, and not yet the ghost
	g.picked[mine.peer] = false
	requireThat(-1, -1, -1)
	g.server.SetOwner(e, mine.peer)
	g.picked[mine.peer] = true
	requireThat(-1, -1, -1) // it has to see it
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

// TestConditionsConvergeOverHostileLinks: owners change every few ticks, peers are picked
// and dropped, components and entities come and go, and ends lose sight of them, lose their
// worlds and reconnect. What they show was always so and to be seen; and at the end it is
// what they may see, exactly.
func TestConditionsConvergeOverHostileLinks(t *testing.T) {
	ticks := 2000
	if testing.Short() || raceDetector {
		ticks = 600
	}
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
			p.SetPriority(func(_ []ecs.Entity, _ []float32) {})
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
	calm := func(ticks int) {
		for range ticks {
			g.tick()
			for i, e := range g.ends {
				e.step(t)
				g.check(t, i, e)
			}
		}
	}
	calm(200)
	g.requireNothingLapsed(t, g.ends[4])
	g.hidden[g.ends[4].peer] = 0
	calm(50)
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
	require.Zero(t, g.server.slots.live)
	require.Zero(t, g.server.slots.faceted)
	require.Zero(t, g.server.Stats().RawBits)
	require.Empty(t, g.server.owners.of)
	for _, e := range g.ends {
		require.Empty(t, e.client.referrers.unsettled)
		for i := range e.client.referrers.links {
			require.Zero(t, e.client.referrers.links[i].component, "all references are gone")
		}
	}
}

// TestConditionsLeaveNoTrace plays the same twice, but for what stands under conditions
// that a peer does not meet: it gets the same bytes. Values differ and change at other
// times, others come to own what it does not, and, as long as these take no more than a
// block of slots, components come and go.
func TestConditionsLeaveNoTrace(t *testing.T) {
	seed := seedOf(t)
	for _, set := range []struct {
		name             string
		entities         int
		structure        bool
		budget, interval int
		grid, keep       bool
	}{
		{name: "all", entities: 60, structure: true},
		{name: "many", entities: 400},
		{name: "view", entities: 60, structure: true, grid: true},
		{name: "view, kept", entities: 60, structure: true, grid: true, keep: true},
		{name: "budget", entities: 60, structure: true, budget: 1500},
		{name: "interval", entities: 200, interval: 4, budget: 4000, grid: true},
	} {
		t.Run(set.name, func(t *testing.T) {
			play := func(variant uint64) (sent [][]byte, raw string) {
				g := newConditionPlay(seed, 0)
				secret := rand.New(rand.NewPCG(seed, variant))
				fools := g.connect(netsim.Config{Latency: 3, Jitter: 2, Loss: 0.15, Reorder: 0.1, ReorderBy: 5})
				others := []*end{g.connect(netsim.Config{Latency: 2, Loss: 0.1}), g.connect(netsim.Config{Latency: 4})}
				g.picked[others[0].peer] = true
				p := fools.peer // is not picked, and owns every third
				p.SetBudget(set.budget)
				p.SetSendInterval(max(set.interval, 1))
				p.SetPriority(func(_ []ecs.Entity, weights []float32) {
					for i := range weights {
						weights[i] *= 1 + float32(i%5)
					}
				})
				if set.grid {
					p.SetInterest(Interest{Keep: set.keep, Visible: func(e ecs.Entity) bool { return (int(e.ID())+int(g.server.Tick())/30)%4 > 0 }})
				}
				send := p.send
				p.send = func(b []byte) error {
					sent = append(sent, append([]byte{byte(g.server.Tick()), byte(g.server.Tick() >> 8)}, b...))
					return send(b)
				}
				hidden := func(i int) []int { // what the peer may not know of entity i
					if i%3 == 0 {
						return []int{3, 4, 5} // it is the owner
					}
					return []int{1, 2, 4, 5, 8}
				}
				spawn := func(i int) ecs.Entity {
					ids := []ecs.ID{g.marker, g.ids[0], g.ids[1], g.ids[3], g.ids[4], g.ids[7]}
					e := g.world.NewEntity(ids...)
					(*cPlace)(g.world.Get(e, g.ids[0])).X = int32(i)
					for _, k := range hidden(i) {
						if g.world.Has(e, g.ids[k]) {
							g.secretly(secret, e, k)
						}
					}
					if i%3 == 0 {
						g.server.SetOwner(e, p)
					} else {
						g.server.SetOwner(e, others[secret.IntN(2)].peer)
					}
					return e
				}
				for i := range set.entities {
					g.entities = append(g.entities, spawn(i))
				}
				for tick := range 300 {
					for i, e := range g.entities {
						if g.rng.IntN(8) == 0 {
							g.mutate(e, 0)
						}
						if shown := []int{3, 1}[1-min(i%3, 1)]; g.rng.IntN(8) == 0 { // to the peer
							if shown == 1 {
								(*cAmmo)(g.world.Get(e, g.ids[1])).Rounds++
							} else {
								(*cGhost)(g.world.Get(e, g.ids[3])).Seen++
							}
						}
						for _, k := range hidden(i) {
							switch {
							case secret.IntN(4) > 0:
							case g.world.Has(e, g.ids[k]) && (!set.structure || secret.IntN(6) > 0):
								g.secretly(secret, e, k)
							case !set.structure || tick == 0 || k == 3 || k == 1:
							case g.world.Has(e, g.ids[k]):
								g.world.Remove(e, g.ids[k])
							default:
								g.world.Add(e, g.ids[k])
							}
						}
						if i%3 > 0 && secret.IntN(20) == 0 {
							g.server.SetOwner(e, others[secret.IntN(2)].peer)
						}
					}
					if tick%7 == 3 {
						i := g.rng.IntN(len(g.entities))
						g.world.RemoveEntity(g.entities[i])
						g.entities[i] = spawn(i)
					}
					g.server.Replicate()
					for _, e := range g.ends {
						e.step(t)
					}
				}
				require.NotZero(t, p.Stats().NotVisible)
				require.NotZero(t, fools.client.Stats().Spawns)
				for _, e := range g.entities {
					for class := 1; class < 5; class++ {
						raw += g.state(g.world, e, class)
					}
				}
				return sent, raw
			}
			first, secret := play(1)
			second, another := play(2)
			for i := range min(len(first), len(second)) {
				require.Equal(t, first[i], second[i], "packet %d, tick %d and %d", i,
					int(first[i][0])+int(first[i][1])<<8, int(second[i][0])+int(second[i][1])<<8)
			}
			require.Equal(t, len(first), len(second))
			require.Greater(t, len(first), 20)
			require.NotEqual(t, secret, another, "the secrets differ")
		})
	}
}

// secretly changes a component.
func (g *conditionPlay) secretly(r *rand.Rand, e ecs.Entity, i int) {
	own := g.rng
	g.rng = r
	g.mutate(e, i)
	g.rng = own
}

// TestConditionsWithWorkers: however many workers there are, all peers get the same
// packets, and functions of OnlyFor are called once per peer and tick, where Replicate is.
func TestConditionsWithWorkers(t *testing.T) {
	seed := seedOf(t)
	play := func(workers int) (sent [][]byte) {
		g := newConditionPlay(seed, 40, WithWorkers(workers))
		home, calls := goroutine(), map[*Peer]int{}
		kind := &g.server.schema.conditions[2]
		require.Equal(t, onlyFor, kind.kind)
		ask := *kind.ask
		*kind.ask = func(p *Peer) bool {
			if here := goroutine(); here != home { // no FailNow here: it would end a worker
				t.Errorf("called on goroutine %s instead of %s", here, home)
			}
			calls[p]++
			return ask(p)
		}
		for i := range 7 {
			e := g.connect(netsim.Config{Latency: float64(1 + i%3), Loss: 0.05 * float64(i%4)})
			send := e.peer.send
			e.peer.send = func(p []byte) error {
				sent = append(sent, append([]byte{byte(i)}, p...))
				return send(p)
			}
			if i%3 == 2 {
				e.peer.SetBudget(1500)
			}
		}
		for range 120 {
			before := map[*Peer]int{}
			connected, tick := 0, g.server.tick
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
			require.Equal(t, connected*int(g.server.tick-tick), now)
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

// TestDamagedFacetsDoNoHarm: where nothing tells damage, facets link to anything and bring
// components that the entity has already. The world is wrong then, but nothing panics, and
// nothing is left of it in the end.
func TestDamagedFacetsDoNoHarm(t *testing.T) {
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
				e.client.Reconnect() // else they would soon believe to have had all packets
			}
			if tick%111 == 50*i {
				e.world.Reset()
			}
			e.step(t)
			e.client.Each(func(id NetID, entity ecs.Entity, _ uint32) {
				for class := 1; class < 5; class++ {
					if g.state(e.world, entity, class) != g.at(conditionKey{id, class}, g.server.Tick()).state {
						wrong++
					}
				}
			})
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
