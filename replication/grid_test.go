package replication

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/mlange-42/arche/ecs"
	"github.com/stretchr/testify/require"
)

// TestGridAgainstBruteForce compares what many peers see through grids of one to three axes with a
// check of every entity.
func TestGridAgainstBruteForce(t *testing.T) {
	t.Parallel()
	oneGoroutine(t)
	fields := []string{"tPosition.X", "tPosition.Y", "tPosition.Z"}
	for axes := 1; axes <= 3; axes++ {
		for _, cell := range []float64{0.1, 7, 30, 1000} {
			t.Run(fmt.Sprintf("axes=%d/cell=%v", axes, cell), func(t *testing.T) {
				seed := seedOf(t)
				rng := rand.New(rand.NewPCG(seed, 1))
				schema := testSchema()
				w := ecs.NewWorld()
				s := NewServer(&w, schema, WithSeed(seed))
				position, health, marker := ecs.ComponentID[tPosition](&w), ecs.ComponentID[tHealth](&w), ReplicatedID(&w)
				var peers []*Peer
				var grid *Grid
				for i := range ticksOf(12, 6) {
					peers = append(peers, connectFake(t, s, uint64(i)+1, 1, 0).peer)
				}
				coordinate := func() float32 {
					switch rng.IntN(12) {
					case 0:
						return 100 - 200*float32(rng.IntN(2)) // the ends of the range
					case 1:
						return 300*rng.Float32() - 150 // partly out of range
					case 2:
						return float32(rng.IntN(20)-10) * 7 // where cells begin
					}
					return 200*rng.Float32() - 100
				}
				place := func(e ecs.Entity) {
					*(*tPosition)(w.Get(e, position)) = tPosition{coordinate(), coordinate(), coordinate()}
				}
				var entities []ecs.Entity
				looks := make([]look, len(peers))
				for tick := range 40 {
					if tick == 3 { // there are entities already
						grid = s.NewGrid(cell, fields[:axes]...)
						for i, p := range peers {
							looks[i].margin, looks[i].seen = []float64{0, 5, 60}[i%3], map[ecs.Entity]bool{}
							p.SetInterest(Interest{Grid: grid, Margin: looks[i].margin})
						}
					}
					for range rng.IntN(20) {
						e := w.NewEntity(position, marker)
						place(e)
						entities = append(entities, e)
					}
					for range min(rng.IntN(12), len(entities)) {
						i := rng.IntN(len(entities))
						w.RemoveEntity(entities[i])
						entities[i] = entities[len(entities)-1]
						entities = entities[:len(entities)-1]
					}
					for _, e := range entities {
						switch has := w.Has(e, position); rng.IntN(12) {
						case 0, 1, 2:
							if has {
								place(e)
							}
						case 3:
							if has {
								w.Exchange(e, []ecs.ID{health}, []ecs.ID{position})
							} else {
								w.Exchange(e, []ecs.ID{position}, []ecs.ID{health})
								place(e)
							}
						}
					}
					for i, p := range peers {
						if rng.IntN(4) == 0 && tick > 5 {
							looks[i].turn(rng, coordinate)
							p.LookFrom(looks[i].radius, looks[i].place[:axes]...)
						}
					}
					s.Replicate()
					for i, p := range peers {
						for _, e := range entities {
							id, _ := s.NetID(e)
							var at *tPosition
							if w.Has(e, position) {
								at = (*tPosition)(w.Get(e, position))
							}
							want, rim := looks[i].sees(e, at, axes)
							got := tick < 3 || p.sight.View.InView.Has(int(id.Slot))
							if tick < 3 {
								want = true
							}
							if want != got && !rim {
								l := looks[i]
								require.FailNow(t, "wrong view", "tick %d, peer %d looks %v from %v at %+v, margin %v: sees it %v, before %v",
									tick, i, l.radius, l.place, at, l.margin, got, l.seen[e])
							}
							if tick >= 3 {
								looks[i].seen[e] = got
							}
						}
					}
					require.Equal(t, len(entities), s.Stats().Entities)
				}
				require.LessOrEqual(t, len(grid.in.Cells), interest.MaxCells)
			})
		}
	}
}

// look is the latest LookFrom of a peer in the test.
type look struct {
	open   bool
	radius float64
	place  []float64
	margin float64
	seen   map[ecs.Entity]bool // in the tick before
}

func (l *look) turn(rng *rand.Rand, coordinate func() float32) {
	l.open, l.place = true, nil
	for range 3 {
		v := float64(coordinate())
		switch rng.IntN(20) {
		case 0:
			v = 1e30
		case 1:
			v = math.Inf(1 - 2*rng.IntN(2))
		case 2:
			v *= 5
		}
		l.place = append(l.place, v)
	}
	l.radius = []float64{0, 0.5, 7, 20, 60, 200, 400, 1e6, 1e31, 1e200, math.Inf(1)}[rng.IntN(11)]
}

// sees is the plain meaning of [Peer.LookFrom] and [Interest.Margin]. rim reports that rounding decides.
func (l *look) sees(e ecs.Entity, at *tPosition, axes int) (sees, rim bool) {
	switch {
	case at == nil:
		return true, false
	case !l.open:
		return false, false
	case l.radius > 1e154: // whose square is infinite
		return true, false
	}
	square := 0.0
	for i, v := range []float32{at.X, at.Y, at.Z}[:axes] {
		v := math.Round(math.Max(-100, math.Min(100, float64(v)))*100) / 100
		square += (v - l.place[i]) * (v - l.place[i])
	}
	distance, reach := math.Sqrt(square), l.radius
	if l.seen[e] {
		reach += l.margin
	}
	return distance <= reach, math.Abs(distance-reach) <= 1e-5*(1+reach)
}

// TestLookFromAllocatesNothing, though it takes any number of coordinates.
func TestLookFromAllocatesNothing(t *testing.T) {
	w := ecs.NewWorld()
	peer := NewServer(&w, testSchema()).Connect(func([]byte) error { return nil })
	x := 0.0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		x++
		peer.LookFrom(5, x, -x)
	}))
}

// tFar is far from everything.
type tFar struct {
	X, Y float64 `repl:"range=-1e9:1e9,step=0.01"`
}

// TestGridIsExactFarOut: coordinates with more digits than a float32 has are compared as they are.
func TestGridIsExactFarOut(t *testing.T) {
	schema := NewSchema()
	Register[tFar](schema)
	x := connectedWire(t, schema)
	grid := x.server.NewGrid(1000, "tFar.X", "tFar.Y")
	x.peer.SetInterest(Interest{Grid: grid})
	far, rng := ecs.ComponentID[tFar](x.world), rand.New(rand.NewPCG(seedOf(t), 1))
	for range 200 {
		e := x.spawn(far)
		*(*tFar)(x.world.Get(e, far)) = tFar{9e8 + 400*rng.Float64() - 200, -9e8 + 400*rng.Float64() - 200}
	}
	for _, radius := range []float64{30, 150, 1500} {
		x.peer.LookFrom(radius, 9e8, -9e8)
		x.rounds(3)
		q := x.world.Query(ecs.All(far))
		for q.Next() {
			at := (*tFar)(q.Get(far))
			_, seen := x.mirrored(q.Entity())
			if distance := math.Hypot(at.X-9e8, at.Y+9e8); math.Abs(distance-radius) > 0.01 {
				require.Equal(t, distance < radius, seen, "%v of %v away", distance, radius)
			}
		}
	}
}

type tWaypoint [2]tPosition

type tDepth float32

// TestGridNamesFields: fields are named as in the text of the schema.
func TestGridNamesFields(t *testing.T) {
	schema := NewSchema()
	Register[tWaypoint](schema, Name("Way"))
	Register[tDepth](schema, Name("Depth"), Field("", "range=0:100,step=0.5"))
	w := ecs.NewWorld()
	s := NewServer(&w, schema)
	for _, fields := range [][]string{{"Way[0].X", "Way[0].Z"}, {"Way[1].Y"}, {"Depth"}} {
		require.NotPanics(t, func() { s.NewGrid(10, fields...) }, "%v", fields)
	}
	for _, fields := range [][]string{{"Way"}, {"Way.X"}, {"Depth."}, {"Way[0]X"}, {""}} {
		require.Panics(t, func() { s.NewGrid(10, fields...) }, "%v", fields)
	}
}

func TestMisuseOfInterestPanics(t *testing.T) {
	newServer := func() *Server {
		w := ecs.NewWorld()
		schema := testSchema()
		Register[tDepth](schema, Field("", "range=0:100,step=0.5"))
		return NewServer(&w, schema)
	}
	s, other := newServer(), newServer()
	p := s.Connect(func([]byte) error { return nil })
	nan := math.NaN()
	for sentence, fn := range map[string]func(){
		"replication: a grid with cells of 0: use a positive length":                                                                                           func() { s.NewGrid(0, "tPosition.X") },
		"replication: a grid with cells of -1: use a positive length":                                                                                          func() { s.NewGrid(-1, "tPosition.X") },
		"replication: a grid with cells of NaN: use a positive length":                                                                                         func() { s.NewGrid(nan, "tPosition.X") },
		"replication: a grid with cells of +Inf: use a positive length":                                                                                        func() { s.NewGrid(math.Inf(1), "tPosition.X") },
		"replication: a grid over 0 fields: name one to three":                                                                                                 func() { s.NewGrid(1) },
		"replication: a grid over 4 fields: name one to three":                                                                                                 func() { s.NewGrid(1, "a", "b", "c", "d") },
		`replication: a grid over "tExact.A": that field lacks a range or a step; both have tPosition.X, tPosition.Y, tPosition.Z, tDepth`:                     func() { s.NewGrid(1, "tExact.A") },
		`replication: a grid over "tPosition.X" and "tDepth": all fields must be of one component`:                                                             func() { s.NewGrid(1, "tPosition.X", "tDepth") },
		`replication: a grid over "Position.X": the schema has no such field; with a range and a step there are tPosition.X, tPosition.Y, tPosition.Z, tDepth`: func() { s.NewGrid(1, "Position.X") },
		"replication: LookFrom(-1, [0]): use a radius of 0 or more and one to three coordinates":                                                               func() { p.LookFrom(-1, 0) },
		"replication: LookFrom(NaN, [0]): use a radius of 0 or more and one to three coordinates":                                                              func() { p.LookFrom(nan, 0) },
		"replication: LookFrom(1, []): use a radius of 0 or more and one to three coordinates":                                                                 func() { p.LookFrom(1) },
		"replication: LookFrom(1, [1 2 3 4]): use a radius of 0 or more and one to three coordinates":                                                          func() { p.LookFrom(1, 1, 2, 3, 4) },
		"replication: LookFrom a place that is not a number: use one to three coordinates in the units of the grid's fields": func() {
			p.LookFrom(1, 0, nan)
		},
		"replication: a grid of another server: make one with this server's NewGrid": func() {
			p.SetInterest(Interest{Grid: other.NewGrid(1, "tPosition.X")})
		},
		"replication: an entity set of another server: make one with this server's NewEntitySet": func() {
			p.SetInterest(Interest{Sets: []*EntitySet{s.NewEntitySet(), other.NewEntitySet()}})
		},
	} {
		require.PanicsWithValue(t, sentence, fn)
	}
}

// BenchmarkGrid has a world of 100,000 entities, 30 % of which move, and 256 clients that walk
// through it and see about 1 % of it each. The entities were spawned in random order, the same with
// [Grid.SortSpawns], or in the order of their positions.
func BenchmarkGrid(b *testing.B) {
	for _, order := range []string{"ordered=false", "SortSpawns", "ordered=true"} {
		b.Run(order, func(b *testing.B) {
			r := newGridRig(b, scaleGame(100_000), 256, 0)
			switch order {
			case "SortSpawns":
				r.grid.SortSpawns()
			case "ordered=true":
				r.world.sortByCell(float32(gridRadius) / 2)
			}
			r.warm()
			benchmarkGrid(b, r)
		})
	}
}

func benchmarkGrid(b *testing.B, r *gridRig) {
	sent := r.sent()
	var times []time.Duration
	for b.Loop() {
		times = append(times, r.tick())
	}
	r.check(b)
	tick := float64(median(times))
	seen := 0
	for _, f := range r.fakes {
		seen += f.peer.sight.View.InView.Count()
	}
	b.ReportMetric(tick, "ns/op") // not the time of the loop, which includes the world's steps
	b.ReportMetric(tick/1e6, "ms/tick")
	b.ReportMetric(tick/float64(seen), "ns/entity-seen")
	b.ReportMetric(float64(seen)/256, "entities-seen/peer")
	b.ReportMetric(float64(r.sent()-sent)/float64(len(times)*256), "bytes/peer-tick")
}

// gridRig is a sharedRig whose clients have moving viewpoints.
type gridRig struct {
	*sharedRig
	grid       *Grid
	rng        *rand.Rand
	viewpoints [][2]float64
	ways       [][2]float64
	bytes      uint64
}

// gridRadius makes a circle of 1 % of the world.
var gridRadius = math.Sqrt(0.01 * 2000 * 2000 / math.Pi)

func newGridRig(tb testing.TB, load scaleLoad, clients int, loss float64) *gridRig {
	seed := scaleSeed(tb)
	r := &gridRig{sharedRig: newSharedRig(tb, load, clients, loss, seed), rng: rand.New(rand.NewPCG(seed, 9))}
	r.grid = r.server.NewGrid(gridRadius/2, "Position.X", "Position.Y")
	for _, f := range r.fakes {
		f.peer.SetInterest(Interest{Grid: r.grid})
		r.viewpoints = append(r.viewpoints, [2]float64{1600*r.rng.Float64() - 800, 1600*r.rng.Float64() - 800})
		angle := 2 * math.Pi * r.rng.Float64()
		r.ways = append(r.ways, [2]float64{math.Cos(angle) * 10 / scaleRate, math.Sin(angle) * 10 / scaleRate})
	}
	return r
}

func (r *gridRig) tick() time.Duration {
	for i, f := range r.fakes {
		viewpoint, way := &r.viewpoints[i], &r.ways[i]
		for k := range viewpoint {
			if viewpoint[k] += way[k]; math.Abs(viewpoint[k]) > 800 {
				way[k] = -way[k]
			}
		}
		f.peer.LookFrom(gridRadius, viewpoint[0], viewpoint[1])
	}
	return r.sharedRig.tick()
}

func (r *gridRig) warm() {
	for range scaleWarmUp {
		r.tick()
	}
}

// TestLookFromNeedsACoordinatePerGridField, whether LookFrom or SetInterest is called first.
func TestLookFromNeedsACoordinatePerGridField(t *testing.T) {
	w := ecs.NewWorld()
	s := NewServer(&w, testSchema())
	fields := []string{"tPosition.X", "tPosition.Y", "tPosition.Z"}
	place := []float64{1, 2, 3}
	for axes := 1; axes <= 3; axes++ {
		grid := s.NewGrid(10, fields[:axes]...)
		for n := 1; n <= 3; n++ {
			gridFirst, placeFirst := s.Connect(func([]byte) error { return nil }), s.Connect(func([]byte) error { return nil })
			gridFirst.SetInterest(Interest{Grid: grid})
			looked := refusal(t, func() { gridFirst.LookFrom(5, place[:n]...) }, "LookFrom")
			placeFirst.LookFrom(5, place[:n]...)
			set := refusal(t, func() { placeFirst.SetInterest(Interest{Grid: grid}) }, "SetInterest")
			if n == axes {
				require.Empty(t, looked+set)
				require.Equal(t, gridFirst.sight.View.Viewpoint, placeFirst.sight.View.Viewpoint)
				continue
			}
			require.Regexp(t, `^replication: LookFrom a place of \d coordinates?, and the grid of the peer's Interest is over \d fields?: give one for each field$`, looked)
			require.Regexp(t, `^replication: a grid over \d fields? for a peer that looks from a place of \d coordinates?: call SetInterest without the grid`, set)
			require.Zero(t, gridFirst.sight.View.Viewpoint, "what was refused was not taken")
			require.Nil(t, placeFirst.sight.View.Grid, "what was refused was not taken")
			placeFirst.SetInterest(Interest{}) // as the panic message advises
			placeFirst.LookFrom(5, place[:axes]...)
			placeFirst.SetInterest(Interest{Grid: grid})
		}
	}
	p := s.Connect(func([]byte) error { return nil })
	p.SetInterest(Interest{Grid: s.NewGrid(10, fields[:2]...)})
	require.PanicsWithValue(t, "replication: LookFrom a place of 1 coordinate, and the grid of the peer's Interest is over 2 fields: give one for each field",
		func() { p.LookFrom(5, 1) })
}
