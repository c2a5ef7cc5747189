// Package config owns the settings of servers and clients. The face's options write them when an end is
// made; the other packages only read them.
package config

import (
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// KeepAliveTicks returns the number of quiet ticks after which an empty packet is sent: a second of
// ticks, or less if the timeout is short.
func (o *ServerOptions) KeepAliveTicks() uint32 {
	if o.Timeout > 0 {
		return uint32(max(1, min(o.TickRate, Ticks(o.Timeout, o.TickRate)/4)))
	}
	return uint32(o.TickRate)
}

// Ticks returns how many ticks take a time, rounded up, at some ticks per second. d is not negative, and less than 2500
// hours.
func Ticks(d time.Duration, rate int) int {
	return int((d*time.Duration(rate) + time.Second - 1) / time.Second)
}

// DefaultTickRate is the number of ticks per second of servers without replication.WithTickRate.
const DefaultTickRate = 60

// ClientTimeout is the silence after which a client without replication.WithTimeout seeks its server.
const ClientTimeout = 10 * time.Second

// LeastApart is the least number of changes in a send interval with which the server sends what was lost in packets
// apart. One more packet is little then.
const LeastApart = 512

// MostBases is the number of base ticks beyond which the server makes do with fewer, see snapshot.BaseGrid.
const MostBases = 8

// JoinWork is the work of joining that the server does in a tick, see package join: that many units of some
// nanoseconds, or as many times that as the world has times JoinSlots slots, since the rest of the tick takes longer
// then, too.
const (
	JoinWork  = 1 << 16
	JoinSlots = 20_000
)

// ServerOptions has the settings that the options of a server make.
type ServerOptions struct {
	EndOptions
	Window     int
	NoChecksum bool
	TickRate   int
	HashEvery  delta.Tick // 0 for no state hashes
	Workers    int
	Grid       delta.Tick    // 0: snapshot.BaseGrid chooses it
	SlotRest   time.Duration // before a slot is given to another entity
	Marker     func(*ecs.World) ecs.ID

	// KeepArrivals makes the server remember which states arrived at each client. Package rewind sets it.
	KeepArrivals bool
	// Verdicts makes the server report to clients which ticks had no input of theirs in time. Package predict sets it.
	Verdicts bool

	// For tests, to compare, or to make rare cases frequent.
	FirstTick       uint32    // of the first Replicate; ticks wrap
	FirstSequence   uint16    // of the first packet to each peer; sequences wrap
	NoSharedPackets bool      // only cached deltas are shared
	NoGroups        bool      // entities of a group do not wait for one another
	NoSilence       bool      // no peer counts as silent
	Compact         bool      // the coding of peers that choose none
	FreeWork        WorkBound // of a packet
	LeastApart      int       // see LeastApart
	JoinWork        int       // see JoinWork
}
