package replication

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestVerifyNamesTheFirstFieldThatDiffers(t *testing.T) {
	x := connectedWire(t, testSchema())
	position, health, exact := ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world), ecs.ComponentID[tExact](x.world)
	a, b := x.spawn(position), x.spawn(position, health, exact)
	(*tHealth)(x.world.Get(b, health)).HP = 40
	x.rounds(3)
	require.Nil(t, x.client.Verify())
	ma, _ := x.mirrored(a)
	mb, _ := x.mirrored(b)
	mirrorPosition, mirrorHealth := ecs.ComponentID[tPosition](x.mirror), ecs.ComponentID[tHealth](x.mirror)
	mirrorExact := ecs.ComponentID[tExact](x.mirror)

	(*tPosition)(x.mirror.Get(ma, mirrorPosition)).Y = 0.004
	require.Nil(t, x.client.Verify(), "the same code")

	(*tExact)(x.mirror.Get(mb, mirrorExact)).C.D = 3
	d := x.client.Verify()
	require.Equal(t, "tExact.C.D", d.Name())
	(*tHealth)(x.mirror.Get(mb, mirrorHealth)).HP = 41
	d = x.client.Verify()
	require.NotNil(t, d)
	id, _ := x.server.NetID(b)
	require.Equal(t, Divergence{NetID: id, Entity: mb, Tick: d.Tick, Component: "tHealth", Field: "HP", Got: int16(41), Want: int16(40)}, *d)
	require.Equal(t, "tHealth.HP of the entity in slot 1, generation 1, is 41, and at the server's tick 5 it was 40", d.String())
	(*tPosition)(x.mirror.Get(ma, mirrorPosition)).Z = -3
	d = x.client.Verify()
	require.Equal(t, "tPosition.Z", d.Name())
	require.Equal(t, float32(-3), d.Got)

	// Components that the user removed do not count.
	x.mirror.Remove(mb, mirrorHealth, mirrorExact)
	x.mirror.RemoveEntity(ma)
	require.Nil(t, x.client.Verify())

	// An update from the server corrects it.
	(*tPosition)(x.mirror.Get(mb, mirrorPosition)).Z = -3
	require.NotNil(t, x.client.Verify())
	(*tPosition)(x.world.Get(b, position)).X = 1
	x.rounds(1)
	require.Nil(t, x.client.Verify())
	(*tPosition)(x.mirror.Get(mb, mirrorPosition)).Z = -3
	x.mirror.Reset()
	require.Nil(t, x.client.Verify(), "there is nothing")
}

func TestVerifyOfReferences(t *testing.T) {
	x := connectedWire(t, referenceSchema())
	child, target, squad := ecs.ComponentID[rChildOf](x.world), ecs.ComponentID[rTarget](x.world), ecs.ComponentID[rSquad](x.world)
	a, b := x.spawn(child, target, squad), x.spawn()
	x.world.Relations().Set(a, child, b)
	(*rSquad)(x.world.Get(a, squad)).Men[1] = b
	x.rounds(3)
	require.Nil(t, x.client.Verify())
	ma, _ := x.mirrored(a)
	mb, _ := x.mirrored(b)
	mirrorChild := ecs.ComponentID[rChildOf](x.mirror)
	men := func() *[3]ecs.Entity { return &(*rSquad)(x.mirror.Get(ma, ecs.ComponentID[rSquad](x.mirror))).Men }

	men()[1] = ma
	d := x.client.Verify()
	require.Equal(t, "rSquad.Men[1]", d.Name())
	require.Equal(t, ma, d.Got)
	require.Equal(t, mb, d.Want)
	men()[1], men()[2] = mb, ma
	d = x.client.Verify()
	require.Equal(t, "rSquad.Men[2]", d.Name())
	require.Equal(t, ecs.Entity{}, d.Want)
	men()[2] = ecs.Entity{}
	x.mirror.Relations().Set(ma, mirrorChild, ma)
	d = x.client.Verify()
	require.Equal(t, "rChildOf.Relation", d.Name())
	require.Equal(t, ma, d.Got)
	require.Equal(t, mb, d.Want)
	x.mirror.Relations().Set(ma, mirrorChild, mb)
	require.Nil(t, x.client.Verify())

	// A reference to a replica that the user removed stays, or is zero.
	x.mirror.RemoveEntity(mb)
	require.Nil(t, x.client.Verify())
	men()[1] = ecs.Entity{}
	require.Nil(t, x.client.Verify())
}

// TestVerifyOfResources: they have no entity and no NetID.
func TestVerifyOfResources(t *testing.T) {
	schema := NewSchema()
	Register[tPosition](schema)
	RegisterResource[rsMatch](schema, Name("Match"))
	x := newWire(t, schema)
	setResource(x.world, rsMatch{Round: 5})
	e := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	require.Nil(t, x.client.Verify())
	resourceOf[rsMatch](x.mirror).Round = 77
	d := x.client.Verify()
	require.Equal(t, Divergence{Tick: d.Tick, Component: "Match", Field: "Round", Got: uint8(77), Want: uint8(5)}, *d)
	require.Equal(t, fmt.Sprintf("Match.Round of the resources is 77, and at the server's tick %d it was 5", d.Tick), d.String())
	dropResource[rsMatch](x.mirror)
	require.Nil(t, x.client.Verify(), "the user removed it")
	x.world.RemoveEntity(e)
	x.rounds(3)
	require.Nil(t, x.client.Verify())
}

// TestVerifyFindsExactlyWhatWasChanged: over a bad network, at any time, also with references.
func TestVerifyFindsExactlyWhatWasChanged(t *testing.T) {
	ticks := 2000
	if testing.Short() {
		ticks = 500
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 7))
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 25)
	o := newTruth()
	e := connect(s, seed, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6})
	position := ecs.ComponentID[tPosition](e.world)
	found := 0
	for tick := range ticks {
		g.step()
		if rng.IntN(300) == 0 {
			e.client.Reconnect()
		}
		tickAll(t, s, o, []*end{e})
		if d := e.client.Verify(); d != nil {
			require.FailNow(t, "none was spoiled", "tick %d: %v", tick, d)
		}
		// Change one, find it, and restore it.
		filter := ecs.All(position, e.client.apply.View.Marker)
		q := e.world.Query(&filter)
		if n := q.Count(); n == 0 {
			q.Close()
			continue
		}
		q.Step(1 + rng.IntN(q.Count()))
		p := (*tPosition)(q.Get(position))
		spoiled, was := q.Entity(), *p
		q.Close()
		p.Y += 0.02
		if p.Y > 100 {
			p.Y = 0
		}
		d := e.client.Verify()
		*p = was
		if d == nil {
			id, _ := e.client.NetID(spoiled)
			require.Nil(t, e.client.apply.View.Replicas.At(id.Slot).Held.At(e.client.apply.View.Replicas.At(id.Slot).Tick), "left from another session")
			continue
		}
		require.Equal(t, spoiled, d.Entity)
		require.Equal(t, "tPosition.Y", d.Name())
		found++
	}
	require.Greater(t, found, ticks/2)
}

func TestVerifyDoesNotAllocate(t *testing.T) {
	skipAllocationTest(t)
	x, _, _ := crowd(t, 100)
	require.Nil(t, x.client.Verify())
	require.Zero(t, testing.AllocsPerRun(20, func() { x.client.Verify() }))
}

// TestVerifySkipsWhatAnotherServerHasSent until Apply shows it.
func TestVerifySkipsWhatAnotherServerHasSent(t *testing.T) {
	for wait := range 12 { // so that ticks of both servers meet
		schema := testSchema()
		x := newWire(t, schema)
		position := ecs.ComponentID[tPosition](x.world)
		(*tPosition)(x.world.Get(x.spawn(position), position)).X = 1
		x.rounds(6)
		x.replaceServer(schema, 99)
		(*tPosition)(x.world.Get(x.spawn(position), position)).X = 2
		for range wait {
			x.server.Replicate()
			x.takeDown()
		}
		x.client.Reconnect()
		for range 12 {
			x.deliver(x.replicate()...)
			require.Nil(t, x.client.Verify())
			x.answer(x.apply()...)
			x.deliver(x.takeDown()...)
		}
		x.requireEqual()
	}
}
