package replication

import (
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// soakName is a text that changes by a few bytes, or completely.
type soakName struct {
	Name string   `repl:"max=24"`
	Mark [12]byte `repl:"max=12"`
}

// everything is a world in which four games are played at once: of conditions and owners, of
// groups, of resources, and of references and relations. All entities have names and owners at
// times.
type everything struct {
	rng        *rand.Rand
	conditions *conditionPlay
	crewGame   *crewGame
	resources  *resourceGame
	references *referenceGame
	shown      resourceTruth
	referred   referenceTruth
	room       *EntitySet
	lastShown  []uint32 // by end: the tick of the resources that it shows
	limited    []bool   // by end: it does not see everything
	lifted     []uint32 // by end: the tick since which it does
	name, own  ecs.ID
	names      int
}

func newEverything(seed uint64, opts ...ServerOption) *everything {
	g := newConditionGame(seed, 6)
	schema := g.schema()
	for _, register := range []func(s *Schema, opts ...ComponentOption){
		Register[tPosition], Register[rTarget], Register[rSquad], Register[rOrbits], Register[rDead], Register[soakName],
		Register[tCrew], Register[tFrozen], RegisterResource[rsMatch], RegisterResource[rsWeather], RegisterResource[rsOpen],
		RegisterResource[rsMap],
	} {
		register(schema)
	}
	Register[rSeldom](schema, Every(3))
	g.serve(schema, append(opts, WithSeed(seed), WithStateHash(20))...)
	w := g.world
	x := &everything{
		rng: rand.New(rand.NewPCG(seed, 11)), conditions: g, shown: resourceTruth{},
		crewGame:  addCrewGame(g.server, seed, 2, 5),
		resources: &resourceGame{rng: rand.New(rand.NewPCG(seed, 12)), world: w, limit: 6},
		references: &referenceGame{
			rng: rand.New(rand.NewPCG(seed, 13)), world: w, marker: g.marker, limit: 8,
			ids: []ecs.ID{
				ecs.ComponentID[tPosition](w), ecs.ComponentID[rTarget](w), ecs.ComponentID[rSquad](w), ecs.ComponentID[rChildOf](w),
				ecs.ComponentID[rOrbits](w), ecs.ComponentID[rSeldom](w), ecs.ComponentID[rDead](w),
			},
		},
		name: ecs.ComponentID[soakName](w), own: ecs.ComponentID[cAmmo](w),
	}
	g.noted = func() {
		x.crewGame.record()
		x.shown.record(g.server)
		delete(x.shown, uint32(g.server.Tick())-4000)
		x.referred.record(g.server)
	}
	return x
}

func (x *everything) connect(cfg netsim.Config) *end {
	e := x.conditions.connect(cfg)
	x.crewGame.watch(e, losesMuch(cfg))
	x.lastShown, x.limited, x.lifted = append(x.lastShown, 0), append(x.limited, false), append(x.lifted, 0)
	return e
}

// trouble changes the ends as games do, each for a while: views by place and by set, with Keep and
// without, budgets, intervals, world resets, and sessions that end. phase is 0 at the beginning and
// 1 at the end of the soak.
func (x *everything) trouble(tick int, phase float64) {
	g := x.conditions
	s, at := g.server, func(from, to float64) bool { return phase >= from && phase < to }
	view := func(i int, on bool, v Interest) {
		if on != x.limited[i] {
			x.limited[i] = on
			if !on {
				v, x.lifted[i] = Interest{}, uint32(s.Tick())
			}
			g.ends[i].peer.SetInterest(v)
		}
	}
	dancing := func(e ecs.Entity) bool { return (Tick(e.ID())+s.Tick()/40)%3 > 0 }
	view(2, at(0.1, 0.4) || at(0.6, 0.7), Interest{Visible: dancing})
	view(4, at(0.2, 0.6), Interest{Visible: dancing, Keep: true})
	if x.room != nil {
		view(7, at(0.1, 0.9), Interest{Sets: []*EntitySet{x.room}})
	}
	g.ends[0].peer.SetBudget(map[bool]int{true: 3000}[at(0.4, 0.7)])
	g.ends[5].peer.SetBudget(map[bool]int{true: 6000}[at(0.3, 0.5)])
	g.ends[3].peer.SetSendInterval(map[bool]int{true: 4, false: 1}[at(0.5, 0.8)])
	switch {
	case tick%500 == 499:
		g.ends[0].world.Reset()
		g.ends[0].last = map[NetID]uint32{}
	case tick%900 == 899:
		g.ends[5].client.Reconnect()
	case tick%1300 == 1299: // the client is notified, if the packet arrives, and reconnects
		e := g.ends[2]
		e.peer.Disconnect(Reason{Code: ReasonTimeout})
		was := e.peer
		e.peer = s.Connect(e.link.Down.Send)
		g.picked[e.peer] = g.picked[was]
		if x.limited[2] {
			e.peer.SetInterest(Interest{Visible: dancing})
		}
	}
}

// restart resets the server's world, as games do between two matches.
func (x *everything) restart() {
	g := x.conditions
	g.world.Reset()
	g.entities, x.resources.entities, x.references.entities, x.references.dead = nil, nil, nil, nil
	for _, c := range x.crewGame.crews {
		c.members = nil
	}
	for i := range x.crewGame.singles {
		x.crewGame.singles[i] = x.crewGame.spawn()
	}
}

// anybody returns an entity of any of the games, in an order that a seed reproduces.
func (x *everything) anybody() (e ecs.Entity, ok bool) {
	lists := [][]ecs.Entity{x.conditions.entities, x.crewGame.singles, x.resources.entities, x.references.entities}
	for _, c := range x.crewGame.crews {
		lists = append(lists, c.members)
	}
	list := lists[x.rng.IntN(len(lists))]
	if len(list) == 0 {
		return e, false
	}
	return list[x.rng.IntN(len(list))], true
}

// step plays one or two ticks of the server.
func (x *everything) step() {
	r, g := x.rng, x.conditions
	x.crewGame.step()
	x.resources.step()
	x.references.step()
	for range 6 {
		e, ok := x.anybody()
		if !ok {
			continue
		}
		switch r.IntN(8) {
		case 0:
			g.server.SetOwner(e, g.anybody())
		case 1: // an owner-only component, also of a member of a group
			if g.world.Has(e, x.own) {
				g.world.Remove(e, x.own)
			} else {
				g.world.Add(e, x.own)
			}
		case 2:
			if g.world.Has(e, x.name) && r.IntN(8) == 0 {
				g.world.Remove(e, x.name)
			} else if !g.world.Has(e, x.name) {
				g.world.Add(e, x.name)
			}
		case 3: // references between the games
			if other, ok := x.anybody(); ok && g.world.Has(e, x.references.ids[1]) {
				(*rTarget)(g.world.Get(e, x.references.ids[1])).Entity = other
			}
		default:
			x.rename(e)
		}
	}
	g.step()
}

func (x *everything) rename(e ecs.Entity) {
	w, r := x.conditions.world, x.rng
	if w.Has(e, x.own) {
		(*cAmmo)(w.Get(e, x.own)).Rounds++
	}
	if !w.Has(e, x.name) {
		return
	}
	v := (*soakName)(w.Get(e, x.name))
	if n := len(v.Name); n > 0 && r.IntN(3) > 0 {
		b := []byte(v.Name)
		b[r.IntN(n)] = byte('a' + r.IntN(26))
		v.Name = keptText(string(b))
	} else {
		v.Name = "The quick brown fox jumps"[r.IntN(10):][:r.IntN(15)]
		x.names++
	}
	v.Mark[r.IntN(12)] = byte(r.IntN(3))
}

// check compares what an end shows with the truth. Expensive comparisons are made only from time to
// time.
func (x *everything) check(t *testing.T, i int, all bool) {
	g, e := x.conditions, x.conditions.ends[i]
	tick := g.server.Tick()
	if !e.peer.Connected() || !e.client.Complete() {
		return // entities of an earlier session are shown beside the new ones
	}
	if mismatch := x.crewGame.mismatch(i, x.limited[i] || tick-Tick(x.lifted[i]) < 200); mismatch != "" && !x.crewGame.burst(i) {
		require.FailNow(t, "split", "tick %d: %s\n%+v", tick, mismatch, e.peer.Stats())
	}
	if all || tick%32 == Tick(i+16) {
		g.check(t, i, e)
	}
	if all || tick%16 == Tick(i+12) {
		require.Nil(t, e.client.Verify())
	}
	if all || tick%16 == Tick(i+8) {
		x.referred.check(t, g.server, e.client)
	}
	if all || tick%16 == Tick(i+4) {
		if v, at, ok := shownResources(t, e.client); ok {
			require.GreaterOrEqual(t, at, x.lastShown[i], "link %d went back", i)
			x.lastShown[i] = at
			want, known := x.shown[at]
			require.True(t, known)
			requireThatView(t, e.client, v, want, "link %d at tick %d (server at %d)", i, at, tick)
		}
	}
}

// TestEverythingConvergesOverHostileLinks tests everything at once: references and relations,
// resources, texts, owners, conditions and groups, over the links of the soak, while views and
// budgets change, worlds are reset at both ends and sessions end. A client shows only states that
// existed and were visible to it; groups are never split; and when the network recovers, all worlds
// converge.
func TestEverythingConvergesOverHostileLinks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := longOf(12000, 8000, 600)
	seed := seedOf(t)
	x := newEverything(seed)
	g := x.conditions
	for _, cfg := range hostileLinks() {
		x.connect(cfg)
	}
	x.crewGame.bursts[1] = true
	x.room = g.server.NewEntitySet()
	for tick := range ticks {
		x.step()
		x.trouble(tick, float64(tick)/float64(ticks))
		if tick == ticks*3/4 {
			x.restart()
		}
		switch tick { // no acks at all for ten seconds
		case ticks / 2:
			g.ends[1].link.Up.SetConfig(netsim.Config{Loss: 1})
		case ticks/2 + 600:
			g.ends[1].link.Up.SetConfig(netsim.Config{Latency: 3})
		}
		for i, e := range g.ends {
			e.step(t)
			x.check(t, i, false)
		}
	}
	x.trouble(ticks, 1)
	for _, e := range g.ends {
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	for n := range 700 { // a client that lost the disconnect seeks its server after 600
		g.tick()
		for i, e := range g.ends {
			e.step(t)
			x.check(t, i, n%50 == 49)
		}
	}
	g.requireRight(t)
	requireReferencesSettle(t, g.server, &x.referred, g.ends, 0)
	for i, e := range g.ends {
		v, at, ok := shownResources(t, e.client)
		require.True(t, ok)
		require.Equal(t, x.shown[uint32(g.server.Tick())].text, v.text, "link %d shows the resources of tick %d", i, at)
		for n := 1; n < len(x.crewGame.crews); n++ {
			past := x.crewGame.crews[n].past
			require.Equal(t, past[len(past)-1], past[x.crewGame.shown[i][n]], "link %d shows crew %d as it was", i, n)
		}
		require.Nil(t, e.client.Divergence(), "link %d", i)
		require.Equal(t, ticks > 2000 && (i == 2 || i == 5), e.client.Stats().Sessions > 1, "link %d", i)
		t.Logf("link %d: %+v", i, e.peer.Stats())
	}
	require.NotZero(t, g.ends[0].peer.Stats().OverBudget)
	t.Logf("%d names were given", x.names)
	require.Greater(t, x.names, ticks/50)
}
