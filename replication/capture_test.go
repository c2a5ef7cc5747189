package replication

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"
)

// captureCheck compares everything that a capture produced with reading every entity.
type captureCheck struct {
	t       *testing.T
	world   *ecs.World
	server  *Server
	schema  *Schema
	clamped uint64
	ids     map[ecs.Entity]NetID // at the last capture
}

func (x *captureCheck) capture() {
	s := x.server
	s.Replicate()
	ids := map[ecs.Entity]NetID{}
	slots := map[uint32]bool{}
	filter := ecs.All(s.snap.Capture.Marker)
	q := x.world.Query(&filter)
	bits := 0
	for q.Next() {
		e := q.Entity()
		id, ok := s.NetID(e)
		require.True(x.t, ok)
		require.False(x.t, slots[id.Slot], "two entities with slot %d", id.Slot)
		slots[id.Slot] = true
		ids[e] = id
		if old, ok := x.ids[e]; ok {
			require.Equal(x.t, old, id)
		}
		for i := range x.schema.raw.Components {
			c, h := &x.schema.raw.Components[i], s.snap.Histories[i]
			require.Equal(x.t, q.Has(s.snap.Capture.Components[i]), h.Has(int(id.Slot)), "component %d of %v", i, id)
			if !h.Has(int(id.Slot)) {
				continue
			}
			row := make([]uint32, c.Words)
			x.clamped += uint64(slowKernels{c}.readColumn(row, q.Get(s.snap.Capture.Components[i]), 1))
			bits += c.Layout.Width()
			if c.Every == 1 || (id.Slot+uint32(s.snap.Tick))%uint32(c.Every) == 0 {
				if recorded := h.Row(int(id.Slot)); c.Keeps(row, recorded, q.Get(s.snap.Capture.Components[i])) {
					row = recorded
				}
				require.Equal(x.t, row, h.Row(int(id.Slot)), "component %d of %v", i, id)
			}
		}
	}
	require.Equal(x.t, len(ids), s.snap.Slots.Live)
	require.Equal(x.t, x.clamped, s.Stats().Clamped)
	require.Equal(x.t, bits, s.Stats().RawBits)
	x.ids = ids
}

type (
	checkPlace struct {
		X    float32 `repl:"range=-10:10,step=0.1"`
		_    [3]byte
		Name *int `repl:"-"`
	}
	checkLevel struct{ Level uint8 }
	checkTag   struct{}
	checkOrbit struct {
		ecs.Relation `repl:"-"`
		Height       float32 `repl:"range=0:10,step=0.5"`
	}
	checkScore struct{ Points int32 }
)

// Entities are spawned, removed and moved between rows, tables and targets; they pause, get markers
// copied to them, and the world is reset. The capture finds the same changes as reading everything.
func TestCaptureMissesNothing(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	rng := rand.New(rand.NewPCG(seedOf(t), 0))
	for range ticksOf(4, 2) {
		schema := NewSchema()
		Register[checkPlace](schema)
		Register[checkLevel](schema)
		Register[checkTag](schema)
		Register[checkOrbit](schema)
		Register[checkScore](schema, Every(3))
		w := ecs.NewWorld(16)
		x := &captureCheck{t: t, world: &w, server: NewServer(&w, schema, WithWindow(8)), schema: schema}
		marker, place, level, tag := ReplicatedID(&w), ecs.ComponentID[checkPlace](&w), ecs.ComponentID[checkLevel](&w), ecs.ComponentID[checkTag](&w)
		orbit, score := ecs.ComponentID[checkOrbit](&w), ecs.ComponentID[checkScore](&w)
		var entities []ecs.Entity
		var suns []ecs.Entity
		spawn := func() ecs.Entity {
			ids := []ecs.ID{marker, place, score}
			e := w.NewEntity(append(ids, [][]ecs.ID{{}, {level}, {tag, level}, {orbit}}[rng.IntN(4)]...)...)
			entities = append(entities, e)
			return e
		}
		kill := func(i int) {
			w.RemoveEntity(entities[i])
			entities[i] = entities[len(entities)-1]
			entities = entities[:len(entities)-1]
		}
		for tick := range 250 {
			if tick%60 < 30 || len(entities) == 0 { // otherwise the world is idle
				for range 1 + rng.IntN(20) {
					spawn()
				}
				for range rng.IntN(1 + len(entities)/4) {
					kill(rng.IntN(len(entities)))
				}
				for range rng.IntN(12) {
					e := entities[rng.IntN(len(entities))]
					switch has := w.Has(e, level); {
					case w.Has(e, orbit) && len(suns) > 0:
						w.Relations().Set(e, orbit, suns[rng.IntN(len(suns))])
					case has:
						w.Remove(e, level)
					default:
						w.Add(e, level)
					}
				}
				if len(suns) < 3 {
					suns = append(suns, w.NewEntity())
				}
			}
			for range rng.IntN(3) * rng.IntN(3) {
				e := entities[rng.IntN(len(entities))]
				(*checkPlace)(w.Get(e, place)).X = rng.Float32()*24 - 12
				(*checkScore)(w.Get(e, score)).Points++
				if w.Has(e, level) {
					(*checkLevel)(w.Get(e, level)).Level++
				}
				if w.Has(e, orbit) {
					(*checkOrbit)(w.Get(e, orbit)).Height = rng.Float32() * 12
				}
			}
			switch rng.IntN(25) {
			case 0: // a copied marker in the row and table of the original entity
				i := rng.IntN(len(entities))
				value := *(*Replicated)(w.Get(entities[i], marker))
				kill(i)
				*(*Replicated)(w.Get(spawn(), marker)) = value
			case 1: // a copy beside the entity
				value := *(*Replicated)(w.Get(entities[rng.IntN(len(entities))], marker))
				*(*Replicated)(w.Get(spawn(), marker)) = value
			case 2: // markers of two entities exchanged, and one cleared
				a, b := (*Replicated)(w.Get(entities[rng.IntN(len(entities))], marker)), (*Replicated)(w.Get(entities[rng.IntN(len(entities))], marker))
				*a, *b = *b, *a
				x.ids = nil // these are other entities now
			case 3:
				if rng.IntN(3) == 0 {
					w.Reset()
					entities, suns, x.ids = nil, nil, nil
				}
			}
			if rng.IntN(4) == 0 {
				filter := ecs.All()
				q := w.Query(&filter) // a locked world is captured as well
				x.capture()
				q.Close()
			} else {
				x.capture()
			}
		}
	}
}

type (
	gamePosition struct {
		X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
	}
	gameVelocity struct {
		X, Y, Z float32 `repl:"range=-50:50,step=0.1"`
	}
	gameHealth struct {
		HP int `repl:"range=0:100"`
	}
	gameGrounded struct{ On bool }
)

// handNet is the marker of the hand-written capture.
type handNet struct{ index uint32 }

// handState is an entity of the benchmark's game, quantised.
type handState struct {
	x, y, z    uint32
	vx, vy, vz uint16
	hp         uint8
	grounded   bool
}

// handWindow is how many old states the hand-written capture keeps, the same number as the server.
const handWindow = 64

type handRing struct {
	n      uint32
	states [handWindow]struct {
		tick  uint32
		state handState
	}
}

// handCapture is a capture written for this game alone: a typed loop with inlined arithmetic, an
// array of the latest states, a ring of earlier states for each entity, and dirty bits.
type handCapture struct {
	filter  *generic.Filter5[handNet, gamePosition, gameVelocity, gameHealth, gameGrounded]
	tick    uint32
	current []handState
	since   []uint32
	rings   []handRing
	dirty   []uint64
}

func handQuantise(v, low, high, inverse float32) uint32 {
	if !(v > low) {
		return 0
	}
	return uint32(int32((min(v, high)-low)*inverse + 0.5))
}

func (h *handCapture) capture(w *ecs.World) {
	h.tick++
	clear(h.dirty)
	q := h.filter.Query(w)
	for q.Next() {
		net, pos, vel, health, grounded := q.Get()
		state := handState{
			x:        handQuantise(pos.X, -1000, 1000, 100),
			y:        handQuantise(pos.Y, -1000, 1000, 100),
			z:        handQuantise(pos.Z, -1000, 1000, 100),
			vx:       uint16(handQuantise(vel.X, -50, 50, 10)),
			vy:       uint16(handQuantise(vel.Y, -50, 50, 10)),
			vz:       uint16(handQuantise(vel.Z, -50, 50, 10)),
			hp:       uint8(max(0, min(health.HP, 100))),
			grounded: grounded.On,
		}
		i := net.index
		if cur := &h.current[i]; *cur != state {
			r := &h.rings[i]
			old := &r.states[r.n%handWindow]
			old.tick, old.state = h.since[i], *cur
			r.n++
			*cur, h.since[i] = state, h.tick
			h.dirty[i/64] |= 1 << (i % 64)
		}
	}
}

// captureGame is the world that both captures read.
type captureGame struct {
	world  ecs.World
	moving float64
	rng    *rand.Rand
	id     ecs.ID
	filter *generic.Filter2[gamePosition, gameVelocity]
}

func newCaptureGame(n int, moving float64, spawn func(w *ecs.World, i int, e ecs.Entity), marker func(w *ecs.World) ecs.ID) *captureGame {
	g := &captureGame{world: ecs.NewWorld(1024), moving: moving, rng: rand.New(rand.NewPCG(1, 2))}
	w := &g.world
	ids := []ecs.ID{
		marker(w), ecs.ComponentID[gamePosition](w), ecs.ComponentID[gameVelocity](w),
		ecs.ComponentID[gameHealth](w), ecs.ComponentID[gameGrounded](w),
	}
	g.filter = generic.NewFilter2[gamePosition, gameVelocity]()
	for i := range n {
		e := w.NewEntity(ids...)
		*(*gamePosition)(w.Get(e, ids[1])) = gamePosition{g.coordinate(), g.coordinate(), g.coordinate()}
		(*gameHealth)(w.Get(e, ids[3])).HP = g.rng.IntN(101)
		(*gameGrounded)(w.Get(e, ids[4])).On = g.rng.IntN(2) == 0
		spawn(w, i, e)
	}
	return g
}

func (g *captureGame) coordinate() float32 { return g.rng.Float32()*1800 - 900 }

// step moves a share of the entities, different ones each time.
func (g *captureGame) step() {
	limit := uint64(g.moving * (1 << 32))
	q := g.filter.Query(&g.world)
	for q.Next() {
		bits := g.rng.Uint64()
		if bits>>32 >= limit {
			continue
		}
		p, v := q.Get()
		v.X = float32(int(bits&1023)-512) * 0.05
		v.Y = float32(int(bits>>10&1023)-512) * 0.05
		v.Z = float32(int(bits>>20&1023)-512) * 0.01
		p.X = float32(math.Mod(float64(p.X+v.X/30), 950))
		p.Y = float32(math.Mod(float64(p.Y+v.Y/30), 950))
		p.Z = float32(math.Mod(float64(p.Z+v.Z/30), 950))
	}
}

// shuffle randomises the order of the rows.
func (g *captureGame) shuffle() {
	var entities []ecs.Entity
	q := g.filter.Query(&g.world)
	for q.Next() {
		entities = append(entities, q.Entity())
	}
	tag := ecs.ComponentID[checkTag](&g.world)
	for _, i := range g.rng.Perm(len(entities)) {
		g.world.Add(entities[i], tag)
	}
}

// BenchmarkCapture compares the server's capture of 10,000 entities with 8 fields, everything
// included, with a loop written by hand for them. They take turns of some ticks; the figures are
// medians over the turns. Slots follow the rows or are in random order, as in a world whose
// entities have changed components for a long time.
func BenchmarkCapture(b *testing.B) {
	const n, turn = 10_000, 8
	for _, c := range []struct {
		name     string
		moving   float64
		shuffled bool
	}{
		{"moving=0", 0, false},
		{"moving=0.3", 0.3, false},
		{"moving=1", 1, false},
		{"moving=0.3,shuffled", 0.3, true},
		{"moving=1,shuffled", 1, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			moving := c.moving
			schema := NewSchema()
			Register[gamePosition](schema)
			Register[gameVelocity](schema)
			Register[gameHealth](schema)
			Register[gameGrounded](schema)
			ours := newCaptureGame(n, moving, func(*ecs.World, int, ecs.Entity) {}, ReplicatedID)
			s := NewServer(&ours.world, schema)
			theirs := newCaptureGame(n, moving, func(w *ecs.World, i int, e ecs.Entity) {
				(*handNet)(w.Get(e, ecs.ComponentID[handNet](w))).index = uint32(i)
			}, func(w *ecs.World) ecs.ID { return ecs.ComponentID[handNet](w) })
			hand := &handCapture{
				filter:  generic.NewFilter5[handNet, gamePosition, gameVelocity, gameHealth, gameGrounded](),
				current: make([]handState, n), since: make([]uint32, n), rings: make([]handRing, n), dirty: make([]uint64, (n+63)/64),
			}
			oursTurn := func() (took time.Duration) {
				for range turn {
					ours.step()
					start := time.Now()
					s.snap.Tick++
					s.snap.CaptureWorld(s.refreshPeers)
					took += time.Since(start)
					s.snap.Slots.List()
					s.snap.Slots.Settle(s.snap.Tick)
				}
				return took
			}
			handTurn := func() (took time.Duration) {
				for range turn {
					theirs.step()
					start := time.Now()
					hand.capture(&theirs.world)
					took += time.Since(start)
				}
				return took
			}
			if c.shuffled {
				oursTurn()
				handTurn()
				ours.shuffle()
				theirs.shuffle()
			}
			for range 2 * handWindow / turn { // the rings grow to their size
				oursTurn()
				handTurn()
			}
			require.Equal(b, n, s.snap.Slots.Live)
			var oursTook, handTook, ratios []float64
			for b.Loop() {
				o, h := oursTurn(), handTurn()
				oursTook, handTook = append(oursTook, float64(o)), append(handTook, float64(h))
				ratios = append(ratios, float64(o)/float64(h))
			}
			b.ReportMetric(middle(oursTook)/(n*turn), "ours-ns/entity")
			b.ReportMetric(middle(handTook)/(n*turn), "hand-ns/entity")
			b.ReportMetric(middle(ratios), "ours/hand")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
