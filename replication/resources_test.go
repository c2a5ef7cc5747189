package replication

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

func TestResourcesInTheSchemaText(t *testing.T) {
	s := NewSchema()
	Register[tHealth](s)
	RegisterResource[rsMatch](s, Name("Match"))
	RegisterResource[schemaTeam](s, Name("Winner"), Field("", Range(0, 3)))
	RegisterResource[rsOpen](s)
	require.Equal(t, `arche-replicate schema 1
component tHealth
tHealth.HP int16 range=0:100
tHealth.Armed bool
resource Match
Match.Round uint8
Match.Clock int32 range=0:36000
Match.Leader entity
Match.Seats [2]entity
resource Winner
Winner uint8 range=0:3
resource rsOpen
`, s.Text())
	other := NewSchema()
	Register[tHealth](other)
	Register[rsMatch](other, Name("Match"))
	require.NotEqual(t, s.Fingerprint(), other.Fingerprint())
	require.Equal(t, `line 5: server has "resource Match", client has "component Match"`, firstDifference(s.Text(), other.Text()))
	require.Equal(t, []uint64{2}, s.Codes(schemaTeam(2), nil))
}

// TestResources lists what may happen to resources, each over a network that loses every
// fifth packet and mixes up the others.
func TestResources(t *testing.T) {
	for _, x := range []struct {
		name  string
		steps []func(w *ecs.World)
	}{
		{"none", []func(w *ecs.World){func(*ecs.World) {}}},
		{"added, changed, removed", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Round: 1, Clock: 17}) },
			func(w *ecs.World) { resourceOf[rsMatch](w).Clock = 18 },
			func(w *ecs.World) { dropResource[rsMatch](w) },
		}},
		{"there before the server", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsWeather{Rain: 3}) },
		}},
		{"removed and added again", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Round: 1}) },
			func(w *ecs.World) { dropResource[rsMatch](w) },
			func(w *ecs.World) { setResource(w, rsMatch{Round: 2}) },
		}},
		{"put in the place of another", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Round: 1}) },
			func(w *ecs.World) { dropResource[rsMatch](w); setResource(w, rsMatch{Round: 2}) },
			func(w *ecs.World) { dropResource[rsMatch](w); setResource(w, rsWeather{Rain: 2}) },
		}},
		{"several", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Round: 1}); setResource(w, rsWeather{Rain: 1}) },
			func(w *ecs.World) { setResource(w, rsMatch{Round: 2}); setResource(w, rsOpen{}) },
			func(w *ecs.World) { dropResource[rsWeather](w) },
			func(w *ecs.World) { dropResource[rsMatch](w); dropResource[rsOpen](w) },
		}},
		{"without fields", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsOpen{}) },
			func(w *ecs.World) { dropResource[rsOpen](w) },
		}},
		{"larger than a packet", []func(w *ecs.World){
			func(w *ecs.World) {
				p := setResource(w, rsMap{})
				for i := range p.Cells {
					p.Cells[i] = uint16(i * 31)
				}
			},
			func(w *ecs.World) { resourceOf[rsMap](w).Cells[299]++ },
			func(w *ecs.World) { setResource(w, rsMatch{}) },
		}},
		{"that refers to an entity", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Leader: w.NewEntity(ReplicatedID(w))}) },
			func(w *ecs.World) { w.RemoveEntity(resourceOf[rsMatch](w).Leader) },
			func(w *ecs.World) { resourceOf[rsMatch](w).Seats[1] = w.NewEntity(ReplicatedID(w)) },
		}},
		{"gone with a reset of the world", []func(w *ecs.World){
			func(w *ecs.World) { setResource(w, rsMatch{Round: 1}); setResource(w, rsOpen{}) },
			func(w *ecs.World) { w.Reset() },
			func(w *ecs.World) { setResource(w, rsMatch{Round: 3}) },
			func(w *ecs.World) { w.Reset(); setResource(w, rsMatch{Round: 4}) },
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			seed := seedOf(t)
			w := ecs.NewWorld()
			x.steps[0](&w)
			s := NewServer(&w, resourceSchema(), WithSeed(seed), WithMTU(400))
			e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 2, Loss: 0.2, Reorder: 0.3, ReorderBy: 6}, WithNonce(seed))
			o := resourceTruth{}
			for i, step := range x.steps {
				if i > 0 {
					step(&w)
				}
				for n := 0; n < 20 || !e.client.Complete(); n++ {
					s.Replicate()
					o.record(s)
					e.step(t)
					if v, at, ok := shownResources(t, e.client); ok {
						requireThatView(t, e.client, v, o[at], "step %d", i)
					}
				}
				for n := 0; ; n++ {
					entities := s.Stats().Entities == e.world.Stats().Entities.Used // no entity stands for resources
					if v, _, ok := shownResources(t, e.client); ok && entities && v.text == o[s.Tick()].text {
						break
					}
					require.Less(t, n, 1000, "step %d", i)
					s.Replicate()
					o.record(s)
					e.step(t)
				}
			}
		})
	}
}

// TestResourcesAreNoEntity: wherever there is talk of entities, the slot of the resources
// is left out.
func TestResourcesAreNoEntity(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	stats := x.server.Stats()
	require.Zero(t, stats.Entities)
	require.Zero(t, stats.RawBits)
	setResource(x.world, rsMatch{Round: 1})
	x.rounds(3)
	require.Equal(t, rsMatch{Round: 1}, *resourceOf[rsMatch](x.mirror))
	stats = x.server.Stats()
	require.Zero(t, stats.Entities)
	require.Zero(t, stats.Spawns)
	require.EqualValues(t, 8+16+3*delta.ReferenceBits, stats.RawBits)
	dropResource[rsMatch](x.world)
	x.rounds(3)
	stats = x.server.Stats()
	require.Zero(t, stats.RawBits)
	require.Zero(t, stats.Despawns)

	for generation := range uint16(3) {
		_, ok := x.server.Entity(NetID{resourceSlot, generation})
		require.False(t, ok)
		_, ok = x.client.Entity(NetID{resourceSlot, generation})
		require.False(t, ok)
	}
	x.client.Each(func(NetID, ecs.Entity, uint32) { require.Fail(t, "there is none") })
	require.Zero(t, x.client.Stats().Spawns+x.client.Stats().Despawns)
	require.Zero(t, x.mirror.Stats().Entities.Used)
	for _, w := range []*ecs.World{x.world, x.mirror} {
		for _, id := range ecs.ComponentIDs(w) {
			info, _ := ecs.ComponentInfo(w, id)
			require.NotContains(t, []string{"rsMatch", "rsWeather", "rsOpen", "rsMap"}, info.Type.Name(), "an ID for a component is wasted")
		}
	}
	x.server.SetPriority(ecs.Entity{}, 2) // of nobody, and not of the resources
	require.EqualValues(t, 1, x.server.slots.info[resourceSlot].weight)

	e := x.spawn()
	x.rounds(3)
	id, ok := x.server.NetID(e)
	require.True(t, ok)
	require.EqualValues(t, 1, id.Slot, "slot 0 is taken")
	require.Equal(t, 1, x.server.Stats().Entities)
}

// TestSchemasWithoutResourcesHaveNoSlotForThem: nothing is different for them.
func TestSchemasWithoutResourcesHaveNoSlotForThem(t *testing.T) {
	x := connectedWire(t, testSchema())
	require.Zero(t, x.server.slots.len())
	require.Zero(t, x.slotOf(func() ecs.Entity { e := x.spawn(); x.round(); return e }()))
}

// TestEveryPeerSeesTheResources, whatever its interest is, and nobody is asked.
func TestEveryPeerSeesTheResources(t *testing.T) {
	for name, interest := range map[string]func(s *Server) Interest{
		"filter": func(s *Server) Interest { return Interest{Filter: ecs.All(ecs.ComponentID[tFrozen](s.world))} },
		"grid":   func(s *Server) Interest { return Interest{Grid: s.NewGrid(10, "tPosition.X")} },
		"set":    func(s *Server) Interest { return Interest{Sets: []*EntitySet{s.NewEntitySet()}} },
		"visible": func(*Server) Interest {
			return Interest{Visible: func(e ecs.Entity) bool {
				require.False(t, e.IsZero())
				return false
			}}
		},
		"keep": func(*Server) Interest {
			return Interest{Keep: true, Visible: func(ecs.Entity) bool { return false }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newWire(t, resourceSchema())
			x.peer.SetInterest(interest(x.server))
			for range 70 { // more than a block
				x.spawn(ecs.ComponentID[tPosition](x.world))
			}
			setResource(x.world, rsWeather{Rain: 1})
			x.rounds(6)
			for rain := range uint8(40) {
				setResource(x.world, rsWeather{Rain: rain})
				x.round()
				require.Equal(t, rsWeather{Rain: rain}, *resourceOf[rsWeather](x.mirror))
				if rain == 20 {
					x.peer.SetInterest(Interest{})
					x.rounds(3)
					require.Equal(t, 70, x.mirror.Stats().Entities.Used)
					x.peer.SetInterest(interest(x.server))
				}
			}
			require.True(t, x.client.Complete())
			before := x.peer.Stats()
			x.rounds(10)
			after := x.peer.Stats()
			require.EqualValues(t, 700, after.NotVisible-before.NotVisible)
			require.EqualValues(t, 10, after.UpToDate-before.UpToDate+after.InFlight-before.InFlight, "the resources")
			dropResource[rsWeather](x.world)
			x.round()
			require.Nil(t, resourceOf[rsWeather](x.mirror))
		})
	}
}

// TestResourcesUnderABudget take part in it with the weight of their types, and are not
// handed to the function that weighs entities.
func TestResourcesUnderABudget(t *testing.T) {
	wait := func(opts ...ComponentOption) (ticks int) {
		s := NewSchema()
		Register[tPosition](s)
		RegisterResource[rsWeather](s, opts...)
		x := connectedWire(t, s)
		position := ecs.ComponentID[tPosition](x.world)
		var crowd []ecs.Entity
		for range 300 {
			crowd = append(crowd, x.spawn(position))
		}
		setResource(x.world, rsWeather{})
		x.rounds(5)
		x.peer.SetBudget(6000)
		asked := 0
		x.peer.SetPriority(func(entities []ecs.Entity, weights []float32) {
			require.Len(t, weights, len(entities))
			asked += len(entities)
			for i, e := range entities {
				require.True(t, x.world.Alive(e))
				weights[i] = float32(e.ID() % 5)
			}
		})
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range 40 {
			setResource(x.world, rsWeather{Rain: uint8(round)})
			for n := 0; resourceOf[rsWeather](x.mirror).Rain != uint8(round); n++ {
				require.Less(t, n, 300, "nothing starves")
				for _, e := range crowd {
					(*tPosition)(x.world.Get(e, position)).X = rng.Float32()*200 - 100
				}
				x.round()
				ticks++
			}
		}
		require.NotZero(t, asked)
		require.NotZero(t, x.peer.Stats().OverBudget)
		return ticks
	}
	plain, urgent := wait(), wait(Priority(50))
	t.Logf("40 changes took %d ticks, with priority %d", plain, urgent)
	require.Less(t, urgent, plain)
}

// TestResourcesAloneUnderABudget: no entity is due, so there is nobody to weigh.
func TestResourcesAloneUnderABudget(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	x.peer.SetBudget(600)
	x.peer.SetPriority(func([]ecs.Entity, []float32) { require.Fail(t, "nobody waits") })
	m := setResource(x.world, rsMap{})
	for range 200 {
		for i := range m.Cells {
			m.Cells[i]++
		}
		x.round()
	}
	require.NotZero(t, x.peer.Stats().OverBudget)
	x.rounds(300)
	require.Equal(t, *m, *resourceOf[rsMap](x.mirror))
}

// TestResourcesInStreams: where thousands of entities change and peers are in step, packets
// are copied, those with the resources too.
func TestResourcesInStreams(t *testing.T) {
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s)
	RegisterResource[rsWeather](s)
	c := newThrong(t, 1500, s, func(o *serverOptions) { o.smooth = 8 })
	weather := setResource(&c.world, rsWeather{})
	for i := range 3 {
		w := ecs.NewWorld()
		var client *Client
		var down [][]byte
		peer := c.server.Connect(func(p []byte) error { down = append(down, bytes.Clone(p)); return nil })
		client = NewClient(&w, s, func(p []byte) error { return peer.Receive(p) }, WithNonce(uint64(i)+1))
		for range 50 {
			for k, p := range c.positions {
				c.move(p, k)
			}
			weather.Rain++
			c.ticks++
			if i == 2 && weather.Rain%16 == 0 {
				dropResource[rsWeather](&c.world)
				c.server.Replicate()
				setResource(&c.world, *weather)
				weather = resourceOf[rsWeather](&c.world)
			}
			c.server.Replicate()
			for len(down) > 0 {
				_ = client.Receive(down[0])
				down = down[1:]
			}
			require.NoError(t, client.Apply())
		}
		require.Equal(t, *weather, *resourceOf[rsWeather](&w))
		if i < 2 {
			peer.Disconnect(Reason{})
		}
	}
	require.NotZero(t, c.server.Stats().SharedPackets)
}

// TestResourcesEveryFewTicks are looked at in turns, like components.
func TestResourcesEveryFewTicks(t *testing.T) {
	s := NewSchema()
	RegisterResource[rsWeather](s, Every(5))
	RegisterResource[schemaTeam](s)
	x := connectedWire(t, s)
	setResource(x.world, rsWeather{Rain: 1})
	x.rounds(2)
	require.EqualValues(t, 1, resourceOf[rsWeather](x.mirror).Rain, "at once")
	changes, last := 0, uint8(1)
	for n := range uint8(50) {
		setResource(x.world, rsWeather{Rain: n + 2})
		setResource(x.world, schemaTeam(n))
		x.round()
		require.Equal(t, schemaTeam(n), *resourceOf[schemaTeam](x.mirror))
		if rain := resourceOf[rsWeather](x.mirror).Rain; rain != last {
			require.Equal(t, n+2, rain)
			changes, last = changes+1, rain
		}
	}
	require.Equal(t, 10, changes)
	x.rounds(5)
	require.EqualValues(t, 51, resourceOf[rsWeather](x.mirror).Rain)
}

// TestClampedResourcesAreCounted in every tick, as values of components are.
func TestClampedResourcesAreCounted(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	setResource(x.world, rsWeather{Wind: [2]float32{1000, float32(math.NaN())}})
	x.rounds(4)
	require.EqualValues(t, 8, x.server.Stats().Clamped)
	require.Equal(t, float32(50), resourceOf[rsWeather](x.mirror).Wind[0])
}

// TestResourcesTakeOverWhatTheUserHas: the user's resource becomes the server's, at the
// same address, and what is not replicated in it stays.
func TestResourcesTakeOverWhatTheUserHas(t *testing.T) {
	x := newWire(t, resourceSchema())
	own := setResource(x.mirror, rsMatch{Round: 9, Local: new(int)})
	x.rounds(5)
	require.Same(t, own, resourceOf[rsMatch](x.mirror), "the server has none, so nobody touches it")
	require.EqualValues(t, 9, own.Round)
	setResource(x.world, rsMatch{Round: 1, Local: new(int)})
	x.rounds(2)
	require.Same(t, own, resourceOf[rsMatch](x.mirror))
	require.EqualValues(t, 1, own.Round)
	require.NotNil(t, own.Local)
	require.NotSame(t, resourceOf[rsMatch](x.world).Local, own.Local)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	require.Nil(t, resourceOf[rsMatch](x.mirror), "it was the server's")
}

// TestResourcesThatTheUserRemoved stay away until the server adds them anew.
func TestResourcesThatTheUserRemoved(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	m := setResource(x.world, rsMatch{Round: 1, Leader: e})
	x.rounds(2)
	dropResource[rsMatch](x.mirror)
	for range 3 {
		m.Round++
		m.Seats[0], m.Leader = m.Leader, m.Seats[0]
		x.rounds(2)
		require.Nil(t, resourceOf[rsMatch](x.mirror))
	}
	x.world.RemoveEntity(e) // what refers to it is looked after, but is not there
	x.rounds(2)
	own := setResource(x.mirror, rsMatch{}) // the user's again
	m.Round = 77
	x.rounds(2)
	require.EqualValues(t, 77, own.Round)
	dropResource[rsMatch](x.mirror)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	setResource(x.world, rsMatch{Round: 5})
	x.rounds(2)
	require.Equal(t, rsMatch{Round: 5}, *resourceOf[rsMatch](x.mirror))
}

// TestResourcesAfterAResetOfTheClientsWorld are put back, though the server sends nothing.
func TestResourcesAfterAResetOfTheClientsWorld(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	setResource(x.world, rsMatch{Round: 3, Leader: e})
	setResource(x.world, rsOpen{})
	setResource(x.world, rsWeather{Rain: 1})
	x.rounds(3)
	dropResource[rsWeather](x.mirror)
	before := x.peer.Stats()
	old := resourceOf[rsMatch](x.mirror)
	x.mirror.Reset()
	x.mirror.NewEntity() // so that the mirror is not the entity that it was
	require.NoError(t, x.client.Apply())
	m := resourceOf[rsMatch](x.mirror)
	leader, ok := x.mirrored(e)
	require.True(t, ok)
	require.NotSame(t, old, m)
	require.Equal(t, rsMatch{Round: 3, Leader: leader}, *m)
	require.NotNil(t, resourceOf[rsOpen](x.mirror))
	require.NotNil(t, resourceOf[rsWeather](x.mirror), "also what the user had removed")
	x.rounds(2)
	require.Equal(t, before.Wholes, x.peer.Stats().Wholes)
	require.Equal(t, before.Updates, x.peer.Stats().Updates)
	x.client.checkLinks(t, 1)

	setResource(x.world, rsMatch{Round: 4, Leader: e})
	x.world.RemoveEntity(e)
	x.rounds(2)
	require.Equal(t, rsMatch{Round: 4}, *m)
}

// TestResourcesOfAnotherSession: a resource has no identity, so it stays where it is
// whoever the server is, if that has it too.
func TestResourcesOfAnotherSession(t *testing.T) {
	for _, restart := range []bool{false, true} {
		x := connectedWire(t, resourceSchema())
		e := x.spawn()
		setResource(x.world, rsMatch{Round: 1, Leader: e})
		setResource(x.world, rsWeather{Rain: 7})
		setResource(x.world, rsOpen{})
		x.rounds(3)
		m := resourceOf[rsMatch](x.mirror)
		m.Local = new(int)
		require.False(t, m.Leader.IsZero())
		dropResource[rsOpen](x.mirror)

		id := x.client.sessionID
		if restart {
			x.replaceServer(x.server.schema, 99)
			setResource(x.world, rsMatch{Round: 2})
			setResource(x.world, rsOpen{})
			for range 3 {
				x.spawn() // in the slot of the leader that was
			}
		} else {
			x.server.Disconnect(x.peer)
			x.takeDown() // lost
			x.connect()
			dropResource[rsWeather](x.world)
			resourceOf[rsMatch](x.world).Round = 2
		}
		x.untilConnected(id)
		x.rounds(2)
		require.Same(t, m, resourceOf[rsMatch](x.mirror))
		require.EqualValues(t, 2, m.Round)
		require.NotNil(t, m.Local)
		require.Nil(t, resourceOf[rsWeather](x.mirror))
		require.Equal(t, restart, m.Leader.IsZero())
		require.Equal(t, restart, resourceOf[rsOpen](x.mirror) != nil, "what the user removed comes with another server only")
		x.client.checkLinks(t, 0)
	}
}

// TestResourcesOfAServerThatIsGone: what was known of it goes with its entities, and does
// not wait for the resources of the next.
func TestResourcesOfAServerThatIsGone(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	e := x.spawn()
	m := setResource(x.world, rsMatch{Round: 1, Leader: e})
	x.rounds(3)
	shown := resourceOf[rsMatch](x.mirror)
	x.replaceServer(x.server.schema, 99, WithMTU(200))
	setResource(x.world, *m).Leader = ecs.Entity{}
	setResource(x.world, rsMap{}).Cells[0] = 1 // comes in parts, which are lost
	for range 5 {
		x.spawn()
	}
	for n := 0; resourceOf[rsMatch](x.mirror) != nil; n++ {
		require.Less(t, n, 2*defaultServerTimeout)
		for _, p := range x.replicate() {
			if len(p) < 140 {
				_ = x.client.Receive(p)
			}
		}
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
	}
	x.client.checkLinks(t, 0)
	require.Equal(t, 5, x.mirror.Stats().Entities.Used)
	x.rounds(100)
	require.EqualValues(t, 1, resourceOf[rsMatch](x.mirror).Round)
	require.NotSame(t, shown, resourceOf[rsMatch](x.mirror))
}

// TestResourcesReferToEntities that come, go, and are not to be seen.
func TestResourcesReferToEntities(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	shown := map[ecs.Entity]bool{}
	x.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return shown[e] }})
	a, b, plain := x.spawn(), x.spawn(), x.world.NewEntity()
	m := setResource(x.world, rsMatch{Leader: a, Seats: [2]ecs.Entity{b, plain}})
	check := func(want ...ecs.Entity) {
		t.Helper()
		p := resourceOf[rsMatch](x.mirror)
		for i, got := range []ecs.Entity{p.Leader, p.Seats[0], p.Seats[1]} {
			if want[i].IsZero() {
				require.Zero(t, got, i)
				continue
			}
			mirrored, ok := x.mirrored(want[i])
			require.True(t, ok, i)
			require.Equal(t, mirrored, got, i)
		}
	}
	x.rounds(3)
	check(nobody, nobody, nobody)
	shown[a] = true
	x.rounds(2)
	check(a, nobody, nobody)
	shown[b] = true
	x.rounds(2)
	check(a, b, nobody)
	shown[plain] = true
	x.world.Add(plain, ReplicatedID(x.world))
	x.rounds(2)
	check(a, b, plain)
	shown[a] = false
	x.rounds(2)
	check(nobody, b, plain)
	x.world.RemoveEntity(b)
	x.rounds(2)
	check(nobody, nobody, plain)
	m.Leader, m.Seats[0], m.Seats[1] = plain, plain, nobody
	x.rounds(2)
	check(plain, plain, nobody)
	x.client.checkLinks(t, 2)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	x.client.checkLinks(t, 0)
	require.Zero(t, x.client.mirrors.at(resourceSlot).links)
}

// TestMaxEntitiesBesideResources: the slot of the resources is none of those that
// WithMaxEntities allows.
func TestMaxEntitiesBesideResources(t *testing.T) {
	x := newWire(t, resourceSchema())
	x.restart(x.server.schema, 8, WithMaxEntities(2))
	setResource(x.world, rsOpen{})
	_, last := x.spawn(), x.spawn()
	setResource(x.world, rsMatch{Leader: last})
	x.rounds(6)
	m, ok := x.mirrored(last)
	require.True(t, ok)
	require.Equal(t, m, resourceOf[rsMatch](x.mirror).Leader)
	require.NotNil(t, resourceOf[rsOpen](x.mirror))
	require.Equal(t, 2, x.mirror.Stats().Entities.Used)
	refused := x.client.Stats().RefusedPackets
	x.spawn()
	x.rounds(2)
	require.Greater(t, x.client.Stats().RefusedPackets, refused)
}

func TestResourcesThatAreNoPointers(t *testing.T) {
	for name, x := range map[string]struct {
		resource any
		want     string
	}{
		"value":   {rsWeather{}, "replication: the world's resource replication.rsWeather is a value of type replication.rsWeather: add a pointer to one, as Arche asks for"},
		"nil":     {(*rsWeather)(nil), "replication: the world's resource replication.rsWeather is a nil pointer: add a pointer to one, as Arche asks for"},
		"another": {new(tHealth), "replication: the world's resource replication.rsWeather is a value of type *replication.tHealth: add a pointer to one, as Arche asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []string{"server", "client"} {
				y := connectedWire(t, resourceSchema())
				if at == "server" {
					y.world.Resources().Add(ecs.ResourceID[rsWeather](y.world), x.resource)
					require.PanicsWithValue(t, x.want, func() { y.server.Replicate() })
					y.world.Resources().Remove(ecs.ResourceID[rsWeather](y.world))
				} else {
					y.mirror.Resources().Add(ecs.ResourceID[rsWeather](y.mirror), x.resource)
					y.rounds(2) // nobody looks
					setResource(y.world, rsWeather{Rain: 1})
					y.deliver(y.replicate()...)
					require.PanicsWithValue(t, x.want, func() { _ = y.client.Apply() })
					continue
				}
				setResource(y.world, rsWeather{Rain: 1})
				y.rounds(3)
				require.EqualValues(t, 1, resourceOf[rsWeather](y.mirror).Rain, "it goes on")
			}
		})
	}
}

type rsHuge [4096]uint64

func TestResourcesThatAreTooLarge(t *testing.T) {
	s := NewSchema()
	RegisterResource[rsHuge](s)
	w := ecs.NewWorld()
	require.NotPanics(t, func() { NewServer(&w, s) }, "32 KiB fit")
	s = NewSchema()
	RegisterResource[rsHuge](s)
	RegisterResource[schemaTeam](s)
	require.PanicsWithValue(t, "replication: the resources of the schema take more than 32 KiB: replicate some as components of an entity that is there for them",
		func() { NewServer(&w, s) })
}

func TestGridsAreNotOverResources(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, resourceSchema())
	require.PanicsWithValue(t, `replication: a grid over "rsWeather.Wind[0]": that is a field of a resource, and no entity has it`,
		func() { s.NewGrid(10, "rsWeather.Wind[0]") })
}

// TestComponentsWithTheNumberOfAResource: Arche counts components and resources apart. That
// their IDs are the same means nothing.
func TestComponentsWithTheNumberOfAResource(t *testing.T) {
	s := NewSchema()
	RegisterResource[rsWeather](s)
	Register[tHealth](s)
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	unrelated := ecs.ComponentID[tLocal](&world) // the first of its world
	other := ecs.ComponentID[tLocal](&mirror)
	x := &wire{t: t, world: &world, mirror: &mirror}
	x.server = NewServer(&world, s)
	x.connect()
	x.client = NewClient(&mirror, s, func(p []byte) error {
		x.up = append(x.up, bytes.Clone(p))
		return nil
	}, WithSpawnComponents(other))
	e := x.spawn(unrelated)
	x.rounds(6)
	m, ok := x.mirrored(e)
	require.True(t, ok)
	require.True(t, mirror.Has(m, other))
	require.Nil(t, resourceOf[rsWeather](&mirror))
	setResource(&world, rsWeather{Rain: 2})
	x.rounds(2)
	require.EqualValues(t, 2, resourceOf[rsWeather](&mirror).Rain)
}

// TestSlotsOfOtherKinds: what an honest server never says changes nothing.
func TestSlotsOfOtherKinds(t *testing.T) {
	const position, match, weather = 0, 1, 3 // in resourceSchema
	x := connectedWire(t, resourceSchema())
	setResource(x.world, rsWeather{Rain: 1})
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	(*tPosition)(x.world.Get(e, ecs.ComponentID[tPosition](x.world))).X = 1
	x.rounds(3) // forged packets are of a later tick than what is known of the resources
	whole := func(w *bitbuf.Writer, gap uint64, components ...int) {
		var set delta.Set
		for _, k := range components {
			set.Add(k)
		}
		w.WriteRice(gap, 0)
		w.WriteUnary(uint(entryWhole), uint(lastEntryKind))
		w.WriteExpGolomb(1, generationOrder)
		delta.WriteSet(w, &set, &delta.Set{})
		for _, k := range components {
			c := &x.client.schema.components[k]
			x.client.packed.EncodeRow(w, k, make([]uint32, c.words), nil, nil, 0)
		}
	}
	for name, put := range map[string]func(w *bitbuf.Writer){
		"resources and components": func(w *bitbuf.Writer) { whole(w, 0, position, weather) },
		"components in slot 0":     func(w *bitbuf.Writer) { whole(w, 0, position) },
		"resources elsewhere":      func(w *bitbuf.Writer) { whole(w, 5, weather) },
		"both elsewhere":           func(w *bitbuf.Writer) { whole(w, 5, position, match) },
		"no resources any more": func(w *bitbuf.Writer) {
			w.WriteRice(0, 0)
			w.WriteUnary(uint(entryDespawn), uint(lastEntryKind))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := bitbuf.NewWriter(make([]byte, 2000))
			w.WriteBits(0, gapOrderBits)
			put(&w)
			before, refused := worldHash(x.client), x.client.Stats().RefusedPackets
			x.receiveForged(byte(-w.Len()&7), w.Bytes())
			require.Equal(t, refused+3, x.client.Stats().RefusedPackets)
			require.Equal(t, before, worldHash(x.client))
		})
	}

	// And what one could say: another generation is the same resources.
	p := resourceOf[rsWeather](x.mirror)
	w := bitbuf.NewWriter(make([]byte, 2000))
	w.WriteBits(0, gapOrderBits)
	whole(&w, 0, weather)
	x.receiveForged(byte(-w.Len()&7), w.Bytes())
	require.Same(t, p, resourceOf[rsWeather](x.mirror))
	require.Equal(t, rsWeather{Wind: [2]float32{-50, -50}}, *p)
}

// TestForgedResources: packets with any bits are an error or a change, but no panic.
func TestForgedResources(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	taken := uint64(0)
	for range rounds {
		x := connectedWire(t, resourceSchema(), WithSeed(seed))
		g := &resourceGame{rng: rng, world: x.world}
		for range 20 {
			g.step()
			var own [][]byte
			for _, p := range x.replicate() {
				own = append(own, p)
				_ = x.client.Receive(p)
			}
			x.answer(x.apply()...)
			if len(own) == 0 || len(own[0]) < 12 {
				continue
			}
			at := 9
			if own[0][checksumSize]&longBit != 0 {
				at = 13
			}
			body := bytes.Clone(own[0][min(at, len(own[0])):])
			for range 1 + rng.IntN(6) {
				if len(body) > 0 {
					body[rng.IntN(min(len(body), 12))] ^= 1 << rng.IntN(8)
				}
			}
			before := x.client.Stats().Packets
			x.receiveForged(own[0][checksumSize]>>padShift&7, body)
			taken += x.client.Stats().Packets - before
		}
	}
	require.NotZero(t, taken, "some make sense")
}

// TestResourcesDoNotAllocate: once all memory has its size, resources that change in every
// tick, and refer to entities that come and go, leave no garbage.
func TestResourcesDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	var down, up [][]byte
	s := NewServer(&world, resourceSchema(), WithSeed(1))
	peer := s.Connect(carryInto(&down))
	client := NewClient(&mirror, s.schema, carryInto(&up), WithNonce(1))
	var players []ecs.Entity
	for range 6 {
		players = append(players, world.NewEntity(ReplicatedID(&world)))
	}
	match, weather, area := setResource(&world, rsMatch{}), setResource(&world, rsWeather{}), setResource(&world, rsMap{})
	peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return e != players[5] || s.Tick()%4 > 1 }})
	tick := 0
	play := func() {
		tick++
		match.Clock, match.Leader, match.Seats[tick%2] = int32(tick), players[tick%6], players[5]
		weather.Wind[0] = float32(tick%1000)/10 - 50
		area.Cells[tick%300]++
		s.Replicate()
		for _, p := range down {
			_ = client.Receive(p)
		}
		down = down[:0]
		if err := client.Apply(); err != nil {
			t.Fatal(err)
		}
		for _, p := range up {
			_ = peer.Receive(p)
		}
		up = up[:0]
	}
	for range 600 {
		play()
	}
	before := peer.Stats().Updates
	n := testing.AllocsPerRun(200, play)
	t.Logf("%v allocations per tick", n)
	require.LessOrEqual(t, n, 0.1)
	require.GreaterOrEqual(t, peer.Stats().Updates-before, uint64(200))
	require.EqualValues(t, tick, resourceOf[rsMatch](&mirror).Clock)
}

func TestResourcesHaveNoConditions(t *testing.T) {
	require.PanicsWithValue(t, "replication: Match: a resource has no condition, since every peer is sent it: use a component of an entity", func() {
		RegisterResource[struct{ Round uint8 }](NewSchema(), Name("Match"), OwnerOnly())
	})
}
