package replication

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

func TestEntityRemovedByTheClientsUserStaysRemoved(t *testing.T) {
	x, e, move := crowd(t, 3)
	m, _ := x.mirrored(e[0])
	x.mirror.RemoveEntity(m)
	for range 10 {
		move(e[0], 1)
		x.round()
		_, ok := x.mirrored(e[0])
		require.False(t, ok)
	}
	require.Equal(t, 2, x.mirror.Stats().Entities.Used)

	// Another entity may reuse its place in the client's world, and is not touched.
	own := x.mirror.NewEntity(ecs.ComponentID[tPosition](x.mirror))
	require.Equal(t, m.ID(), own.ID())
	move(e[0], 1)
	x.rounds(2)
	require.Zero(t, (*tPosition)(x.mirror.Get(own, ecs.ComponentID[tPosition](x.mirror))).X)

	// Its despawn on the server does no harm either.
	slot := x.slotOf(e[0])
	x.world.RemoveEntity(e[0])
	x.rounds(3)
	require.True(t, x.mirror.Alive(own))
	newcomer := x.spawn(ecs.ComponentID[tPosition](x.world))
	x.rounds(3)
	require.Equal(t, slot, x.slotOf(newcomer))
	x.requireEqual("a spawn in the same slot is another entity")
	require.True(t, x.mirror.Alive(own))
}

func TestComponentRemovedByTheClientsUserStaysRemoved(t *testing.T) {
	x, e, move := crowd(t, 2)
	position := ecs.ComponentID[tPosition](x.mirror)
	m, _ := x.mirrored(e[0])
	x.mirror.Remove(m, position)
	for range 5 {
		move(e[0], 1)
		x.round()
		require.False(t, x.mirror.Has(m, position))
	}
	// Another component is added and removed meanwhile.
	x.world.Add(e[0], ecs.ComponentID[tHealth](x.world))
	x.rounds(2)
	require.False(t, x.mirror.Has(m, position))
	require.True(t, x.mirror.Has(m, ecs.ComponentID[tHealth](x.mirror)))
	// The server removes it and adds it again.
	x.world.Remove(e[0], ecs.ComponentID[tPosition](x.world))
	x.rounds(2)
	x.world.Add(e[0], ecs.ComponentID[tPosition](x.world))
	move(e[0], 7)
	x.rounds(2)
	require.True(t, x.mirror.Has(m, position))
	x.requireEqual()
}

func TestMarkerRemovedByTheClientsUser(t *testing.T) {
	x, e, move := crowd(t, 2)
	m, _ := x.mirrored(e[0])
	x.mirror.Remove(m, x.client.apply.View.Marker)
	move(e[0], 1)
	require.NotPanics(t, func() { x.rounds(3) })
	_, ok := x.client.NetID(m)
	require.False(t, ok)
	x.world.RemoveEntity(e[0])
	require.NotPanics(t, func() { x.rounds(3) })
}

// TestWhatTheUserRemovedComesAnew: three entities go out of view and come back. The client's user removes one of them,
// and a component of another one.
func TestWhatTheUserRemovedComesAnew(t *testing.T) {
	for _, play := range []struct {
		name                     string
		linger, first, reconnect bool // first: the user removes them before they end
	}{
		{name: "removed before", first: true},
		{name: "removed before, lingering", first: true, linger: true},
		{name: "removed while lingering", linger: true},
		{name: "in another session", linger: true, reconnect: true},
	} {
		x, e, _ := crowd(t, 3)
		health := ecs.ComponentID[tHealth](x.mirror)
		for _, e := range e {
			x.world.Add(e, ecs.ComponentID[tHealth](x.world))
		}
		hidden, added := false, 0
		x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }})
		x.rounds(3)
		OnAdd(x.client, func(ecs.Entity, *tHealth) { added++ })
		x.client.apply.Shown = func() (blend.Time, bool) { return blend.Time{}, play.linger }
		third, _ := x.mirrored(e[2])
		remove := func() {
			m, ok := x.mirrored(e[0])
			require.True(t, ok, play.name)
			x.mirror.RemoveEntity(m)
			m, _ = x.mirrored(e[1])
			x.mirror.Remove(m, health)
		}
		if play.first {
			remove()
			x.rounds(2)
		}
		hidden = true
		x.rounds(3)
		if !play.first {
			remove()
		}
		if play.reconnect {
			x.client.Reconnect()
		} else {
			x.rounds(2)
		}
		require.Equal(t, play.linger, x.mirror.Alive(third), play.name)
		require.Zero(t, added, play.name)
		hidden = false
		x.rounds(8)
		x.requireEqual(play.name)
		require.Equal(t, play.linger, x.mirror.Alive(third), play.name)
		want := 3
		if play.linger {
			want = 2 // the third one goes on
		}
		require.Equal(t, want, added, play.name)
	}
}

// TestWhatTheUserRemovedComesAnewWithinAnApply: an entity, and a component of another one, which go out of view and
// come back between two calls.
func TestWhatTheUserRemovedComesAnewWithinAnApply(t *testing.T) {
	x, e, move := crowd(t, 2)
	hidden := false
	x.peer.SetInterest(Interest{Visible: func(ecs.Entity) bool { return !hidden }})
	x.rounds(2)
	m, _ := x.mirrored(e[0])
	x.mirror.RemoveEntity(m)
	m, _ = x.mirrored(e[1])
	x.mirror.Remove(m, ecs.ComponentID[tPosition](x.mirror))
	x.rounds(2)
	for n := range 6 {
		hidden = n < 2
		move(e[0], 1)
		move(e[1], 1)
		x.deliver(x.replicate()...)
	}
	x.rounds(2)
	x.requireEqual()
}

// TestWhatTheServerAddedAgainComesAnewWithinAnApply: the user removed a component, one under a condition and a resource.
// The server takes one of them away and gives it again between two calls: that one is there again, the others are not.
func TestWhatTheServerAddedAgainComesAnewWithinAnApply(t *testing.T) {
	s := NewSchema()
	Register[tPosition](s)
	Register[tHealth](s)
	Register[cAmmo](s, OwnerOnly())
	RegisterResource[pMatch](s)
	toggle := func(x *fixture, e ecs.Entity, id ecs.ID) {
		if x.world.Has(e, id) {
			x.world.Remove(e, id)
		} else {
			x.world.Add(e, id)
		}
	}
	for name, twice := range map[string]func(x *fixture, e ecs.Entity, on bool){ // what is called twice
		"a component":                   func(x *fixture, e ecs.Entity, _ bool) { toggle(x, e, ecs.ComponentID[tHealth](x.world)) },
		"a component under a condition": func(x *fixture, e ecs.Entity, _ bool) { toggle(x, e, ecs.ComponentID[cAmmo](x.world)) },
		"ownership": func(x *fixture, e ecs.Entity, on bool) {
			if x.server.SetOwner(e, nil); on {
				x.server.SetOwner(e, x.peer)
			}
		},
		"a resource": func(x *fixture, _ ecs.Entity, on bool) {
			if dropResource[pMatch](x.world); on {
				setResource(x.world, pMatch{5})
			}
		},
	} {
		x := connectedWire(t, s)
		setResource(x.world, pMatch{4})
		e := x.spawn(ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tHealth](x.world), ecs.ComponentID[cAmmo](x.world))
		x.server.SetOwner(e, x.peer)
		x.rounds(10)
		x.requireEqual()
		m, _ := x.mirrored(e)
		health, ammo := ecs.ComponentID[tHealth](x.mirror), ecs.ComponentID[cAmmo](x.mirror)
		x.mirror.Remove(m, health, ammo)
		dropResource[pMatch](x.mirror)
		has := func() (n int) {
			for _, there := range []bool{
				x.mirror.Has(m, health), x.mirror.Has(m, ammo), resourceOf[pMatch](x.mirror) != nil,
			} {
				if there {
					n++
				}
			}
			return n
		}
		x.rounds(10)
		require.Zero(t, has(), name)
		added, changed := 0, 0
		OnAdd(x.client, func(ecs.Entity, *tHealth) { added++ })
		OnAdd(x.client, func(ecs.Entity, *cAmmo) { added++ })
		OnAdd(x.client, func(ecs.Entity, *pMatch) { added++ })
		OnChange(x.client, func(_ ecs.Entity, _, _ *pMatch) { changed++ })
		for n := range 6 {
			if n%3 == 0 {
				twice(x, e, n == 3)
			}
			x.deliver(x.replicate()...)
		}
		x.rounds(5)
		require.Equal(t, 1, has(), name)
		require.Equal(t, [2]int{1, 0}, [2]int{added, changed}, name)
	}
}
