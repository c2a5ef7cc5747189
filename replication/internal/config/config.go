// Package config has the options of a server, for all that read them.
package config

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// KeepAliveTicks returns after how many quiet ticks an empty packet is sent: a second, or
// less where silence has an end sooner.
func (o *ServerOptions) KeepAliveTicks() uint32 {
	if o.Timeout > 0 {
		return uint32(max(1, min(o.TickRate, o.Timeout/4)))
	}
	return uint32(o.TickRate)
}

// ServerOptions are what the options of a server set.
type ServerOptions struct {
	EndOptions
	Window     int
	NoChecksum bool
	TickRate   int
	HashEvery  delta.Tick // 0 for no state hashes
	Workers    int
	Grid       delta.Tick
	Marker     func(*ecs.World) ecs.ID

	// For tests, which compare or make much of what is rare.
	FirstTick       uint32    // of the first Replicate; ticks wrap
	FirstSequence   uint16    // of the first packet to each peer; sequences wrap
	NoSharedPackets bool      // nothing but runs is shared
	NoGroups        bool      // what is in groups does not wait for the others
	NoSilence       bool      // no peer is ever taken for silent
	Compact         bool      // the coding of peers that ask for none
	FreeWork        WorkBound // of a packet
}
