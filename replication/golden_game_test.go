//go:build !js && !wasip1

// Not built where there are no files.

package replication_test

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// goldenGame is the game of the golden packets. All floats have few significant bits, so they are
// the same on all machines.
type goldenGame struct {
	world  *ecs.World
	random uint32

	hero, rival, tree, book ecs.Entity
	sparks, crowd           []ecs.Entity
	odd, probe              ecs.Entity
}

// next returns a random number below n, from the linear congruential generator of Numerical
// Recipes.
func (g *goldenGame) next(n uint32) uint32 {
	g.random = g.random*1664525 + 1013904223
	return (g.random >> 16) % n
}

func id[T any](g *goldenGame) ecs.ID { return ecs.ComponentID[T](g.world) }

func get[T any](g *goldenGame, e ecs.Entity) *T { return (*T)(g.world.Get(e, id[T](g))) }

func (g *goldenGame) spawn(ids ...ecs.ID) ecs.Entity {
	return g.world.NewEntity(append(ids, replication.ReplicatedID(g.world))...)
}

func (g *goldenGame) spark() {
	e := g.spawn(id[goldenTransform](g))
	*get[goldenTransform](g, e) = goldenTransform{X: float32(g.next(100)), Y: float32(g.next(100)), Heading: 1}
	g.sparks = append(g.sparks, e)
}

// The idle phase begins at goldenRest and ends at goldenWake. A crowd spawns at its beginning, one
// of which goes on changing for a while; then nothing changes.
const (
	goldenRest = 44
	goldenWake = 350
	goldenEnd  = 362
)

func (g *goldenGame) step(n int) {
	g.structure(n)
	if n >= goldenRest && n < goldenWake {
		if n > goldenRest+4 && n < goldenRest+16 {
			get[goldenHealth](g, g.crowd[27]).HP--
		}
		return
	}
	hero := get[goldenTransform](g, g.hero)
	hero.X += 0.75
	hero.Heading += 0.125
	if n > 20 {
		hero.Y -= 0.5
	}
	q := get[goldenSpin](g, g.hero)
	q.Q = [4]float32{float32(n%40) - 10, 7 - float32(n%50)/2, 4, 12}
	score := get[goldenScore](g, g.hero)
	if n%5 == 0 {
		score.Kills += 1 + uint32(n)%3
	}
	if n%4 == 0 {
		score.Keys ^= 1 << (n / 4 % 5)
		score.Hour = (score.Hour + 9) % 24
		score.Team = uint8(n / 4 % 3)
	}
	if n%11 == 10 {
		score.Keys = ^score.Keys & 31
	}
	if n%6 == 1 {
		names := []string{"Anna", "Hanna", "Hänna", "", "Johanna", "Joanna"}
		get[goldenName](g, g.hero).Text = names[n/6%len(names)]
	}
	rival := get[goldenTransform](g, g.rival)
	rival.X += float32(g.next(9))/4 - 1
	rival.Heading -= 0.5
	for _, e := range g.sparks {
		p := get[goldenTransform](g, e)
		p.X += 1.5
		p.Y += float32(g.next(5)) - 2
	}
	if !g.odd.IsZero() {
		g.changeOdd(n)
	}
	if !g.probe.IsZero() {
		g.changeProbe(n)
	}
	if n%7 == 0 && n > 0 {
		g.match().Round++
	}
	g.match().Clock += 0.5
}

// begin begins a match of some sparks.
func (g *goldenGame) begin(sparks int) {
	ecs.AddResource(g.world, &goldenMatch{Round: 1})
	for range sparks {
		g.spark()
	}
}

// dance is a game of 24 sparks, most of which move in one tick of twelve. When a packet is found lost, these
// have not moved since, and don't move now.
func (g *goldenGame) dance(n int) {
	if n == 0 {
		g.begin(24)
	}
	for i, e := range g.sparks {
		if i < 5 || (n+i)%12 == 0 {
			get[goldenTransform](g, e).X += float32(i) / 4
		}
	}
}

// march is a game of 100 sparks that move all the time, so that a tick takes several packets.
func (g *goldenGame) march(n int) {
	if n == 0 {
		g.begin(100)
	}
	for i, e := range g.sparks {
		p := get[goldenTransform](g, e)
		p.X += float32(i%7) / 4
		p.Y += float32(g.next(64)) / 4
	}
}

func (g *goldenGame) match() *goldenMatch { return ecs.GetResource[goldenMatch](g.world) }

// structure spawns, changes and removes entities, components and resources.
func (g *goldenGame) structure(n int) {
	transform, spin, health := id[goldenTransform](g), id[goldenSpin](g), id[goldenHealth](g)
	switch n {
	case 0:
		ecs.AddResource(g.world, &goldenMatch{Round: 1})
		g.hero = g.spawn(transform, spin, health, id[goldenScore](g), id[goldenName](g), id[goldenTarget](g))
		*get[goldenHealth](g, g.hero) = goldenHealth{100, true}
		g.rival = g.spawn(transform, spin, health, id[goldenTarget](g))
		get[goldenTarget](g, g.rival).Of = g.hero
		get[goldenSpin](g, g.rival).Q = [4]float32{0, 0.5, -0.5, 1}
		g.tree = g.spawn(transform, id[goldenFrozen](g))
		get[goldenTransform](g, g.tree).X = -12.5
	case 4, 17:
		for range 3 {
			g.spark()
		}
	case 6:
		g.odd = g.spawn(id[goldenOdd](g))
		*get[goldenOdd](g, g.odd) = goldenOdd{Look: [3]float32{0, 0, 1}, Exact: 1}
	case 7:
		g.probe = g.spawn(id[goldenRing](g), id[goldenMeasures](g))
		get[goldenRing](g, g.probe).At = math.MaxUint64 - 76
	case 9:
		g.book = g.spawn(id[goldenName](g), id[goldenStory](g))
		get[goldenName](g, g.book).Text = "book"
		get[goldenStory](g, g.book).Text = strings.Repeat("once upon a time, and ", 15)
	case 12:
		g.world.Exchange(g.rival, []ecs.ID{id[goldenFrozen](g), id[goldenName](g)}, []ecs.ID{health})
		get[goldenName](g, g.rival).Text = "Ivan"
		get[goldenTarget](g, g.hero).Seen = [2]ecs.Entity{g.rival, g.hero}
	case 14:
		ecs.AddResource(g.world, &goldenWeather{Rain: 7})
	case 16, 25:
		g.world.RemoveEntity(g.sparks[1])
		g.sparks = slices.Delete(g.sparks, 1, 2)
	case 22:
		g.world.Exchange(g.rival, []ecs.ID{health}, []ecs.ID{id[goldenFrozen](g)})
		*get[goldenHealth](g, g.rival) = goldenHealth{55, true}
		get[goldenStory](g, g.book).Text = strings.Repeat("once upon a time, and ", 12) + "never again"
	case 26:
		g.world.Exchange(g.sparks[0], []ecs.ID{id[goldenRider](g)}, nil)
		g.world.Relations().Set(g.sparks[0], id[goldenRider](g), g.hero)
		get[goldenRider](g, g.sparks[0]).Seat = 2
	case 30:
		g.world.Resources().Remove(ecs.ResourceID[goldenWeather](g.world))
		*get[goldenHealth](g, g.rival) = goldenHealth{0, false}
	case 33:
		g.world.Relations().Set(g.sparks[0], id[goldenRider](g), g.rival)
		get[goldenTarget](g, g.hero).Of = g.tree
	case 36:
		g.world.RemoveEntity(g.tree)
	case goldenRest + 1:
		for i := range 30 {
			e := g.spawn(health)
			*get[goldenHealth](g, e) = goldenHealth{uint8(100 - i%3), true}
			g.crowd = append(g.crowd, e)
		}
	case goldenWake + 3:
		g.world.RemoveEntity(g.book)
	}
}

func (g *goldenGame) changeOdd(n int) {
	odd := get[goldenOdd](g, g.odd)
	odd.Look = [3]float32{float32(n%9) - 4, 3, 2 - float32(n%3)}
	odd.Far += float32(n * n)
	odd.Half = float32(n) / 4
	odd.Wide += 1 << 33
	odd.Turn = int16((n*25)%360 - 180)
	if n%3 == 0 {
		odd.Exact = float64(n) / 8
		odd.Steps += 7
		odd.Bag[n%2][n/2%2] = uint8(n % 10)
	}
	odd.Legs[0] = [4]float64{1, float64(n), 2, 3}
	if n%5 == 0 {
		odd.Legs[1] = [4]float64{0, 1, float64(n) - 20, 0}
		odd.Blob[n%8] = byte(n)
		odd.Blob[(n+3)%8] = 0
	}
}

func (g *goldenGame) changeProbe(n int) {
	m := get[goldenMeasures](g, g.probe)
	v := float64(n) / 4
	m.Third, m.Grid, m.Offset = float32(n%9)/8, v, v
	m.Near, m.Cold, m.Power = 2+float32(n*n), -2-v*v, 4-float32(n%20)/2
	m.Age += 3 * time.Second
	ring := get[goldenRing](g, g.probe)
	ring.At += 7
	ring.Turns += 3
	for i := range ring.Wheels { // together, faster and slower
		ring.Wheels[i] += 0.25 + float32(n/3%4)/16 + float32(i/2)/32
	}
	for i := range ring.Dials {
		ring.Dials[i] = (ring.Dials[i] + uint8(9+n/5%3+n%8/7*i)) % 100
	}
	m.Money -= 1_000_000 * int64(n%2)
	switch n % 4 {
	case 0:
		m.Aim = float32(n * 77)
	case 1:
		m.Level++
		m.Pair[n/4%2].A = n%8 == 1
	case 2:
		m.Doors ^= 1
	case 3:
		m.Serial += 100
	}
}
