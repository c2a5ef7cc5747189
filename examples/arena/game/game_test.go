package game

import (
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/replication"
)

// fingerprint returns a hash of everything in the world of a game, in Arche's order.
func fingerprint(g *Game) uint64 {
	h := fnv.New64a()
	w := &g.World
	all := ecs.All()
	query := w.Query(all)
	ids := []ecs.ID{
		ecs.ComponentID[Position](w), ecs.ComponentID[Heading](w), ecs.ComponentID[Ship](w), ecs.ComponentID[Hull](w),
		ecs.ComponentID[Ammo](w), ecs.ComponentID[Score](w), ecs.ComponentID[Shield](w), ecs.ComponentID[Bullet](w),
		ecs.ComponentID[PowerUp](w), ecs.ComponentID[Match](w), ecs.ComponentID[Velocity](w), ecs.ComponentID[Pilot](w),
		ecs.ComponentID[Fuse](w), ecs.ComponentID[Gun](w), ecs.ComponentID[Protection](w),
	}
	write := func(component any) { _, _ = h.Write(fmt.Appendf(nil, "%#v ", component)) }
	for query.Next() {
		for i, id := range ids {
			p := query.Get(id)
			if p == nil {
				continue
			}
			switch i {
			case 0:
				write(*(*Position)(p))
			case 1:
				write(*(*Heading)(p))
			case 2:
				write(*(*Ship)(p))
			case 3:
				write(*(*Hull)(p))
			case 4:
				write(*(*Ammo)(p))
			case 5:
				write(*(*Score)(p))
			case 6:
				write(*(*Shield)(p))
			case 7:
				write(*(*Bullet)(p))
			case 8:
				write(*(*PowerUp)(p))
			case 9:
				write(*(*Match)(p))
			case 10:
				write(*(*Velocity)(p))
			case 11:
				write(*(*Pilot)(p))
			case 12:
				write(*(*Fuse)(p))
			case 13:
				write(*(*Gun)(p))
			case 14:
				write(*(*Protection)(p))
			}
		}
	}
	return h.Sum64()
}

// alone returns the host of a game without clients.
func alone(seed uint64, bots, tickRate int) *Host {
	g := New(seed, bots, tickRate)
	schema, model := NewSchema()
	server := replication.NewServer(&g.World, schema, replication.WithSeed(seed), replication.WithTickRate(tickRate))
	return NewHost(g, server, model, tickRate)
}

// run plays some ticks.
func (h *Host) run(ticks int) {
	for range ticks {
		h.Step()
		h.server.Replicate()
	}
}

func play(seed uint64, bots, tickRate, ticks int) *Game {
	h := alone(seed, bots, tickRate)
	h.run(ticks)
	return h.Game
}

func TestSameSeedSameWorld(t *testing.T) {
	first := fingerprint(play(7, 30, 60, 600))
	require.Equal(t, first, fingerprint(play(7, 30, 60, 600)))
	require.NotEqual(t, first, fingerprint(play(8, 30, 60, 600)), "the seed does nothing")
	require.NotEqual(t, first, fingerprint(play(7, 30, 60, 599)), "the last tick does nothing")
}

func TestReplicationDoesNotChangeTheGame(t *testing.T) {
	p := newTable(0, 30, perfect, 7)
	p.server.Connect(func([]byte) error { return nil })
	p.play(t, 600, true, nil)
	require.Equal(t, fingerprint(play(7, 30, 60, 600)), fingerprint(p.Game))
}

func TestThereIsAFight(t *testing.T) {
	for _, rate := range []int{10, 60, 120} {
		t.Run(fmt.Sprint(rate, " Hz"), func(t *testing.T) {
			g := play(1, 50, rate, 40*rate) // two rounds
			require.Greater(t, g.Tally.Shots, 500)
			require.Greater(t, g.Tally.Hits, 100)
			require.Greater(t, g.Tally.Deaths, 10)
			require.Greater(t, g.Tally.Respawns, 10)
			require.Greater(t, g.Tally.Pickups, 10)
			require.Equal(t, 2, g.Tally.Rounds)
		})
	}
}

func TestOneBotPlaysAlone(t *testing.T) {
	g := play(1, 1, 60, 1200)
	require.Zero(t, g.Tally.Shots)
	require.NotZero(t, g.Tally.Pickups)
}

// No field leaves the range of its tag: clients would see it clamped.
func TestEverythingStaysInRange(t *testing.T) {
	p := newTable(1, 60, perfect, 1)
	p.play(t, 1200, true, nil)
	require.Zero(t, p.server.Stats().Clamped)
}

func TestShipsStayInside(t *testing.T) {
	h := alone(1, 20, 60)
	g := h.Game
	for range 600 {
		h.run(1)
		for number, ship := range g.radar.ships {
			require.LessOrEqual(t, math.Abs(ship.at.X), Size-shipRadius, "ship %d", number)
			require.LessOrEqual(t, math.Abs(ship.at.Y), Size-shipRadius, "ship %d", number)
		}
	}
}

func TestPowerUps(t *testing.T) {
	g := New(1, 1, 60)
	hull, ammo, _ := g.stock.Get(g.ships[0])
	tests := []struct {
		kind       Kind
		hull, ammo int
	}{
		{HullPlus1, 1, 0},
		{HullPlus3, 3, 0},
		{AmmoPlus1, 0, magazine},
	}
	for _, tt := range tests {
		*hull, *ammo = Hull{freshHull}, Ammo{1}
		g.use(tt.kind, g.ships[0])
		require.Equal(t, Hull{freshHull + tt.hull}, *hull, "kind %d", tt.kind)
		require.Equal(t, Ammo{uint16(1 + tt.ammo)}, *ammo, "kind %d", tt.kind)

		*hull, *ammo = Hull{fullHull}, Ammo{fullAmmo}
		g.use(tt.kind, g.ships[0])
		require.Equal(t, Hull{fullHull}, *hull, "kind %d", tt.kind)
		require.Equal(t, Ammo{fullAmmo}, *ammo, "kind %d", tt.kind)
	}
}

func TestAPowerUpIsSeenTakenBeforeItVanishes(t *testing.T) {
	h := alone(1, 1, 60)
	g := h.Game
	query := g.powerUps.Query(&g.World)
	require.True(t, query.Next())
	pos, _ := query.Get()
	crate := query.Entity()
	query.Close()
	ship, _, _, _ := g.body.Get(g.ships[0])
	*ship = *pos

	h.run(1)
	_, powerUp, _ := g.newPowerUp.Get(crate) // it has moved in memory
	require.Equal(t, NoPowerUp, powerUp.Kind)
	require.True(t, g.World.Alive(crate))
	h.run(60)
	require.False(t, g.World.Alive(crate))
}

func TestHitsGoThroughShieldAndHull(t *testing.T) {
	g := New(1, 2, 60)
	victim, shooter := g.ships[0], g.ships[1]
	shields := generic.NewMap1[Shield](&g.World)
	g.sweep()
	for i := range shieldHits {
		require.NotNil(t, shields.Get(victim), "hit %d", i)
		g.hit(victim, shooter)
	}
	require.Nil(t, shields.Get(victim), "the shield is used up and gone")
	for i := range freshHull {
		_, _, _, ship := g.body.Get(victim)
		require.True(t, ship.Alive, "hit %d", i)
		g.hit(victim, shooter)
	}
	_, _, _, ship := g.body.Get(victim)
	require.False(t, ship.Alive)
	require.Equal(t, Match{Phase: Warmup, TimeLeft: 2, Leader: 1, Kills: 1}, *g.status.Get(g.match))
	_, _, score := g.stock.Get(shooter)
	require.Equal(t, Score{Kills: 1}, *score)

	for range int(respawnAfter*60) + 1 {
		g.reviveShips()
	}
	_, _, _, ship = g.body.Get(victim)
	require.True(t, ship.Alive)
	require.NotNil(t, shields.Get(victim))
}

func TestARoundHasThreePhases(t *testing.T) {
	h := alone(1, 2, 10)
	var phases []Phase
	for range 200 {
		h.run(1)
		if phase := h.Game.status.Get(h.Game.match).Phase; len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
		}
	}
	require.Equal(t, []Phase{Warmup, Fight, Over, Warmup}, phases)
}

func TestWhatClientsSeeIsMarked(t *testing.T) {
	g := play(1, 30, 60, 300)
	marked := ecs.ComponentID[replication.Replicated](&g.World)
	query := g.World.Query(ecs.All())
	n := 0
	for query.Next() {
		n++
		require.True(t, query.Has(marked))
	}
	require.Greater(t, n, 30)
}
