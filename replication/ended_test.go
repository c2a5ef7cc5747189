package replication

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// endings notes what a client reports of the entities that it despawns: whether they have ended.
func endings(c *Client) map[NetID]bool {
	reported := map[NetID]bool{}
	c.OnDespawn(func(e ecs.Entity) {
		id, _ := c.NetID(e)
		reported[id] = c.HasEnded(e)
	})
	return reported
}

// TestHasEnded: a client distinguishes what ended from what left its view, whichever packets are lost.
func TestHasEnded(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(fmt.Sprint(coding), func(t *testing.T) {
			for name, play := range map[string]struct {
				play func(x *fixture, e ecs.Entity, see func(bool))
				want map[NetID]bool
			}{
				"ends": {func(x *fixture, e ecs.Entity, _ func(bool)) {
					x.world.RemoveEntity(e)
				}, map[NetID]bool{{0, 1}: true}},
				"loses its marker": {func(x *fixture, e ecs.Entity, _ func(bool)) {
					x.world.Remove(e, ReplicatedID(x.world))
				}, map[NetID]bool{{0, 1}: true}},
				"leaves": {func(_ *fixture, _ ecs.Entity, see func(bool)) {
					see(false)
				}, map[NetID]bool{{0, 1}: false}},
				"leaves, and ends while that is lost": {func(x *fixture, e ecs.Entity, see func(bool)) {
					see(false)
					x.replicate()
					x.world.RemoveEntity(e)
				}, map[NetID]bool{{0, 1}: false}},
				"leaves and ends at once": {func(x *fixture, e ecs.Entity, see func(bool)) {
					see(false)
					x.world.RemoveEntity(e)
				}, map[NetID]bool{{0, 1}: true}},
				"ends, and another entity has the slot in time": {func(x *fixture, e ecs.Entity, _ func(bool)) {
					x.world.RemoveEntity(e)
					x.replicate()
					x.spawn(ecs.ComponentID[tHealth](x.world))
				}, map[NetID]bool{{0, 1}: true}},
				"ends, and another entity has the slot before Apply": {func(x *fixture, e ecs.Entity, _ func(bool)) {
					x.world.RemoveEntity(e)
					x.deliver(x.replicate()...)
					x.spawn(ecs.ComponentID[tHealth](x.world))
					x.deliver(x.replicate()...)
				}, map[NetID]bool{{0, 1}: true}},
				"leaves, and another entity has the slot before Apply": {func(x *fixture, e ecs.Entity, see func(bool)) {
					see(false)
					x.deliver(x.replicate()...)
					x.world.RemoveEntity(e)
					x.replicate()
					see(true)
					x.spawn(ecs.ComponentID[tHealth](x.world))
					x.deliver(x.replicate()...)
				}, map[NetID]bool{{0, 1}: false}},
				"leaves and comes back while that is lost": {func(x *fixture, _ ecs.Entity, see func(bool)) {
					see(false)
					x.replicate()
					see(true)
				}, map[NetID]bool{}},
				"leaves, comes back and ends": {func(x *fixture, e ecs.Entity, see func(bool)) {
					see(false)
					x.replicate()
					see(true)
					x.replicate()
					x.world.RemoveEntity(e)
				}, map[NetID]bool{{0, 1}: true}},
				"ends while nothing arrives, out of view at last": {func(x *fixture, e ecs.Entity, see func(bool)) {
					x.world.RemoveEntity(e)
					x.replicate()
					see(false)
					x.spawn(ecs.ComponentID[tHealth](x.world))
					x.replicate()
				}, map[NetID]bool{{0, 1}: true}},
				"ends, and another entity leaves the slot before Apply": {func(x *fixture, e ecs.Entity, see func(bool)) {
					x.world.RemoveEntity(e)
					x.deliver(x.replicate()...)
					x.spawn(ecs.ComponentID[tHealth](x.world))
					x.replicate()
					see(false)
					x.deliver(x.replicate()...)
				}, map[NetID]bool{{0, 1}: true}},
				"ends between two sends, and another entity has the slot out of view": {func(x *fixture, e ecs.Entity, see func(bool)) {
					x.peer.SetSendInterval(4)
					x.rounds(20)
					for !x.peer.acked.InInterval() {
						x.round()
					}
					x.world.RemoveEntity(e)
					see(false)
					x.round()
					other := x.spawn(ecs.ComponentID[tHealth](x.world))
					x.round()
					id, _ := x.server.NetID(other)
					require.Equal(x.t, NetID{0, 2}, id)
				}, map[NetID]bool{{0, 1}: true}},
				"closes": {func(x *fixture, _ ecs.Entity, _ func(bool)) {
					x.client.Close()
				}, map[NetID]bool{{0, 1}: false}},
				"closes when it ended": {func(x *fixture, e ecs.Entity, _ func(bool)) {
					x.world.RemoveEntity(e)
					x.deliver(x.replicate()...)
					x.client.Close()
				}, map[NetID]bool{{0, 1}: true}},
			} {
				t.Run(name, func(t *testing.T) {
					x := connectedWire(t, testSchema(), withCoding(coding))
					require.Equal(t, coding, x.client.Coding())
					reported, seen := endings(x.client), true
					x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return seen }})
					e := x.spawn(ecs.ComponentID[tHealth](x.world))
					x.rounds(5)
					m, _ := x.mirrored(e)
					require.False(t, x.client.HasEnded(m))
					play.play(x, e, func(on bool) { seen = on })
					if !strings.HasPrefix(name, "closes") {
						x.rounds(20)
					}
					require.Equal(t, play.want, reported)
				})
			}
		})
	}
}

// TestHasEndedByKindOfView: a grid, a set, a component under a condition, and Keep.
func TestHasEndedByKindOfView(t *testing.T) {
	schema := testSchema()
	shown := true
	Register[tOwned](schema, OnlyFor(func(*Peer) bool { return shown }))
	x := connectedWire(t, schema)
	reported := endings(x.client)
	var lost []bool
	OnRemove(x.client, func(e ecs.Entity, _ *tOwned) { lost = append(lost, x.client.HasEnded(e)) })
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position, ecs.ComponentID[tOwned](x.world))
	id := func() NetID { id, _ := x.server.NetID(e); return id }
	grid, set := x.server.NewGrid(10, "tPosition.X"), x.server.NewEntitySet()
	set.Add(e)
	x.rounds(5)

	shown = false
	x.rounds(5)
	require.Equal(t, []bool{false}, lost, "the entity stays")
	require.Empty(t, reported)
	shown = true
	x.peer.SetInterest(Interest{Grid: grid})
	x.peer.LookFrom(20, 0)
	x.rounds(5)
	(*tPosition)(x.world.Get(e, position)).X = 50
	x.rounds(5)
	require.Equal(t, map[NetID]bool{id(): false}, reported)
	require.Equal(t, []bool{false, false}, lost)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(5)
	clear(reported)
	set.Remove(e)
	x.rounds(5)
	require.Equal(t, map[NetID]bool{id(): false}, reported)
	set.Add(e)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
	x.rounds(5)
	set.Remove(e)
	x.rounds(5)
	clear(reported)
	was := id()
	x.world.RemoveEntity(e)
	x.rounds(5)
	require.Equal(t, map[NetID]bool{was: true}, reported, "it was kept, so its end is reported")
	require.Equal(t, []bool{false, false, false, true}, lost)
}

type tOwned struct {
	N uint8 `repl:"range=0:9"`
}

// TestHasEndedOfOtherSlots: what a client has no room for, and what gets another slot, has not ended.
func TestHasEndedOfOtherSlots(t *testing.T) {
	schema := NewSchema()
	Register[tHealth](schema)
	w := ecs.NewWorld()
	s := NewServer(&w, schema, WithSeed(1))
	ends := []*end{connect(s, 1, netsim.Config{}, WithSeed(1), WithMaxEntities(100)), connect(s, 2, netsim.Config{}, WithSeed(2))}
	play := func(ticks int) {
		for range ticks {
			s.Replicate()
			for _, e := range ends {
				e.step(t)
			}
		}
	}
	reported := []map[NetID]bool{endings(ends[0].client), endings(ends[1].client)}
	var all []ecs.Entity
	spawn := func(n int) {
		for range n {
			all = append(all, w.NewEntity(ReplicatedID(&w), ecs.ComponentID[tHealth](&w)))
		}
	}
	spawn(90)
	play(20)
	spawn(300)
	play(20)
	last := all[len(all)-1]
	before, _ := s.NetID(last)
	for _, e := range all[50 : len(all)-1] {
		w.RemoveEntity(e)
	}
	play(40)
	now, _ := s.NetID(last)
	require.NotEqual(t, before, now, "it was given a lower slot")
	_, there := ends[0].client.Entity(now)
	require.True(t, there)
	require.Len(t, reported[1], 340)
	for id, ended := range reported[1] {
		require.Equal(t, id != before, ended, id)
	}
	for id, ended := range reported[0] {
		require.True(t, ended, id)
	}
	spawn(340)
	play(20)
	for _, e := range all[len(all)-340:] {
		w.RemoveEntity(e)
	}
	play(20)
	before.Generation++
	require.True(t, reported[1][before], "the slot is like any other afterwards")
}

// TestHasEndedAfterReconnect: what went while the client was away is not known to have ended, unless another entity has
// its slot; nothing is known of the entities of another server.
func TestHasEndedAfterReconnect(t *testing.T) {
	x := connectedWire(t, testSchema())
	reported := endings(x.client)
	health := ecs.ComponentID[tHealth](x.world)
	a, b, c := x.spawn(health), x.spawn(health), x.spawn(health)
	x.rounds(5)
	names := map[string]NetID{}
	for name, e := range map[string]ecs.Entity{"a": a, "b": b, "c": c} {
		names[name], _ = x.server.NetID(e)
	}
	x.world.RemoveEntity(a)
	x.world.RemoveEntity(b)
	x.replicate()
	x.spawn(health)
	x.connect()
	x.client.Reconnect()
	x.rounds(40)
	require.Equal(t, map[NetID]bool{names["a"]: true, names["b"]: false}, reported)
	clear(reported)
	x.replaceServer(testSchema(), 9)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.client.Reconnect()
	x.rounds(40)
	require.Equal(t, map[NetID]bool{{names["a"].Slot, 2}: false, names["c"]: false}, reported)
}

// TestHasEndedOfNoReplica: an entity that is gone is a mistake, one of the client's own never ends at the server.
func TestHasEndedOfNoReplica(t *testing.T) {
	x := connectedWire(t, testSchema())
	own := x.mirror.NewEntity()
	require.False(t, x.client.HasEnded(own))
	x.mirror.RemoveEntity(own)
	const gone = "replication: HasEnded of an entity that is not in the client's world: call it in a hook, which is before Frame removes it"
	require.PanicsWithValue(t, gone, func() { x.client.HasEnded(own) })
	require.PanicsWithValue(t, gone, func() { x.client.HasEnded(ecs.Entity{}) })
}

// TestHasEndedInRandomGames: what is reported to have ended has ended, and what ended in view is reported to have, if it was in
// view all the time since the client has it. Entities spawn into slots of others at once.
func TestHasEndedInRandomGames(t *testing.T) {
	t.Parallel()
	for _, coding := range []Coding{Packed, Compact} {
		t.Run(fmt.Sprint(coding), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seedOf(t), 5))
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(1), withCoding(coding))
			e := connect(s, 3, netsim.Config{Latency: 2, Jitter: 2, Loss: 0.2, Duplicate: 0.05}, WithSeed(2))
			type life struct {
				spawned, ended, left uint32 // ticks; 0: never
			}
			lives, hidden := map[NetID]*life{}, map[ecs.Entity]bool{}
			e.peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return !hidden[e] }})
			has, ended, left, unsure := map[NetID]uint32{}, 0, 0, 0
			e.client.OnSpawn(func(m ecs.Entity) {
				id, _ := e.client.NetID(m)
				tick, _ := e.client.StateTick(m)
				has[id] = uint32(tick)
			})
			e.client.OnDespawn(func(m ecs.Entity) {
				id, _ := e.client.NetID(m)
				l := lives[id]
				switch reported := e.client.HasEnded(m); {
				case reported:
					require.NotZero(t, l.ended, "%v lives", id)
					ended++
				case l.left > has[id]:
					left++
				default: // then one after it in the slot left before the client received anything of either
					unsure++
					require.NotZero(t, l.ended, "%v has neither left nor ended", id)
					next := lives[NetID{id.Slot, id.Generation + 1}]
					require.NotNil(t, next)
					require.NotZero(t, next.left)
				}
			})
			var all []ecs.Entity
			for range ticksOf(20000, 4000) {
				for len(all) < 30 || rng.IntN(4) == 0 && len(all) < 60 {
					n := w.NewEntity(ReplicatedID(&w), ecs.ComponentID[tHealth](&w))
					all = append(all, n)
				}
				now := s.Tick() + 1
				for i := 0; i < len(all); i++ {
					id, ok := s.NetID(all[i])
					if !ok {
						continue
					}
					l := lives[id]
					if l == nil {
						l = &life{spawned: uint32(now)}
						lives[id] = l
					}
					switch rng.IntN(100) {
					case 0:
						w.RemoveEntity(all[i])
						delete(hidden, all[i])
						all[i] = all[len(all)-1]
						all = all[:len(all)-1]
						l.ended = uint32(now)
						i--
					case 1, 2:
						hidden[all[i]] = !hidden[all[i]]
						if hidden[all[i]] {
							l.left = uint32(now)
						}
					}
				}
				s.Replicate()
				e.step(t)
			}
			t.Logf("%d ended, %d left, %d unsure", ended, left, unsure)
			require.Greater(t, ended, 100)
			require.Greater(t, left, 100)
			require.Less(t, unsure, ended/30)
		})
	}
}
