package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// tVelvet is in no schema.
type tVelvet struct{}

func TestInterestByFilterFollowsAllComponents(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	onStage, velvet := ecs.ComponentID[tOnStage](x.world), ecs.ComponentID[tVelvet](x.world)
	a, b, c := x.spawn(position), x.spawn(position, onStage), x.spawn(position, onStage, velvet)
	all := ecs.All(onStage)
	without := all.Without(velvet)
	x.peer.SetInterest(Interest{Filter: &all})
	x.rounds(4)
	x.requireSeen(b, c)
	x.peer.SetInterest(Interest{Filter: &without})
	x.rounds(4)
	x.requireSeen(b)
	x.world.Add(a, onStage)
	x.world.Add(b, velvet)
	x.world.Remove(c, velvet)
	x.rounds(4)
	x.requireSeen(a, c)
	x.world.Add(a, health) // another table, still on stage
	x.rounds(4)
	x.requireSeen(a, c)
	x.peer.SetInterest(Interest{Filter: &without, Visible: func(e ecs.Entity) bool { return e == c || e == b }})
	x.rounds(4)
	x.requireSeen(c)
	set := x.server.NewEntitySet()
	set.Add(a)
	set.Add(b)
	x.peer.SetInterest(Interest{Filter: &without, Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(a)
	x.peer.SetInterest(Interest{})
	x.rounds(4)
	x.requireSeen(a, b, c)
	require.Nil(t, x.peer.sight.View.InView, "no more to look at")
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(a, b)
}

type tTroupe struct{ ecs.Relation }

// TestInterestInRelationTables: entities of one mask lie in several tables of Arche.
func TestInterestInRelationTables(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, troupe, onStage := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tTroupe](x.world), ecs.ComponentID[tOnStage](x.world)
	heads := []ecs.Entity{x.world.NewEntity(), x.world.NewEntity()}
	var on, off []ecs.Entity
	for i := range 20 {
		e := x.spawn(position, troupe)
		x.world.Relations().Set(e, troupe, heads[i%2])
		if i%3 == 0 {
			x.world.Add(e, onStage)
			on = append(on, e)
		} else {
			off = append(off, e)
		}
	}
	all := ecs.All(onStage, troupe)
	x.peer.SetInterest(Interest{Filter: &all})
	x.rounds(4)
	x.requireSeen(on...)
	for i, e := range on {
		x.world.Relations().Set(e, troupe, heads[(i+1)%2])
		(*tPosition)(x.world.Get(e, position)).X = float32(i)
	}
	x.world.Add(off[0], onStage)
	x.world.Remove(on[0], onStage)
	x.rounds(4)
	x.requireSeen(append(on[1:], off[0])...)
}

// TestInterestIsKeptWhenTheClientComesAgain: clients connect late and reconnect.
func TestInterestIsKeptWhenTheClientComesAgain(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x := newWire(t, testSchema())
		position := ecs.ComponentID[tPosition](x.world)
		a, b, c := x.spawn(position), x.spawn(position), x.spawn(position)
		set := x.server.NewEntitySet()
		set.Add(a)
		set.Add(b)
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		for range 10 { // no client yet
			x.replicate()
		}
		x.rounds(10)
		x.requireSeen(a, b)
		set.Remove(b)
		set.Add(c)
		x.rounds(4)
		if keep {
			x.requireSeen(a, b, c)
		} else {
			x.requireSeen(a, c)
		}
		x.restart(faceOf(x.server.schema), 99)
		x.rounds(10)
		x.requireSeen(a, c) // the new client knows nothing of the kept entities
	}
}

// TestKeptEntitiesStayAsTheyWereSeen follows a kept entity: out of view, back, despawned while its
// slot goes to another one, and released.
func TestKeptEntitiesStayAsTheyWereSeen(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	set := x.server.NewEntitySet()
	move := func(e ecs.Entity, to float32) { (*tPosition)(x.world.Get(e, position)).X = to }
	e, other := x.spawn(position), x.spawn(position)
	set.Add(e)
	set.Add(other)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
	x.rounds(4)
	sent := x.peer.Stats()
	set.Remove(e)
	for i := range 300 { // longer than baselines are kept
		move(e, float32(i%90))
		x.round()
	}
	require.Zero(t, x.position(e).X)
	require.Equal(t, sent.Updates+sent.FullStates+sent.KeyframeFallbacks+sent.Despawns, x.peer.Stats().Updates+x.peer.Stats().FullStates+x.peer.Stats().KeyframeFallbacks+x.peer.Stats().Despawns)
	set.Add(e)
	x.rounds(4)
	x.requireSeen(e, other)
	move(e, 77)
	x.rounds(3)
	x.requireSeen(e, other)
	set.Remove(e)
	x.rounds(3)
	set.Add(e) // unchanged: there is nothing to send
	sent = x.peer.Stats()
	x.rounds(3)
	require.Equal(t, sent.Updates+sent.FullStates+sent.KeyframeFallbacks, x.peer.Stats().Updates+x.peer.Stats().FullStates+x.peer.Stats().KeyframeFallbacks)
	set.Remove(e)
	x.round()
	id, _ := x.server.NetID(e)
	x.world.RemoveEntity(e)
	x.replicate() // the despawn is lost
	hidden := x.spawn(position)
	x.rounds(60)
	require.EqualValues(t, id.Slot, x.slotOf(hidden))
	x.requireSeen(other)

	set.Remove(other)
	x.rounds(4)
	x.requireSeen(other)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}}) // nothing is kept any more
	x.rounds(4)
	x.requireSeen()
	set.Add(hidden)
	x.rounds(4)
	x.requireSeen(hidden)
}

// TestLateAckOfADespawn: the ack arrives after the entity came back, was acknowledged and left
// again. The server must not conclude that the client has nothing.
func TestLateAckOfADespawn(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	set := x.server.NewEntitySet()
	e := x.spawn(position)
	set.Add(e)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
	x.rounds(4)
	x.requireSeen(e)
	set.Remove(e)
	late := x.replicate()
	require.Len(t, late, 1)
	set.Add(e)
	x.rounds(4)
	x.requireSeen(e)
	x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
	set.Remove(e)
	x.rounds(2)
	x.deliver(late...) // outdated, and acknowledged
	x.answer(x.apply()...)
	x.rounds(2)
	x.requireSeen(e)
	x.world.RemoveEntity(e)
	x.rounds(4)
	x.requireSeen()
}

// TestInterestDoesNotAllocate: entities enter and leave the view by all kinds of interest.
func TestInterestDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	for kind, name := range []string{"filter", "grid", "set", "visible"} {
		t.Run(name, func(t *testing.T) {
			w := ecs.NewWorld()
			s := NewServer(&w, testSchema(), WithSeed(1))
			position, marker, onStage := ecs.ComponentID[tPosition](&w), ReplicatedID(&w), ecs.ComponentID[tOnStage](&w)
			f := connectFake(t, s, 1, 5, 0)
			grid, set, all, tick := s.NewGrid(10, "tPosition.X", "tPosition.Y"), s.NewEntitySet(), ecs.All(onStage), 0
			phase := map[ecs.Entity]int{}
			visible := func(e ecs.Entity) bool { return (tick/8+phase[e])%3 == 0 }
			f.peer.SetInterest([]Interest{{Filter: &all}, {Grid: grid}, {Sets: []*EntitySet{set}}, {Visible: visible}}[kind])
			f.peer.LookFrom(20, 0, 0)
			var entities []ecs.Entity
			for i := range 500 {
				e := w.NewEntity(position, marker)
				phase[e] = i
				entities = append(entities, e)
			}
			play := func() {
				tick++
				for i, e := range entities {
					p := (*tPosition)(w.Get(e, position))
					p.X, p.Z = 80, float32((tick*i)%100)
					if visible(e) {
						p.X = float32(i % 20)
					}
					if visible(e) != w.Has(e, onStage) && name == "filter" {
						if visible(e) {
							w.Add(e, onStage)
						} else {
							w.Remove(e, onStage)
						}
					}
					if visible(e) {
						set.Add(e)
					} else {
						set.Remove(e)
					}
				}
				if packet := f.answer(tick); packet != nil {
					_ = f.peer.Receive(packet)
				}
			}
			for range 400 {
				play()
				s.Replicate()
			}
			before := f.peer.Stats()
			total := 0.0
			for range 50 {
				play()
				total += allocsOf(s.Replicate)
			}
			now := f.peer.Stats()
			require.Greater(t, now.Despawns-before.Despawns, uint64(500))
			require.Greater(t, now.FullStates-before.FullStates, uint64(500))
			require.Greater(t, now.Updates-before.Updates, uint64(500))
			require.LessOrEqual(t, total/50, 0.1)
		})
	}
}

// TestInterestsBetweenTwoTicks: however often the interest is set before the next tick, the last
// one counts. Without Keep, kept entities are despawned.
func TestInterestsBetweenTwoTicks(t *testing.T) {
	for _, keep := range []bool{false, true} {
		x, e, _ := crowd(t, 2)
		set := x.server.NewEntitySet()
		set.Add(e[0])
		set.Add(e[1])
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
		x.rounds(3)
		set.Remove(e[0])
		x.rounds(3)
		x.requireSeen(e...)
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}})
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: keep})
		x.rounds(4)
		if keep {
			x.requireSeen(e...)
		} else {
			x.requireSeen(e[1])
		}
	}
}

// TestAStateInFlightTwiceAfterComingBackIntoView: a state was sent before the entity left the view
// and again when it came back, and only the first packet is acknowledged. If the second one
// arrived, the client holds the state as of that tick for good, and as of the first tick only for a
// while.
func TestAStateInFlightTwiceAfterComingBackIntoView(t *testing.T) {
	for _, opts := range [][]ServerOption{nil, {withoutSharedPackets}} {
		x, e, move := crowd(t, 2, opts...)
		set := x.server.NewEntitySet()
		set.Add(e[0])
		set.Add(e[1])
		x.peer.SetInterest(Interest{Sets: []*EntitySet{set}, Keep: true})
		for range snapshot.RecentTicks + 20 {
			move(e[1], 0.1)
			x.round()
		}
		move(e[0], 1)
		first := x.replicate()
		set.Remove(e[0])
		x.replicate()
		set.Add(e[0])
		second, _ := x.split(x.replicate(), 0)
		require.Len(t, second, 1)
		x.deliver(first...)
		x.answer(x.apply()...)
		for i := range 3 * x.server.opts.Window {
			move(e[1], float32(1-i%2*2))
			x.round()
			if i == 70 { // acks do not reach back that far
				x.deliver(second...)
			}
		}
		x.muteAcks(40, func() { move(e[0], 0.1) })
	}
}
