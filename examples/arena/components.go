package main

import "github.com/arche-replicate/arche-replicate/replication"

// The components that clients see. The tags say what a field can be and how
// exactly it matters: from that follows how many bits it takes.

// Position is in units from the middle of the arena.
type Position struct {
	X, Y float32 `repl:"range=-511:511,step=0.0625"`
}

// Heading is where the nose points, in radians from the X axis.
type Heading struct {
	Angle float32 `repl:"angle,bits=10"`
}

// Ship tells the pilots apart. The wreck of a dead ship stays until it is
// towed away to respawn.
type Ship struct {
	Number uint16 `repl:"range=0:1279"`
	Alive  bool
}

// Player is who steers the ship, at a client. Ships of the server's bots have
// none.
type Player struct {
	Name string `repl:"max=16"`
}

// Hull is how many more hits the ship takes.
type Hull struct {
	Points int `repl:"range=0:10"`
}

// Ammo is what is left to shoot.
type Ammo struct {
	Rounds uint16 `repl:"range=0:500"`
}

// Score is of the current round.
type Score struct {
	Kills  uint16 `repl:"range=0:999"`
	Deaths uint16 `repl:"range=0:999"`
}

// Shield takes hits in place of the hull. Ships have it after they spawned and
// lose it, the whole component, with the last hit it takes.
type Shield struct {
	Strength uint8 `repl:"range=0:3"`
}

// Bullet flies straight on until it hits a ship or the wall, or burns out.
type Bullet struct {
	Owner uint16 `repl:"range=0:1279"` // Ship.Number
}

// PowerUp lies around to be picked up by flying over it.
type PowerUp struct {
	Kind Kind `repl:"range=0:3"`
}

// Kind tells what a power-up does.
type Kind uint8

// What can be picked up.
const (
	NoPowerUp Kind = iota // taken, about to vanish
	HullPlus1             // one point
	HullPlus3             // three points
	AmmoPlus1             // one magazine
)

// Match is the state of the round; one entity has it.
type Match struct {
	Phase    Phase  `repl:"range=0:2"`
	TimeLeft uint8  `repl:"range=0:60"`   // in this phase, in started seconds
	Leader   uint16 `repl:"range=0:1279"` // Ship.Number of who has most kills
	Kills    uint16 `repl:"range=0:999"`  // of the leader
}

// Phase is a part of a round.
type Phase uint8

// A round in order. Guns work in the second part only.
const (
	Warmup Phase = iota
	Fight
	Over
)

func (p Phase) String() string {
	if p > Over {
		return "?" // from a server that is none of this program
	}
	return [...]string{"warm-up", "fight", "over"}[p]
}

// NewSchema registers what is replicated. Both sides must register the same;
// the library compares before it sends anything.
func NewSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[Position](s)
	replication.Register[Heading](s)
	replication.Register[Ship](s)
	replication.Register[Hull](s)
	replication.Register[Ammo](s)
	replication.Register[Score](s)
	replication.Register[Shield](s)
	replication.Register[Bullet](s)
	replication.Register[PowerUp](s)
	replication.Register[Match](s)
	replication.Register[Player](s)
	registerMessages(s)
	return s
}

// The components that only the server has. They are not registered, so nobody
// needs to hide them.

// Velocity is in units per second.
type Velocity struct {
	X, Y float64
}

// Pilot is the mind of a bot, and its stopwatches in seconds.
type Pilot struct {
	Coward  int     // flees with that many hull points
	Reload  float64 // until it can shoot again
	Recycle float64 // until a round is made from scrap
	Respawn float64 // until a wreck flies again
}

// Fuse is the time in seconds until the entity is removed.
type Fuse struct {
	Left float64
}
