package game

import "math"

const (
	detour       = 40.0 // greatest way of a bot to a power-up that it does not need
	fewRounds    = 5    // a bot with fewer looks for ammunition
	aimTolerance = 0.15 // radians beside the target within which a bot shoots
	orbit        = 20.0 // distance at which a bot turns away rather than collide
)

// scene is what a bot knows of the arena. For the server's own bots it is the truth; those of
// clients build it from the client's world, see pilot.go.
type scene struct {
	ships  []blip
	crates []crate
}

// blip is what every bot knows of a ship.
type blip struct {
	at, velocity vec
	alive        bool
	peaceful     bool // a player who has not fired yet
}

// crate is a power-up that nobody has taken yet.
type crate struct {
	at   vec
	kind Kind
}

// cockpit is what a bot knows of its own ship.
type cockpit struct {
	ship    int // the index of its blip
	heading float64
	hull    int
	rounds  uint16
	coward  int // the bot flees with this many hull points
}

// navigate returns a bot's controls.
func (s *scene) navigate(me cockpit) Controls {
	course, attack := s.decide(me, s.nearestEnemy(me))
	angle := course.angle()
	return Controls{
		Course: angle,
		Thrust: 1,
		Fire:   attack && math.Abs(wrapAngle(angle-me.heading)) < aimTolerance,
	}
}

// decide returns the way a bot wants to go, and whether to attack.
func (s *scene) decide(me cockpit, enemy int) (course vec, attack bool) {
	at := s.ships[me.ship].at
	hurt := me.hull <= me.coward

	// A bot goes far for what it needs, but only takes a detour for other things.
	if hurt {
		if to, ok := s.nearestCrate(at, math.Inf(1), HullPlus1, HullPlus3); ok {
			return to, false
		}
	}
	if me.rounds < fewRounds {
		if to, ok := s.nearestCrate(at, math.Inf(1), AmmoPlus1, AmmoPlus1); ok {
			return to, false
		}
	}
	far := detour
	if enemy < 0 {
		far = math.Inf(1)
	}
	if to, ok := s.nearestCrate(at, far, HullPlus1, AmmoPlus1); ok {
		return to, false
	}
	if enemy < 0 {
		return at.times(-1), false // back to the middle
	}

	to := s.ships[enemy].at.sub(at)
	switch distance := to.length(); {
	case hurt:
		// Away, but not into a corner.
		return to.times(-1).sub(at.times(to.length() / Size)), false
	case distance < orbit:
		return vec{-to.Y, to.X}, false
	default:
		return intercept(to, s.ships[enemy].velocity, bulletSpeed), distance < bulletRange
	}
}

// nearestEnemy returns the index of the enemy that the ship can aim at and reach first, or -1. Peaceful ships are
// enemies only if there are no others.
func (s *scene) nearestEnemy(me cockpit) int {
	at := s.ships[me.ship].at
	enemy, soonest := -1, math.Inf(1)
	for other, ship := range s.ships {
		if other == me.ship || !ship.alive || ship.peaceful && enemy >= 0 && !s.ships[enemy].peaceful {
			continue
		}
		if enemy >= 0 && s.ships[enemy].peaceful && !ship.peaceful {
			enemy, soonest = -1, math.Inf(1)
		}
		to := ship.at.sub(at)
		seconds := to.length() / topSpeed
		if seconds >= soonest {
			continue
		}
		seconds += math.Abs(wrapAngle(to.angle()-me.heading)) / turnRate
		if seconds < soonest {
			enemy, soonest = other, seconds
		}
	}
	return enemy
}

// nearestCrate returns the way to the nearest power-up of the kinds from first to last within
// limit.
func (s *scene) nearestCrate(from vec, limit float64, first, last Kind) (to vec, ok bool) {
	for _, c := range s.crates {
		if c.kind < first || c.kind > last {
			continue
		}
		if way := c.at.sub(from); way.length() < limit {
			to, ok, limit = way, true, way.length()
		}
	}
	return to, ok
}
