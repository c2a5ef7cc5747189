package game

import (
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication/rewind"
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
func (g *Game) shoot(from, nose vec, owner int) {
	g.Tally.Shots++
	at, flown, hit := g.crossView(from.add(nose.times(shipRadius)), nose.times(bulletSpeed), owner)
	if hit {
		return
	}
	e := g.newBullet.New()
	pos, velocity, bullet, fuse, _ := g.newBullet.Get(e)
	pos.set(at)
	velocity.set(nose.times(bulletSpeed))
	bullet.Owner = uint16(owner)
	fuse.Left = bulletLife - flown
}

// crossView moves a new bullet of a player through what his client showed, tick by tick up to
// the present, because he aimed at ships as they were a moment ago. It returns where the bullet is
// in the present, and for how many seconds it has flown. Bullets of bots start in the present.
func (g *Game) crossView(from, velocity vec, owner int) (at vec, flown float64, hit bool) {
	at = from
	if !g.players[owner].rewound {
		return at, 0, false
	}
	for n := 1; flown < bulletLife; n++ {
		view, past := g.players[owner].view.Later(n)
		to := at.add(velocity.times(g.dt))
		if !past || max(math.Abs(to.X), math.Abs(to.Y)) > Size {
			break
		}
		if victim := g.firstSeen(view, at, to, owner); victim >= 0 {
			g.strike(strike{victim: victim, shooter: owner})
			return at, flown, true
		}
		at, flown = to, flown+g.dt
	}
	return at, flown, false
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
		if max(math.Abs(to.X), math.Abs(to.Y)) > Size {
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
			g.strike(s)
		}
	}
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
