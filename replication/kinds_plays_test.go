package replication

import (
	"math"

	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Plays of kinds that are more than values of a component.

type kMatch struct {
	Round  uint8
	Name   string `repl:"max=8"`
	Leader ecs.Entity
	Local  int `repl:"-"`
}

// playResource adds, changes and removes a resource, again and again.
func playResource(x *kindGame) {
	shown := func() *kMatch { return resourceOf[kMatch](x.end.world) }
	leader := x.spawn()
	for i := range 5 {
		m := setResource(x.world, kMatch{Round: uint8(i), Name: "first"})
		x.until(func() bool { return shown() != nil && *shown() == kMatch{Round: uint8(i), Name: "first"} })
		shown().Local = 7
		m.Name, m.Leader = "second", leader
		x.until(func() bool {
			at, ok := x.mirrored(leader)
			return ok && shown() != nil && *shown() == kMatch{uint8(i), "second", at, 7}
		})
		dropResource[kMatch](x.world)
		x.until(func() bool { return shown() == nil })
	}
}

// kSecret has a condition. Clients may see only even values.
type kSecret struct{ N uint32 }

// playCondition lets the client see a component and then not, in turns. Only even values are
// visible to it.
func playCondition(x *kindGame, show func(e ecs.Entity, yes bool)) {
	x.truth = nil // the client has less than the server
	id, mirrorID := ecs.ComponentID[kSecret](x.world), ecs.ComponentID[kSecret](x.end.world)
	e, n := x.spawn(id), uint32(1)
	set := func(v uint32) { (*kSecret)(x.world.Get(e, id)).N = v }
	shown := func() (v uint32, ok bool) {
		m, here := x.mirrored(e)
		if !here || !x.end.world.Has(m, mirrorID) {
			return 0, false
		}
		v = (*kSecret)(x.end.world.Get(m, mirrorID)).N
		require.Zero(x.t, v%2, "a secret")
		return v, true
	}
	set(n)
	show(e, false)
	x.until(func() bool { _, here := x.mirrored(e); return here })
	for range 5 {
		for range 10 {
			n += 2
			set(n)
			x.tick()
			_, ok := shown()
			require.False(x.t, ok)
		}
		show(e, true)
		for range 4 {
			n++
			set(n + n%2)
			x.until(func() bool { v, ok := shown(); return ok && v == n+n%2 })
		}
		show(e, false)
		n |= 1
		set(n)
		x.until(func() bool { _, ok := shown(); return !ok })
	}
}

// playOnce changes a component that is sent only with its first value, and adds it again.
func playOnce(x *kindGame) {
	x.truth = nil
	id, mirrorID := ecs.ComponentID[kSecret](x.world), ecs.ComponentID[kSecret](x.end.world)
	e := x.spawn()
	for i := range uint32(4) {
		first := 100 * (i + 1)
		x.world.Add(e, id)
		p := (*kSecret)(x.world.Get(e, id))
		p.N = first
		shown := func() bool {
			m, here := x.mirrored(e)
			if !here || !x.end.world.Has(m, mirrorID) {
				return false
			}
			require.Equal(x.t, first, (*kSecret)(x.end.world.Get(m, mirrorID)).N)
			return true
		}
		x.tick()
		p.N++ // before it can have arrived
		x.until(shown)
		for range 20 {
			p.N++
			x.tick()
			require.True(x.t, shown())
		}
		x.world.Remove(e, id)
		x.until(func() bool { m, _ := x.mirrored(e); return !x.end.world.Has(m, mirrorID) })
	}
}

// playGroup adds, changes and removes members of a group. All carry the tick number; the client
// shows them as of one tick.
func playGroup(x *kindGame) {
	id, mirrorID := ecs.ComponentID[kSecret](x.world), ecs.ComponentID[kSecret](x.end.world)
	group, n := x.server.NewGroup(), uint32(0)
	var members []ecs.Entity
	size := map[uint32]int{0: 0} // by number
	last := uint32(0)
	shown := func() int {
		here, number := 0, uint32(0)
		for _, m := range x.end.client.Entities() {
			v := (*kSecret)(x.end.world.Get(m, mirrorID)).N
			require.True(x.t, here == 0 || v == number, "split")
			here, number = here+1, v
		}
		if here > 0 {
			require.Equal(x.t, size[number], here, "not all of them")
			require.GreaterOrEqual(x.t, number, last)
			last = number
		}
		return here
	}
	play := func() {
		n++
		for _, e := range members {
			(*kSecret)(x.world.Get(e, id)).N = n
		}
		size[n] = len(members)
		x.tick()
		shown()
	}
	for turn := range 6 {
		for range 1 + turn {
			e := x.spawn(id)
			group.Add(e)
			members = append(members, e)
		}
		for range 20 {
			play()
		}
		x.world.RemoveEntity(members[0])
		members = members[1:]
		for range 20 {
			play()
		}
		for tick := 0; shown() != len(members) || len(members) > 0 && last+20 < n; tick++ {
			require.Less(x.t, tick, 300)
			play()
		}
	}
}

type kHello struct {
	N    uint32
	Text string `repl:"max=8"`
}

// playMessages sends messages both ways: each arrives once, in order.
func playMessages(x *kindGame) {
	var down, up []kHello
	OnServerMessage(x.end.client, func(m kHello) { down = append(down, m) })
	OnClientMessage(x.server, func(_ *Peer, m kHello) { up = append(up, m) })
	x.until(func() bool { return x.end.client.Connected() && x.end.peer.Connected() })
	var sent []kHello
	for i := range uint32(100) {
		m := kHello{i, "hello"[:i%6]}
		sent = append(sent, m)
		require.NoError(x.t, SendToClient(x.end.peer, m))
		require.NoError(x.t, SendToServer(x.end.client, m))
		x.tick()
	}
	x.until(func() bool { return len(down) >= len(sent) && len(up) >= len(sent) })
	for range 40 {
		x.tick()
	}
	require.Equal(x.t, sent, down)
	require.Equal(x.t, sent, up)
}

// playUnreliable sends unreliable messages both ways: each arrives unchanged at most once, and most
// do.
func playUnreliable(x *kindGame) {
	down, up := map[uint32]bool{}, map[uint32]bool{}
	take := func(into map[uint32]bool, m kHello) {
		require.False(x.t, into[m.N], "twice")
		require.Equal(x.t, "hello"[:m.N%6], m.Text)
		into[m.N] = true
	}
	OnServerMessage(x.end.client, func(m kHello) { take(down, m) })
	OnClientMessage(x.server, func(_ *Peer, m kHello) { take(up, m) })
	x.until(func() bool { return x.end.client.Connected() && x.end.peer.Connected() })
	const n = 400
	for i := range uint32(n) {
		require.NoError(x.t, SendToClient(x.end.peer, kHello{i, "hello"[:i%6]}))
		require.NoError(x.t, SendToServer(x.end.client, kHello{i, "hello"[:i%6]}))
		x.tick()
	}
	for range 40 {
		x.tick()
	}
	for _, got := range []map[uint32]bool{down, up} {
		require.InDelta(x.t, n*0.8, len(got), n*0.1, "a fifth is lost, and not sent again")
	}
}

type kAbout struct {
	Who ecs.Entity
	N   uint32
}

// playAbout sends messages about entities spawned just before, and has them sent back.
func playAbout(x *kindGame) {
	var spawned []ecs.Entity
	back := uint32(0)
	OnServerMessage(x.end.client, func(m kAbout) {
		want, ok := x.mirrored(spawned[m.N])
		require.True(x.t, ok)
		require.Equal(x.t, want, m.Who)
		require.NoError(x.t, SendToServer(x.end.client, m))
	})
	OnClientMessage(x.server, func(_ *Peer, m kAbout) {
		require.Equal(x.t, kAbout{spawned[back], back}, m)
		back++
	})
	x.until(func() bool { return x.end.peer.Connected() })
	for i := range uint32(60) {
		spawned = append(spawned, x.spawn())
		require.NoError(x.t, SendToClient(x.end.peer, kAbout{spawned[i], i}))
		x.tick()
	}
	x.until(func() bool { return int(back) == len(spawned) })
}

type kKeys struct {
	Aim  float32 `repl:"angle,bits=12"`
	Fire bool
	At   ecs.Entity
}

// playInput sets an input for every tick; the server finds it when it reaches that tick.
func playInput(x *kindGame) {
	target, given := x.spawn(), map[uint32]kKeys{}
	x.until(func() bool {
		_, ok := x.mirrored(target)
		return ok && x.end.peer.Connected()
	})
	asked, exact := 0, 0
	for n := range 900 {
		at, _ := x.mirrored(target)
		tick := x.end.client.InputTick()
		keys := kKeys{float32(tick%64) * math.Pi / 64, tick%7 == 0, at}
		if SetInput(x.end.client, tick, keys) == nil {
			given[uint32(tick)] = keys
		}
		next := x.server.Tick() + 1
		in, ok := Input[kKeys](x.end.peer, next)
		if n >= 300 { // by then the client knows the input delay it needs
			asked++
		}
		if ok {
			want := given[uint32(next)]
			require.InDelta(x.t, want.Aim, in.Aim, 0.001)
			require.Equal(x.t, want.Fire, in.Fire)
			require.Equal(x.t, target, in.At)
			if n >= 300 {
				exact++
			}
		}
		x.tick()
	}
	require.Greater(x.t, exact, asked*85/100, "of %d: other tests check how many arrive in time once the input delay has settled", asked)
}

// furtherKinds are kinds that are not field values.
func furtherKinds() []kind {
	owner := func(owned bool) func(x *kindGame) {
		return func(x *kindGame) {
			playCondition(x, func(e ecs.Entity, yes bool) {
				if yes == owned {
					x.server.SetOwner(e, x.end.peer)
				} else {
					x.server.SetOwner(e, nil)
				}
			})
		}
	}
	picked := false
	return []kind{
		{"component for its owner", func(s *Schema) { Register[kSecret](s, OwnerOnly()) }, owner(true)},
		{"component for all others", func(s *Schema) { Register[kSecret](s, ExceptOwner()) }, owner(false)},
		{
			"component for some",
			func(s *Schema) { Register[kSecret](s, OnlyFor(func(*Peer) bool { return picked })) },
			func(x *kindGame) { playCondition(x, func(_ ecs.Entity, yes bool) { picked = yes }) },
		},
		{"component sent once", func(s *Schema) { Register[kSecret](s, Once()) }, playOnce},
		{"resource", func(s *Schema) { RegisterResource[kMatch](s) }, playResource},
		{"group of entities", func(s *Schema) { Register[kSecret](s) }, playGroup},
		{"component looked at now and then", func(s *Schema) { Register[kSecret](s, Every(5)) }, func(x *kindGame) {
			x.truth = nil // the client shows older values than the server has
			playValues(x, equals[kSecret], kSecret{1}, kSecret{2}, kSecret{70000})
		}},
		{"message", func(s *Schema) { RegisterMessage[kHello](s) }, playMessages},
		{"immediate message", func(s *Schema) { RegisterMessage[kHello](s, Immediate()) }, playMessages},
		{"unreliable message", func(s *Schema) { RegisterMessage[kHello](s, Unreliable()) }, playUnreliable},
		{"message about entities", func(s *Schema) { RegisterMessage[kAbout](s) }, playAbout},
		{"input", func(s *Schema) { RegisterInput[kKeys](s) }, playInput},
	}
}
