package game

import (
	"maps"
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
)

// judgeBullets finds the ships that bullets have hit on their way in a tick. A player aims at ships as his client shows
// them, which is a moment late, while his own ship and bullets are predicted. So all its life, a bullet of his is among
// the ships that he sees beside it; those of bots are in the present.
func (g *Game) judgeBullets(tick replication.Tick) {
	maps.DeleteFunc(g.sights, func(e ecs.Entity, _ rewind.View) bool { return !g.World.Alive(e) })
	var spent []ecs.Entity // the world is locked while a query is open
	var strikes []strike
	query := g.bullets.Query(&g.World)
	for query.Next() {
		pos, heading, bullet, born := query.Get()
		e, age := query.Entity(), int(uint16(tick)-born.Tick)
		if age == 0 {
			g.Tally.Shots++
			g.players[bullet.Owner].fired = true
			if peer := g.players[bullet.Owner].peer; peer != nil {
				if view, err := g.past.View(peer, tick); err == nil { // else he sees the present
					g.sights[e] = view
				}
			}
		}
		to := pos.vec()
		from := to.sub(way(heading, g.dt))
		var victim int
		if view, past := g.sights[e].Later(age); past {
			victim = g.firstSeen(view, from, to, int(bullet.Owner))
		} else {
			victim = g.firstOnWay(from, to, bullet.Owner)
		}
		if victim >= 0 {
			strikes = append(strikes, strike{victim: victim, shooter: int(bullet.Owner)})
			spent = append(spent, e)
		}
	}
	for _, e := range spent {
		g.World.RemoveEntity(e)
	}
	g.strikeAll(strikes)
}

// strikeAll makes the hits of a tick take effect.
func (g *Game) strikeAll(strikes []strike) {
	for _, s := range strikes {
		// Otherwise an earlier bullet has destroyed it, or it is protected.
		if g.radar.ships[s.victim].alive && g.players[s.victim].safe <= 0 {
			g.strike(s)
		}
	}
}

// firstSeen is firstOnWay among the ships as a client showed them.
func (g *Game) firstSeen(view rewind.View, from, to vec, owner int) int {
	const reach = 2 * shipRadius
	low := [3]float64{min(from.X, to.X) - reach, min(from.Y, to.Y) - reach}
	high := [3]float64{max(from.X, to.X) + reach, max(from.Y, to.Y) + reach}
	g.near = g.near[:0]
	g.past.Near(view, low, high, func(e ecs.Entity) {
		if _, _, _, ship := g.body.Get(e); ship != nil {
			g.near = append(g.near, int(ship.Number))
		}
	})
	first, nearest := -1, math.Inf(1)
	for _, number := range g.near {
		var seen Position
		var ship Ship
		if number == owner || !g.radar.ships[number].alive || !rewind.Get(view, g.ships[number], &seen) ||
			!rewind.Get(view, g.ships[number], &ship) || !ship.Alive {
			continue
		}
		d := seen.vec().sub(from).square()
		if distanceToSegment(seen.vec(), from, to) <= shipRadius && d < nearest {
			first, nearest = number, d
		}
	}
	return first
}

// strike is a hit. Ships are given by their numbers.
type strike struct {
	victim, shooter int
	fatal           bool
}

// strike makes a hit of a living ship take effect.
func (g *Game) strike(s strike) {
	g.hit(g.ships[s.victim], g.ships[s.shooter])
	s.fatal = !g.radar.ships[s.victim].alive
	g.hits = append(g.hits, s)
}

// firstOnWay returns the number of the first ship that a bullet hits between two points, or -1.
func (g *Game) firstOnWay(from, to vec, owner uint16) int {
	first, nearest := -1, math.Inf(1)
	reach := shipRadius + math.Abs(to.X-from.X)
	for number, ship := range g.radar.ships {
		// Most ships are far away: skip the square roots.
		if math.Abs(ship.at.X-from.X) > reach || !ship.alive || number == int(owner) {
			continue
		}
		if distanceToSegment(ship.at, from, to) > shipRadius {
			continue
		}
		if d := ship.at.sub(from).square(); d < nearest {
			first, nearest = number, d
		}
	}
	return first
}
