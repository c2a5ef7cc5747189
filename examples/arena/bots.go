package main

import "math"

const (
	detour       = 40.0 // how far a bot goes for a power-up it does not need
	fewRounds    = 5    // a bot with less looks for ammunition
	aimTolerance = 0.15 // radians beside the target at which a bot pulls the trigger
	spread       = 0.12 // radians by which shots stray to each side
	orbit        = 20.0 // distance at which a bot turns off rather than ram
)

// steer lets one bot fly and shoot for a tick.
func (g *Game) steer(number int) {
	me := g.radar[number]
	if !me.alive {
		return
	}
	e := g.ships[number]
	pilot := g.pilot.Get(e)
	_, ammo, _ := g.stock.Get(e)
	pilot.Reload -= g.dt
	pilot.Recycle -= g.dt
	if pilot.Recycle <= 0 {
		pilot.Recycle = recycleTime
		ammo.Rounds = min(ammo.Rounds+1, fullAmmo)
	}

	enemy := g.nearestEnemy(number)
	course, attack := g.decide(number, enemy)
	_, heading, velocity, _ := g.body.Get(e)
	off := wrapAngle(course.angle() - heading.angle())
	turn := clamp(off, -turnRate*g.dt, turnRate*g.dt)
	heading.set(heading.angle() + turn)

	// Full thrust only where the nose points roughly to where it should.
	push := thrust * max(0.3, math.Cos(off))
	nose := direction(heading.angle())
	v := velocity.vec().add(nose.times(push * g.dt))
	velocity.set(v.times(math.Exp(-drag * g.dt)))

	if attack && math.Abs(off) < aimTolerance && pilot.Reload <= 0 && ammo.Rounds > 0 &&
		g.status.Get(g.match).Phase == Fight {
		pilot.Reload = reloadTime
		ammo.Rounds--
		stray := (2*g.rng.Float64() - 1) * spread
		g.shoot(me.at, direction(heading.angle()+stray), uint16(number))
	}
}

// decide is where a bot wants to go, and whether it goes there to shoot.
func (g *Game) decide(number, enemy int) (course vec, attack bool) {
	me := g.radar[number]
	e := g.ships[number]
	hull, ammo, _ := g.stock.Get(e)
	hurt := hull.Points <= g.pilot.Get(e).Coward

	// What it needs is worth a journey, other things only a detour.
	if hurt {
		if to, ok := g.nearestPowerUp(me.at, math.Inf(1), HullPlus1, HullPlus3); ok {
			return to, false
		}
	}
	if ammo.Rounds < fewRounds {
		if to, ok := g.nearestPowerUp(me.at, math.Inf(1), AmmoPlus1, AmmoPlus1); ok {
			return to, false
		}
	}
	far := detour
	if enemy < 0 {
		far = math.Inf(1)
	}
	if to, ok := g.nearestPowerUp(me.at, far, HullPlus1, AmmoPlus1); ok {
		return to, false
	}
	if enemy < 0 {
		return me.at.times(-1), false // back to the middle
	}

	to := g.radar[enemy].at.sub(me.at)
	switch distance := to.length(); {
	case hurt:
		// Away, but not into a corner.
		return to.times(-1).sub(me.at.times(to.length() / arenaSize)), false
	case distance < orbit:
		return vec{-to.Y, to.X}, false
	default:
		return lead(to, g.radar[enemy].velocity, bulletSpeed), distance < bulletRange
	}
}

// nearestEnemy is the number of the other ship that is soonest before the guns,
// turning and flying counted, or -1.
func (g *Game) nearestEnemy(number int) int {
	me := g.radar[number]
	_, heading, _, _ := g.body.Get(g.ships[number])
	enemy, soonest := -1, math.Inf(1)
	for other, ship := range g.radar {
		if other == number || !ship.alive {
			continue
		}
		to := ship.at.sub(me.at)
		seconds := to.length() / topSpeed
		if seconds >= soonest {
			continue
		}
		seconds += math.Abs(wrapAngle(to.angle()-heading.angle())) / turnRate
		if seconds < soonest {
			enemy, soonest = other, seconds
		}
	}
	return enemy
}

// nearestPowerUp is the way to the nearest one of the kinds from first to last
// that is less than so far away.
func (g *Game) nearestPowerUp(from vec, limit float64, first, last Kind) (to vec, ok bool) {
	query := g.powerUps.Query(&g.World)
	for query.Next() {
		pos, powerUp := query.Get()
		if powerUp.Kind < first || powerUp.Kind > last {
			continue
		}
		if way := pos.vec().sub(from); way.length() < limit {
			to, ok, limit = way, true, way.length()
		}
	}
	return to, ok
}
