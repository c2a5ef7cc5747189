package replication

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication/internal/replicationtest"
)

// forgeAck returns an ack packet of the client's session with a correct checksum.
func forgeAck(c *Client, a *wire.Ack) []byte {
	from := c.session.Up.Size()
	buf := make([]byte, 512)
	w := bitbuf.NewWriter(buf[from:])
	a.Write(&w)
	packet := buf[:from+len(w.Bytes())]
	c.session.Up.Write(packet, 0, 0)
	return packet
}

// hostileAcks are false claims of a client about the packets of a log with the given next sequence.
func hostileAcks(next uint32, slots int) []wire.Ack {
	words := func(v uint32) (w [wire.MaxAckWords]uint32) {
		for i := range w {
			w[i] = v
		}
		return w
	}
	var all []wire.Ack
	for _, sequence := range []uint32{next, next + 1, next + 1000, next - 1, next - 2, next - 1024, next - 1025, next - 32768, next + 32767, 0, 65535} {
		for _, w := range []uint32{0, 1, 0xffffffff, 0xaaaaaaaa, 0x55555555, 1 << 31} {
			all = append(all, wire.Ack{Sequence: sequence, Count: wire.MaxAckWords, Words: words(w)})
		}
		all = append(all, wire.Ack{Sequence: sequence})
	}
	for _, slot := range []uint32{0, 1, uint32(slots) - 1, uint32(slots), 1 << 31, 1<<32 - 1} {
		a := wire.Ack{Lacks: wire.MaxMissing}
		for i := range a.Missing {
			a.Missing[i] = wire.MissingBaseline{Slot: slot, Low: uint32(i)}
		}
		all = append(all, a)
	}
	return all
}

// TestHostileAcksHurtOnlyTheirSender plays the same game with and without a peer that sends false
// acks: the others get the same bytes.
func TestHostileAcksHurtOnlyTheirSender(t *testing.T) {
	ticks := 600
	if testing.Short() {
		ticks = 150
	}
	seed := seedOf(t)
	play := func(hostile bool) (sent [][]byte) {
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed), replicationtest.FirstSequence(1<<16-200))
		g := newGame(seed, &w, faceOf(s.schema), 20)
		var ends []*end
		for i := range uint64(2) {
			e := connect(s, seed+i, netsim.Config{Latency: 3, Jitter: 2, Loss: 0.1}, WithSeed(i+1))
			send := e.peer.out.Send
			e.peer.out.Send = func(p []byte) error {
				sent = append(sent, bytes.Clone(p))
				return send(p)
			}
			ends = append(ends, e)
		}
		var liar *end // last, so that the others have the same session numbers
		o := newTruth()
		for tick := range ticks {
			if hostile && liar == nil && tick >= 20 && ends[0].peer.Connected() && ends[1].peer.Connected() {
				liar = connect(s, seed, netsim.Config{}, WithSeed(99))
			}
			g.step()
			s.Replicate()
			o.record(s)
			for _, e := range ends {
				e.step(t)
				e.check(t, s, o)
			}
			if liar == nil {
				continue
			}
			if !liar.peer.Connected() {
				liar.step(t)
				continue
			}
			for _, a := range hostileAcks(liar.peer.acked.Log.Next, s.snap.Slots.Len()) {
				packet := forgeAck(liar.client, &a)
				_ = liar.peer.Receive(packet)
				_ = liar.peer.Receive(packet)
			}
		}
		if hostile {
			require.True(t, liar.peer.Connected())
			require.NotZero(t, liar.peer.Stats().RefusedAcks)
		}
		requireEqualSoon(t, s, o, ends, 0+60)
		return sent
	}
	honest, withLiar := play(false), play(true)
	require.Equal(t, len(honest), len(withLiar))
	for i := range honest {
		require.Equal(t, honest[i], withLiar[i], "packet %d", i)
	}
}

// TestHostileAcksTakeNoMemory: no claim allocates anything.
func TestHostileAcksTakeNoMemory(t *testing.T) {
	x := connectedWire(t, testSchema())
	g := newGame(1, x.world, faceOf(x.server.schema), 20)
	for range 50 {
		g.step()
		x.replicate()
	}
	var packets [][]byte
	for _, a := range hostileAcks(x.peer.acked.Log.Next, x.server.snap.Slots.Len()) {
		packets = append(packets, forgeAck(x.client, &a))
	}
	skipAllocationTest(t)
	allocs := testing.AllocsPerRun(100, func() { x.answer(packets...) })
	require.Zero(t, allocs)
}

// TestFalseAcksAreCorrected: a client that acknowledges packets it never got lacks baselines,
// reports that, and gets full states of what moves.
func TestFalseAcksAreCorrected(t *testing.T) {
	x := connectedWire(t, testSchema())
	position := ecs.ComponentID[tPosition](x.world)
	entities := []ecs.Entity{x.spawn(position)}
	move := func() {
		for _, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X += 0.1
		}
	}
	for range 10 { // this one arrives, and so the client can complete short headers, for a while
		move()
		x.round()
	}
	for range 50 {
		entities = append(entities, x.spawn(position))
	}
	for range 100 {
		move()
		x.replicate() // lost
		a := wire.Ack{Sequence: x.peer.acked.Log.Next - 1, Count: 1, Words: [wire.MaxAckWords]uint32{1}}
		x.answer(forgeAck(x.client, &a))
	}
	require.EqualValues(t, 1, x.client.Stats().Spawns)
	for range 300 { // until nothing is left to be encoded against what the client never had
		move()
		x.round()
	}
	x.rounds(10)
	x.requireEqual()
	require.NotZero(t, x.client.Stats().MissingBaselines)
}

// TestPacketsNeverExceedTheMTU has entities of several packets among small ones.
func TestPacketsNeverExceedTheMTU(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	mtus := []int{64, 65, 71, 100, 128, 300, 576, 1200}
	if testing.Short() {
		mtus = []int{64, 100, 1200}
	}
	for _, mtu := range mtus {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			seed := seedOf(t)
			w := ecs.NewWorld()
			s := NewServer(&w, hugeSchema(), WithSeed(seed), WithMTU(mtu))
			huge := ecs.ComponentID[tHuge](&w)
			g := newGame(seed, &w, testSchema(), 20)
			o := newTruth()
			e := connect(s, seed, netsim.Config{Latency: 2, Jitter: 1, Loss: 0.1}, WithSeed(1))
			largest := 0
			send := e.peer.out.Send
			e.peer.out.Send = func(p []byte) error {
				largest = max(largest, len(p))
				require.LessOrEqual(t, len(p), mtu)
				return send(p)
			}
			var big []ecs.Entity
			for range 2 {
				big = append(big, w.NewEntity(huge, g.marker))
			}
			for tick := range 200 {
				g.step()
				for i, b := range big {
					if (tick+i)%40 == 0 {
						v := (*tHuge)(w.Get(b, huge))
						for j := range v.Cells {
							v.Cells[j] = g.rng.Uint64()
						}
					}
				}
				s.Replicate()
				o.record(s)
				e.step(t)
				e.check(t, s, o)
			}
			require.Greater(t, largest, mtu-40, "packets are filled")
			require.NotZero(t, e.peer.Stats().Parts)
			e.link.SetConfig(netsim.Config{Latency: 2})
			requireEqualSoon(t, s, o, []*end{e}, 100)
		})
	}
}

// tHuge is a component of 4 kB.
type tHuge struct {
	Cells [512]uint64
}

func hugeSchema() *Schema {
	s := testSchema()
	Register[tHuge](s)
	return s
}

// TestFailingSendHookIsLoss: half of all sends fail, at both ends.
func TestFailingSendHookIsLoss(t *testing.T) {
	for _, mtu := range []int{64, 300, 1200} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			seed := seedOf(t)
			rng := rand.New(rand.NewPCG(seed, 9))
			schema := testSchema()
			w := ecs.NewWorld()
			s := NewServer(&w, schema, WithSeed(seed), WithMTU(mtu))
			g := newGame(seed, &w, schema, 20)
			o := newTruth()
			e := connect(s, seed, netsim.Config{Latency: 1}, WithSeed(1))
			fail := true
			flaky := func(send func([]byte) error) func([]byte) error {
				return func(p []byte) error {
					if fail && rng.IntN(2) == 0 {
						return errors.New("buffer full")
					}
					return send(p)
				}
			}
			e.peer.out.Send, e.client.session.Send = flaky(e.peer.out.Send), flaky(e.client.session.Send)
			for tick := range 400 {
				if tick%20 == 0 { // takes several packets at the smaller sizes
					g.spawn(g.ids[5], g.ids[3])
				}
				g.step()
				s.Replicate()
				o.record(s)
				e.step(t)
				e.check(t, s, o)
			}
			fail = false
			requireEqualSoon(t, s, o, []*end{e}, 100)
			require.NotZero(t, e.peer.Stats().SendErrors)
			require.NotZero(t, e.client.Stats().SendErrors)
		})
	}
}

// TestProgressAtTheLeastMTU spawns a crowd with the smallest packets.
func TestProgressAtTheLeastMTU(t *testing.T) {
	schema := testSchema()
	x := connectedWire(t, schema, WithMTU(wire.MinMTU))
	ids := []ecs.ID{ecs.ComponentID[tPosition](x.world), ecs.ComponentID[tRotation](x.world), ecs.ComponentID[tExact](x.world)}
	for range 3000 {
		x.spawn(ids...)
	}
	for n := 0; ; n++ {
		x.round()
		if x.client.Stats().Spawns == 3000 {
			break
		}
		require.Less(t, n, 40, "%d spawns", x.client.Stats().Spawns)
	}
	x.round()
	x.requireEqual()
}

// TestLongOutage loses more packets than a sequence number on the wire can count, and then
// recovers.
func TestLongOutage(t *testing.T) {
	oneGoroutine(t)
	x := connectedWire(t, testSchema(), WithMTU(wire.MinMTU), WithTimeout(0), neverSilent)
	position := ecs.ComponentID[tPosition](x.world)
	var entities []ecs.Entity
	for range 400 {
		entities = append(entities, x.spawn(position))
	}
	x.rounds(10)
	first := x.peer.acked.Log.Next
	for tick := 0; x.peer.acked.Log.Next-first < 40_000; tick++ {
		for _, e := range entities {
			(*tPosition)(x.world.Get(e, position)).X += 0.5
		}
		x.replicate()
		require.Less(t, tick, 20_000)
	}
	t.Logf("%d ticks, %d packets", x.server.Tick(), x.peer.acked.Log.Next)
	x.rounds(100)
	x.requireEqual()
}

// TestSilentPeersMemoryIsBounded has a peer that connected and never sends again while everything
// moves, spawns and despawns.
func TestSilentPeersMemoryIsBounded(t *testing.T) {
	ticks := 5000
	if testing.Short() {
		ticks = 1000
	}
	const maxBytes = 4 << 20 // 1024 packets, each listing up to some hundred entities
	x := connectedWire(t, testSchema(), WithTimeout(0), neverSilent)
	g := newGame(3, x.world, faceOf(x.server.schema), 200)
	x.peer.out.Send = func([]byte) error { return nil }
	var early int64
	for tick := range ticks {
		g.step()
		x.server.Replicate()
		if tick == ticks/5 {
			early = heapInUse()
		}
	}
	grown := heapInUse() - early
	ring := len(x.peer.acked.Log.Records) * int(unsafe.Sizeof(baseline.SentRecord{}))
	t.Logf("grown by %d kB; ring of %d packets with %d kB of records", grown>>10, len(x.peer.acked.Log.Ring), ring>>10)
	require.Less(t, grown, int64(maxBytes))
	require.LessOrEqual(t, len(x.peer.acked.Log.Ring), ackstate.MaxInFlight)
	require.Less(t, ring, maxBytes)
	runtime.KeepAlive(g)
}
