package replication

import (
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// hookLog records which hooks were called with which arguments.
type hookLog struct {
	t     *testing.T
	x     *fixture
	lines []string
}

func newHookLog(t *testing.T, x *fixture) *hookLog {
	l := &hookLog{t: t, x: x}
	l.listen()
	return l
}

func (l *hookLog) listen() {
	c := l.x.client
	c.OnSpawn(func(e ecs.Entity) { l.note("spawn", e) })
	c.OnDespawn(func(e ecs.Entity) { l.note("despawn", e) })
	OnAdd(c, func(e ecs.Entity, v *tPosition) { l.note("add position %v", e, v.X) })
	OnAdd(c, func(e ecs.Entity, v *tHealth) { l.note("add health %v", e, v.HP) })
	OnAdd(c, func(e ecs.Entity, _ *tFrozen) { l.note("add frozen", e) })
	OnRemove(c, func(e ecs.Entity, v *tPosition) { l.note("remove position %v", e, v.X) })
	OnRemove(c, func(e ecs.Entity, v *tHealth) { l.note("remove health %v", e, v.HP) })
	OnRemove(c, func(e ecs.Entity, _ *tFrozen) { l.note("remove frozen", e) })
	OnChange(c, func(e ecs.Entity, before, now *tPosition) { l.note("position %v to %v", e, before.X, now.X) })
	OnChange(c, func(e ecs.Entity, before, now *tHealth) { l.note("health %v to %v", e, before.HP, now.HP) })
}

func (l *hookLog) note(format string, e ecs.Entity, args ...any) {
	id, ok := l.x.client.NetID(e)
	require.True(l.t, ok, "hooks are called for what is mirrored")
	require.False(l.t, l.x.mirror.IsLocked())
	l.lines = append(l.lines, fmt.Sprintf("%v "+format, append([]any{id}, args...)...))
}

func (l *hookLog) requireThat(lines ...string) {
	l.t.Helper()
	require.Equal(l.t, lines, l.lines)
	l.lines = nil
}

func TestHooksReportSpawnChangeAndDespawn(t *testing.T) {
	x := connectedWire(t, testSchema())
	l := newHookLog(t, x)
	position, health, frozen := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world), ecs.ComponentID[tFrozen](x.world)
	a, b := x.spawn(position, health), x.spawn(frozen)
	(*tPosition)(x.world.Get(a, position)).X = 1
	(*tHealth)(x.world.Get(a, health)).HP = 70
	x.rounds(3)
	l.requireThat("0.1 spawn", "0.1 add position 1", "0.1 add health 70", "1.1 spawn", "1.1 add frozen")

	(*tPosition)(x.world.Get(a, position)).X = 2
	x.world.Add(b, health)
	x.rounds(3)
	l.requireThat("0.1 position 1 to 2", "1.1 add health 0")

	// Removals are reported before additions, and the components of an entity before the entity
	// itself.
	(*tHealth)(x.world.Get(a, health)).HP = 60
	x.world.Remove(a, position)
	x.world.RemoveEntity(b)
	x.spawn(position)
	x.rounds(3)
	l.requireThat("0.1 remove position 2", "1.1 remove health 0", "1.1 remove frozen", "1.1 despawn",
		"0.1 health 70 to 60", "2.1 spawn", "2.1 add position 0")

	// Several states of the server between two Applies are one change; a component that came and
	// went is none.
	c := x.spawn(position)
	for range 3 {
		(*tHealth)(x.world.Get(a, health)).HP++
		x.deliver(x.replicate()...)
	}
	x.world.RemoveEntity(c)
	x.deliver(x.replicate()...)
	x.answer(x.apply()...)
	x.rounds(3)
	l.requireThat("0.1 health 60 to 63")

	x.client.Close()
	l.requireThat("0.1 remove health 63", "0.1 despawn", "2.1 remove position 0", "2.1 despawn")
}

// TestHooksAfterChangesByTheUser: what the user removed is not reported, and what the user wrote is
// the old value of the next change.
func TestHooksAfterChangesByTheUser(t *testing.T) {
	x := connectedWire(t, testSchema())
	l := newHookLog(t, x)
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	a, b := x.spawn(position, health), x.spawn(position)
	x.rounds(3)
	l.lines = nil
	ma, _ := x.mirrored(a)
	mb, _ := x.mirrored(b)
	mirrorPosition, mirrorHealth := ecs.ComponentID[tPosition](x.mirror), ecs.ComponentID[tHealth](x.mirror)

	x.mirror.Remove(ma, mirrorPosition)
	(*tHealth)(x.mirror.Get(ma, mirrorHealth)).HP = 33
	x.mirror.RemoveEntity(mb)
	(*tPosition)(x.world.Get(a, position)).X = 3
	(*tPosition)(x.world.Get(b, position)).X = 3
	(*tHealth)(x.world.Get(a, health)).HP = 90
	x.rounds(3)
	l.requireThat("0.1 health 33 to 90")

	x.world.Remove(a, position)
	x.world.RemoveEntity(b)
	x.rounds(3)
	require.Empty(t, l.lines)

	// A component added by the user counts as the server's once the server adds it.
	x.mirror.Add(ma, mirrorPosition)
	(*tPosition)(x.mirror.Get(ma, mirrorPosition)).X = 8
	x.world.Add(a, position)
	x.rounds(3)
	l.requireThat("0.1 add position 0")

	// A reset is not reported, because nothing is left to read.
	x.mirror.Reset()
	x.rounds(2)
	l.requireThat("0.1 spawn", "0.1 add position 0", "0.1 add health 90")
}

// TestHooksOfSessions: a session with the same server keeps its entities; with another server all
// entities are new.
func TestHooksOfSessions(t *testing.T) {
	schema := testSchema()
	x := connectedWire(t, schema)
	l := newHookLog(t, x)
	position := ecs.ComponentID[tPosition](x.world)
	a, b, c := x.spawn(position), x.spawn(position), x.spawn(position)
	x.rounds(3)
	l.lines = nil
	x.client.Reconnect()
	(*tPosition)(x.world.Get(a, position)).X = 5
	x.world.RemoveEntity(b)
	x.rounds(12)
	require.True(t, x.client.Complete())
	require.ElementsMatch(t, []string{"0.1 position 0 to 5", "1.1 remove position 0", "1.1 despawn"}, l.lines, "and nothing of %v", c)

	l.lines = nil
	x.replaceServer(schema, 99)
	x.spawn(position)
	x.client.Reconnect()
	x.rounds(12)
	l.requireThat("0.1 remove position 5", "0.1 despawn", "2.1 remove position 0", "2.1 despawn",
		"0.1 spawn", "0.1 add position 0")
}

// TestHooksMayChangeTheWorld: in any way, and later hooks are not called for entities that are
// gone.
func TestHooksMayChangeTheWorld(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	mirrorPosition, mirrorHealth := ecs.ComponentID[tPosition](x.mirror), ecs.ComponentID[tHealth](x.mirror)
	local := ecs.ComponentID[tLocal](x.mirror)
	var trail []ecs.Entity
	calls := 0
	x.client.OnSpawn(func(e ecs.Entity) {
		x.mirror.Add(e, local)
		for range 100 { // makes Arche move its tables
			trail = append(trail, x.mirror.NewEntity(mirrorPosition, mirrorHealth))
		}
	})
	OnAdd(x.client, func(e ecs.Entity, v *tPosition) {
		require.True(t, x.mirror.Has(e, local))
		require.EqualValues(t, 7, v.X)
		if x.mirror.Has(e, mirrorHealth) {
			x.mirror.Remove(e, mirrorHealth)
		}
	})
	OnAdd(x.client, func(ecs.Entity, *tHealth) { calls++ })
	OnRemove(x.client, func(e ecs.Entity, _ *tPosition) { x.mirror.RemoveEntity(e) })
	OnRemove(x.client, func(_ ecs.Entity, _ *tPosition) { calls++ })
	x.client.OnDespawn(func(ecs.Entity) { calls++ })
	a, b := x.spawn(position, health), x.spawn(position)
	for _, e := range []ecs.Entity{a, b} {
		(*tPosition)(x.world.Get(e, position)).X = 7
	}
	x.rounds(3)
	require.Len(t, trail, 200)
	ma, _ := x.mirrored(a)
	require.False(t, x.mirror.Has(ma, mirrorHealth))
	x.world.RemoveEntity(a)
	x.world.Remove(b, position)
	x.rounds(3)
	require.Zero(t, calls)
	require.False(t, x.mirror.Alive(ma))
	x.world.Add(b, health)
	x.rounds(3)
	require.Zero(t, calls, "b is gone here")

	// A hook may even reset the world.
	x.client.OnSpawn(func(ecs.Entity) { trail = nil; x.mirror.Reset() })
	x.client.OnSpawn(func(ecs.Entity) { calls++ })
	(*tPosition)(x.world.Get(x.spawn(position), position)).X = 7
	x.deliver(x.replicate()...)
	x.apply()
	require.Zero(t, calls)
	require.Zero(t, x.mirror.Stats().Entities.Used)
}

func TestWhatAHookMustNotDo(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	var do func()
	x.client.OnSpawn(func(ecs.Entity) { do() })
	x.client.OnDespawn(func(ecs.Entity) { do() })
	refused := func(sentence string, fn func()) {
		t.Helper()
		do = fn
		e := x.spawn(position)
		packets := x.replicate()
		require.PanicsWithValue(t, sentence, func() { x.deliver(packets...); _ = x.client.Apply() })
		do = func() {}
		x.rounds(3)
		do = fn
		x.world.RemoveEntity(e)
		packets = x.replicate()
		require.PanicsWithValue(t, sentence, func() { x.deliver(packets...); _ = x.client.Apply() })
		do = func() {}
		x.rounds(3)
		x.requireEqual()
	}
	again := "in a hook: the Frame that called it has not ended; note it and do so afterwards"
	refused("replication: Frame "+again, func() { _ = x.client.Frame(0) })
	refused("replication: Receive "+again, func() { _ = x.client.Receive(nil) })
	refused("replication: Close "+again, func() { x.client.Close() })

	do = func() { x.mirror.Query(ecs.All()) }
	x.spawn(position)
	x.deliver(x.replicate()...)
	require.PanicsWithValue(t, "replication: a hook has left the world locked: close the queries that it makes", func() { _ = x.client.Apply() })
}

func TestHooksThatCantBe(t *testing.T) {
	x := newWire(t, testSchema())
	unknown := "%s: replication.tLocal is not registered: the server sends nothing of it"
	for name, register := range map[string]func(){
		"OnAdd":    func() { OnAdd(x.client, func(ecs.Entity, *tLocal) {}) },
		"OnRemove": func() { OnRemove(x.client, func(ecs.Entity, *tLocal) {}) },
		"OnChange": func() { OnChange(x.client, func(_ ecs.Entity, _, _ *tLocal) {}) },
	} {
		require.PanicsWithValue(t, "replication: "+fmt.Sprintf(unknown, name), register)
	}
	require.PanicsWithValue(t, "replication: OnSpawn needs a function", func() { x.client.OnSpawn(nil) })
	require.PanicsWithValue(t, "replication: OnChange needs a function", func() { OnChange[tHealth](x.client, nil) })
}

// TestHooksOfRelationsAndReferences: a new target is a change, and hooks see all references as they
// are after Apply.
func TestHooksOfRelationsAndReferences(t *testing.T) {
	x := connectedWire(t, referenceSchema())
	child, target := ecs.ComponentID[rChildOf](x.world), ecs.ComponentID[rTarget](x.world)
	mirrorChild := ecs.ComponentID[rChildOf](x.mirror)
	a, b, other := x.spawn(child, target), x.spawn(target), x.spawn(target)
	x.world.Relations().Set(a, child, b)
	(*rTarget)(x.world.Get(a, target)).Entity = b
	calls := 0
	x.client.OnSpawn(func(e ecs.Entity) {
		if ma, _ := x.mirrored(a); e == ma {
			mb, ok := x.mirrored(b)
			require.True(t, ok, "though it came later in the packet")
			require.Equal(t, mb, x.mirror.Relations().Get(e, mirrorChild))
			require.Equal(t, mb, (*rTarget)(x.mirror.Get(e, ecs.ComponentID[rTarget](x.mirror))).Entity)
			calls++
		}
	})
	OnChange(x.client, func(e ecs.Entity, _, _ *rChildOf) {
		mo, _ := x.mirrored(other)
		require.Equal(t, mo, x.mirror.Relations().Get(e, mirrorChild))
		calls++
	})
	OnChange(x.client, func(_ ecs.Entity, before, now *rTarget) {
		mb, _ := x.mirrored(b)
		mo, _ := x.mirrored(other)
		require.Equal(t, mb, before.Entity)
		require.Equal(t, mo, now.Entity)
		calls++
	})
	x.rounds(3)
	require.Equal(t, 1, calls)
	x.world.Relations().Set(a, child, other)
	(*rTarget)(x.world.Get(a, target)).Entity = other
	x.rounds(3)
	require.Equal(t, 3, calls)
	x.client.OnDespawn(func(e ecs.Entity) {
		if !x.mirror.Has(e, mirrorChild) {
			return
		}
		target := x.mirror.Relations().Get(e, mirrorChild)
		require.True(t, x.mirror.Alive(target), "though it goes as well")
		calls++
	})
	x.world.RemoveEntity(other)
	x.world.RemoveEntity(a)
	x.rounds(3)
	require.Equal(t, 4, calls)
}

// TestHooksReportEveryChange: whatever the network and the connection do, a copy of the world that
// is built by hooks alone equals the world after every Apply.
func TestHooksReportEveryChange(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(3000, 800)
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 25)
	o := newTruth()
	e := connect(s, seed, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6})
	story := newShadow(e.client, shadowComponent[tPosition], shadowComponent[tRotation], shadowComponent[tHealth],
		shadowComponent[tExact], shadowComponent[tFrozen], shadowComponent[tBulk])
	events := 0
	e.client.OnSpawn(func(ecs.Entity) { events++ })
	for tick := range ticks {
		g.step()
		s.Replicate()
		o.record(s)
		if g.rng.IntN(400) == 0 {
			e.client.Reconnect()
		}
		if g.rng.IntN(300) == 0 {
			e.world.Reset()
			clear(story.entities)
		}
		e.step(t)
		e.check(t, s, o)
		story.requireEqual(t, e, tick)
	}
	require.Greater(t, events, ticks/20)
}

// TestHooksDoNotAllocate: and with hooks Apply and the server still do not.
func TestHooksDoNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x := connectedWire(t, testSchema())
	position, health := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world)
	var entities []ecs.Entity
	for range 100 {
		entities = append(entities, x.spawn(position, health))
	}
	x.rounds(3)
	var came, went, changed int
	x.client.OnSpawn(func(ecs.Entity) { came++ })
	x.client.OnDespawn(func(ecs.Entity) { went++ })
	OnAdd(x.client, func(ecs.Entity, *tPosition) { came++ })
	OnRemove(x.client, func(ecs.Entity, *tPosition) { went++ })
	OnChange(x.client, func(_ ecs.Entity, before, now *tPosition) {
		if before.X != now.X {
			changed++
		}
	})
	var ack []byte
	x.client.session.Send = func(p []byte) error {
		ack = append(ack[:0], p...)
		return nil
	}
	total := 0.0
	const warm, runs = 300, 100
	for tick := range warm + runs {
		for i, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X = float32((3*tick+i)%50) * 0.1
		}
		if tick%2 == 0 {
			x.world.RemoveEntity(entities[0])
			entities = append(entities[1:], x.spawn(position, health))
		}
		x.deliver(x.replicate()...)
		before := changed
		allocs := allocsOf(func() {
			if err := x.client.Apply(); err != nil {
				t.Fatal(err)
			}
		})
		require.GreaterOrEqual(t, changed, before+90)
		if tick >= warm {
			total += allocs
		}
		x.answer(ack)
	}
	t.Logf("%v allocations per Apply", total/runs)
	require.LessOrEqual(t, total/runs, 0.1)
	require.Greater(t, came, 100)
	require.Greater(t, went, 100)
}

// TestAHookThatPanicsLosesNoOtherEvents: the hooks for these are called all the same, and nothing is left to be done.
func TestAHookThatPanicsLosesNoOtherEvents(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	spawned, added, upset := map[ecs.Entity]bool{}, map[ecs.Entity]bool{}, 2
	x.client.OnSpawn(func(e ecs.Entity) {
		if upset > 0 {
			upset--
			panic("the user's")
		}
		spawned[e] = true
	})
	OnAdd(x.client, func(e ecs.Entity, _ *tPosition) { added[e] = true })
	ended := 0
	x.client.OnDespawn(func(e ecs.Entity) {
		ended++
		require.Equal(t, ended != 1, spawned[e], "of the first two, only the components were reported")
	})
	var all []ecs.Entity
	for range 4 {
		all = append(all, x.spawn(position))
	}
	x.deliver(x.replicate()...)
	require.PanicsWithValue(t, "the user's", func() { _ = x.client.Apply() })
	require.Len(t, spawned, 2)
	require.Len(t, added, 4)
	x.world.RemoveEntity(all[3])
	x.world.RemoveEntity(all[0])
	x.rounds(5)
	require.Len(t, added, 4, "nothing is reported twice")
	require.Equal(t, 2, ended)
}
