package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/apply"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

type whPlace struct {
	X int32 `repl:"range=-1000:1000"`
}

type whHealth struct {
	HP int32 `repl:"range=0:1000"`
}

type whAim struct {
	At    ecs.Entity
	Power int32 `repl:"range=0:1000"`
}

type whParent struct {
	ecs.Relation
	N int32 `repl:"range=0:1000"`
}

type whAmmo struct {
	Rounds int32 `repl:"range=0:1000"`
}

type whName struct{ N uint32 }

type whRules struct{ N uint32 }

// whMark is the marker of what is predicted.
type whMark struct{ Row uint32 }

// withholding is a wire whose client withholds all components but whHealth from entities with a whMark.
type withholding struct {
	*fixture
	changes []int32 // of whPlace, as its hook saw them
}

func newWithholding(t testing.TB) *withholding {
	s := NewSchema()
	Register[whPlace](s)
	Register[whHealth](s)
	Register[whAim](s)
	Register[whParent](s)
	Register[whAmmo](s, OwnerOnly())
	Register[whName](s)
	RegisterResource[whRules](s)
	x := &withholding{fixture: connectedWire(t, s)}
	OnChange(x.client, func(_ ecs.Entity, _, now *whPlace) { x.changes = append(x.changes, now.X) })
	held := apply.Withheld{On: true, Marker: ecs.ComponentID[whMark](x.mirror)}
	for k := range x.client.schema.Components {
		if k != 1 && k != x.client.schema.Link {
			held.Components.Add(k)
		}
	}
	x.client.apply.View.Withheld = held
	return x
}

// of returns an entity's component, or nil.
func of[T any](w *ecs.World, e ecs.Entity) *T { return (*T)(w.Get(e, ecs.ComponentID[T](w))) }

// give adds a component to an entity.
func give[T any](w *ecs.World, e ecs.Entity, v T) {
	w.Add(e, ecs.ComponentID[T](w))
	*of[T](w, e) = v
}

func take[T any](w *ecs.World, e ecs.Entity) { w.Remove(e, ecs.ComponentID[T](w)) }

// ship returns a new entity of the server's, and its replica.
func (x *withholding) ship() (e, m ecs.Entity) {
	x.t.Helper()
	e = x.spawn(ecs.ComponentID[whPlace](x.world), ecs.ComponentID[whHealth](x.world))
	x.rounds(3)
	m, ok := x.mirrored(e)
	require.True(x.t, ok)
	return e, m
}

// set moves a ship.
func (x *withholding) set(e ecs.Entity, n int32) {
	of[whPlace](x.world, e).X, of[whHealth](x.world, e).HP = n, n
}

// TestWithheldComponentsAreLeftAlone, in entities with the marker, until they lose it; all others follow.
func TestWithheldComponentsAreLeftAlone(t *testing.T) {
	x := newWithholding(t)
	e, m := x.ship()
	other, mirrored := x.ship()
	give(x.mirror, m, whMark{})
	of[whPlace](x.mirror, m).X = -7
	for n := int32(1); n < 5; n++ {
		x.set(e, n)
		x.set(other, 10*n)
		if n == 3 { // another way to the components: the entity's set changes
			give(x.world, e, whAim{Power: 9})
		}
		x.round()
		require.EqualValues(t, -7, of[whPlace](x.mirror, m).X)
		require.Equal(t, n, of[whHealth](x.mirror, m).HP)
		require.Equal(t, 10*n, of[whPlace](x.mirror, mirrored).X)
		require.Nil(t, x.client.Verify())
	}
	require.Equal(t, []int32{10, 20, 30, 40}, x.changes, "of the other one")
	require.EqualValues(t, 9, of[whAim](x.mirror, m).Power, "it came with its value")

	x.changes = nil
	take[whMark](x.mirror, m)
	require.NotNil(t, x.client.Verify(), "nothing has written it yet")
	x.client.apply.Renew(m)
	x.round()
	require.EqualValues(t, 4, of[whPlace](x.mirror, m).X)
	require.Equal(t, []int32{4}, x.changes)
	require.Nil(t, x.client.Verify())
	x.set(e, 5)
	x.round()
	require.EqualValues(t, 5, of[whPlace](x.mirror, m).X)
	x.client.apply.Renew(m)
	x.client.apply.Renew(ecs.Entity{})
	x.round()
	require.Equal(t, []int32{4, 5}, x.changes, "nothing differs")
}

// TestWhatTheServerAddsComesOnce: a withheld component that the entity lacks gets its value, one that it has keeps its
// own.
func TestWhatTheServerAddsComesOnce(t *testing.T) {
	x := newWithholding(t)
	e, m := x.ship()
	give(x.mirror, m, whMark{})
	give(x.world, e, whAim{Power: 3})
	x.rounds(2)
	require.EqualValues(t, 3, of[whAim](x.mirror, m).Power)
	of[whAim](x.world, e).Power = 4
	x.rounds(2)
	require.EqualValues(t, 3, of[whAim](x.mirror, m).Power, "from now on it is withheld")
	take[whAim](x.world, e)
	x.rounds(2)
	require.Nil(t, of[whAim](x.mirror, m))
	give(x.mirror, m, whAim{Power: 1})
	give(x.world, e, whAim{Power: 5})
	x.rounds(2)
	require.EqualValues(t, 1, of[whAim](x.mirror, m).Power, "the client's own")
	require.Nil(t, x.client.Verify())
	take[whAim](x.mirror, m)
	of[whAim](x.world, e).Power = 6
	x.rounds(2)
	require.Nil(t, of[whAim](x.mirror, m), "removed by the client")
	take[whAim](x.world, e)
	x.rounds(2)
	give(x.world, e, whAim{Power: 7})
	x.rounds(2)
	require.EqualValues(t, 7, of[whAim](x.mirror, m).Power, "the server added it anew")
}

// TestAnExpectedEntityKeepsWhatIsWithheld: what it has when the server's arrives is the client's, the rest comes.
func TestAnExpectedEntityKeepsWhatIsWithheld(t *testing.T) {
	x := newWithholding(t)
	target, _ := x.ship()
	m := x.mirror.NewEntity()
	give(x.mirror, m, whName{7})
	give(x.mirror, m, whPlace{-7})
	give(x.mirror, m, whHealth{1})
	give(x.mirror, m, whParent{N: 1})
	give(x.mirror, m, whMark{3})
	Expect[whName](x.client, m, 0)
	e := x.spawn(ecs.ComponentID[whName](x.world), ecs.ComponentID[whPlace](x.world), ecs.ComponentID[whHealth](x.world),
		ecs.ComponentID[whAim](x.world), ecs.ComponentID[whParent](x.world))
	of[whName](x.world, e).N = 7
	x.set(e, 5)
	*of[whAim](x.world, e) = whAim{At: target, Power: 6}
	of[whParent](x.world, e).N = 8
	x.world.Relations().Set(e, ecs.ComponentID[whParent](x.world), target)
	x.rounds(2)
	at, ok := x.mirrored(e)
	require.True(t, ok)
	require.Equal(t, m, at)
	require.EqualValues(t, -7, of[whPlace](x.mirror, m).X)
	require.EqualValues(t, 5, of[whHealth](x.mirror, m).HP)
	mirrored, _ := x.mirrored(target)
	require.Equal(t, whAim{At: mirrored, Power: 6}, *of[whAim](x.mirror, m))
	require.EqualValues(t, 1, of[whParent](x.mirror, m).N)
	require.Zero(t, x.mirror.Relations().Get(m, ecs.ComponentID[whParent](x.mirror)))
	require.EqualValues(t, 3, of[whMark](x.mirror, m).Row)
	require.Nil(t, x.client.Verify())
}

// TestWithheldReferencesAreNotMended, nor retargeted, except in the Frame in which they come.
func TestWithheldReferencesAreNotMended(t *testing.T) {
	x := newWithholding(t)
	parent := ecs.ComponentID[whParent](x.mirror)
	e, m := x.ship()
	give(x.mirror, m, whMark{})
	target := x.spawn(ecs.ComponentID[whPlace](x.world)) // its slot is behind that of the entity that refers to it
	give(x.world, e, whAim{At: target})
	give(x.world, e, whParent{})
	x.world.Relations().Set(e, ecs.ComponentID[whParent](x.world), target)
	x.rounds(2)
	mirrored, ok := x.mirrored(target)
	require.True(t, ok)
	require.Equal(t, mirrored, of[whAim](x.mirror, m).At, "it came after the reference, in the same Frame")
	require.Equal(t, mirrored, x.mirror.Relations().Get(m, parent))

	x.peer.SetInterest(Interest{Visible: func(o ecs.Entity) bool { return o != target }})
	x.rounds(3)
	require.Equal(t, mirrored, of[whAim](x.mirror, m).At, "it is the client's, though it is dead")
	require.Nil(t, x.client.Verify())
	of[whAim](x.mirror, m).At = m
	x.mirror.Relations().Set(m, parent, m)
	x.peer.SetInterest(Interest{})
	x.rounds(3)
	require.Equal(t, m, x.mirror.Relations().Get(m, parent), "the target is back")
	x.world.Relations().Set(e, ecs.ComponentID[whParent](x.world), e)
	x.rounds(3)
	x.world.Relations().Set(e, ecs.ComponentID[whParent](x.world), target)
	x.rounds(3)
	require.Equal(t, m, of[whAim](x.mirror, m).At)
	require.Equal(t, m, x.mirror.Relations().Get(m, parent))
	require.Nil(t, x.client.Verify())

	take[whMark](x.mirror, m)
	x.client.apply.Renew(m)
	x.round()
	mirrored, ok = x.mirrored(target)
	require.True(t, ok)
	require.Equal(t, mirrored, of[whAim](x.mirror, m).At)
	require.Equal(t, mirrored, x.mirror.Relations().Get(m, parent))
	require.Nil(t, x.client.Verify())
}

// TestConditionalComponentsAreWithheld, which are in a slot of their own. Resources are not.
func TestConditionalComponentsAreWithheld(t *testing.T) {
	x := newWithholding(t)
	e, m := x.ship()
	rules := &whRules{1}
	ecs.AddResource(x.world, rules)
	give(x.world, e, whAmmo{5})
	x.server.SetOwner(e, x.peer)
	x.rounds(3)
	give(x.mirror, m, whMark{})
	require.EqualValues(t, 5, of[whAmmo](x.mirror, m).Rounds)
	of[whAmmo](x.world, e).Rounds, rules.N = 6, 2
	x.rounds(3)
	require.EqualValues(t, 5, of[whAmmo](x.mirror, m).Rounds)
	require.EqualValues(t, 2, ecs.GetResource[whRules](x.mirror).N)
	require.Nil(t, x.client.Verify())
	x.server.SetOwner(e, nil)
	x.rounds(3)
	require.Nil(t, of[whAmmo](x.mirror, m), "it goes")
	x.server.SetOwner(e, x.peer)
	x.rounds(3)
	require.EqualValues(t, 6, of[whAmmo](x.mirror, m).Rounds, "and comes")
	of[whAmmo](x.world, e).Rounds = 7
	x.rounds(3)
	require.EqualValues(t, 6, of[whAmmo](x.mirror, m).Rounds)
	take[whMark](x.mirror, m)
	x.client.apply.Renew(m)
	x.round()
	require.EqualValues(t, 7, of[whAmmo](x.mirror, m).Rounds)
	require.Nil(t, x.client.Verify())
}

// TestWhatIsWithheldFromDoesNotLinger: prediction is ahead of the states, so the end of an entity is behind it. After a
// reset of the world, an entity is a new one without the marker.
func TestWhatIsWithheldFromDoesNotLinger(t *testing.T) {
	x := newWithholding(t)
	gone := 0
	OnDespawn(x.client, func(ecs.Entity) { gone++ })
	x.client.apply.Shown = func() (blend.Time, bool) { return blend.Time{}, true } // everything lingers
	e, m := x.ship()
	other, _ := x.ship()
	late, mirrored := x.ship()
	give(x.mirror, m, whMark{})
	for _, e := range []ecs.Entity{e, other, late} {
		x.world.RemoveEntity(e)
	}
	x.rounds(2)
	require.Equal(t, 1, gone)
	require.False(t, x.mirror.Alive(m))
	give(x.mirror, mirrored, whMark{})
	x.rounds(2)
	require.Equal(t, 2, gone, "it lingered, and is predicted now")

	e, m = x.ship()
	give(x.mirror, m, whMark{})
	of[whPlace](x.mirror, m).X = -7
	x.set(e, 3)
	x.mirror.Reset()
	x.rounds(2)
	m, ok := x.mirrored(e)
	require.True(t, ok)
	require.EqualValues(t, 3, of[whPlace](x.mirror, m).X)
}
