package game

import "math"

// spread is the largest random deviation of a shot to each side, in radians.
const spread = 0.12

// steer moves one ship and lets it shoot for a tick, as its player or the server's bot commands.
func (g *Game) steer(number int) {
	if !g.radar.ships[number].alive {
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

	_, heading, velocity, _ := g.body.Get(e)
	controls := g.players[number].controls
	if !g.players[number].present {
		hull, _, _ := g.stock.Get(e)
		controls = g.radar.navigate(cockpit{number, heading.angle(), hull.Points, ammo.Rounds, pilot.Coward})
	}
	off := wrapAngle(controls.Course - heading.angle())
	turn := clamp(off, -turnRate*g.dt, turnRate*g.dt)
	heading.set(heading.angle() + turn)

	// Full thrust only when the nose points roughly in the right direction.
	push := thrust * controls.Thrust * max(0.3, math.Cos(off))
	nose := direction(heading.angle())
	v := velocity.vec().add(nose.times(push * g.dt))
	velocity.set(v.times(math.Exp(-drag * g.dt)))

	if controls.Fire && pilot.Reload <= 0 && ammo.Rounds > 0 && g.status.Get(g.match).Phase == Fight {
		pilot.Reload = reloadTime
		ammo.Rounds--
		deviation := (2*g.rng.Float64() - 1) * spread
		g.shoot(g.radar.ships[number].at, direction(heading.angle()+deviation), number)
	}
}
