package replication

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// Entities of so many fields that a few bits each for a few hundred of them describe a million
// fields.

type (
	tWide4000 struct{ Cells [4000]uint8 }
	tWide1100 struct{ Cells [1100]uint64 }
	tWide2000 struct{ Cells [2000]uint8 }
	tWide97   struct{ Cells [97]uint8 }
	tNarrow   struct{ Cell uint8 }
)

// A wideWorld has entities with the same components on one fixture.
type wideWorld struct {
	*fixture
	entities []ecs.Entity
	ids      []ecs.ID
}

func newWideWorld(t *testing.T, schema *Schema, n int, ids func(w *ecs.World) []ecs.ID, opts ...ServerOption) *wideWorld {
	x := &wideWorld{fixture: connectedWire(t, schema, opts...)}
	x.ids = ids(x.world)
	for range n {
		x.entities = append(x.entities, x.spawn(x.ids...))
	}
	return x
}

// play plays some ticks and returns the packets and bytes sent. No packet may be refused.
func (x *wideWorld) play(ticks int) (packets, bytes int) {
	x.t.Helper()
	for range ticks {
		for _, p := range x.replicate() {
			packets, bytes = packets+1, bytes+len(p)
			require.NoError(x.t, x.client.Receive(p))
		}
		x.answer(x.apply()...)
	}
	return packets, bytes
}

// stale returns how many entities of the client are not up to date.
func (x *wideWorld) stale() (n int) {
	for _, e := range x.entities {
		m, here := x.mirrored(e)
		if !here || recordedOf(x.server, e) != stateOf(faceOf(x.server.schema), x.mirror, m) {
			n++
		}
	}
	return n
}

// TestCompactMirrorsManyWideEntities: identical entities take almost no bits.
func TestCompactMirrorsManyWideEntities(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for name, c := range map[string]struct {
		register func(s *Schema)
		id       func(w *ecs.World) ecs.ID
		n        int
	}{
		"4000 bytes":       {func(s *Schema) { Register[tWide4000](s) }, func(w *ecs.World) ecs.ID { return ecs.ComponentID[tWide4000](w) }, 300},
		"1100 large words": {func(s *Schema) { Register[tWide1100](s) }, func(w *ecs.World) ecs.ID { return ecs.ComponentID[tWide1100](w) }, 600},
	} {
		t.Run(name, func(t *testing.T) {
			schema := NewSchema()
			c.register(schema)
			x := newWideWorld(t, schema, c.n, func(w *ecs.World) []ecs.ID { return []ecs.ID{c.id(w)} }, withCoding(Compact), WithMTU(1200))
			packets, bytes := x.play(3)
			t.Logf("%d packets, %d bytes", packets, bytes)
			require.Zero(t, x.stale())
			require.Less(t, packets, 50)
			require.Less(t, bytes, 2050)
		})
	}
}

// TestSmallChangesOfWideEntitiesAreCheap: unchanged fields of an entity cost nothing.
func TestSmallChangesOfWideEntitiesAreCheap(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for name, c := range map[string]struct {
		register func(s *Schema)
		id       func(w *ecs.World) ecs.ID
		n        int
		opts     []ServerOption
	}{
		"2001 fields": {func(s *Schema) { Register[tWide2000](s) }, func(w *ecs.World) ecs.ID { return ecs.ComponentID[tWide2000](w) }, 1000, nil},
		"98 fields": {
			func(s *Schema) { Register[tWide97](s) }, func(w *ecs.World) ecs.ID { return ecs.ComponentID[tWide97](w) }, 12500,
			[]ServerOption{WithMTU(16384)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schema := NewSchema()
			c.register(schema)
			Register[tNarrow](schema)
			x := newWideWorld(t, schema, c.n, func(w *ecs.World) []ecs.ID {
				return []ecs.ID{c.id(w), ecs.ComponentID[tNarrow](w)}
			}, c.opts...)
			x.play(8)
			require.Zero(t, x.stale())
			for n := range 12 {
				for _, e := range x.entities {
					(*tNarrow)(x.world.Get(e, x.ids[1])).Cell++
				}
				packets, bytes := x.play(1)
				require.LessOrEqual(t, packets, 1+1/(1+n), "in tick %d; at first it is not known what they are", n)
				require.Less(t, bytes, 9*c.n/8+200, "9 bits for each")
			}
			require.Zero(t, x.stale())
		})
	}
}

// tDrift moves by the same steps forever: in both codings its fields then take no bits.
type tDrift struct {
	Cells [64]float32 `repl:"range=0:30000,step=0.5"`
}

// tGlide is a smaller one.
type tGlide struct {
	Cells [24]float32 `repl:"range=0:30000,step=0.5"`
}

// boundless makes a server hostile: it fills packets without the work limit.
var boundless = config.ServerFunc(func(o *config.ServerOptions) { o.FreeWork = 1 << 30 })

// hostileUpdates returns a session in which every packet causes much work, and its last packet,
// which is not delivered yet.
func hostileUpdates(t testing.TB, n int, coding Coding, jitter bool) (x *fixture, packet []byte) {
	schema := NewSchema()
	Register[tDrift](schema)
	x = connectedWire(t, schema, boundless, withCoding(coding), WithMTU(1200))
	honest := x.client.recv.FreeWork
	x.client.recv.FreeWork = 1 << 30
	drift := ecs.ComponentID[tDrift](x.world)
	var entities []ecs.Entity
	for range n {
		entities = append(entities, x.spawn(drift))
	}
	var packets [][]byte
	for tick := range 20 {
		for _, e := range entities {
			cells := &(*tDrift)(x.world.Get(e, drift)).Cells
			for i := range cells {
				cells[i] += 3
			}
			if jitter {
				cells[63] += float32(tick * tick % 7)
			}
		}
		x.deliver(packets...)
		x.answer(x.apply()...)
		packets = x.replicate()
	}
	require.Len(t, packets, 1)
	x.client.recv.FreeWork = honest
	return x, packets[0]
}

// TestWorkOfAPacketIsBounded: a packet of 1200 bytes may have rows of 32,768 fields, and one more
// for each bit.
func TestWorkOfAPacketIsBounded(t *testing.T) {
	oneGoroutine(t)
	for coding, around := range map[Coding][2]int{Packed: {524, 540}, Compact: {512, 520}} {
		for i, n := range around {
			x, packet := hostileUpdates(t, n, coding, false)
			h, body, pad, err := x.client.recv.Window.ParseHeader(packet[wire.ChecksumSize:], false)
			require.NoError(t, err)
			if coding == Compact {
				pad = 0 // the bits have another meaning there
			}
			limit := 32768 + 8*len(body) - pad
			require.Equal(t, i == 0, 64*n <= limit, "%d fields, of %d", 64*n, limit)
			require.Less(t, max(64*n, limit)-min(64*n, limit), 1200)
			err = x.client.Receive(packet)
			require.Equal(t, i, int(x.client.Stats().RefusedPackets), "%v: %d fields, of %d: %v", coding, 64*n, limit, err)
			require.Equal(t, i == 0, x.client.recv.Replicas.At(0).Newest == delta.Tick(h.Tick))
		}
	}
}

// TestASingleEntityIsNotBoundByTheWorkLimit: an entity of any size is sent.
func TestASingleEntityIsNotBoundByTheWorkLimit(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		schema := NewSchema()
		Register[tDrift](schema)
		Register[tNarrow](schema)
		x := connectedWire(t, schema, withCoding(coding), config.ServerFunc(func(o *config.ServerOptions) { o.FreeWork = -1 << 20 }))
		x.client.recv.FreeWork = -1 << 20
		drift, narrow := ecs.ComponentID[tDrift](x.world), ecs.ComponentID[tNarrow](x.world)
		for range 40 {
			x.spawn(drift, narrow)
		}
		x.rounds(10)
		x.requireEqual()
		require.Zero(t, x.client.Stats().RefusedPackets)
		require.GreaterOrEqual(t, x.client.Stats().Packets, uint64(40), "each takes a packet of its own")
	}
}

// TestAllPathsKeepTheWorkLimit: entries are written one by one, as blocks, in shared packets, with
// their groups, and in both codings. Although the limit is reached all the time, no packet is
// refused.
func TestAllPathsKeepTheWorkLimit(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	for name, opts := range map[string][]ServerOption{
		"shared":  nil,
		"alone":   {config.ServerFunc(func(o *config.ServerOptions) { o.NoSharedPackets = true })},
		"compact": {withCoding(Compact)},
	} {
		t.Run(name, func(t *testing.T) {
			const bound = 1500
			seed := seedOf(t)
			rng := rand.New(rand.NewPCG(seed, 3))
			schema := NewSchema()
			Register[tGlide](schema)
			Register[tNarrow](schema)
			w := ecs.NewWorld()
			s := NewServer(&w, schema, append(opts, WithSeed(seed), config.ServerFunc(func(o *config.ServerOptions) { o.FreeWork = bound }))...)
			drift, narrow, marker := ecs.ComponentID[tGlide](&w), ecs.ComponentID[tNarrow](&w), ReplicatedID(&w)
			var entities []ecs.Entity
			n, every := 260, 2
			if name == "shared" {
				n, every = 640, 4 // so that blocks are small compared with packets
			}
			for range n {
				entities = append(entities, w.NewEntity(drift, narrow, marker))
			}
			g := s.NewGroup()
			for _, e := range entities[100:110] {
				g.Add(e)
			}
			var ends []*end
			for i := range map[string]int{"shared": 7}[name] + 3 {
				e := connect(s, rng.Uint64(), netsim.Config{Latency: float64(1 + i%2), Loss: 0.02 * float64(i/2%3)}, WithSeed(uint64(i)+1))
				e.client.recv.FreeWork = bound
				ends = append(ends, e)
			}
			o := newTruth()
			for tick := range 160 { // the last ones without changes: some are lost several times
				for i, e := range entities {
					if tick > 100 {
						break
					}
					if v := (*tGlide)(w.Get(e, drift)); i%every == 0 {
						for k := range v.Cells {
							v.Cells[k]++
						}
					}
					if rng.IntN(3*every) == 0 {
						(*tNarrow)(w.Get(e, narrow)).Cell++
					}
				}
				s.Replicate()
				o.record(s)
				for _, e := range ends {
					e.step(t)
					e.check(t, s, o)
					requireSharedRows(t, e.client)
				}
			}
			full := 0
			for i, e := range ends {
				require.Empty(t, e.equalTo(s, o))
				require.Zero(t, e.client.Stats().RefusedPackets, "end %d", i)
				full += int(e.client.Stats().Packets)
			}
			t.Logf("%d packets", full)
			if name == "shared" {
				require.Less(t, s.Stats().Encoded, s.Stats().Entries*3/4)
			}
		})
	}
}

// TestSharedPacketsKeepTheWorkLimit: entries that cause much work and take few bits, or the
// reverse, are put into the same packets whether or not they are copied from a shared packet.
func TestSharedPacketsKeepTheWorkLimit(t *testing.T) {
	seed := seedOf(t)
	play := func(opts ...ServerOption) (hashes []uint64) {
		rng := rand.New(rand.NewPCG(seed, 4))
		schema := loadSchema()
		Register[tGlide](schema)
		c := newLoadWorld(t, 100, schema, append(opts, config.ServerFunc(func(o *config.ServerOptions) { o.FreeWork = 200 }))...)
		glide := ecs.ComponentID[tGlide](&c.world)
		for _, e := range c.entities {
			c.world.Add(e, glide)
		}
		for i := range 3 {
			c.join(i, 0).peer.SetInterest(Interest{Visible: func(e ecs.Entity) bool { return int(e.ID())%8 != i }})
		}
		for range 60 {
			for i, e := range c.entities {
				v, jumps := (*tGlide)(c.world.Get(e, glide)), i%32 > 25
				for k := range v.Cells {
					if v.Cells[k]++; jumps {
						v.Cells[k] = float32(rng.IntN(20000))
					}
				}
			}
			c.replicate()
		}
		for _, m := range c.members {
			hashes = append(hashes, m.hash)
		}
		return hashes
	}
	require.Equal(t, play(withoutSharedPackets), play())
}

// requireSharedRows verifies that every shared row counts its holders correctly, and that exactly
// the rows without holders are free.
func requireSharedRows(t testing.TB, c *Client) {
	t.Helper()
	holders, free := make([]int, len(c.recv.Layouts.Rows.Rows)), make([]int, len(c.recv.Layouts.Rows.Rows))
	count := func(h *receive.HeldState) {
		if h == nil || h.Layout == nil {
			return
		}
		for _, place := range h.Layout.Shared {
			holders[h.Words[place]]++
		}
	}
	for _, page := range c.recv.Replicas.Pages {
		for i := range page {
			for j := range page[i].Held.Ring {
				count(&page[i].Held.Ring[j])
			}
		}
	}
	for _, list := range c.recv.Layouts.Rows.Free {
		for _, i := range list {
			free[i]++
		}
	}
	for i, r := range c.recv.Layouts.Rows.Rows {
		want := 0
		if holders[i] == 0 {
			want = 1
		}
		if r.Holders != holders[i] || free[i] != want || r.Staged {
			require.FailNow(t, "shared row", "%d of component %d: %d hold it, it counts %d, %d times free", i, r.Component, holders[i], r.Holders, free[i])
		}
	}
}

// TestSharedRowsCountTheirHolders creates and drops states in all ways: entities change and are
// idle, lose and gain components, despawn, and are sent in full and in parts, in sessions that end.
func TestSharedRowsCountTheirHolders(t *testing.T) {
	for _, coding := range []Coding{Packed, Compact} {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 4))
		x := connectedWire(t, testSchema(), withCoding(coding), WithMTU(200), WithWindow(8))
		bulk, position := ecs.ComponentID[tBulk](x.world), ecs.ComponentID[tPosition](x.world)
		var entities []ecs.Entity
		for tick := range 600 {
			if len(entities) < 12 {
				entities = append(entities, x.spawn(bulk, position))
			}
			for i, e := range entities {
				(*tPosition)(x.world.Get(e, position)).X = float32(rng.IntN(90))
				switch r := rng.IntN(60); {
				case r < 10 && x.world.Has(e, bulk):
					(*tBulk)(x.world.Get(e, bulk)).Cells[rng.IntN(40)] = uint64(rng.IntN(3))
				case r == 10 && x.world.Has(e, bulk):
					x.world.Remove(e, bulk)
				case r == 11 && !x.world.Has(e, bulk):
					x.world.Add(e, bulk)
				case r == 12 && len(entities) == 12:
					x.world.RemoveEntity(e)
					entities[i] = entities[len(entities)-1]
					entities = entities[:len(entities)-1]
				}
				if len(entities) < 12 {
					break
				}
			}
			for _, p := range x.replicate() {
				if rng.IntN(10) > 0 {
					x.deliver(p)
					requireSharedRows(t, x.client)
				}
			}
			if up := x.apply(); rng.IntN(5) > 0 {
				x.answer(up...)
			}
			x.deliver(x.takeDown()...)
			requireSharedRows(t, x.client)
			if tick%200 == 150 {
				x.client.Reconnect()
			}
		}
		x.rounds(60)
		x.requireEqual()
		requireSharedRows(t, x.client)
		require.NotEmpty(t, x.client.recv.Layouts.Rows.Rows)
	}
}

// TestBaselinesTooOldToPredictFromAreNotMerged: rows of the first and the second baseline are
// shared only where there is a prediction.
func TestBaselinesTooOldToPredictFromAreNotMerged(t *testing.T) {
	schema := NewSchema()
	Register[tDrift](schema)
	x := connectedWire(t, schema)
	drift := ecs.ComponentID[tDrift](x.world)
	e := x.spawn(drift)
	for range 8 {
		(*tDrift)(x.world.Get(e, drift)).Cells[5]++
		x.round()
	}
	m := x.client.recv.Replicas.At(uint32(x.slotOf(e)))
	b := delta.Baselines{A1: m.Newest, A2: m.Newest - 1, Two: true}
	tick := uint32(b.A1) + 40
	require.Zero(t, delta.Ratio(delta.Tick(tick), b.A1, b.A2))
	require.NoError(t, x.client.Receive(x.forgeState(x.client.recv.Window.Newest+1, tick, func(w *bitbuf.Writer) {
		front := wire.Front{Baselines: b}
		front.Write(w, delta.Tick(tick))
		var lists wire.SlotLists
		lists.Begin(nil, 0)
		lists.AddUpdates(x.slotOf(e)>>6, 1<<(x.slotOf(e)&63))
		lists.Write(w)
		w.WriteBits(0, 1)
	})))
	newest, at := m.Held.At(m.Newest).Row(0, 64), func(t delta.Tick) []uint32 { return m.Held.At(t).Row(0, 64) }
	require.Equal(t, at(b.A1), newest)
	require.NotEqual(t, at(b.A1), at(b.A2))
	requireSharedRows(t, x.client)
}

// BenchmarkHostilePacket measures a client's time for a packet of at most 1200 bytes that causes as
// much work as it may: fields that are as predicted, and in Compact with other fields in between.
func BenchmarkHostilePacket(b *testing.B) {
	for name, c := range map[string]struct {
		coding Coding
		n      int
		jitter bool
	}{
		"packed/predicted":  {Packed, 540, false},
		"compact/predicted": {Compact, 512, false},
		"compact/residuals": {Compact, 520, true},
	} {
		b.Run(name, func(b *testing.B) {
			x, packet := hostileUpdates(b, c.n, c.coding, c.jitter)
			h, body, pad, err := x.client.recv.Window.ParseHeader(packet[wire.ChecksumSize:], false)
			require.NoError(b, err)
			if c.coding == Compact {
				pad &^= 1 // its model is not kept, because it would soon displace the one that is needed
			}
			best := time.Hour // the best time, which excludes other processes
			for b.Loop() {
				start := time.Now()
				if err := x.client.recv.DecodeBody(body, pad, &h); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(len(packet)), "bytes")
			b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
		})
	}
}
