package replication

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// WithoutChecksum leaves out the 4 bytes of checksum of every packet, except in handshakes, the first packets of a
// session and disconnects. Use it where the transport guards integrity and sessions, as DTLS, QUIC and WebSockets do,
// and never over plain UDP: without it nothing distinguishes damaged, forged and late packets from genuine ones.
func WithoutChecksum() PathOption {
	return checksumOption{func(o *config.ServerOptions) { o.NoChecksum = true }}
}

type checksumOption struct{ config.ServerFunc }

func (checksumOption) applyToPeer(o *peerOptions) { o.noChecksum = true }

// WithTickRate sets how many times per second Replicate is called, 60 by default. Budgets and timeouts are counted by
// it, since the server reads no clock. Clients learn it in the handshake.
//
// Panics outside 1 to 1000.
func WithTickRate(perSecond int) ServerOption {
	if perSecond < 1 || perSecond > wire.MaxTickRate {
		panic(fmt.Sprintf("replication: %d ticks per second: use 1 to 1000", perSecond))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.TickRate = perSecond })
}

// WithMarker gives the server a marker component of its own in place of [Replicated], so that several servers can
// replicate one world, each the entities that have its marker:
//
//	type ForSpectators replication.Replicated
//
//	players := replication.NewServer(&world, schema)
//	spectators := replication.NewServer(&world, publicSchema, replication.WithMarker[ForSpectators]())
//
// Panics if T is not declared like this.
func WithMarker[T any]() ServerOption {
	if t := reflect.TypeFor[T](); !t.ConvertibleTo(reflect.TypeFor[Replicated]()) {
		panic("replication: WithMarker: declare the marker like this: type " + t.Name() + " replication.Replicated")
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.Marker = ecs.ComponentID[T] })
}

// Tuning has the settings of a server that few games need. A zero field is the default.
type Tuning struct {
	// Window is for how many ticks the server keeps versions of changed state, 8 to 120, 64 by default. If a client's
	// acknowledged state is older, the full state is sent. It should be more than twice the longest round trip.
	Window int
	// BaselineInterval n encodes updates against the newest acknowledged state of a tick that is a multiple of n: 1, 2,
	// 4 or 8. Peers with different round trips then share more of the encoding, and updates are a little larger. The
	// default is 1, or with 32 peers or more that all see everything, what suits their round trips. Peers with a send
	// interval don't use it.
	BaselineInterval int
	// Workers is for how many peers at a time Replicate encodes, 1 to 64, on goroutines that end before it returns; 1
	// by default. All functions of the user are still called on the caller's goroutine.
	Workers int
	// SlotRest keeps the slot of an ended entity unused, for 1 ms to 10 seconds, so that a client can show the end
	// later; 0 by default. In games that spawn all the time, set it to the latency plus the delay of interpolation.
	SlotRest time.Duration
	// StateHash n sends every client, on every n-th tick at most, a packet with hashes of what it sees, 1 to 3600; none
	// by default. The entities take turns. [Client.Divergence] returns what differs. It finds faults of this library,
	// of transports without checksums and of memory. The packets are outside of budgets.
	StateHash int
}

// WithTuning sets what is not zero in t. Panics if a field is outside its range.
func WithTuning(t Tuning) ServerOption {
	check := func(field string, value, least, most int) {
		if value != 0 && (value < least || value > most) {
			panic(fmt.Sprintf("replication: WithTuning: a %s of %d: use %d to %d", field, value, least, most))
		}
	}
	check("Window", t.Window, wire.MinWindow, wire.MaxWindow)
	check("Workers", t.Workers, 1, sender.MaxWorkers)
	check("StateHash", t.StateHash, 1, maxHashEvery)
	if n := t.BaselineInterval; n != 0 && n != 1 && n != 2 && n != 4 && n != 8 {
		panic(fmt.Sprintf("replication: WithTuning: a BaselineInterval of %d: use 1, 2, 4 or 8", n))
	}
	if t.SlotRest != 0 && t.SlotRest < time.Millisecond || t.SlotRest > mostSlotRest {
		panic(fmt.Sprintf("replication: WithTuning: a SlotRest of %v: use 0, or 1ms to %v", t.SlotRest, mostSlotRest))
	}
	return config.ServerFunc(func(o *config.ServerOptions) {
		o.Window, o.Workers = cmp.Or(t.Window, o.Window), cmp.Or(t.Workers, o.Workers)
		o.Grid = cmp.Or(delta.Tick(t.BaselineInterval), o.Grid)
		o.HashEvery = cmp.Or(delta.Tick(t.StateHash), o.HashEvery)
		o.SlotRest = cmp.Or(t.SlotRest, o.SlotRest)
	})
}

const (
	mostSlotRest = 10 * time.Second // beyond what anybody sees of an entity's end
	maxHashEvery = 3600
)
