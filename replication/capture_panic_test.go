package replication

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A fickle number is sent by a codec that panics now and then.
type (
	fickle  struct{ V int32 }
	shaky   struct{ left *int } // calls until it panics, if that is positive
	steadyA struct{ A uint8 }
	onceB   struct{ B uint8 }
	slowC   struct{ C uint8 }
	refersD struct{ To ecs.Entity }
)

func (shaky) Fields() []CodecField { return []CodecField{{Name: "v", Bits: 8}} }

func (c shaky) Encode(v *fickle, codes []uint64) {
	if *c.left--; *c.left == 0 {
		panic("the user's")
	}
	codes[0] = uint64(v.V)
}

func (shaky) Decode(codes []uint64, v *fickle) { v.V = int32(codes[0]) }

// TestCodecsThatPanic: whatever entities do in ticks in which a codec panics, the world is not locked afterwards, and
// clients get to show what there is.
func TestCodecsThatPanic(t *testing.T) {
	seed := seedOf(t)
	for game := range uint64(ticksOf(40, 10)) {
		r := rand.New(rand.NewPCG(seed, game))
		left := 0
		schema := NewSchema()
		register := []func(){
			func() { Register[fickle](schema, With(shaky{&left})) },
			func() { Register[steadyA](schema) },
			func() { Register[onceB](schema, Once()) },
			func() { Register[slowC](schema, Every(2+r.IntN(4))) },
			func() { Register[refersD](schema) },
		}
		for _, i := range r.Perm(len(register)) {
			register[i]()
		}
		c := crumbling{fixture: connectedWire(t, schema), r: r}
		c.fickle, c.a, c.b = ecs.ComponentID[fickle](c.world), ecs.ComponentID[steadyA](c.world), ecs.ComponentID[onceB](c.world)
		c.slow, c.refers = ecs.ComponentID[slowC](c.world), ecs.ComponentID[refersD](c.world)
		panics := 0
		for range 300 {
			for range r.IntN(3) {
				c.step()
			}
			if left = r.IntN(12); left > 8 {
				left = 0
			}
			if c.panics() {
				panics++
			}
			require.False(t, c.world.IsLocked())
		}
		require.Greater(t, panics, 10)
		left = 0
		c.rounds(10)
		c.requireEqual()
		c.server.Close()
	}
}

// A crumbling game has entities with components of all kinds.
type crumbling struct {
	*fixture
	r                          *rand.Rand
	fickle, a, b, slow, refers ecs.ID
	entities                   []ecs.Entity
}

// step spawns, removes or changes an entity.
func (c *crumbling) step() {
	n := len(c.entities)
	if n < 3 || c.r.IntN(3) == 0 {
		e := c.spawn(c.fickle, c.a, c.b)
		*(*steadyA)(c.world.Get(e, c.a)), *(*onceB)(c.world.Get(e, c.b)) = steadyA{uint8(c.r.IntN(2))}, onceB{uint8(c.r.IntN(2))}
		c.entities = append(c.entities, e)
		return
	}
	i := c.r.IntN(n)
	e := c.entities[i]
	switch c.r.IntN(4) {
	case 0:
		c.world.RemoveEntity(e)
		c.entities = slices.Delete(c.entities, i, i+1)
	case 1:
		if id := replicationtest.Pick(c.r, c.fickle, c.a, c.slow, c.refers); c.world.Has(e, id) {
			c.world.Remove(e, id)
		} else {
			c.world.Add(e, id)
		}
	default:
		c.change(e)
	}
}

// change changes a component of an entity, if it has it.
func (c *crumbling) change(e ecs.Entity) {
	id := replicationtest.Pick(c.r, c.fickle, c.a, c.slow, c.refers)
	p := c.world.GetUnchecked(e, id)
	switch {
	case p == nil:
	case id == c.fickle:
		(*fickle)(p).V = int32(c.r.IntN(100))
	case id == c.refers:
		(*refersD)(p).To = c.entities[c.r.IntN(len(c.entities))]
	default:
		*(*uint8)(p)++
	}
}

// panics plays a tick and reports whether the codec panicked in it.
func (c *crumbling) panics() (panicked bool) {
	defer func() { panicked = recover() != nil }()
	c.round()
	return
}

// TestRowsAreStaleAfterACodecPanicked: an entity leaves its table and comes back to the same row, and a codec panics in
// between.
func TestRowsAreStaleAfterACodecPanicked(t *testing.T) {
	left := 0
	schema := NewSchema()
	Register[fickle](schema, With(shaky{&left}))
	Register[steadyA](schema)
	x := connectedWire(t, schema)
	a, f := ecs.ComponentID[steadyA](x.world), ecs.ComponentID[fickle](x.world)
	x.spawn(a) // the tables, oldest first: {a}, {fickle}, {a, fickle}
	other := x.spawn(f)
	e := x.spawn(a, f)
	x.rounds(20)
	x.world.Remove(e, a)                 // {fickle} is captured, with e in it, ...
	(*fickle)(x.world.Get(other, f)).V++ // ... and its codec panics before {a, fickle} is
	left = 1
	require.Panics(t, x.round)
	x.world.Add(e, a)
	x.rounds(10)
	x.requireEqual()
}
