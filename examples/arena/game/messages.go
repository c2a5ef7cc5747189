package game

import "github.com/arche-replicate/arche-replicate/replication"

// Messages and inputs: the actions of players, and events. They use the same session as the state,
// so the game needs no other connection. Ships are given by their numbers.

// Controls is the input: what a player does in one tick.
type Controls struct {
	Course float64 `repl:"angle,bits=10"`         // desired direction of the nose
	Thrust float64 `repl:"range=0:1,step=0.0625"` // share of the engine's power
	Fire   bool
}

// Join asks for a ship. A player with a ship keeps it.
type Join struct {
	Name string `repl:"max=16"`
}

// Leave gives the ship back.
type Leave struct {
	Tired bool // the player was shot down too often
}

// Wish is how a player wants to be sent the world.
type Wish struct {
	Every  uint8  `repl:"range=1:60"`   // ticks from one packet of state to the next
	Radius uint16 `repl:"range=0:2047"` // around the own ship, in units; 0: everything
}

// Welcome contains the number of the client's own ship, the tick rate, and the number under which the
// server's inspector shows the client. It may arrive before the ship.
type Welcome struct {
	Ship     uint16 `repl:"range=0:1279"`
	TickRate uint8  `repl:"range=1:240"`
	Peer     uint32
}

// Joined announces a new player to all clients.
type Joined struct {
	Ship uint16 `repl:"range=0:1279"`
	Name string `repl:"max=16"`
}

// Left announces to all clients that a player has left.
type Left struct {
	Name string `repl:"max=16"`
}

// Hit is a hit that concerns a player: it goes to all clients that see the ship if the ship belongs
// to a player, otherwise to the player who shot.
type Hit struct {
	Victim  uint16 `repl:"range=0:1279"`
	Shooter uint16 `repl:"range=0:1279"`
	Fatal   bool
}

// Status is the state of the match, once a second. If one is lost, the next replaces it.
type Status struct {
	Phase   Phase  `repl:"enum=3"`
	Players uint16 `repl:"range=0:1279"`
	Tally   uint32 `repl:"range=0:1048575"` // hits so far
}

// Final ends a fight: nothing changes after the tick. It has the number of entities, and the sum of
// their hashes, so that clients can compare their worlds completely.
type Final struct {
	Tick     uint32
	Entities uint32 `repl:"range=0:65535"`
	Sum      uint64
}

// Compared answers Final.
type Compared struct {
	Equal bool
}

// Checked reports, once a second, how many entities a client compared with hashes of the server since the last report.
type Checked struct {
	Entities uint16
	Wrong    uint16 // of these, those that differed
}

// registerMessages adds messages and the input to the schema.
func registerMessages(s *replication.Schema) {
	replication.RegisterInput[Controls](s)
	replication.RegisterMessage[Join](s)
	replication.RegisterMessage[Leave](s)
	replication.RegisterMessage[Welcome](s, replication.Immediate())
	replication.RegisterMessage[Joined](s)
	replication.RegisterMessage[Left](s)
	replication.RegisterMessage[Hit](s)
	replication.RegisterMessage[Final](s)
	replication.RegisterMessage[Compared](s)
	replication.RegisterMessage[Checked](s)
	replication.RegisterMessage[Wish](s)
	replication.RegisterMessage[Status](s, replication.Unreliable(), replication.Immediate())
}
