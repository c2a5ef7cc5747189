package replication

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// A forger makes packets from genuine ones that no honest sender would send.
type forger struct {
	rng     *rand.Rand
	own     [][]byte // already received by the victim
	foreign [][]byte // of other sessions, other schemas, and the victim's own
	buf     []byte
}

func (f *forger) pick(pool [][]byte) []byte { return pool[f.rng.IntN(len(pool))] }

// next returns a forged packet, valid until the next call.
func (f *forger) next() []byte {
	r := f.rng
	f.buf = append(f.buf[:0], f.pick(f.own)...)
	switch r.IntN(8) {
	case 0: // truncated
		return f.buf[:r.IntN(len(f.buf)+1)]
	case 1: // extended
		for range 1 + r.IntN(16) {
			f.buf = append(f.buf, byte(r.Uint32()))
		}
		return f.buf
	case 2: // replayed
		return f.buf
	case 3, 4: // foreign or reflected
		f.buf = append(f.buf[:0], f.pick(f.foreign)...)
		return f.buf
	case 5: // random
		f.buf = f.buf[:0]
		for range r.IntN(200) {
			f.buf = append(f.buf, byte(r.Uint32()))
		}
		return f.buf
	case 6: // spliced
		other := f.pick(f.own)
		cut := r.IntN(len(f.buf) + 1)
		f.buf = append(f.buf[:cut], other[min(cut, len(other)):]...)
		return f.buf
	default: // bits flipped
		for range 1 + r.IntN(8) {
			bit := r.IntN(len(f.buf) * 8)
			f.buf[bit/8] ^= 1 << (bit % 8)
		}
		return f.buf
	}
}

// foreignTraffic returns the packets of two other sessions in both directions, one of them with
// another schema.
func foreignTraffic(t testing.TB, seed uint64, opts ...ServerOption) (packets [][]byte) {
	other := NewSchema()
	Register[tHealth](other)
	Register[tPosition](other)
	for i, schema := range []*Schema{testSchema(), other} {
		x := newWire(t, schema, append(opts, WithSeed(seed+uint64(i)+100))...)
		x.client.session.Nonce = seed + uint64(i)
		position := ecs.ComponentID[tPosition](x.world)
		for range 5 {
			x.spawn(position)
		}
		filter := ecs.All(position)
		for range 30 {
			q := x.world.Query(&filter)
			for q.Next() {
				(*tPosition)(q.Get(position)).X += 0.3
			}
			down := x.replicate()
			x.deliver(down...)
			up := x.apply()
			x.answer(up...)
			packets = append(append(packets, down...), up...)
			down = x.takeDown()
			x.deliver(down...)
			packets = append(packets, down...)
		}
		require.NotZero(t, x.client.Stats().Packets)
	}
	return packets
}

const poolSize = 64

func addToPool(pool [][]byte, packets [][]byte) [][]byte {
	for _, p := range packets {
		pool = append(pool, bytes.Clone(p))
	}
	return pool[max(0, len(pool)-poolSize):]
}

// TestBadPacketsChangeNothing gives a client and its peer, in the middle of a session, every kind
// of damaged or forged packet. A forged packet passes its checksum once in 2^32, so this test would
// fail once in some thousand random runs.
func TestBadPacketsChangeNothing(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	packets := 1_000_000
	if testing.Short() {
		packets = 50_000
	}
	const batch = 100 // forged packets to each end between two comparisons of the world
	seed := seedOf(t)
	x := connectedWire(t, testSchema(), WithSeed(seed))
	g := newGame(seed, x.world, faceOf(x.server.schema), 20)
	foreign := foreignTraffic(t, seed)
	toClient := forger{rng: rand.New(rand.NewPCG(seed, 2)), foreign: foreign}
	toPeer := forger{rng: rand.New(rand.NewPCG(seed, 3)), foreign: foreign}
	for range 4 { // material for the first forgeries
		e := g.spawn(g.ids[0], g.ids[1])
		down := x.replicate()
		x.deliver(down...)
		up := x.apply()
		x.answer(up...)
		toClient.own, toPeer.own = addToPool(toClient.own, down), addToPool(toPeer.own, up)
		g.mutate(e)
	}
	for n := 0; n < packets; n += 2 * batch {
		// Some ticks of honest traffic, all of which arrives.
		for range 3 {
			g.step()
			down := x.replicate()
			for _, p := range down {
				require.NoError(t, x.client.Receive(p))
			}
			up := x.apply()
			for _, p := range up {
				require.NoError(t, x.peer.Receive(p))
			}
			toClient.own, toPeer.own = addToPool(toClient.own, down), addToPool(toPeer.own, up)
			x.requireEqual()
		}
		reflected := append(slices.Clone(toClient.own), toPeer.own...)
		toClient.foreign, toPeer.foreign = slices.Concat(foreign, reflected), slices.Concat(foreign, reflected)

		before, stats, was := worldHash(x.client), x.client.Stats(), x.peer.Stats()
		for range batch {
			err := x.client.Receive(toClient.next())
			require.Error(t, err)
			_ = x.peer.Receive(toPeer.next()) // acks may be repeated without harm
		}
		now := x.client.Stats()
		require.EqualValues(t, batch, now.RefusedPackets-stats.RefusedPackets+now.Duplicates-stats.Duplicates, "every bad packet counts")
		require.Empty(t, x.apply(), "and has no answer")
		require.Equal(t, before, worldHash(x.client), "nor any effect")
		require.Equal(t, was.Acked, x.peer.Stats().Acked)
		require.Equal(t, was.MissingBaselines, x.peer.Stats().MissingBaselines)
		x.takeDown() // answers to foreign hellos
	}
	x.rounds(20)
	x.requireEqual()
}

// TestBadPacketsWithoutChecksum allows wrong values, but no panic, no hang and no more memory than
// WithMaxEntities allows. Forged packets soon ruin a session by claiming later sequences, so there
// are many sessions.
func TestBadPacketsWithoutChecksum(t *testing.T) {
	oneGoroutine(t)
	sessions := 400
	if testing.Short() {
		sessions = 60
	}
	const (
		perSession = 500
		maxHeap    = 64 << 20
	)
	seed := seedOf(t)
	schema := testSchema()
	x := newWire(t, schema, WithSeed(seed), WithoutChecksum())
	g := newGame(seed, x.world, schema, 20)
	foreign := foreignTraffic(t, seed, WithoutChecksum())
	toClient := forger{rng: rand.New(rand.NewPCG(seed, 2)), foreign: foreign}
	toPeer := forger{rng: rand.New(rand.NewPCG(seed, 3)), foreign: foreign}
	accepted := uint64(0)
	for n := range sessions {
		x.restart(schema, seed+uint64(n), WithMaxEntities(256))
		for i := range perSession {
			if i%50 < 4 {
				g.step()
				down := x.replicate()
				for _, p := range down {
					if toClient.rng.IntN(3) == 0 { // damaged by the network
						for range 1 + toClient.rng.IntN(4) {
							bit := toClient.rng.IntN(len(p) * 8)
							p[bit/8] ^= 1 << (bit % 8)
						}
					}
				}
				x.deliver(down...)
				up := x.apply()
				x.answer(up...)
				x.deliver(x.takeDown()...)
				toClient.own, toPeer.own = addToPool(toClient.own, down), addToPool(toPeer.own, up)
			}
			if len(toClient.own) == 0 || len(toPeer.own) == 0 {
				continue
			}
			_ = x.client.Receive(toClient.next())
			if i%10 == 0 {
				_ = x.peer.Receive(toPeer.next())
			}
			x.takeDown()
		}
		accepted += x.client.Stats().Packets
	}
	require.Greater(t, accepted, uint64(10*sessions), "hardly a session was ever alive")
	heap := heapInUse()
	t.Logf("heap of %d kB", heap>>10)
	require.Less(t, heap, int64(maxHeap))

	// A new client works.
	x.restart(schema, seed+uint64(sessions))
	x.rounds(200)
	x.requireEqual()
}

// forgeState returns a state packet of the session with a correct checksum.
func (x *fixture) forgeState(sequence, tick uint32, write func(w *bitbuf.Writer)) []byte {
	key := x.client.session.Down
	h := wire.StateHeader{Sequence: sequence, Tick: tick, Interval: 1}
	from := key.Size() + h.Size()
	buf := make([]byte, wire.MaxMTU)
	h.Put(buf[key.Size():])
	w := bitbuf.NewWriter(buf[from:])
	write(&w)
	n := w.Len()
	packet := buf[:from+len(w.Bytes())]
	packet[key.Size()] |= byte(-n&7) << wire.PadShift
	key.Write(packet, sequence, tick)
	return packet
}

// beginPart writes the contents of an entry with the first byte of a state of the largest size.
func beginPart(w *bitbuf.Writer) {
	w.WriteExpGolomb(0, wire.PartOrder)
	w.WriteExpGolomb(receive.MaxLargeBytes, wire.PartOrder)
	w.WriteExpGolomb(1, wire.PartOrder)
	w.WriteExpGolomb(1, wire.PartOrder)
	w.WriteBits(0, 8)
}

// TestAPacketHasOnePart: each part may complete a state, which is as much work as a full packet.
func TestAPacketHasOnePart(t *testing.T) {
	x := connectedWire(t, testSchema())
	for i, parts := range []int{1, 2} {
		err := x.client.Receive(x.forgeState(uint32(1+i), uint32(10+i), func(w *bitbuf.Writer) {
			beginEntries(w, farApart(parts, wire.EntryPart)...)
			for range parts {
				beginPart(w)
			}
		}))
		require.Equal(t, parts > 1, errors.Is(err, wire.ErrMalformed), "%d parts: %v", parts, err)
	}
	require.Len(t, x.client.recv.Parts, 1)
}

// allocated returns the bytes that fn allocates, garbage included.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxPacketCost is how much a packet of 1200 bytes with a correct checksum may make a client
// allocate in Receive and Apply, garbage included. The worst cases are the last slot, for which the tables of pages
// grow, once, and entries that touch a page of replicas each: 780 unused slots in 1,092 bytes took 6.9 MB with pages of
// 64 slots.
const maxPacketCost = 7 << 19

func TestNoPacketCostsMuchMemory(t *testing.T) {
	oneGoroutine(t)   // the race detector makes slices grow by a copy more
	const size = 1150 // bytes of entries
	schema := testSchema()
	for name, write := range map[string]func(w *bitbuf.Writer){
		"despawns far apart": func(w *bitbuf.Writer) {
			beginEntries(w, farApart(8*size/12, wire.EntryDespawn)...)
		},
		"unused slots": func(w *bitbuf.Writer) { beginEntries(w, unusedSlots(780, wire.EntryDespawn)...) },
		"unused slots, filled": func(w *bitbuf.Writer) {
			beginEntries(w, unusedSlots(650, wire.EntryFull)...)
			for range 650 {
				w.WriteExpGolomb(1, wire.GenerationOrder)
				wire.WriteComponentSet(w, &wire.ComponentSet{}, &wire.ComponentSet{})
			}
		},
		"the last slot": func(w *bitbuf.Writer) {
			beginEntries(w, wire.ListedSlot{Slot: 1<<20 - 1, Kind: wire.EntryDespawn})
		},
		"many layouts": func(w *bitbuf.Writer) {
			const n = 8 * size / 24
			beginEntries(w, farApart(n, wire.EntryFull)...)
			var set wire.ComponentSet
			for i := range n {
				w.WriteExpGolomb(1, wire.GenerationOrder)
				next := wire.ComponentSet{}
				if i%2 == 0 {
					next.Add(4)
				}
				wire.WriteComponentSet(w, &next, &set)
				set = next
			}
		},
		"the beginning of a part": func(w *bitbuf.Writer) {
			beginEntries(w, farApart(1, wire.EntryPart)...)
			beginPart(w)
		},
		"beginnings of parts": func(w *bitbuf.Writer) {
			const n = 8 * size / 80
			beginEntries(w, farApart(n, wire.EntryPart)...)
			for range n {
				beginPart(w)
			}
		},
		"a part of more than there is": func(w *bitbuf.Writer) {
			beginEntries(w, wire.ListedSlot{Kind: wire.EntryPart})
			w.WriteExpGolomb(0, wire.PartOrder)
			w.WriteExpGolomb(1<<40, wire.PartOrder)
			w.WriteExpGolomb(1<<39, wire.PartOrder)
			w.WriteExpGolomb(0, wire.PartOrder)
		},
		"an endless component set": func(w *bitbuf.Writer) {
			beginEntries(w, wire.ListedSlot{Kind: wire.EntryFull})
			w.WriteExpGolomb(0, wire.GenerationOrder)
			w.WriteExpGolomb(1<<62, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := connectedWire(t, schema)
			packet := x.forgeState(1, 10, write)
			var err error
			cost := allocated(func() { err = x.client.Receive(packet) })
			cost += allocated(func() { x.apply() })
			t.Logf("%d bytes cost %d kB: %v", len(packet), cost>>10, err)
			require.Less(t, cost, uint64(maxPacketCost))
			again := allocated(func() { _ = x.client.Receive(x.forgeState(2, 11, write)) })
			require.Less(t, again, uint64(maxPacketCost))
		})
	}
}

// TestUpdatesOfLargeStatesAreBounded: a packet claims in a few bits each that thousands of large
// entities, all of which the client holds, did not change.
func TestUpdatesOfLargeStatesAreBounded(t *testing.T) {
	oneGoroutine(t)
	schema := testSchema()
	x := connectedWire(t, schema)
	bulk := ecs.ComponentID[tBulk](x.world)
	const n = 2000
	for range n {
		x.spawn(bulk)
	}
	for range 100 {
		x.round()
	}
	x.requireEqual()
	base := x.client.recv.Replicas.At(0).Newest
	packet := x.forgeState(x.client.recv.Window.Newest+1, x.client.recv.NearTick+1, func(w *bitbuf.Writer) {
		front := wire.Front{Baselines: delta.Baselines{A1: base}}
		front.Write(w, delta.Tick(x.client.recv.NearTick+1))
		var lists wire.SlotLists
		lists.Begin(nil, 0)
		for slot := range n {
			lists.AddOther(slot, wire.EntryUpdate)
		}
		lists.Write(w)
		for range n {
			w.WriteBits(0, 1)
		}
	})
	var err error
	cost := allocated(func() { err = x.client.Receive(packet) })
	t.Logf("%d bytes stage %d entities of %d words and cost %d kB: %v", len(packet), n, 80, cost>>10, err)
	require.Less(t, cost, uint64(maxPacketCost))
}

// TestTicksHalfACircleApartDontPanic: of two ticks 2^31 apart neither is after the other.
func TestTicksHalfACircleApartDontPanic(t *testing.T) {
	x := connectedWire(t, testSchema())
	entity := func(w *bitbuf.Writer) {
		beginEntries(w, wire.ListedSlot{Kind: wire.EntryFull})
		w.WriteExpGolomb(1, wire.GenerationOrder)
		set := wire.ComponentSet{}
		set.Add(4)
		wire.WriteComponentSet(w, &set, &wire.ComponentSet{})
	}
	for i, tick := range []uint32{100, 100 + 1<<31} {
		_ = x.client.Receive(x.forgeState(uint32(i+1), tick, entity))
	}
	require.NotPanics(t, func() { x.apply() })
}

// TestBadPartsChangeNothing: parts are assembled after everything else in the packet was checked,
// and yet errors inside them change nothing.
func TestBadPartsChangeNothing(t *testing.T) {
	x := connectedWire(t, testSchema())
	packet := x.forgeState(1, 10, func(w *bitbuf.Writer) {
		beginEntries(w, wire.ListedSlot{Kind: wire.EntryPart})
		w.WriteExpGolomb(0, wire.PartOrder)
		w.WriteExpGolomb(4, wire.PartOrder)
		w.WriteExpGolomb(4, wire.PartOrder)
		w.WriteExpGolomb(0, wire.PartOrder)
		w.WriteBytes([]byte{0xff, 0xff, 0xff, 0xff})
	})
	before := worldHash(x.client)
	err := x.client.Receive(packet)
	require.True(t, errors.Is(err, wire.ErrMalformed) || errors.Is(err, wire.ErrMissingBaseline), "%v", err)
	x.apply()
	require.Equal(t, before, worldHash(x.client))
	require.Empty(t, x.client.recv.Parts)
}

type tOwner struct {
	ecs.Relation `repl:"-"`
	Share        int8
}

type tSquad struct {
	ecs.Relation `repl:"-"`
	Rank         int8
}

// TestTwoRelationsInOneSetDontPanic: an entity of Arche has at most one relation, and Arche panics
// on more. An honest server can't send that.
func TestTwoRelationsInOneSetDontPanic(t *testing.T) {
	schema := NewSchema()
	Register[tOwner](schema)
	Register[tSquad](schema)
	x := connectedWire(t, schema)
	honest := x.spawn(ecs.ComponentID[tOwner](x.world))
	x.rounds(3)
	x.world.Exchange(honest, []ecs.ID{ecs.ComponentID[tSquad](x.world)}, []ecs.ID{ecs.ComponentID[tOwner](x.world)})
	x.rounds(3)
	x.requireEqual()
	packet := x.forgeState(x.client.recv.Window.Newest+1, x.client.recv.NearTick+1, func(w *bitbuf.Writer) {
		beginEntries(w, wire.ListedSlot{Slot: 1, Kind: wire.EntryFull})
		w.WriteExpGolomb(1, wire.GenerationOrder)
		set := wire.ComponentSet{}
		set.Add(0)
		set.Add(1)
		wire.WriteComponentSet(w, &set, &wire.ComponentSet{})
		w.WriteBits(0, 16)
	})
	require.NotPanics(t, func() {
		_ = x.client.Receive(packet)
		x.apply()
	})
}

// beginEntries writes what precedes the contents of entries in a state packet.
func beginEntries(w *bitbuf.Writer, entries ...wire.ListedSlot) {
	front := wire.Front{Baselines: delta.Baselines{A1: 0}}
	front.Write(w, 1)
	var lists wire.SlotLists
	lists.Begin(nil, 0)
	for _, e := range entries {
		lists.AddOther(int(e.Slot), e.Kind)
	}
	lists.Write(w)
	for _, e := range entries {
		if e.Kind == wire.EntryDespawn { // then all are
			w.WriteBool(false)
		}
	}
}

// unusedSlots returns entries, 64 slots apart.
func unusedSlots(n int, kind wire.EntryKind) (entries []wire.ListedSlot) {
	for i := range n {
		entries = append(entries, wire.ListedSlot{Slot: uint32(i+1) * 64, Kind: kind})
	}
	return entries
}

// farApart returns entries, each of which touches a page of replicas.
func farApart(n int, kind wire.EntryKind) (entries []wire.ListedSlot) {
	for i := range n {
		entries = append(entries, wire.ListedSlot{Slot: uint32((i+1)*receive.ReplicaPage - 1), Kind: kind})
	}
	return entries
}
