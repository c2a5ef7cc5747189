package replication

import (
	"bytes"
	"math"
	"testing"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestResourcesInTheSchemaText(t *testing.T) {
	s := NewSchema()
	Register[tHealth](s)
	RegisterResource[rsMatch](s, Name("Match"))
	RegisterResource[schemaTeam](s, Name("Winner"), Field("", "range=0:3"))
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

// TestResources lists what may happen to resources, each over a network that loses every fifth
// packet and reorders the others.
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
			e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 2, Loss: 0.2, Reorder: 0.3, ReorderBy: 6}, WithSeed(seed))
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
					entities := s.Stats().Entities == e.world.Stats().Entities.Used // no entity stands for the resources
					if v, _, ok := shownResources(t, e.client); ok && entities && v.text == o[uint32(s.Tick())].text {
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

// TestResourcesAreNoEntity: functions for entities leave out the slot of the resources.
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
		_, ok := x.server.Entity(NetID{archeutil.ResourceSlot, generation})
		require.False(t, ok)
		_, ok = x.client.Entity(NetID{archeutil.ResourceSlot, generation})
		require.False(t, ok)
	}
	for range x.client.Entities() {
		require.Fail(t, "there is none")
	}
	require.Zero(t, x.client.Stats().Spawns+x.client.Stats().Despawns)
	require.Zero(t, x.mirror.Stats().Entities.Used)
	for _, w := range []*ecs.World{x.world, x.mirror} {
		for _, id := range ecs.ComponentIDs(w) {
			info, _ := ecs.ComponentInfo(w, id)
			require.NotContains(t, []string{"rsMatch", "rsWeather", "rsOpen", "rsMap"}, info.Type.Name(), "an ID for a component is wasted")
		}
	}
	x.server.SetPriority(ecs.Entity{}, 2) // the zero entity does not mean the resources
	require.EqualValues(t, 1, x.server.snap.Slots.Info[archeutil.ResourceSlot].Weight)

	e := x.spawn()
	x.rounds(3)
	id, ok := x.server.NetID(e)
	require.True(t, ok)
	require.EqualValues(t, 1, id.Slot, "slot 0 is taken")
	require.Equal(t, 1, x.server.Stats().Entities)
}

// TestSchemasWithoutResourcesHaveNoSlotForThem: their packets are unchanged.
func TestSchemasWithoutResourcesHaveNoSlotForThem(t *testing.T) {
	x := connectedWire(t, testSchema())
	require.Zero(t, x.server.snap.Slots.Len())
	require.Zero(t, x.slotOf(func() ecs.Entity { e := x.spawn(); x.round(); return e }()))
}

// TestEveryPeerSeesTheResources, whatever its interest, and no user function is called for them.
func TestEveryPeerSeesTheResources(t *testing.T) {
	for name, interest := range map[string]func(s *Server) Interest{
		"filter": func(s *Server) Interest { return Interest{Filter: ecs.All(ecs.ComponentID[tFrozen](s.snap.World))} },
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

// TestResourcesInSharedPackets: where thousands of entities change and peers are in sync, packets
// are copied, including those with the resources.
func TestResourcesInSharedPackets(t *testing.T) {
	oneGoroutine(t)
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s)
	RegisterResource[rsWeather](s)
	c := newLoadWorld(t, 1500, s)
	weather := setResource(&c.world, rsWeather{})
	for i := range 3 {
		w := ecs.NewWorld()
		var client *Client
		var down [][]byte
		peer := c.server.Connect(func(p []byte) error { down = append(down, bytes.Clone(p)); return nil })
		client = NewClientWith(&w, s, func(p []byte) error { return peer.Receive(p) }, WithSeed(uint64(i)+1))
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

// TestResourcesEveryFewTicks: like components, resources with Every are read in turns.
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

// TestClampedResourcesAreCounted in every tick, like values of components.
func TestClampedResourcesAreCounted(t *testing.T) {
	x := connectedWire(t, resourceSchema())
	setResource(x.world, rsWeather{Wind: [2]float32{1000, float32(math.NaN())}})
	x.rounds(4)
	require.EqualValues(t, 8, x.server.Stats().Clamped)
	require.Equal(t, float32(50), resourceOf[rsWeather](x.mirror).Wind[0])
}

// TestResourcesReferToEntities that spawn, despawn, and are hidden.
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
	checkLinks(&x.client.apply, t, 2)
	dropResource[rsMatch](x.world)
	x.rounds(2)
	checkLinks(&x.client.apply, t, 0)
	require.Zero(t, x.client.apply.View.Replicas.At(archeutil.ResourceSlot).Links)
}

// TestMaxEntitiesBesideResources: the slot of the resources is not one of those that
// WithMaxEntities allows, which are two per entity.
func TestMaxEntitiesBesideResources(t *testing.T) {
	x := newWire(t, resourceSchema())
	x.restart(faceOf(x.server.schema), 8, WithMaxEntities(2))
	setResource(x.world, rsOpen{})
	_, last := x.spawn(), x.spawn()
	setResource(x.world, rsMatch{Leader: last})
	x.rounds(6)
	m, ok := x.mirrored(last)
	require.True(t, ok)
	require.Equal(t, m, resourceOf[rsMatch](x.mirror).Leader)
	require.NotNil(t, resourceOf[rsOpen](x.mirror))
	require.Equal(t, 2, x.mirror.Stats().Entities.Used)
	x.spawn()
	last = x.spawn()
	x.rounds(2)
	require.Equal(t, 4, x.mirror.Stats().Entities.Used)
	require.Zero(t, x.peer.Stats().Withheld)
	x.spawn()
	setResource(x.world, rsMatch{Leader: last})
	x.rounds(2)
	m, _ = x.mirrored(last)
	require.Equal(t, m, resourceOf[rsMatch](x.mirror).Leader)
	require.Equal(t, 4, x.mirror.Stats().Entities.Used)
	require.EqualValues(t, 2, x.peer.Stats().Withheld, "one, in two ticks")
	require.Zero(t, x.client.Stats().RefusedPackets)
}

// TestComponentsWithTheNumberOfAResource: Arche numbers components and resources separately. Equal
// IDs mean nothing.
func TestComponentsWithTheNumberOfAResource(t *testing.T) {
	s := NewSchema()
	RegisterResource[rsWeather](s)
	Register[tHealth](s)
	world, mirror := ecs.NewWorld(), ecs.NewWorld()
	unrelated := ecs.ComponentID[tLocal](&world) // the first component of its world
	other := ecs.ComponentID[tLocal](&mirror)
	x := &fixture{t: t, world: &world, mirror: &mirror}
	x.server = NewServer(&world, s)
	x.connect()
	x.client = NewClientWith(&mirror, s, func(p []byte) error {
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
