package game

import "github.com/arche-replicate/arche-replicate/replication"

// The components that clients see. The tags state the range and the precision of a field; these
// determine how many bits it takes.

// Position is in units from the middle of the arena. Rewind finds ships by it.
type Position struct {
	X, Y float32 `repl:"range=-511:511,step=0.0625,place"`
}

// Heading is where the nose points, in radians from the X axis.
type Heading struct {
	Angle float32 `repl:"angle,bits=10"`
}

// Ship identifies a ship. The wreck of a destroyed ship stays until it is removed to respawn.
type Ship struct {
	Number uint16 `repl:"range=0:1279"`
	Alive  bool
}

// Callsign names the client's player who steers the ship. Ships of the server's bots have none.
type Callsign struct {
	Name string `repl:"max=16"`
}

// Hull is the number of further hits that the ship takes.
type Hull struct {
	Points int `repl:"range=0:10"`
}

// Ammo is the ammunition left.
type Ammo struct {
	Rounds uint16 `repl:"range=0:500"`
}

// Score is that of the current round.
type Score struct {
	Kills  uint16 `repl:"range=0:999"`
	Deaths uint16 `repl:"range=0:999"`
}

// Shield takes hits in place of the hull. Ships have one after they spawned and lose it, the entire
// component, with the last hit that it takes.
type Shield struct {
	Strength uint8 `repl:"range=0:3"`
}

// Protection keeps the ship of a player who has just come, or come back, from harm. It ends when the player fires.
type Protection struct {
	Left uint8 `repl:"range=0:3"` // started seconds
}

// Velocity is in units per second. Only the ship's player needs it, who predicts the ship.
type Velocity struct {
	X, Y float64 `repl:"range=-256:256,step=0.0625"`
}

// Gun is what a ship shoots with. Its player predicts that, too.
type Gun struct {
	Reload uint8 `repl:"range=0:60"` // ticks until it can shoot again
}

// Bullet moves straight on until it hits a ship or the wall, or burns out.
type Bullet struct {
	Owner uint16 `repl:"range=0:1279"` // Ship.Number
}

// A PowerUp is picked up by a ship that moves over it.
type PowerUp struct {
	Kind Kind `repl:"range=0:3"`
}

// Kind is the effect of a power-up.
type Kind uint8

// The kinds of power-ups.
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
	Leader   uint16 `repl:"range=0:1279"` // Ship.Number of the ship with most kills
	Kills    uint16 `repl:"range=0:999"`  // of the leader
	Paused   bool   // nothing moves: there is nothing to predict
}

// Phase is a part of a round.
type Phase uint8

// The phases of a round in order. Guns work only in Fight.
const (
	Warmup Phase = iota
	Fight
	Over
)

func (p Phase) String() string {
	if p > Over {
		return "?" // from a server of another program
	}
	return [...]string{"warm-up", "fight", "over"}[p]
}

// newSchema registers everything that is replicated.
func newSchema() *replication.Schema {
	s := replication.NewSchema()
	replication.Register[Position](s, replication.Snap(100)) // respawning ships do not glide
	replication.Register[Heading](s)
	replication.Register[Ship](s)
	replication.Register[Hull](s)
	replication.Register[Ammo](s)
	replication.Register[Score](s)
	replication.Register[Shield](s)
	replication.Register[Protection](s)
	replication.Register[Bullet](s)
	replication.Register[PowerUp](s)
	replication.Register[Match](s, replication.Newest()) // guns depend on it
	replication.Register[Callsign](s)
	replication.Register[Velocity](s, replication.OwnerOnly())
	replication.Register[Gun](s, replication.OwnerOnly())
	registerMessages(s)
	return s
}

// Components that only the server has. They are not registered, so there is no need to hide them.

// Pilot is the state of a bot.
type Pilot struct {
	Coward  int     // the bot flees with this many hull points
	Respawn float64 // seconds until a wreck respawns
}

// Fuse is the time in seconds until the entity is removed.
type Fuse struct {
	Left float64
}
