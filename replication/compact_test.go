package replication

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// withCoding sets the coding of all peers.
func withCoding(c Coding) ServerOption {
	return config.ServerFunc(func(o *config.ServerOptions) { o.Compact = c == Compact })
}

func TestCodingIsNegotiated(t *testing.T) {
	for _, c := range []struct {
		server, want Coding
		opts         []ClientOption
	}{
		{Packed, Packed, nil},
		{Compact, Compact, nil},
		{Compact, Packed, []ClientOption{WithoutCompact()}},
		{Packed, Packed, []ClientOption{WithoutCompact()}},
	} {
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(1))
		link := netsim.NewLink(1, netsim.Config{})
		mirror := ecs.NewWorld()
		e := &end{world: &mirror, link: link, last: map[NetID]uint32{}}
		e.peer = s.Connect(link.Down.Send, WithCoding(c.server))
		e.client = NewClientWith(&mirror, faceOf(s.schema), link.Up.Send, c.opts...)
		require.Equal(t, Packed, e.peer.Coding())
		for range 6 {
			s.Replicate()
			e.step(t)
		}
		require.True(t, e.client.Connected())
		require.Equal(t, c.want, e.peer.Coding())
		require.Equal(t, c.want, e.client.Coding())
	}
	require.Equal(t, "compact", Compact.String())
	require.Equal(t, "Coding(7)", Coding(7).String())
	require.PanicsWithValue(t, "replication: Coding(2): use Packed or Compact", func() { WithCoding(2) })
}

// TestWelcomeOfAnUnwantedCoding: a client that did not offer Compact ignores a welcome that selects
// it.
func TestWelcomeOfAnUnwantedCoding(t *testing.T) {
	x := newWire(t, testSchema(), withCoding(Compact))
	x.restart(faceOf(x.server.schema), 7, WithoutCompact())
	x.apply()
	m := wire.Welcome{Version: wire.ProtocolVersion, Compact: true, Window: 64, Nonce: 7, Session: 1, TickRate: 60}
	require.ErrorIs(t, x.client.Receive(wire.WithChecksum(m.Append(nil))), wire.ErrMalformed)
	m.Compact = false
	require.NoError(t, x.client.Receive(wire.WithChecksum(m.Append(nil))))
}

// TestBothCodingsShowTheSame: over perfect links all replicas are equal in every tick, whatever
// their coding.
func TestBothCodingsShowTheSame(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed)) // nothing is sent in parts, which take longer
	g := newGame(seed, &w, faceOf(s.schema), 40)
	ends := []*end{connect(s, 1, netsim.Config{Latency: 2}), connect(s, 1, netsim.Config{Latency: 2}), connect(s, 1, netsim.Config{Latency: 2})}
	for range ticksOf(2000, 300) {
		g.step()
		s.Replicate()
		for _, e := range ends {
			e.step(t)
			if e.client.Tick() > 20 {
				require.Equal(t, worldHash(ends[0].client), worldHash(e.client))
			}
		}
	}
	require.NotEqual(t, ends[1].peer.Coding(), ends[2].peer.Coding())
	stats := [2]PeerStats{ends[1].peer.Stats(), ends[2].peer.Stats()}
	if ends[1].peer.Coding() == Compact {
		stats[0], stats[1] = stats[1], stats[0]
	}
	require.Less(t, stats[1].EntityBits, stats[0].EntityBits)
	for _, e := range ends {
		require.Zero(t, e.client.Stats().MissingModels+e.client.Stats().MissingBaselines)
	}
}

// TestReferencedModelsExist: whatever is lost, duplicated or late, the server references only
// models that the client still has. The exception is a packet that is overtaken when acks arrive again
// after a while, by one whose root is more than 16 ticks newer.
func TestReferencedModelsExist(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	seed := seedOf(t)
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema(), WithSeed(seed), withCoding(Compact), WithMTU(150))
	g := newGame(seed, &w, faceOf(s.schema), 80)
	o := newTruth()
	var ends []*end
	for i, cfg := range []netsim.Config{
		{Latency: 1},
		{Latency: 3, Loss: 0.3, Duplicate: 0.3, Reorder: 0.2, ReorderBy: 3},
		{Latency: 40, Loss: 0.1, Reorder: 0.1, ReorderBy: 2},
		{Latency: 2, Burst: netsim.Burst{Start: 0.02, Length: 40}},
	} {
		e := connect(s, seed+uint64(i), cfg)
		e.peer.conn.Compact = true
		ends = append(ends, e)
	}
	outages := uint64(0)
	for tick := range ticksOf(4000, 500) {
		g.step()
		tickAll(t, s, o, ends)
		if tick%500 == 250 { // nothing is received from the clients for a long time
			outages++
			for _, e := range ends {
				e.link.Up.SetConfig(netsim.Config{Loss: 1})
			}
		}
		if tick%500 == 250+int(seed%100) {
			for _, e := range ends {
				e.link.Up.SetConfig(netsim.Config{Latency: 1, Loss: 0.2})
			}
		}
		for _, e := range ends {
			require.LessOrEqual(t, e.client.Stats().MissingModels, outages)
			if k := e.peer.out.Packet.Compact; k != nil {
				require.LessOrEqual(t, len(k.Kept.List), compact.MaxKept)
				require.LessOrEqual(t, len(k.Kept.List)+len(k.Kept.Free), compact.MaxKept+1)
			}
			if c := e.client.recv.Compact; c != nil {
				require.LessOrEqual(t, len(c.Held.List), compact.HeldModels)
			}
		}
	}
	for _, e := range ends {
		require.Equal(t, Compact, e.client.Coding())
		e.link.SetConfig(netsim.Config{Latency: 2})
	}
	requireEqualSoon(t, s, o, ends, 200)
}

// TestForgottenModels: a client that has forgotten its models, against the rules, still converges.
func TestForgottenModels(t *testing.T) {
	x, entities, move := crowd(t, 40, withCoding(Compact))
	x.rounds(10)
	last := 0
	for i := range 100 {
		for j, e := range entities {
			move(e, float32((i+j)%5)-2)
		}
		if i < 20 {
			x.client.recv.Compact.Held = compact.ModelStore{}
		}
		before := x.client.Stats().MissingModels
		if x.round(); x.client.Stats().MissingModels > before {
			last = i
		}
	}
	require.Greater(t, last, 18)
	require.Less(t, last, compact.MaxSince+2, "then a new one is begun")
	x.requireEqual()
}

// TestModelMemory: the memory of a model has a known bound, whatever packets contain.
func TestModelMemory(t *testing.T) {
	oneGoroutine(t)
	require.LessOrEqual(t, compact.MaxListed*int(unsafe.Sizeof(compact.ListedSlot{})), 16<<10)
	x, entities, move := crowd(t, 3000, withCoding(Compact), WithMTU(60000))
	for i := range 40 {
		for j, e := range entities {
			move(e, float32((i+j)%5)-2)
		}
		x.round()
	}
	x.rounds(5)
	for _, m := range x.client.recv.Compact.Held.List {
		require.LessOrEqual(t, len(m.State.Slots), compact.MaxListed)
		require.LessOrEqual(t, cap(m.State.Slots), 2*compact.MaxListed)
	}
	for _, m := range x.peer.out.Packet.Compact.Kept.List {
		require.LessOrEqual(t, cap(m.State.Slots), 2*compact.MaxListed)
	}
}

// TestCompactPacketsAreWithinTheirSize: packets of any size limit are filled up to it, and contain
// nothing that does not fit.
func TestCompactPacketsAreWithinTheirSize(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range ticksOf(40, 12) {
		mtu := wire.MinMTU + rng.IntN(400)
		w := ecs.NewWorld()
		s := NewServer(&w, testSchema(), WithSeed(seed), WithMTU(mtu), withCoding(Compact))
		g := newGame(rng.Uint64(), &w, faceOf(s.schema), 60)
		o := newTruth()
		e := connect(s, rng.Uint64(), netsim.Config{Latency: 2, Loss: rng.Float64() / 4})
		send, full, packets := e.peer.out.Send, 0, 0
		e.peer.out.Send = func(p []byte) error {
			require.LessOrEqual(t, len(p), mtu)
			if packets++; len(p) > mtu-8 {
				full++
			}
			return send(p)
		}
		for range 60 {
			g.step()
			tickAll(t, s, o, []*end{e})
		}
		e.link.SetConfig(netsim.Config{Latency: 1})
		requireEqualSoon(t, s, o, []*end{e}, 100)
		require.Zero(t, e.client.Stats().MissingModels)
	}
}

// FuzzCompactPacket is FuzzPacket for a session with Compact.
func FuzzCompactPacket(f *testing.F) {
	fuzzWire(f, func(p []byte) {
		if len(p) > 12 {
			f.Add(p[4]>>wire.PadShift&7, p[9:])
			f.Add(byte(1), p[11:])
		}
	}, withCoding(Compact))
	f.Fuzz(func(t *testing.T, pad byte, body []byte) {
		x := fuzzWire(t, nil, withCoding(Compact))
		require.Equal(t, Compact, x.client.Coding())
		before := bytes.Clone(body)
		x.receiveForged(pad, body)
		require.Equal(t, before, body)
		x.rounds(3)
	})
}

// TestCompactPacketsOfAnyBytes: any bytes are an error or a packet, in bounded time and memory.
func TestCompactPacketsOfAnyBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	x := fuzzWire(t, nil, withCoding(Compact))
	taken := 0
	for range ticksOf(20000, 3000) {
		body := make([]byte, rng.IntN(60))
		for i := range body {
			body[i] = byte(rng.Uint32())
		}
		if len(body) > 0 && rng.IntN(2) == 0 { // a known model age
			body[0] = 0x80 | byte(rng.IntN(64))<<1
		}
		before := x.client.Stats().Packets
		x.receiveForged(byte(rng.IntN(2)), body)
		taken += int(x.client.Stats().Packets - before)
	}
	t.Logf("%d packets were taken", taken)
}
