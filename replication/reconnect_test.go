package replication

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// untilConnected plays rounds until the client has a session that is complete and another
// than the given one.
func (x *fixture) untilConnected(before uint64) {
	x.t.Helper()
	for n := 0; x.client.session.id == before || !x.client.Complete(); n++ {
		require.Less(x.t, n, 2*defaultServerTimeout, "%v", x.client.Status())
		x.round()
	}
	x.round()
}

// TestServerRestart starts the server's process anew, with another world. The client finds
// out by itself.
func TestServerRestart(t *testing.T) {
	x, e, move := crowd(t, 10)
	own := x.mirror.NewEntity(ecs.ComponentID[tLocal](x.mirror))
	old, _ := x.mirrored(e[0])
	id := x.client.session.id
	var late [][]byte
	for range 5 {
		move(e[0], 1)
		late = append(late, x.replicate()...)
	}
	late = append(late, wire.DisconnectPacket(uint8(ReasonKicked), "late", id, x.client.session.down, 1200))

	x.replaceServer(faceOf(x.server.schema), 99)
	position := ecs.ComponentID[tPosition](x.world)
	for i := range 4 { // in the same slots, with the same generations
		n := x.spawn(position)
		(*tPosition)(x.world.Get(n, position)).X = float32(-i)
	}
	for range defaultServerTimeout - 20 {
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

// TestServerThatForgotTheClient, and is the same: what is still there stays the entity
// that it was.
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

			id := x.client.session.id
			x.server.Disconnect(x.peer)
			x.takeDown() // lost
			x.connect()
			x.world.RemoveEntity(e[0])
			x.world.RemoveEntity(e[1])
			x.replicate()
			newcomer := x.spawn(ecs.ComponentID[tHealth](x.world)) // in the slot of one of them
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
					require.Equal(t, stateOf(faceOf(x.server.schema), x.world, e[i]), stateOf(faceOf(x.server.schema), x.mirror, m), "%d", i)
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

// TestReconnectByTheUser, of a client that nothing is wrong with.
func TestReconnectByTheUser(t *testing.T) {
	x, e, move := crowd(t, 5)
	m, _ := x.mirrored(e[0])
	var late [][]byte
	for n := range 5 {
		move(e[0], 1)
		late = append(late, x.replicate()...)
		id := x.client.session.id
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

// TestServerWithAnotherSchema comes in the place of the one that was.
func TestServerWithAnotherSchema(t *testing.T) {
	x, _, _ := crowd(t, 3)
	other := testSchema()
	Register[tManyFields](other)
	x.replaceServer(other, 5)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 2*defaultServerTimeout)
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

	// It is mended, and the user tries again.
	x.replaceServer(faceOf(x.client.schema), 6)
	x.spawn(ecs.ComponentID[tHealth](x.world))
	x.client.Reconnect()
	x.untilConnected(x.client.session.id)
	x.requireEqual()
}

// TestWelcomesOfEarlierIntroductionsAreIgnored: the one of a nonce that the client gave up.
func TestWelcomesOfEarlierIntroductionsAreIgnored(t *testing.T) {
	x := newWire(t, testSchema())
	x.answer(x.apply()...)
	late := x.takeDown()
	require.Len(t, late, 1)
	x.client.Reconnect()
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
	require.Equal(t, StatusConnecting, x.client.Status())
	x.rounds(10)
	x.spawn()
	x.rounds(5)
	x.requireEqual()
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
	for range defaultServerTimeout {
		x.apply()
	}
	require.Equal(t, StatusReconnecting, x.client.Status())
	require.ErrorIs(t, x.client.Receive(late[0]), wire.ErrStale)
}

// TestLateHelloTakesNoSessionOverWithoutChecksum: a former client's introduction comes
// again, and nothing in the acks of the present one says whose they are.
func TestLateHelloTakesNoSessionOverWithoutChecksum(t *testing.T) {
	x, e, move := crowd(t, 5, WithoutChecksum())
	id := x.peer.conn.Session.ID
	former := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 99}
	for range 50 {
		require.NoError(t, x.peer.Receive(wire.Sealed(former.Append(nil))))
		x.deliver(x.takeDown()...)
		move(e[0], 0.5)
		x.round()
		x.requireEqual()
		require.Equal(t, id, x.peer.conn.Session.ID)
	}
	require.EqualValues(t, 5, x.client.Stats().Spawns)
	require.EqualValues(t, 5, x.peer.Stats().Wholes)
}

// TestLatePacketsWithoutChecksum of the session before, in both directions: their sequences
// tell.
func TestLatePacketsWithoutChecksum(t *testing.T) {
	for _, first := range []uint16{0, 1<<16 - 50, 1<<15 - 20} {
		x, e, move := crowd(t, 5, WithoutChecksum(), WithFirstSequence(first))
		var down, up [][]byte
		for range 100 {
			move(e[0], 0.5)
			p := x.replicate()
			x.deliver(p...)
			u := x.apply()
			x.answer(u...)
			down, up = append(down, p...), append(up, u...)
		}
		x.client.Reconnect()
		x.answer(x.apply()...)
		x.deliver(x.takeDown()...)
		require.Equal(t, StatusConnected, x.client.Status())
		replay := func() {
			for _, p := range down {
				require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
			}
			acked := x.peer.Stats().Acked
			for _, p := range up {
				_ = x.peer.Receive(p)
			}
			require.Equal(t, acked, x.peer.Stats().Acked)
		}
		replay() // before anything of the new session came
		for range 20 {
			move(e[0], 0.5)
			x.round()
			replay()
		}
		x.requireEqual()
		require.EqualValues(t, 5, x.client.Stats().Spawns)
		require.Zero(t, x.client.Stats().MissingBaselines)
	}
}

// TestReconnectsOverHostileLinks is the soak of sessions: clients are kicked and come
// again, are dropped for silence, begin anew for no reason; their server is replaced; all
// the while packets of all times get lost, doubled and late. What is shown is what was at
// the server that is shown, and never older than before.
func TestReconnectsOverHostileLinks(t *testing.T) {
	oneGoroutine(t)
	ticks := ticksOf(6000, 2500)
	for name, opts := range map[string][]ServerOption{"checksum": nil, "wrap": {WithFirstTick(1<<32 - 1500), WithFirstSequence(1<<16 - 200)}} {
		t.Run(name, func(t *testing.T) { playReconnects(t, ticks, opts...) })
	}
}

// A restless is a client whose connection does not last, and its link, on which packets of
// all its sessions travel.
type restless struct {
	end
	attic [][]byte // packets of long ago
}

func playReconnects(t *testing.T, ticks int, opts ...ServerOption) {
	const timeout = 60
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	schema := testSchema()
	truths := map[uint64]*truth{} // by origin
	var s *Server
	var g *game
	var o *truth
	begin := func(n uint64) {
		w := ecs.NewWorld()
		s = NewServer(&w, schema, append([]ServerOption{WithSeed(seed + n), WithTimeout(400), WithTickRate(20)}, opts...)...)
		g, o = newGame(seed+n, &w, schema, 15), newTruth()
		truths[s.sessions.Origin] = o
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
		r.client = NewClient(&w, schema, r.link.Up.Send, WithNonce(seed+uint64(i)), WithServerTimeout(timeout))
		r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
		all = append(all, r)
	}
	sessions, servers, errs := map[uint64]bool{}, uint64(1), 0
	step := func(r *restless, calm bool) {
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
		shown := r.client.apply.shownOrigin
		sessions[r.client.session.id] = true
		if err := r.client.Apply(); err != nil {
			require.NotNil(t, requireDisconnected(t, err))
			errs++
			if rng.IntN(30) == 0 || calm {
				r.client.Reconnect()
			}
		}
		if r.client.apply.shownOrigin != shown {
			clear(r.last)
		}
		r.link.Up.Receive(func(p []byte) { _ = r.peer.Receive(p) })
		if r.peer.Err() != nil && (rng.IntN(20) == 0 || calm) { // as a transport does that hears of somebody unknown
			r.peer = s.Connect(r.link.Down.Send, WithCoding(Coding(seed%2)))
		}
		if shown := truths[r.client.apply.shownOrigin]; shown != nil {
			r.check(t, s, shown)
		}
	}
	play := func(calm bool) {
		g.step()
		s.Replicate()
		o.record(s)
		for _, r := range all {
			step(r, calm)
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
			case 5: // the transport lost its connection, and the server knows nothing of it
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

// TestALargeWorldIsTakenOver though it takes many packets to come: what has not come yet
// is not taken for gone.
func TestALargeWorldIsTakenOver(t *testing.T) {
	x, e, _ := crowd(t, 400, WithMTU(100))
	x.rounds(20)
	x.requireEqual()
	x.peer.SetBudget(3000)
	for range 3 {
		id := x.client.session.id
		x.client.Reconnect()
		for n := 0; x.client.session.id == id || !x.client.Complete(); n++ {
			require.Less(t, n, 400)
			x.round()
			if !x.client.Complete() {
				require.GreaterOrEqual(t, x.mirror.Stats().Entities.Used, 399)
			}
			if n == 2 { // the client may have been sent it in this session or not
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

func TestNothingBeforeTheFirstPacketIsFresh(t *testing.T) {
	for _, first := range []uint32{0, 5, 1 << 31, 1<<32 - 1} {
		w := wire.NewReceiveWindow(first)
		before := []uint32{first - 1, first - 2, first - 63, first - 1000, first - 1025, first - 1<<15, first - 1<<31 + 10}
		for _, s := range before {
			require.False(t, w.Fresh(s))
		}
		require.Zero(t, w.History(first))
		w.Add(first+2, true)
		for _, s := range before {
			require.False(t, w.Fresh(s), "%d of %d", s, first)
		}
		require.True(t, w.Fresh(first))
		require.True(t, w.Fresh(first+1))
		require.False(t, w.Fresh(first+2))
		require.True(t, w.Fresh(first+3))
		require.Equal(t, uint32(1), w.History(first+2))
	}
}

// TestALateStateDoesNotEndTheFirstWords: without checksums a state packet of an earlier session may be taken for one of a session
// that the server has only offered. The client must not think that it is in force for good.
func TestALateStateDoesNotEndTheFirstWords(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum())
	x.restart(faceOf(x.server.schema), 7, WithServerTimeout(20))
	x.rounds(3)
	x.spawn()
	late := x.replicate()
	require.NotEmpty(t, late)
	x.server.Disconnect(x.peer)
	x.takeDown() // the byes are lost
	x.connect()
	for range 60 {
		x.answer(x.apply()...)
		if x.deliver(x.takeDown()...); x.client.Stats().Sessions == 2 {
			break
		}
	}
	require.EqualValues(t, 2, x.client.Stats().Sessions)
	require.False(t, x.peer.Connected())
	x.deliver(late...)
	x.rounds(60)
	require.True(t, x.peer.Connected())
}

// TestFormerSessionsAreKnownByTheirChecksums: in sessions without checksums, state hashes, byes and first words have one all the
// same. Those of the session before are not taken for whatever their checksums begin like, which might be a state of the future.
func TestFormerSessionsAreKnownByTheirChecksums(t *testing.T) {
	x := newWire(t, talkSchema(), WithoutChecksum(), WithStateHash(2))
	x.restart(faceOf(x.server.schema), 7)
	x.spawn()
	x.rounds(3)
	var down, up [][]byte
	session, key := x.peer.conn.Session.ID, x.peer.conn.Session.Up
	for n := 0; len(down) < 20 || len(up) < 20; n++ {
		require.Less(t, n, 2000)
		for _, p := range x.replicate() {
			if x.deliver(p); len(p) > wire.ChecksumSize && p[wire.ChecksumSize] == byte(wire.KindHashes) && wire.KindOf(p) == wire.KindState {
				down = append(down, p)
			}
		}
		x.answer(x.apply()...)
		if bye := wire.DisconnectPacket(0, fmt.Sprint(n), session, key, 200); wire.KindOf(bye) == wire.KindInputs || wire.KindOf(bye) == wire.KindMessages {
			up = append(up, bye)
		}
	}
	x.client.Reconnect()
	x.rounds(5)
	require.NotEqual(t, session, x.peer.conn.Session.ID)
	for _, p := range down {
		require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
	}
	for _, p := range up {
		require.ErrorIs(t, x.peer.Receive(p), wire.ErrStale)
	}
	x.rounds(2)
	require.Zero(t, x.peer.Stats().RefusedAcks)
	x.requireEqual()
}

// TestLateHashesOfASessionWithoutStatesAreKnown: a session may be over for the client before any of its states came, and state
// hashes of it come late. Without checksums they must not be taken for states of the next session.
func TestLateHashesOfASessionWithoutStatesAreKnown(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum(), WithStateHash(1), neverSilent)
	x.restart(faceOf(x.server.schema), 7)
	for range 40 {
		x.spawn()
	}
	x.answer(x.apply()...)
	x.deliver(x.takeDown()...) // the welcome
	x.answer(x.apply()...)     // the session is in force
	require.True(t, x.peer.Connected())
	var late [][]byte
	for n := 0; len(late) < 20; n++ {
		require.Less(t, n, 2000)
		for _, p := range x.replicate() { // all the states are lost
			if p[wire.ChecksumSize] == byte(wire.KindHashes) && wire.KindOf(p) == wire.KindState {
				late = append(late, p)
			}
		}
	}
	x.client.Reconnect()
	x.rounds(1)
	require.EqualValues(t, 2, x.client.Stats().Sessions)
	for _, p := range late {
		require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
	}
	x.rounds(5)
	x.requireEqual()
}

// TestLateStatesOfASessionPassedOverAreTooOld: of two sessions that are offered, the client is in the second already when its first
// word of the first one arrives. What the server then says in the first must not be taken for the second, without checksums either.
func TestLateStatesOfASessionPassedOverAreTooOld(t *testing.T) {
	x := newWire(t, testSchema(), WithoutChecksum())
	x.restart(faceOf(x.server.schema), 7)
	x.spawn()
	introduce := func() (word [][]byte) {
		sessions := x.client.Stats().Sessions
		for n := 0; x.client.Stats().Sessions == sessions; n++ {
			require.Less(t, n, 100)
			x.answer(x.apply()...)
			x.deliver(x.takeDown()...)
		}
		return x.apply()
	}
	first := introduce()
	require.NotEmpty(t, first)
	x.client.Reconnect()
	second := introduce()
	require.False(t, x.peer.Connected())
	x.answer(first...)
	require.True(t, x.peer.Connected())
	late := 0
	for range 5 {
		x.spawn()
		for _, p := range x.replicate() {
			require.ErrorIs(t, x.client.Receive(p), wire.ErrStale)
			late++
		}
	}
	require.NotZero(t, late)
	x.answer(second...)
	x.rounds(60)
	x.requireEqual()
}

// TestOffersStayNearTheSessionInForce: however many sessions are offered in a row, packets of the
// session before them are too old in all of them, also by the low bits of their sequences.
func TestOffersStayNearTheSessionInForce(t *testing.T) {
	x := connectedWire(t, testSchema(), WithoutChecksum())
	x.rounds(20)
	var last uint32
	for nonce := range uint64(40) {
		h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: x.server.sessions.Fingerprint, Nonce: 1000 + nonce}
		require.NoError(t, x.peer.Receive(wire.Sealed(h.Append(nil))))
		var m wire.Welcome
		down := x.takeDown()
		require.True(t, m.Parse(wire.OpenHandshake(down[len(down)-1])))
		ahead := m.Sequence - x.peer.acked.Log.Next
		require.GreaterOrEqual(t, ahead, uint32(session.SequenceGap))
		require.Less(t, ahead, uint32(1<<15), "offer %d", nonce)
		if nonce > 0 && nonce <= session.MaxOfferGaps {
			require.Equal(t, last+session.OfferGap, m.Sequence)
		}
		last = m.Sequence
	}
}
