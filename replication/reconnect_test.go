package replication

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// untilConnected plays rounds until the client has a complete session other than the given one.
func (x *fixture) untilConnected(before uint64) {
	x.t.Helper()
	for n := 0; x.client.session.ID == before || !x.client.Complete(); n++ {
		require.Less(x.t, n, 2*config.DefaultTickRate, "%v", x.client.Status())
		x.round()
	}
	x.round()
}

// TestServerRestart restarts the server's process with another world. The client notices by itself.
func TestServerRestart(t *testing.T) {
	x, e, move := crowd(t, 10)
	own := x.mirror.NewEntity(ecs.ComponentID[tLocal](x.mirror))
	old, _ := x.mirrored(e[0])
	id := x.client.session.ID
	var late [][]byte
	for range 5 {
		move(e[0], 1)
		late = append(late, x.replicate()...)
	}
	late = append(late, wire.DisconnectPacket(uint8(ReasonKicked), "late", id, x.client.session.Down, 1200))

	x.replaceServer(faceOf(x.server.schema), 99)
	position := ecs.ComponentID[tPosition](x.world)
	for i := range 4 { // in the same slots, with the same generations
		n := x.spawn(position)
		(*tPosition)(x.world.Get(n, position)).X = float32(-i)
	}
	for range config.DefaultTickRate {
		x.round()
		require.Equal(t, StatusConnected, x.client.Status())
		require.True(t, x.mirror.Alive(old), "what was known is still shown")
	}
	x.untilConnected(id)
	x.requireEqual()
	require.Equal(t, 5, x.mirror.Stats().Entities.Used)
	require.False(t, x.mirror.Alive(old), "another server's entity is another entity")
	require.True(t, x.mirror.Alive(own))

	for _, p := range late {
		require.Error(t, x.client.Receive(p))
	}
	x.rounds(3)
	x.requireEqual()
	require.Equal(t, StatusConnected, x.client.Status())
}

// TestServerThatForgotTheClient but is the same server: entities that still exist keep their entity
// on the client.
func TestServerThatForgotTheClient(t *testing.T) {
	for name, opts := range map[string][]ServerOption{"checksum": nil, "none": {WithoutChecksum()}} {
		t.Run(name, func(t *testing.T) {
			x, e, move := crowd(t, 10, opts...)
			local := ecs.ComponentID[tLocal](x.mirror)
			mirrored := map[int]ecs.Entity{}
			for i := range e {
				mirrored[i], _ = x.mirrored(e[i])
				x.mirror.Add(mirrored[i], local)
				(*tLocal)(x.mirror.Get(mirrored[i], local)).Heat = float64(i)
			}
			x.mirror.RemoveEntity(mirrored[3])
			x.mirror.Remove(mirrored[4], ecs.ComponentID[tPosition](x.mirror))
			x.round()
			move(e[5], 1)
			lost := x.replicate() // of the old session, arrives late

			id := x.client.session.ID
			x.server.Disconnect(x.peer)
			x.takeDown() // lost
			x.connect()
			x.world.RemoveEntity(e[0])
			x.world.RemoveEntity(e[1])
			x.replicate()
			newcomer := x.spawn(ecs.ComponentID[tHealth](x.world)) // in the slot of a removed one
			move(e[2], 4)
			x.world.Add(e[2], ecs.ComponentID[tFrozen](x.world))
			x.untilConnected(id)
			x.deliver(lost...)
			x.round()

			require.False(t, x.mirror.Alive(mirrored[0]))
			require.False(t, x.mirror.Alive(mirrored[1]))
			n, ok := x.mirrored(newcomer)
			require.True(t, ok)
			require.False(t, x.mirror.Has(n, local))
			_, ok = x.mirrored(e[3])
			require.False(t, ok, "the user removed it")
			require.False(t, x.mirror.Has(mirrored[4], ecs.ComponentID[tPosition](x.mirror)))
			for i := 2; i < len(e); i++ {
				if i == 3 {
					continue
				}
				m, ok := x.mirrored(e[i])
				require.True(t, ok)
				require.Equal(t, mirrored[i], m)
				require.EqualValues(t, i, (*tLocal)(x.mirror.Get(m, local)).Heat)
				if i != 4 {
					require.Equal(t, recordedOf(x.server, e[i]), stateOf(faceOf(x.server.schema), x.mirror, m), "%d", i)
				}
			}
			require.Equal(t, 8, x.mirror.Stats().Entities.Used)
			x.world.RemoveEntity(e[3])
			x.round()
			x.spawn()
			x.rounds(3)
			require.Equal(t, 9, x.mirror.Stats().Entities.Used, "the next incarnation comes")
		})
	}
}

// TestReconnectByTheUser of a client without any problem.
func TestReconnectByTheUser(t *testing.T) {
	x, e, move := crowd(t, 5)
	m, _ := x.mirrored(e[0])
	var late [][]byte
	for n := range 5 {
		move(e[0], 1)
		late = append(late, x.replicate()...)
		id := x.client.session.ID
		x.client.Reconnect()
		require.Equal(t, StatusReconnecting, x.client.Status())
		require.False(t, x.client.Complete())
		x.untilConnected(id)
		x.requireEqual("%d", n)
		require.EqualValues(t, n+2, x.client.Stats().Sessions)
		now, _ := x.mirrored(e[0])
		require.Equal(t, m, now)
		for _, p := range late {
			require.Error(t, x.client.Receive(p))
		}
	}
	require.EqualValues(t, 5, x.client.Stats().Spawns)
}

// TestServerWithAnotherSchema replaces the previous server.
func TestServerWithAnotherSchema(t *testing.T) {
	x, _, _ := crowd(t, 3)
	other := testSchema()
	Register[tManyFields](other)
	x.replaceServer(other, 5)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 2*defaultClientTimeout)
		x.deliver(x.replicate()...)
		err = x.client.Apply()
		x.answer(x.up...)
		x.up = nil
		x.deliver(x.takeDown()...)
	}
	var diff *SchemaError
	require.True(t, errors.As(err, &diff), "%v", err)
	require.Equal(t, "component tManyFields", diff.Server)
	require.Equal(t, StatusDisconnected, x.client.Status())
	require.Equal(t, 3, x.mirror.Stats().Entities.Used, "what was shown is shown")

	// The server is corrected, and the user tries again.
	x.replaceServer(faceOf(x.client.schema), 6)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.client.Reconnect()
	x.untilConnected(x.client.session.ID)
	x.requireEqual()
}

// TestReconnectsOverHostileLinks is the long test of sessions: clients are disconnected and come
// back, time out, and reconnect without reason; their server is replaced; all the while packets of
// all sessions are lost, duplicated and late. A client shows states of one server only, and never
// goes back in time.
func TestReconnectsOverHostileLinks(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	ticks := ticksOf(6000, 2500)
	for name, opts := range map[string][]ServerOption{"checksum": nil, "wrap": {replicationtest.FirstTick(1<<32 - 1500), replicationtest.FirstSequence(1<<16 - 200)}} {
		t.Run(name, func(t *testing.T) { playReconnects(t, ticks, opts...) })
	}
}

// A restless is a client whose connections do not last, and its link, which carries packets of all
// its sessions.
type restless struct {
	end
	attic [][]byte // packets from long ago
}

func playReconnects(t *testing.T, ticks int, opts ...ServerOption) {
	const timeout = 60
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	schema := testSchema()
	truths := map[uint64]*truth{} // by server instance
	var s *Server
	var g *game
	var o *truth
	begin := func(n uint64) {
		w := ecs.NewWorld()
		s = NewServer(&w, schema, append([]ServerOption{WithSeed(seed + n), WithTimeout(3 * ofTicks(400)), WithTickRate(20)}, opts...)...)
		g, o = newGame(seed+n, &w, schema, 15), newTruth()
		truths[s.sessions.Instance] = o
	}
	begin(1)
	var all []*restless
	for i, cfg := range []netsim.Config{
		{},
		{Latency: 3, Jitter: 2, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2, ReorderBy: 8},
		{Latency: 10, Jitter: 9, Loss: 0.4},
		{Latency: 2, Loss: 0.1, Duplicate: 0.2, Reorder: 0.3, ReorderBy: 60},
		{Latency: 4, Burst: netsim.Burst{Start: 0.01, Length: 100}},
	} {
		w := ecs.NewWorld()
		r := &restless{end: end{world: &w, link: netsim.NewLink(seed+uint64(i), cfg), last: map[NetID]uint32{}}}
		r.client = NewClientWith(&w, schema, r.link.Up.Send, WithSeed(seed+uint64(i)), WithTimeout(3*ofTicks(timeout)))
		r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
		all = append(all, r)
	}
	sessions, servers, errs := map[uint64]bool{}, uint64(1), 0
	step := func(r *restless, quiet bool) {
		r.link.Step()
		receive := func(p []byte) { _ = r.client.Receive(p) }
		r.link.Down.Receive(func(p []byte) {
			if len(r.attic) < 300 || rng.IntN(50) == 0 {
				r.attic = append(r.attic, bytes.Clone(p))
			}
			receive(p)
		})
		if len(r.attic) > 0 && rng.IntN(5) == 0 {
			receive(r.attic[rng.IntN(len(r.attic))])
		}
		shown := r.client.apply.ShownInstance
		sessions[r.client.session.ID] = true
		if err := r.client.Apply(); err != nil {
			require.NotNil(t, requireDisconnected(t, err))
			errs++
			if rng.IntN(30) == 0 || quiet {
				r.client.Reconnect()
			}
		}
		if r.client.apply.ShownInstance != shown {
			clear(r.last)
		}
		r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
		if r.peer.Err() != nil && (rng.IntN(20) == 0 || quiet) { // as a transport does that receives from an unknown address
			r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
		}
		if shown := truths[r.client.apply.ShownInstance]; shown != nil {
			r.check(t, s, shown)
		}
	}
	play := func(quiet bool) {
		g.step()
		s.Replicate()
		o.record(s)
		for _, r := range all {
			step(r, quiet)
		}
	}
	for range ticks {
		for _, r := range all {
			switch rng.IntN(1500) {
			case 0:
				r.peer.Disconnect(Reason{ReasonKicked, "at random"})
			case 1:
				r.peer.Disconnect(Reason{Code: ReasonTimeout})
			case 2:
				r.client.Disconnect(Reason{})
			case 3:
				r.client.Reconnect()
			case 4:
				r.world.Reset()
			case 5: // the transport lost its connection, and the server does not know yet
				r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
			}
		}
		if rng.IntN(2000) == 0 {
			servers++
			if rng.IntN(2) == 0 {
				s.Close()
			}
			begin(servers)
			for _, r := range all {
				r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
			}
		}
		play(false)
	}
	for _, r := range all {
		r.link.SetConfig(netsim.Config{Latency: 2})
	}
	for range 900 {
		play(true)
	}
	g.limit = 0
	for range 300 {
		s.Replicate()
		o.record(s)
		for _, r := range all {
			step(r, true)
		}
	}
	for i, r := range all {
		require.Equal(t, StatusConnected, r.client.Status(), "link %d", i)
		require.Empty(t, r.equalTo(s, o), "link %d: %+v\n%+v", i, r.peer.Stats(), r.client.Stats())
		require.Equal(t, len(o.live), r.world.Stats().Entities.Used, "link %d", i)
		require.True(t, r.client.Complete())
	}
	t.Logf("%d sessions at %d servers; %d Applies without a connection", len(sessions), servers, errs)
	require.Greater(t, len(sessions), ticks/200)
}

// TestALargeWorldIsTakenOver: the world takes many packets, and entities that have not arrived yet
// are not taken for despawned.
func TestALargeWorldIsTakenOver(t *testing.T) {
	x, e, _ := crowd(t, 400, WithMTU(100))
	x.rounds(20)
	x.requireEqual()
	x.peer.SetBudget(3000)
	for range 3 {
		id := x.client.session.ID
		x.client.Reconnect()
		for n := 0; x.client.session.ID == id || !x.client.Complete(); n++ {
			require.Less(t, n, 400)
			x.round()
			if !x.client.Complete() {
				require.GreaterOrEqual(t, x.mirror.Stats().Entities.Used, 399)
			}
			if n == 2 { // whether the client was sent it in this session is not known
				x.world.RemoveEntity(e[0])
				e = e[1:]
				x.spawn(ecs.ComponentID[tPosition](x.world))
			}
		}
		x.rounds(60)
		x.requireEqual()
		require.Equal(t, 400, x.mirror.Stats().Entities.Used)
	}
	require.EqualValues(t, 403, x.client.Stats().Spawns)
}
