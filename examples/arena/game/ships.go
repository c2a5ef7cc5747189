package game

import (
	"math"

	"github.com/mlange-42/arche/ecs"
)

const (
	respawnAfter = 2.0 // seconds

	freshHull   = 5
	fullHull    = 10 // the range of Hull.Points
	magazine    = 20
	fullAmmo    = 500 // the range of Ammo.Rounds
	shieldHits  = 3
	mostCounted = 999 // the range of Score
)

// maxShips is the greatest number of ships, the range of Ship.Number.
const maxShips = 1280

// launch adds a ship with this number, or with the next one.
func (g *Game) launch(number int) {
	if number == len(g.ships) {
		g.radar.ships = append(g.radar.ships, blip{})
		g.ships = append(g.ships, ecs.Entity{})
		g.players = append(g.players, player{})
	}
	e := g.newShip.New()
	_, _, ship, _, _, _, _, _, _, _, _ := g.newShip.Get(e)
	ship.Number = uint16(number)
	g.pilot.Get(e).Coward = g.rng.IntN(4)
	g.ships[number] = e
	g.enter(e)
}

// enter puts a new ship into the arena.
func (g *Game) enter(e ecs.Entity) {
	pos, heading, velocity, ship := g.body.Get(e)
	pos.set(g.somewhere())
	heading.set((2*g.rng.Float64() - 1) * math.Pi)
	velocity.set(vec{})
	ship.Alive = true
	hull, ammo, _ := g.stock.Get(e)
	hull.Points = freshHull
	ammo.Rounds = 2 * magazine
	g.raiseShield(e)
}

// Scatter moves every ship somewhere else at once.
func (g *Game) Scatter() {
	for _, e := range g.ships {
		if !e.IsZero() {
			pos, _, _, _ := g.body.Get(e)
			pos.set(g.somewhere())
		}
	}
}

// raiseShield gives a ship a full shield, whether or not it has one. It invalidates pointers to the
// components of the ship.
func (g *Game) raiseShield(e ecs.Entity) {
	if shield := g.shield.Get(e); shield != nil {
		shield.Strength = shieldHits
		return
	}
	g.shield.Assign(e, &Shield{Strength: shieldHits})
}

// sweep collects the positions of all ships, once for all systems.
func (g *Game) sweep() {
	for number, e := range g.ships {
		if e.IsZero() {
			continue // its player has left
		}
		pos, _, velocity, ship := g.body.Get(e)
		p := &g.players[number]
		g.radar.ships[number] = blip{pos.vec(), velocity.vec(), ship.Alive, p.present && !p.fired}
	}
}

// hit takes a point of the shield or the hull, and may destroy the ship. It invalidates pointers to
// the components of the ship.
func (g *Game) hit(victim, shooter ecs.Entity) {
	g.Tally.Hits++
	if shield := g.shield.Get(victim); shield != nil {
		shield.Strength--
		if shield.Strength == 0 {
			g.shield.Remove(victim)
		}
		return
	}
	hull, _, score := g.stock.Get(victim)
	_, _, velocity, ship := g.body.Get(victim)
	hull.Points--
	if hull.Points > 0 {
		return
	}
	ship.Alive = false
	g.radar.ships[ship.Number].alive = false
	velocity.set(vec{})
	g.pilot.Get(victim).Respawn = respawnAfter
	score.Deaths = min(score.Deaths+1, mostCounted)
	g.Tally.Deaths++
	g.credit(shooter)
}

// reviveShips respawns ships that have waited long enough.
func (g *Game) reviveShips() {
	for number, e := range g.ships {
		if e.IsZero() {
			continue
		}
		if _, _, _, ship := g.body.Get(e); ship.Alive {
			continue
		}
		pilot := g.pilot.Get(e)
		pilot.Respawn -= g.dt
		if pilot.Respawn <= 0 {
			g.enter(e)
			if g.players[number].present {
				g.protect(number)
			}
			g.Tally.Respawns++
		}
	}
}
