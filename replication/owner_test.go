package replication

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// pair is a server with two ends, the first of which owns entities.
type pair struct {
	t            *testing.T
	world        *ecs.World
	server       *Server
	owner, other *end
}

func newPair(t *testing.T, schema *Schema, cfg netsim.Config) *pair {
	w := ecs.NewWorld()
	s := NewServer(&w, schema, WithSeed(1))
	return &pair{t, &w, s, connect(s, seedOf(t), cfg, WithSeed(1)), connect(s, seedOf(t)+1, cfg, WithSeed(2))}
}

func (x *pair) rounds(n int) {
	for range n {
		x.server.Replicate()
		x.owner.step(x.t)
		x.other.step(x.t)
	}
}

// settle plays until nothing changes any more.
func (x *pair) settle() {
	x.owner.link.SetConfig(netsim.Config{Latency: 1})
	x.other.link.SetConfig(netsim.Config{Latency: 1})
	x.rounds(80)
}

// shows returns a component of the client's entity, nil if there is none.
func shows[T any](x *pair, at *end, e ecs.Entity) *T {
	x.t.Helper()
	id, ok := x.server.NetID(e)
	require.True(x.t, ok)
	m, ok := at.client.Entity(id)
	require.True(x.t, ok)
	return (*T)(at.world.Get(m, ecs.ComponentID[T](at.world)))
}

// TestConditions has a case for every condition, under loss and reordering.
func TestConditions(t *testing.T) {
	bad := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Reorder: 0.2, ReorderBy: 5}
	everybody := func(*Peer) bool { return true }
	nobody := func(*Peer) bool { return false }
	for _, c := range []struct {
		name                  string
		opts                  []ComponentOption
		atOwner, atOther, old bool
	}{
		{name: "none", atOwner: true, atOther: true},
		{name: "owner only", opts: []ComponentOption{OwnerOnly()}, atOwner: true},
		{name: "except owner", opts: []ComponentOption{ExceptOwner()}, atOther: true},
		{name: "peers that are picked", opts: []ComponentOption{OnlyFor(everybody)}, atOwner: true, atOther: true},
		{name: "peers that are not picked", opts: []ComponentOption{OnlyFor(nobody)}},
		{name: "once", opts: []ComponentOption{Once()}, atOwner: true, atOther: true, old: true},
		{name: "once, owner only", opts: []ComponentOption{Once(), OwnerOnly()}, atOwner: true, old: true},
		{name: "on interval", opts: []ComponentOption{Every(7)}, atOwner: true, atOther: true},
		{name: "on interval, except owner", opts: []ComponentOption{Every(7), ExceptOwner()}, atOther: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := NewSchema()
			Register[cPlace](schema)
			Register[cGhost](schema, c.opts...) // a number
			Register[cAim](schema, c.opts...)   // a reference
			Register[cCard](schema, c.opts...)  // a tag
			Register[cHoard](schema, c.opts...) // together with the others larger than a packet
			Register[tBulk](schema, c.opts...)
			Register[tExact](schema, c.opts...)
			x := newPair(t, schema, bad)
			place, ghost, aim, card := ecs.ComponentID[cPlace](x.world), ecs.ComponentID[cGhost](x.world), ecs.ComponentID[cAim](x.world), ecs.ComponentID[cCard](x.world)
			hoard, bulk := ecs.ComponentID[cHoard](x.world), ecs.ComponentID[tBulk](x.world)
			exact := ecs.ComponentID[tExact](x.world)
			e := x.world.NewEntity(ReplicatedID(x.world), place, ghost, aim, card, hoard, bulk, exact)
			target := x.world.NewEntity(ReplicatedID(x.world))
			x.server.SetOwner(e, x.owner.peer)
			for i := range 60 {
				(*cPlace)(x.world.Get(e, place)).X++
				(*cGhost)(x.world.Get(e, ghost)).Seen++
				(*cAim)(x.world.Get(e, aim)).At = target
				(*cHoard)(x.world.Get(e, hoard)).Cells[i] = ^uint64(i)
				x.rounds(1)
			}
			x.settle()
			for _, end := range []*end{x.owner, x.other} {
				require.EqualValues(t, 60, shows[cPlace](x, end, e).X)
				g, a := shows[cGhost](x, end, e), shows[cAim](x, end, e)
				if end == x.owner && !c.atOwner || end == x.other && !c.atOther {
					require.Nil(t, g)
					require.Nil(t, a)
					require.Nil(t, shows[cCard](x, end, e))
					require.Nil(t, shows[cHoard](x, end, e))
					continue
				}
				require.NotNil(t, shows[cCard](x, end, e))
				id, ok := x.server.NetID(target)
				require.True(t, ok)
				mirror, ok := end.client.Entity(id)
				require.True(t, ok)
				require.Equal(t, mirror, a.At)
				if c.old {
					require.EqualValues(t, 1, g.Seen)
					require.Zero(t, shows[cHoard](x, end, e).Cells[1])
				} else {
					require.EqualValues(t, 60, g.Seen)
					require.Equal(t, ^uint64(59), shows[cHoard](x, end, e).Cells[59])
				}
			}
			require.Equal(t, 2, x.server.Stats().Entities)
			require.EqualValues(t, 2, x.server.Stats().Spawns)
			x.world.Remove(e, ghost)
			x.world.Remove(e, aim)
			x.settle()
			for _, end := range []*end{x.owner, x.other} {
				require.Nil(t, shows[cGhost](x, end, e))
				require.Equal(t, end == x.owner && c.atOwner || end == x.other && c.atOther, shows[cCard](x, end, e) != nil)
			}
			x.world.Add(e, ghost)
			(*cGhost)(x.world.Get(e, ghost)).Seen = 5
			x.settle()
			for _, end := range []*end{x.owner, x.other} {
				if end == x.owner && c.atOwner || end == x.other && c.atOther {
					require.EqualValues(t, 5, shows[cGhost](x, end, e).Seen, "it is new once more")
				}
			}
		})
	}
}

func ownerSchema() *Schema {
	s := NewSchema()
	Register[cPlace](s)
	Register[cAmmo](s, OwnerOnly())
	Register[cGhost](s, ExceptOwner())
	return s
}

func TestOwners(t *testing.T) {
	x := newPair(t, ownerSchema(), netsim.Config{})
	place, ammo, ghost, marker := ecs.ComponentID[cPlace](x.world), ecs.ComponentID[cAmmo](x.world), ecs.ComponentID[cGhost](x.world), ReplicatedID(x.world)
	e := x.world.NewEntity(place, ammo, ghost)
	sees := func(at *end, owns bool) {
		t.Helper()
		require.Equal(t, owns, shows[cAmmo](x, at, e) != nil)
		require.Equal(t, !owns, shows[cGhost](x, at, e) != nil)
	}
	require.Nil(t, x.server.Owner(e))
	x.server.SetOwner(e, x.owner.peer)
	require.Same(t, x.owner.peer, x.server.Owner(e), "before it is replicated")
	x.rounds(3)
	x.world.Add(e, marker)
	x.rounds(5)
	sees(x.owner, true)
	sees(x.other, false)

	t.Run("another", func(t *testing.T) {
		x.server.SetOwner(e, x.other.peer)
		x.rounds(5)
		sees(x.owner, false)
		sees(x.other, true)
		x.server.SetOwner(e, x.owner.peer)
		x.server.SetOwner(e, x.other.peer) // within a tick: no effect
		wholes := x.other.peer.Stats().FullStates
		x.rounds(5)
		require.Equal(t, wholes, x.other.peer.Stats().FullStates)
		sees(x.other, true)
	})
	t.Run("nobody", func(t *testing.T) {
		x.server.SetOwner(e, nil)
		require.Nil(t, x.server.Owner(e))
		x.rounds(5)
		sees(x.owner, false)
		sees(x.other, false)
	})
	t.Run("out of replication", func(t *testing.T) {
		x.server.SetOwner(e, x.owner.peer)
		x.rounds(5)
		x.world.Remove(e, marker)
		x.rounds(1)
		require.Nil(t, x.server.Owner(e))
		x.world.Add(e, marker)
		x.rounds(5)
		sees(x.owner, false)
	})
	t.Run("kept out of view", func(t *testing.T) {
		visible := true
		x.owner.peer.SetInterest(Interest{Keep: true, Visible: func(ecs.Entity) bool { return visible }})
		x.server.SetOwner(e, x.owner.peer)
		x.rounds(5)
		sees(x.owner, true)
		visible = false
		x.rounds(5)
		require.NotNil(t, shows[cPlace](x, x.owner, e))
		require.NotNil(t, shows[cAmmo](x, x.owner, e), "while the condition holds")
		x.server.SetOwner(e, nil)
		x.rounds(5)
		require.NotNil(t, shows[cPlace](x, x.owner, e))
		require.Nil(t, shows[cAmmo](x, x.owner, e), "it holds no more")
		x.server.SetOwner(e, x.owner.peer)
		visible = true
		x.rounds(5)
		sees(x.owner, true)
		x.owner.peer.SetInterest(Interest{})
		x.rounds(5)
		sees(x.owner, true)
	})
	t.Run("reset of the server's world", func(t *testing.T) {
		x.server.SetOwner(e, x.owner.peer)
		x.rounds(5)
		x.world.Reset()
		e = x.world.NewEntity(place, ammo, ghost, marker)
		x.rounds(5)
		require.Nil(t, x.server.Owner(e), "it looks the same and is another")
		sees(x.owner, false)
		x.server.SetOwner(e, x.owner.peer)
		x.world.Reset()
		e = x.world.NewEntity(place, ammo, ghost, marker)
		x.server.SetOwner(e, x.other.peer)
		x.rounds(5)
		sees(x.owner, false)
		sees(x.other, true)
		x.server.SetOwner(e, x.owner.peer)
	})
	t.Run("removed by the user", func(t *testing.T) {
		x.rounds(5)
		id, _ := x.server.NetID(e)
		m, ok := x.owner.client.Entity(id)
		require.True(t, ok)
		x.owner.world.RemoveEntity(m)
		(*cAmmo)(x.world.Get(e, ammo)).Rounds++
		x.rounds(5)
		_, ok = x.owner.client.Entity(id)
		require.False(t, ok)
	})
	t.Run("disconnected", func(t *testing.T) {
		waits := x.world.NewEntity(place)
		x.server.SetOwner(waits, x.other.peer)
		x.server.SetOwner(e, x.other.peer)
		x.server.Disconnect(x.other.peer)
		require.Nil(t, x.server.Owner(e))
		require.Nil(t, x.server.Owner(waits))
		x.server.SetOwner(e, x.other.peer)
		require.Nil(t, x.server.Owner(e), "as good as nobody")
		x.server.Replicate()
	})
	t.Run("dies unseen", func(t *testing.T) {
		dies := x.world.NewEntity(place)
		x.server.SetOwner(dies, x.owner.peer)
		x.world.RemoveEntity(dies)
		x.server.Replicate()
		require.Nil(t, x.server.Owner(dies))
		require.PanicsWithValue(t, "replication: SetOwner of a dead entity: set owners of entities that live", func() {
			x.server.SetOwner(dies, x.owner.peer)
		})
	})
	w := ecs.NewWorld()
	require.PanicsWithValue(t, "replication: SetOwner to a peer of another server: use one that this server's Connect returned", func() {
		x.server.SetOwner(e, NewServer(&w, testSchema()).Connect(func([]byte) error { return nil }))
	})
}

// TestSubEntitiesHaveNoNetID: no NetID names the slot of a sub-entity.
func TestSubEntitiesHaveNoNetID(t *testing.T) {
	x := newPair(t, ownerSchema(), netsim.Config{})
	e := x.world.NewEntity(ReplicatedID(x.world), ecs.ComponentID[cPlace](x.world), ecs.ComponentID[cAmmo](x.world))
	x.server.SetOwner(e, x.owner.peer)
	x.rounds(5)
	sub, ok := x.server.snap.Slots.SubEntity(0, 0)
	require.True(t, ok)
	require.Equal(t, 64, sub, "in a block of its own")
	id := NetID{uint32(sub), x.server.snap.Slots.Info[sub].Generation}
	_, ok = x.server.Entity(id)
	require.False(t, ok)
	_, ok = x.owner.client.Entity(id)
	require.False(t, ok)
	n := 0
	for range x.owner.client.Entities() {
		n++
	}
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, x.owner.client.Stats().Spawns)
}

func TestConditionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *Schema)
		want string
	}{
		{
			"two", func(s *Schema) { Register[cAmmo](s, OwnerOnly(), ExceptOwner()) },
			"replication: cAmmo: OwnerOnly, ExceptOwner and OnlyFor exclude each other: choose one, or put the component on an entity of its own, with Interest",
		},
		{
			"relation", func(s *Schema) { Register[rChildOf](s, OwnerOnly()) },
			"replication: rChildOf: a relation can't have a condition: keep the target in a field of type ecs.Entity",
		},
		{
			"no function", func(s *Schema) { Register[cAmmo](s, OnlyFor(nil)) },
			"replication: OnlyFor needs a function that picks peers",
		},
		{"a full schema", func(s *Schema) {
			for i := range 255 {
				RegisterType(s, reflect.ArrayOf(i+1, reflect.TypeFor[uint8]()), Name(fmt.Sprint("c", i)))
			}
			Register[cAmmo](s, OwnerOnly())
		}, "replication: cAmmo: the schema is full: it holds at most 255 components if one of them has a condition"},
		{"a grid", func(s *Schema) {
			Register[tPosition](s, ExceptOwner())
			w := ecs.NewWorld()
			NewServer(&w, s).NewGrid(10, "tPosition.X")
		}, `replication: a grid over "tPosition.X": that component has a condition, so that where its entities are would show`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.PanicsWithValue(t, c.want, func() { c.do(NewSchema()) })
		})
	}
}

// TestConditionsInTheSchemaText: both ends must agree that a component has a condition, but not
// which one, nor on Once.
func TestConditionsInTheSchemaText(t *testing.T) {
	texts := map[string]bool{}
	for _, opts := range [][]ComponentOption{{OwnerOnly()}, {ExceptOwner(), Once()}, {OnlyFor(func(*Peer) bool { return true })}} {
		s := NewSchema()
		Register[cAmmo](s, opts...)
		before := s.Text()
		s.raw.Freeze()
		require.Equal(t, before, s.Text())
		texts[before] = true
	}
	require.Equal(t, map[string]bool{"arche-replicate schema 1\ncomponent cAmmo\ncAmmo.Rounds uint16\nfacets\n": true}, texts)
	s := NewSchema()
	Register[cAmmo](s, Once())
	require.Equal(t, "arche-replicate schema 1\ncomponent cAmmo\ncAmmo.Rounds uint16\n", s.Text())
}

// TestConditionsDoNotAllocate: once all buffers have grown, changes of conditional values and
// owners, and spawns and despawns of entities with sub-entities allocate nothing.
func TestConditionsDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := newReusingLink(t, ownerSchema())
	world, s, peer := x.world, x.server, x.peer
	place, ammo, ghost, marker := ecs.ComponentID[cPlace](world), ecs.ComponentID[cAmmo](world), ecs.ComponentID[cGhost](world), ReplicatedID(world)
	var entities []ecs.Entity
	for i := range 200 {
		entities = append(entities, world.NewEntity(marker, place, ammo, ghost))
		s.SetOwner(entities[i], peer)
	}
	tick := 0
	step := func() {
		tick++
		for i, e := range entities {
			(*cPlace)(world.Get(e, place)).X = int32(tick % 1000)
			(*cAmmo)(world.Get(e, ammo)).Rounds++
			(*cGhost)(world.Get(e, ghost)).Seen++
			switch (tick + i) % 64 { // a divisor of the number of distinguishable baseline ticks
			case 0:
				s.SetOwner(e, nil)
			case 20:
				s.SetOwner(e, peer)
			}
		}
		if i := tick % 32; tick%4 == 0 {
			world.RemoveEntity(entities[i])
			entities[i] = world.NewEntity(marker, place, ammo, ghost)
		}
	}
	for range 4000 {
		step()
		x.round()
	}
	const runs = 100
	total := 0.0
	for range runs {
		step()
		total += allocsOf(x.round)
	}
	t.Logf("%v allocations per tick", total/runs)
	require.LessOrEqual(t, total/runs, 0.1)
}
