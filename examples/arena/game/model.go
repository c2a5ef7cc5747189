package game

import (
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/predict"
)

// Model is the part of the game that the server and the clients simulate alike: ships move and shoot by their controls,
// and bullets move. A client does that for its own ship and bullets, ahead of the server; so it must depend on
// nothing else than the components of what is simulated, and what rarely changes. Who is hit is up to the server alone.
type Model = predict.Model[Controls]

// Units and seconds.
const (
	shipRadius  = 7.0
	turnRate    = 3.5   // radians per second
	thrust      = 200.0 // per second squared
	drag        = 1.6   // per second
	topSpeed    = thrust / drag
	bulletSpeed = 320.0
	bulletLife  = 1.1
	bulletRange = bulletSpeed * bulletLife
	reloadTime  = 0.22
	recycleTime = 1.0
)

// spread is the largest random deviation of a shot to each side, in radians.
const spread = 0.12

// NewSchema registers everything that is replicated, and returns it with the part of the game that both sides
// simulate. Both must register the same; the library compares the schemas before it sends anything.
func NewSchema() (*replication.Schema, *Model) {
	s := newSchema()
	return s, newModel(s)
}

// newModel returns the model.
func newModel(s *replication.Schema) *Model {
	m := predict.NewModel[Controls](s, new(flight).step)
	predict.State[Ship](m) // who is destroyed stands still from that tick on, not from when it is shown
	predict.State[Position](m)
	predict.State[Heading](m)
	predict.State[Velocity](m)
	predict.State[Ammo](m)
	predict.State[Gun](m)
	// A ship without an input moves on as before, but does not shoot.
	predict.Missed(m, func(in *Controls, _ int) { in.Fire = false })
	return m
}

// flight is the step of the model.
type flight struct {
	world *ecs.World

	position, heading, velocity, ship, ammo, gun, controls, bullet, born ecs.ID

	match ecs.Filter
	phase ecs.ID
	shots []shot // in this tick: the world is locked while a query is open
	spent []ecs.Entity
}

// shot is one that a ship fires.
type shot struct {
	by     ecs.Entity
	number uint16
	from   vec
	angle  float64
}

func (f *flight) step(t *predict.Tick) {
	if f.world != t.World {
		f.enter(t.World)
	}
	f.shots, f.spent = f.shots[:0], f.spent[:0]
	f.moveShips(t)
	for _, s := range f.shots {
		f.shoot(t, s)
	}
	f.moveBullets(t)
	for _, e := range f.spent {
		t.Despawn(e)
	}
}

// enter looks up the components of a world.
func (f *flight) enter(w *ecs.World) {
	f.world = w
	f.position, f.heading = ecs.ComponentID[Position](w), ecs.ComponentID[Heading](w)
	f.velocity, f.ship = ecs.ComponentID[Velocity](w), ecs.ComponentID[Ship](w)
	f.ammo, f.gun = ecs.ComponentID[Ammo](w), ecs.ComponentID[Gun](w)
	f.controls, f.bullet = ecs.ComponentID[Controls](w), ecs.ComponentID[Bullet](w)
	f.born, f.phase = ecs.ComponentID[predict.Born](w), ecs.ComponentID[Match](w)
	f.match = ecs.All(f.phase)
}

// fighting reports whether guns work.
func (f *flight) fighting() (fights bool) {
	for q := f.world.Query(f.match); q.Next(); {
		fights = (*Match)(q.Get(f.phase)).Phase == Fight
	}
	return fights
}

// moveShips moves all live ships as their players or the server's bots command.
func (f *flight) moveShips(t *predict.Tick) {
	fights, second := f.fighting(), uint32(math.Round(recycleTime/t.Seconds))
	q := t.Query(f.position, f.heading, f.velocity, f.ship, f.ammo, f.gun, f.controls)
	for q.Next() {
		ship, controls := (*Ship)(q.Get(f.ship)), (*Controls)(q.Get(f.controls))
		ammo, gun := (*Ammo)(q.Get(f.ammo)), (*Gun)(q.Get(f.gun))
		if !ship.Alive {
			continue
		}
		if (uint32(t.Number)+uint32(ship.Number))%second == 0 { // a round is made from scrap
			ammo.Rounds = min(ammo.Rounds+1, fullAmmo)
		}
		if gun.Reload > 0 {
			gun.Reload--
		}
		pos, heading := (*Position)(q.Get(f.position)), (*Heading)(q.Get(f.heading))
		from := pos.vec()
		steer(pos, heading, (*Velocity)(q.Get(f.velocity)), controls, t.Seconds)
		if controls.Fire && gun.Reload == 0 && ammo.Rounds > 0 && fights {
			gun.Reload = uint8(math.Ceil(reloadTime / t.Seconds))
			ammo.Rounds--
			deviation := (2*t.Rand(q.Entity()).Float64() - 1) * spread
			f.shots = append(f.shots, shot{q.Entity(), ship.Number, from, heading.angle() + deviation})
		}
	}
}

// steer moves one ship. It bounces off the walls.
func steer(pos *Position, heading *Heading, velocity *Velocity, c *Controls, dt float64) {
	off := wrapAngle(c.Course - heading.angle())
	heading.set(heading.angle() + clamp(off, -turnRate*dt, turnRate*dt))

	// Full thrust only when the nose points roughly in the right direction.
	push := thrust * c.Thrust * max(0.3, math.Cos(off))
	nose := direction(heading.angle())
	v := velocity.vec().add(nose.times(push * dt)).times(math.Exp(-drag * dt))
	at := pos.vec().add(v.times(dt))
	if bounce(&at.X, &v.X) {
		nose.X = math.Copysign(nose.X, v.X)
		heading.set(nose.angle())
	}
	if bounce(&at.Y, &v.Y) {
		nose.Y = math.Copysign(nose.Y, v.Y)
		heading.set(nose.angle())
	}
	pos.set(at)
	velocity.set(v)
}

// bounce reflects one coordinate at the walls.
func bounce(at, velocity *float64) bool {
	const wall = Size - shipRadius
	if math.Abs(*at) <= wall {
		return false
	}
	*at = math.Copysign(wall, *at)
	*velocity = -math.Copysign(*velocity, *at)
	return true
}

// shoot spawns a bullet at the nose of a ship. Its way is that of the angle which clients receive.
func (f *flight) shoot(t *predict.Tick, s shot) {
	e := t.Spawn(s.by, 0, f.position, f.heading, f.bullet)
	const step = 2 * math.Pi / 1024
	heading := (*Heading)(t.World.Get(e, f.heading))
	heading.set(step * math.Round(s.angle/step))
	(*Position)(t.World.Get(e, f.position)).set(s.from.add(direction(heading.angle()).times(shipRadius)))
	(*Bullet)(t.World.Get(e, f.bullet)).Owner = s.number
}

// moveBullets moves all bullets.
func (f *flight) moveBullets(t *predict.Tick) {
	life := uint16(math.Round(bulletLife / t.Seconds))
	q := t.Query(f.position, f.heading, f.bullet, f.born)
	for q.Next() {
		pos, heading := (*Position)(q.Get(f.position)), (*Heading)(q.Get(f.heading))
		to := pos.vec().add(way(heading, t.Seconds))
		if max(math.Abs(to.X), math.Abs(to.Y)) > Size || uint16(t.Number)-(*predict.Born)(q.Get(f.born)).Tick >= life {
			f.spent = append(f.spent, q.Entity())
			continue
		}
		pos.set(to)
	}
}

// way is that of a bullet in a tick.
func way(h *Heading, dt float64) vec { return direction(h.angle()).times(bulletSpeed * dt) }
