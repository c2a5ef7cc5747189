package main

import "github.com/arche-replicate/arche-replicate/replication"

// What is not state: what players do, and what happens once. It goes in the same
// session as the state, so the game needs no other connection. Ships go by their
// numbers.

// Controls is the input: what a player does in one tick.
type Controls struct {
	Course float64 `repl:"angle,bits=10"`         // where the nose shall point
	Thrust float64 `repl:"range=0:1,step=0.0625"` // share of the engine's
	Fire   bool
}

// Join asks for a ship. Whoever has one keeps it.
type Join struct {
	Name string `repl:"max=16"`
}

// Leave gives the ship back.
type Leave struct {
	Tired bool // of being shot down
}

// Welcome tells a client which ship is its own, and how many ticks a second has.
// It may be there before the ship is.
type Welcome struct {
	Ship     uint16 `repl:"range=0:1279"`
	TickRate uint8  `repl:"range=1:240"`
}

// Joined tells all that there is a player more.
type Joined struct {
	Ship uint16 `repl:"range=0:1279"`
	Name string `repl:"max=16"`
}

// Left tells all that there is one less.
type Left struct {
	Name string `repl:"max=16"`
}

// Hit tells of a hit that concerns a player: everybody who sees the ship if a
// player's was hit, and else the player who has hit.
type Hit struct {
	Victim  uint16 `repl:"range=0:1279"`
	Shooter uint16 `repl:"range=0:1279"`
	Fatal   bool
}

// Status is how the match stands, once a second. One that gets lost is made up
// for by the next.
type Status struct {
	Phase   Phase  `repl:"enum=3"`
	Players uint16 `repl:"range=0:1279"`
	Tally   uint32 `repl:"range=0:1048575"` // hits so far
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
	replication.RegisterMessage[Status](s, replication.Unreliable(), replication.Immediate())
}
