package main

import (
	"math"

	"github.com/mlange-42/arche/ecs"
)

// Units and seconds.
const (
	bulletSpeed = 320.0
	bulletLife  = 1.1
	bulletRange = bulletSpeed * bulletLife
	reloadTime  = 0.22
	recycleTime = 1.0
)

// shoot fires a bullet from the nose of the ship.
func (g *Game) shoot(from, nose vec, owner uint16) {
	e := g.newBullet.New()
	pos, velocity, bullet, fuse, _ := g.newBullet.Get(e)
	pos.set(from.add(nose.times(shipRadius)))
	velocity.set(nose.times(bulletSpeed))
	bullet.Owner = owner
	fuse.Left = bulletLife
	g.Tally.Shots++
}

// strike is a hit. Ships are given by their numbers.
type strike struct {
	victim, shooter int
	fatal           bool
}

// moveBullets moves all bullets and finds the ships that they hit on the way.
func (g *Game) moveBullets() {
	var spent []ecs.Entity // the world is locked while a query is open
	var strikes []strike
	query := g.bullets.Query(&g.World)
	for query.Next() {
		pos, velocity, bullet := query.Get()
		from := pos.vec()
		to := from.add(velocity.vec().times(g.dt))
		if victim := g.firstOnWay(from, to, bullet.Owner); victim >= 0 {
			strikes = append(strikes, strike{victim: victim, shooter: int(bullet.Owner)})
			spent = append(spent, query.Entity())
			continue
		}
		if max(math.Abs(to.X), math.Abs(to.Y)) > arenaSize {
			spent = append(spent, query.Entity())
			continue
		}
		pos.set(to)
	}
	for _, e := range spent {
		g.World.RemoveEntity(e)
	}
	for _, s := range strikes {
		if g.radar.ships[s.victim].alive { // otherwise an earlier bullet has destroyed it
			g.hit(g.ships[s.victim], g.ships[s.shooter])
			s.fatal = !g.radar.ships[s.victim].alive
			g.hits = append(g.hits, s)
		}
	}
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
