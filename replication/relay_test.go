package replication

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// A relay is a world that is the client's world of one server and the source of another.
type relay struct {
	up     *end    // to the first server
	server *Server // the second
	truth  *truth  // of the second
	down   []*end
}

func newRelay(first *Server, seed uint64, cfg netsim.Config, opts ...ServerOption) *relay {
	w := ecs.NewWorld()
	e := &end{world: &w, link: netsim.NewLink(seed, cfg), last: map[NetID]uint32{}}
	e.peer = first.Connect(e.link.Down.Send)
	e.client = NewClientWith(&w, faceOf(first.schema), e.link.Up.Send, WithSeed(seed), WithTimeout(ofTicks(90)), WithSpawnComponents(ReplicatedID(&w)))
	return &relay{up: e, server: NewServer(&w, faceOf(first.schema), append(opts, WithSeed(seed))...), truth: newTruth()}
}

// step plays a tick of the relay's process and of its clients.
func (r *relay) step(t testing.TB, first *Server, o *truth) {
	r.up.step(t)
	r.up.check(t, first, o)
	r.server.Replicate()
	r.truth.record(r.server)
	for _, e := range r.down {
		e.step(t)
		e.check(t, r.server, r.truth)
	}
}

// diff describes how the worlds behind the relay differ from that of the first server.
func (r *relay) diff(first *Server, o *truth) string {
	if d := r.up.equalTo(first, o); d != "" {
		return "relay: " + d
	}
	for i, e := range r.down {
		n := 0
		var d string
		for id, entity := range e.client.Entities() {
			n++
			source := r.server.snap.Slots.Info[id.Slot].Entity // in the relay's world
			upstream, ok := r.up.client.NetID(source)
			if got, want := stateOf(faceOf(first.schema), e.world, entity), o.at(upstream, uint32(first.Tick())); !ok || got != want {
				d = fmt.Sprintf("client %d, %v of %v: %s, server: %s", i, id, upstream, got, want)
			}
		}
		if d == "" && n != len(o.live) {
			d = fmt.Sprintf("client %d has %d entities, server %d", i, n, len(o.live))
		}
		if d != "" {
			return d
		}
	}
	return ""
}

// TestRelayChain: server to relay to clients, with losses on every link. Entities and components
// come and go; the relay loses its session, its world is reset, and at the end all worlds are
// equal. The first server has one peer.
func TestRelayChain(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(3000, 1000)
	seed := seedOf(t)
	cfg := netsim.Config{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 6}
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed))
	g := newGame(seed, &w, faceOf(s.schema), 25)
	o := newTruth()
	r := newRelay(s, seed+1, cfg, replicationtest.FirstTick(1<<32-500)) // it counts its own ticks
	for i := range uint64(3) {
		r.down = append(r.down, connect(r.server, seed+10+i, cfg))
	}
	for tick := range ticks {
		g.step()
		s.Replicate()
		o.record(s)
		switch tick % 1000 {
		case 400: // the first server forgets the relay
			r.up.peer.Disconnect(Reason{Code: ReasonTimeout})
			r.up.peer = s.Connect(r.up.link.Down.Send)
		case 600:
			r.up.client.Reconnect()
		case 800:
			r.up.world.Reset()
		}
		r.step(t, s, o)
		require.Equal(t, 1, s.Stats().Peers)
	}
	r.up.link.SetConfig(netsim.Config{Latency: 2})
	for _, e := range r.down {
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	for range 300 {
		s.Replicate()
		o.record(s)
		r.step(t, s, o)
	}
	require.Empty(t, r.diff(s, o))
	require.Zero(t, r.server.Stats().CopiedMarkers)
	for _, e := range r.down {
		require.Equal(t, len(o.live), e.world.Stats().Entities.Used)
	}
}

// TestRelayOfAServerThatRestarts: entities of the new server are new to everyone.
func TestRelayOfAServerThatRestarts(t *testing.T) {
	seed := seedOf(t)
	cfg := netsim.Config{Latency: 2, Loss: 0.1}
	schema := testSchema()
	var r *relay
	for n := range uint64(3) {
		w := ecs.NewWorld()
		s := NewServer(&w, schema, WithSeed(seed+n))
		g := newGame(seed+n, &w, schema, 15)
		o := newTruth()
		if r == nil {
			r = newRelay(s, seed+100, cfg)
			r.down = append(r.down, connect(r.server, seed+200, cfg))
		} else {
			r.up.peer = s.Connect(r.up.link.Down.Send)
			for r.up.client.apply.ShownInstance != s.sessions.Instance {
				s.Replicate()
				o.record(s)
				r.up.link.Step()
				r.up.link.Down.Receive(func(p []byte) { _ = r.up.client.Receive(p) })
				require.NoError(t, r.up.client.Apply())
				r.up.link.Up.Receive(func(p []byte) { _ = r.up.peer.Receive(p) })
				r.server.Replicate()
				r.truth.record(r.server)
				for _, e := range r.down {
					e.step(t)
					e.check(t, r.server, r.truth)
				}
			}
			clear(r.up.last)
		}
		for range 300 {
			g.step()
			s.Replicate()
			o.record(s)
			r.step(t, s, o)
		}
		for range 100 {
			s.Replicate()
			o.record(s)
			r.step(t, s, o)
		}
		require.Empty(t, r.diff(s, o), "server %d", n)
	}
}

// TestRelayCostsTheFirstServerOnePeer: the packets of the first server do not depend on the number
// of clients of the relay.
func TestRelayCostsTheFirstServerOnePeer(t *testing.T) {
	play := func(clients int) PeerStats {
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(1))
		g, o := newGame(5, &w, faceOf(s.schema), 20), newTruth()
		r := newRelay(s, 3, netsim.Config{Latency: 2, Loss: 0.1})
		for i := range clients {
			r.down = append(r.down, connect(r.server, uint64(i), netsim.Config{}))
		}
		for range 200 {
			g.step()
			s.Replicate()
			o.record(s)
			r.step(t, s, o)
		}
		require.Equal(t, 1, s.Stats().Peers)
		require.Equal(t, clients, r.server.Stats().Peers)
		return r.up.peer.Stats()
	}
	require.Equal(t, play(0), play(20))
}

// TestSpawnComponents are added to every replica, also after a reset, and belong to the user.
func TestSpawnComponents(t *testing.T) {
	x := newWire(t, testSchema())
	world := ecs.NewWorld()
	local, marker := ecs.ComponentID[tLocal](&world), ReplicatedID(&world)
	x.mirror = &world
	x.client = NewClientWith(x.mirror, faceOf(x.server.schema), func(p []byte) error {
		x.up = append(x.up, append([]byte(nil), p...))
		return nil
	}, WithSeed(7), WithSpawnComponents(local), WithSpawnComponents(marker))
	position := ecs.ComponentID[tPosition](x.world)
	e := x.spawn(position)
	x.rounds(5)
	check := func() ecs.Entity {
		t.Helper()
		m, ok := x.mirrored(e)
		require.True(t, ok)
		require.True(t, world.Has(m, local) && world.Has(m, marker))
		return m
	}
	m := check()
	(*tLocal)(world.Get(m, local)).Heat = 5
	(*tPosition)(x.world.Get(e, position)).X = 1
	x.rounds(2)
	require.EqualValues(t, 5, (*tLocal)(world.Get(check(), local)).Heat)
	world.Reset()
	x.rounds(1)
	require.Zero(t, (*tLocal)(world.Get(check(), local)).Heat)
	world.Remove(check(), marker)
	x.rounds(3)
	m, _ = x.mirrored(e)
	require.False(t, world.Has(m, marker), "it stays away")

	for sentence, ids := range map[string][]ecs.ID{
		"replication: WithSpawnComponents: replication.tPosition: it is in the schema, so the server decides which entities have it": {ecs.ComponentID[tPosition](&world)},
		"replication: WithSpawnComponents: replication.Replica: every replica has it anyway":                                         {MirroredID(&world)},
		"replication: WithSpawnComponents: replication.tLocal: it is named twice":                                                    {local, local},
		"replication: WithSpawnComponents: replication.tOrbit: an entity has room for one relation, which may be the server's":       {ecs.ComponentID[tOrbit](&world)},
	} {
		require.PanicsWithValue(t, sentence, func() {
			NewClientWith(&world, faceOf(x.server.schema), func([]byte) error { return nil }, WithSpawnComponents(ids...))
		})
	}
}

// TestRelay: a client's world is the world of another server.
func TestRelay(t *testing.T) {
	schema := testSchema()
	a := newWire(t, schema)
	b := newWire(t, schema)
	b.world = a.mirror
	b.server = NewServer(a.mirror, schema, WithSeed(3))
	b.peer = b.server.Connect(func(p []byte) error {
		b.down = append(b.down, append([]byte(nil), p...))
		return nil
	})
	g := newGame(1, a.world, schema, 10)
	marker := ReplicatedID(a.mirror)
	for range 200 {
		g.step()
		a.round()
		var fresh []ecs.Entity
		for _, e := range a.client.Entities() {
			if !a.mirror.Has(e, marker) {
				fresh = append(fresh, e)
			}
		}
		for _, e := range fresh {
			a.mirror.Add(e, marker)
		}
		b.round()
	}
	b.rounds(5)
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, a.server.Stats().Entities, b.server.Stats().Entities)
}

// TestRelayOfOnceComponents: a component that the first server removed and added between two calls of Apply is not new at
// the relay. Its clients get the value if the relay's server has it without Once, which is no part of the fingerprint.
func TestRelayOfOnceComponents(t *testing.T) {
	once, always := NewSchema(), NewSchema()
	Register[tHealth](once, Once())
	Register[tHealth](always)
	a := newWire(t, once)
	b := newWire(t, once)
	b.world = a.mirror
	b.server = NewServer(a.mirror, always, WithSeed(3))
	b.connect()
	a.client = NewClientWith(a.mirror, once, func(p []byte) error {
		a.up = append(a.up, bytes.Clone(p))
		return nil
	}, WithSpawnComponents(ReplicatedID(a.mirror)))
	health := ecs.ComponentID[tHealth](a.world)
	e := a.spawn(health)
	for range 10 {
		a.round()
		b.round()
	}
	a.world.Remove(e, health)
	packets := a.replicate()
	a.world.Add(e, health)
	(*tHealth)(a.world.Get(e, health)).HP = 7
	a.deliver(append(packets, a.replicate()...)...)
	a.answer(a.apply()...)
	b.rounds(5)
	a.requireEqual()
	b.requireEqual()
	require.Equal(t, 1, b.mirror.Stats().Entities.Used)
}
