package replication

import (
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// dNumber is coded by a codec that panics in Decode while it is upset.
type dNumber struct{ n int32 }

type dCodec struct{ upset *bool }

func (dCodec) Fields() []CodecField              { return []CodecField{{Name: "n", Bits: 12}} }
func (dCodec) Encode(v *dNumber, codes []uint64) { codes[0] = uint64(v.n) }

func (c dCodec) Decode(codes []uint64, v *dNumber) {
	if *c.upset {
		panic("the user's")
	}
	v.n = int32(codes[0])
}

type (
	dOpen  struct{ V dNumber }
	dOwn   struct{ V dNumber }
	dMatch struct{ V dNumber }
)

// A decodeGame has an entity of the server's, and counts what the client announces.
type decodeGame struct {
	*fixture
	e                         ecs.Entity
	health, open, own         ecs.ID
	spawned, added, openAdded int
}

func newDecodeGame(t *testing.T, upset *bool) *decodeGame {
	s := NewSchema()
	codec := dCodec{upset}
	Register[dOpen](s, With(codec)) // before tHealth: what comes later is not written
	Register[tHealth](s)
	Register[dOwn](s, With(codec), OwnerOnly())
	RegisterResource[dMatch](s, With(codec))
	g := &decodeGame{fixture: connectedWire(t, s)}
	g.health, g.open, g.own = ecs.ComponentID[tHealth](g.world), ecs.ComponentID[dOpen](g.world), ecs.ComponentID[dOwn](g.world)
	g.client.OnSpawn(func(ecs.Entity) { g.spawned++ })
	OnAdd(g.client, func(ecs.Entity, *tHealth) { g.added++ })
	OnAdd(g.client, func(ecs.Entity, *dOpen) { g.openAdded++ })
	return g
}

// set gives the entity the components, with values.
func (g *decodeGame) set(components ...ecs.ID) {
	for _, id := range components {
		if !g.world.Has(g.e, id) {
			g.world.Add(g.e, id)
		}
	}
	for id, write := range map[ecs.ID]func(){
		g.health: func() { (*tHealth)(g.world.Get(g.e, g.health)).HP += 55 },
		g.open:   func() { (*dOpen)(g.world.Get(g.e, g.open)).V.n += 77 },
		g.own:    func() { (*dOwn)(g.world.Get(g.e, g.own)).V.n += 33 },
	} {
		if g.world.Has(g.e, id) {
			write()
		}
	}
}

// TestDecodePanicsAndApplyGoesOn: after a codec that panicked once while Apply wrote, the next Apply shows everything,
// and hooks and counters have missed nothing and have nothing twice.
func TestDecodePanicsAndApplyGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		before, change   func(g *decodeGame)
		added, openAdded int // calls of OnAdd in all
	}{
		"an entity spawns": {
			func(*decodeGame) {},
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.open, g.health) }, 1, 1,
		},
		"a component comes": {
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.health) },
			func(g *decodeGame) { g.set(g.open) }, 1, 1,
		},
		"a component changes": {
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.health, g.open) },
			func(g *decodeGame) { g.set() }, 1, 1,
		},
		"a component under a condition comes": {
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.health); g.server.SetOwner(g.e, g.peer) },
			func(g *decodeGame) { g.set(g.own) }, 1, 0,
		},
		"an entity spawns with one under a condition": {
			func(*decodeGame) {},
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.health, g.own); g.server.SetOwner(g.e, g.peer) }, 1, 0,
		},
		"a resource comes": {
			func(g *decodeGame) { g.e = g.spawn(); g.set(g.health) },
			func(g *decodeGame) { setResource(g.world, dMatch{dNumber{5}}) }, 1, 0,
		},
	} {
		for _, goesAway := range []bool{false, true} { // what the client has not written yet
			upset := false
			g := newDecodeGame(t, &upset)
			c.before(g)
			g.rounds(10)
			c.change(g)
			upset = true
			g.deliver(g.replicate()...)
			require.PanicsWithValue(t, "the user's", func() { _ = g.client.Apply() }, name)
			if upset = false; goesAway {
				g.world.RemoveEntity(g.e)
			}
			g.rounds(20)
			g.requireEqual()
			require.Nil(t, g.client.Verify(), name)
			require.Equal(t, resourceOf[dMatch](g.world), resourceOf[dMatch](g.mirror), name)
			stats := g.client.Stats()
			if !goesAway {
				require.Equal(t, []int{1, c.added, c.openAdded}, []int{g.spawned, g.added, g.openAdded}, name)
				require.EqualValues(t, 1, stats.Spawns, name)
			}
			require.LessOrEqual(t, stats.Despawns, stats.Spawns, name)
		}
	}
}
