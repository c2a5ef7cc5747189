package replication

import (
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestGroupsHaveMembers(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	ship, turret := x.spawn(position), x.spawn(position)
	g, other := x.server.NewGroup(), x.server.NewGroup()
	g.Add(ship)
	g.Add(ship)
	g.Add(turret)
	require.Equal(t, 2, g.Len())
	require.PanicsWithValue(t, "replication: entity {1 0} is in another group: call that one's Remove first", func() { other.Add(ship) })
	other.Remove(ship) // is not a member
	x.rounds(5)

	g.Remove(turret)
	other.Add(turret)
	require.Equal(t, 1, g.Len())
	x.rounds(20)
	boundTo := func(e ecs.Entity) []*interest.Group { return x.server.interest.Groups.BySlot[x.slotOf(e)] }
	require.True(t, slices.Equal([]*interest.Group{&other.in}, boundTo(turret)), "nothing is left of the first group")

	x.world.RemoveEntity(ship)
	x.round()
	require.Zero(t, g.Len(), "what ends leaves its group")
	x.rounds(20)
	require.True(t, slices.Equal([]*interest.Group{&other.in}, x.server.interest.Groups.List), "which is forgotten then")
	other.Remove(turret)
	x.rounds(20)
	require.Zero(t, len(x.server.interest.Groups.List))
	require.Zero(t, x.server.snap.Slots.Bound.Count())

	early := x.world.NewEntity(position) // not replicated yet
	g.Add(early)
	x.rounds(3)
	require.Equal(t, 1, g.Len())
	x.world.Add(early, ReplicatedID(x.world))
	x.rounds(3)
	x.requireEqual()
	require.True(t, slices.Equal([]*interest.Group{&g.in}, boundTo(early)))
	x.world.RemoveEntity(early)
	g.Add(x.spawn(position))
	x.world.Reset()
	x.rounds(20)
	require.Zero(t, g.Len())
	x.requireEqual()
}

// TestAGroupIsShownCompletely: a peer that sees one member of a group sees all of it.
func TestAGroupIsShownCompletely(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, frozen := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tFrozen](x.world)
	ship, turret, stone := x.spawn(position, frozen), x.spawn(position), x.spawn(position)
	g := x.server.NewGroup()
	g.Add(ship)
	g.Add(turret)
	filter := ecs.All(frozen)
	x.peer.SetInterest(Interest{Filter: &filter})
	x.rounds(5)
	x.requireSeen(ship, turret)
	x.world.Remove(ship, frozen)
	x.rounds(5)
	x.requireSeen()
	x.world.Add(stone, frozen)
	g.Add(stone)
	x.rounds(5)
	x.requireSeen(ship, turret, stone)
	g.Remove(turret)
	x.rounds(5)
	x.requireSeen(ship, stone)
}

// TestGroupsLargerThanAPacket: such groups are sent entity by entity, which is counted, and arrive.
func TestGroupsLargerThanAPacket(t *testing.T) {
	oneGoroutine(t)
	for name, big := range map[string]bool{"many": false, "large": true} {
		t.Run(name, func(t *testing.T) {
			seed := seedOf(t)
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(seed), WithMTU(200))
			s.sender.workers.List[0].Limit = 1000 // little memory for encoded entries
			g := newGame(seed, &w, faceOf(s.schema), 60)
			o := newTruth()
			ends := []*end{
				connect(s, seed, netsim.Config{Latency: 2}, WithSeed(1)),
				connect(s, seed+1, netsim.Config{Latency: 3, Jitter: 3, Loss: 0.2, Duplicate: 0.1, Reorder: 0.3, ReorderBy: 9}, WithSeed(2)),
			}
			group := s.NewGroup()
			if big {
				group.Add(g.spawn(g.ids[5], g.ids[0]))
				group.Add(g.spawn(g.ids[0]))
			} else {
				for range 50 {
					group.Add(g.spawn(g.ids[3]))
				}
				for range 8 { // groups that fit, and others that nearly do
					small := s.NewGroup()
					for range 1 + g.rng.IntN(14) {
						small.Add(g.spawn(g.ids[3]))
					}
				}
			}
			for range ticksOf(600, 400) {
				for _, e := range g.entities {
					if g.rng.IntN(8) == 0 {
						g.mutate(e)
					}
				}
				tickAll(t, s, o, ends)
			}
			for _, e := range ends {
				require.True(t, e.peer.Stats().SplitGroups > 0 || e.peer.Coding() == Compact) // in which they may fit
				e.link.SetConfig(netsim.Config{Latency: 2})
			}
			requireEqualSoon(t, s, o, ends, 100)
		})
	}
}

// tSlow is read only every few ticks.
type tSlow struct {
	Stamp uint32
}

// TestGroupsReadSlowComponentsTogether: components that are read only every few ticks are read in
// the same ticks for all members of a group.
func TestGroupsReadSlowComponentsTogether(t *testing.T) {
	schema := NewSchema()
	Register[tSlow](schema, Every(7))
	x := connectedWire(t, schema)
	slow := ecs.ComponentID[tSlow](x.world)
	g := x.server.NewGroup()
	var all []ecs.Entity
	for range 10 {
		all = append(all, x.spawn(slow))
	}
	x.rounds(3)
	for _, e := range all {
		g.Add(e)
	}
	stamps := map[uint32]bool{}
	for i := range 100 {
		if i < 60 { // then they are idle
			for _, e := range all {
				(*tSlow)(x.world.Get(e, slow)).Stamp = uint32(i)
			}
		}
		x.round()
		if i < 20 {
			continue
		}
		shown := map[uint32]bool{}
		for _, e := range all {
			m, ok := x.mirrored(e)
			require.True(t, ok)
			stamp := (*tSlow)(x.mirror.Get(m, slow)).Stamp
			shown[stamp], stamps[stamp] = true, true
		}
		require.Len(t, shown, 1, "tick %d", i)
	}
	require.Less(t, len(stamps), 12)
	x.requireEqual()
}

// TestSmallWorldsWithGroupsNeedNoMorePackets: a world that fits into one packet is sent in one,
// including entities without a group.
func TestSmallWorldsWithGroupsNeedNoMorePackets(t *testing.T) {
	c := newLoadWorld(t, 40, loadSchema())
	g := c.server.NewGroup()
	for _, e := range c.entities[10:14] {
		g.Add(e)
	}
	m := c.join(4, 0)
	for range 50 {
		c.tickAll()
	}
	before := m.peer.Stats()
	for range 100 {
		c.tickAll()
	}
	now := m.peer.Stats()
	require.EqualValues(t, 100, now.Packets-before.Packets)
	require.EqualValues(t, 4000, now.Updates-before.Updates)
	require.Zero(t, now.GroupResends)
}

// TestGroupsDoNotAllocate: once all buffers have grown, a tick of a world with groups allocates
// nothing.
func TestGroupsDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	c := newLoadWorld(t, 600, loadSchema())
	for i := 0; i < 600; i += 6 {
		g := c.server.NewGroup()
		for _, e := range c.entities[i : i+3] {
			g.Add(e)
		}
	}
	for i := range 4 {
		m := c.join(5+i, 0)
		if i == 3 {
			m.peer.SetBudget(20_000)
		}
		m.sizes = make([]int, 0, 10_000)
	}
	for range 600 {
		c.tickAll()
	}
	total := 0.0
	for n := range 100 {
		if n == 50 {
			total = 0 // the first resends allocate
		}
		c.ticks++
		for i, p := range c.positions {
			if i%3 > 0 || c.ticks%4 == 0 { // some members of a group
				c.move(p, i)
			}
		}
		for _, m := range c.members {
			m.sizes = append(m.sizes, 0)
			if packet := m.answer(c.ticks); packet != nil {
				_ = m.peer.Receive(packet)
			}
		}
		total += allocsOf(c.server.Replicate)
	}
	require.LessOrEqual(t, total, 10.0) // lists that grow to a new length, in 50 ticks of 4 peers
	require.NotZero(t, c.members[0].peer.Stats().GroupResends)
}

// TestSplitGroupsAreCountedAtTheEndOfTheBudget: a group larger than a packet is counted when a part
// of it is sent, even if the budget has no room for the rest.
func TestSplitGroupsAreCountedAtTheEndOfTheBudget(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(300))
	health, bulk := ecs.ComponentID[tHealth](x.world), ecs.ComponentID[tBulk](x.world)
	small, large := x.spawn(health), x.spawn(bulk)
	group := x.server.NewGroup()
	group.Add(small)
	group.Add(large)
	x.rounds(20)
	x.requireEqual()
	before := x.peer.Stats().SplitGroups
	x.peer.SetBudget(600)
	tears := 0
	for n := range 100 {
		(*tHealth)(x.world.Get(small, health)).HP = int16(n)
		for i := range 40 {
			(*tBulk)(x.world.Get(large, bulk)).Cells[i] = uint64(n) << 32 * uint64(n)
		}
		(*tBulk)(x.world.Get(large, bulk)).Cells[0] = uint64(n)
		x.round()
		a, _ := x.mirrored(small)
		b, _ := x.mirrored(large)
		if (*tHealth)(x.mirror.Get(a, ecs.ComponentID[tHealth](x.mirror))).HP == int16((*tBulk)(x.mirror.Get(b, ecs.ComponentID[tBulk](x.mirror))).Cells[0]) {
			continue
		}
		tears++
		require.Greater(t, x.peer.Stats().SplitGroups, before, "tick %d", n)
	}
	require.NotZero(t, tears)
}

// TestJoiningAGroupRevealsNothingOfThePast: a client holds a state of an entity that joined a group
// later. It may still show old states of the earlier members, one of which has left; their new
// states arrive together.
func TestJoiningAGroupRevealsNothingOfThePast(t *testing.T) {
	x := connectedWire(t, testSchema(), WithMTU(64))
	exact := ecs.ComponentID[tExact](x.world)
	first, other, second, late := x.spawn(exact), x.spawn(exact), x.spawn(exact), x.spawn(exact)
	change := func(entities ...ecs.Entity) {
		for _, e := range entities {
			v := (*tExact)(x.world.Get(e, exact))
			v.A, v.B = 1.1*(v.A+7)/1.7, v.B*5+12345
		}
	}
	g, h := x.server.NewGroup(), x.server.NewGroup()
	g.Add(first)
	g.Add(second)
	h.Add(other)
	for range 10 {
		change(first, other, second, late)
		x.round()
	}
	x.requireEqual()
	g.Remove(second)
	change(first, second)
	require.Len(t, x.replicate(), 1) // this packet is lost
	change(late)
	x.round()
	g.Add(late)
	change(first, other, second)
	packets := x.replicate()
	require.Len(t, packets, 2, "they don't fit into one")
	carry, _ := x.split(packets, x.slotOf(second))
	x.deliver(carry...)
	x.apply()
	for _, e := range []ecs.Entity{first, second} {
		m, ok := x.mirrored(e)
		require.True(t, ok)
		require.Equal(t, recordedOf(x.server, e), stateOf(faceOf(x.server.schema), x.mirror, m))
	}
}

// TestANewMemberShowsThatAnotherHasLeft: the client holds the state of a new member from the tick in
// which it joined, so it shows the group as of then, without a member that left in that tick.
func TestANewMemberShowsThatAnotherHasLeft(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	stays, leaves, joins := x.spawn(position), x.spawn(position), x.spawn(position)
	move := func(e ecs.Entity) { (*tPosition)(x.world.Get(e, position)).X++ }
	g := x.server.NewGroup()
	g.Add(stays)
	g.Add(leaves)
	x.rounds(10)
	g.Remove(leaves)
	g.Add(joins)
	move(joins)
	packets := x.replicate()
	former := g.in.Former[0]
	require.False(t, x.peer.acked.Released(&g.in, former), "the packet may be lost")
	x.deliver(packets...)
	x.answer(x.apply()...)
	move(stays) // so that the client does not hold everything
	move(joins)
	x.replicate()
	require.True(t, x.peer.acked.Released(&g.in, former))
}

// TestKeptMembersAreDespawnedWithTheirGroup: when a kept entity ends out of view, the client can't
// keep the other members of its group as they were. Nothing of them was in flight.
func TestKeptMembersAreDespawnedWithTheirGroup(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	a, b := x.spawn(position), x.spawn(position)
	g := x.server.NewGroup()
	g.Add(a)
	g.Add(b)
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }, Keep: true})
	x.rounds(5)
	hidden = true
	x.rounds(5)
	x.requireSeen(a, b)
	before := x.peer.Stats()
	x.world.RemoveEntity(b)
	x.rounds(5)
	x.requireSeen()
	now := x.peer.Stats()
	require.EqualValues(t, 2, now.Despawns-before.Despawns)
	require.Zero(t, now.GroupResends)
}
