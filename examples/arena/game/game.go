// Package game is Dogfight: ships hunt each other in an Arche world that a server owns. It knows
// replication, interpolation and rewind, but no network and no screen.
//
// [Game] is the world and its systems, [Host] adds a server's players to it, and [Player] is a client's
// part. components.go and messages.go have everything that is replicated.
package game

import (
	"math/rand/v2"

	"github.com/mlange-42/arche/ecs"
	"github.com/mlange-42/arche/generic"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/predict"
	"github.com/arche-replicate/arche-replicate/replication/rewind"
)

// Size is the distance from the middle to each wall, the range of Position.
const Size = 511

// Game is an ordinary Arche world and the systems that change it, around those of the [Model]. Of replication it
// knows two things: entities for clients are made with the component replication.Replicated, and a player's shot is
// judged by what the player saw.
//
// Everything depends only on the seed, the number of bots and the tick rate: random numbers are
// drawn in a fixed order, ships act in the order of their numbers, and Arche iterates in a
// deterministic order. (Processors may differ in the last bit of a float, because Go may fuse
// operations.)
type Game struct {
	World ecs.World
	Tally Tally
	// FightSeconds is how long the fight of a round takes, at most 60 seconds; 15 if it is 0.
	FightSeconds float64

	rng *rand.Rand
	dt  float64 // seconds per tick

	ships   []ecs.Entity // by Ship.Number; zero after the player has left
	players []player     // by Ship.Number
	radar   scene        // the bots' view; ships by Ship.Number
	past    *rewind.History
	sights  map[ecs.Entity]rewind.View // what the shooters of bullets saw when they fired
	near    []int                      // of firstSeen
	match   ecs.Entity
	clock   float64  // seconds left in the phase
	hits    []strike // in the latest step

	newShip generic.Map11[Position, Heading, Ship, Hull, Ammo, Score, Velocity, Gun, Controls, Pilot,
		replication.Replicated]
	newPowerUp generic.Map3[Position, PowerUp, replication.Replicated]
	newMatch   generic.Map2[Match, replication.Replicated]

	body   generic.Map4[Position, Heading, Velocity, Ship]
	stock  generic.Map3[Hull, Ammo, Score]
	pilot  generic.Map[Pilot]
	shield generic.Map1[Shield]
	safe   generic.Map1[Protection]
	badge  generic.Map1[Callsign]
	status generic.Map[Match]
	fuse   generic.Map1[Fuse]
	helm   generic.Map[Controls]

	ticking  *generic.Filter1[Fuse]
	bullets  *generic.Filter4[Position, Heading, Bullet, predict.Born]
	powerUps *generic.Filter2[Position, PowerUp]
}

// Tally counts what happened so far.
type Tally struct {
	Shots    int `json:"shots"`
	Hits     int `json:"hits"`
	Deaths   int `json:"deaths"`
	Respawns int `json:"respawns"`
	Pickups  int `json:"pickups"`
	Rounds   int `json:"rounds"`
}

// New returns a world in which the bots have spawned.
func New(seed uint64, bots, tickRate int) *Game {
	g := &Game{
		World:    ecs.NewWorld(1024),
		rng:      rand.New(rand.NewPCG(seed, 0xD06F16E7)), // a random sequence of its own
		dt:       1 / float64(tickRate),
		sights:   map[ecs.Entity]rewind.View{},
		ticking:  generic.NewFilter1[Fuse](),
		bullets:  generic.NewFilter4[Position, Heading, Bullet, predict.Born](),
		powerUps: generic.NewFilter2[Position, PowerUp](),
	}
	w := &g.World
	g.newShip = generic.NewMap11[Position, Heading, Ship, Hull, Ammo, Score, Velocity, Gun, Controls, Pilot,
		replication.Replicated](w)
	g.newPowerUp = generic.NewMap3[Position, PowerUp, replication.Replicated](w)
	g.newMatch = generic.NewMap2[Match, replication.Replicated](w)
	g.body = generic.NewMap4[Position, Heading, Velocity, Ship](w)
	g.stock = generic.NewMap3[Hull, Ammo, Score](w)
	g.pilot = generic.NewMap[Pilot](w)
	g.shield = generic.NewMap1[Shield](w)
	g.safe = generic.NewMap1[Protection](w)
	g.badge = generic.NewMap1[Callsign](w)
	g.status = generic.NewMap[Match](w)
	g.fuse = generic.NewMap1[Fuse](w)
	g.helm = generic.NewMap[Controls](w)

	g.startMatch()
	for number := range bots {
		g.launch(number)
	}
	g.dropPowerUps()
	return g
}

// begin is what comes before the step of the model: the time, and the bots' controls.
func (g *Game) begin() {
	g.hits = g.hits[:0]
	g.keepTime()
	g.sweep()
	g.findCrates()
	for number, e := range g.ships {
		if !e.IsZero() && !g.players[number].present && g.radar.ships[number].alive {
			_, heading, _, _ := g.body.Get(e)
			hull, ammo, _ := g.stock.Get(e)
			me := cockpit{number, heading.angle(), hull.Points, ammo.Rounds, g.pilot.Get(e).Coward}
			*g.helm.Get(e) = g.radar.navigate(me)
		}
	}
}

// end is what comes after it: only the server decides who is hit, what is picked up, and who comes back.
func (g *Game) end(tick replication.Tick) {
	g.sweep()
	g.judgeBullets(tick)
	g.endProtection()
	g.pickUp()
	g.reviveShips()
	g.burnFuses()
	g.dropPowerUps()
}

// burnFuses removes entities whose time is up.
func (g *Game) burnFuses() {
	var spent []ecs.Entity // the world is locked while a query is open
	query := g.ticking.Query(&g.World)
	for query.Next() {
		fuse := query.Get()
		fuse.Left -= g.dt
		if fuse.Left <= 0 {
			spent = append(spent, query.Entity())
		}
	}
	for _, e := range spent {
		g.World.RemoveEntity(e)
	}
}

// somewhere returns a random position, not too near a wall.
func (g *Game) somewhere() vec {
	const size = 0.95 * Size
	return vec{(2*g.rng.Float64() - 1) * size, (2*g.rng.Float64() - 1) * size}
}
