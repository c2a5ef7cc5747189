package replication

import (
	"fmt"
	"reflect"
	"time"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// WithWindow sets for how many ticks the server keeps versions of changed state, and so how old an acknowledged state
// may be to serve as a baseline. If it is older, the full state is sent. The default is 64; it should be more than
// twice the longest round trip.
//
// Panics outside 8 to 120: the names of baselines on the wire have room for no more.
func WithWindow(ticks int) ServerOption {
	if ticks < wire.MinWindow || ticks > wire.MaxWindow {
		panic(fmt.Sprintf("replication: a window of %d ticks: use %d to %d", ticks, wire.MinWindow, wire.MaxWindow))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.Window = ticks })
}

// WithoutChecksum leaves out the 4 bytes of checksum of every packet. Use it where the transport guards integrity and
// sessions, as DTLS, QUIC and WebSockets do, and never over plain UDP: without it nothing distinguishes damaged, forged
// and late packets from genuine ones. Handshakes, the first packets of a session and disconnects keep theirs. Clients
// learn of it in the handshake.
func WithoutChecksum() ServerOption {
	return config.ServerFunc(func(o *config.ServerOptions) { o.NoChecksum = true })
}

// WithTickRate sets how many times per second Replicate is called, 60 by default. Budgets are counted by it, and the
// timeout if none is set; the server reads no clock. Clients learn it in the handshake, since their time is counted in
// ticks of the server: see [Client.Frame].
//
// Panics outside 1 to 1000.
func WithTickRate(perSecond int) ServerOption {
	if perSecond < 1 || perSecond > wire.MaxTickRate {
		panic(fmt.Sprintf("replication: %d ticks per second: use 1 to 1000", perSecond))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.TickRate = perSecond })
}

// WithBaselineInterval makes the server encode updates against the newest acknowledged state of a tick that is a
// multiple of n, for peers that got everything so far. Peers with different round trips then share more of the
// encoding, and updates are a little larger, since baselines are older by (n-1)/2 ticks on average. By default n is 1;
// with 32 peers or more, if all of them see everything, it is the least n with which they have about 8 different
// baseline ticks at most. It changes nothing for peers that have a send interval.
//
// Panics if n is not 1, 2, 4 or 8.
func WithBaselineInterval(n int) ServerOption {
	if n != 1 && n != 2 && n != 4 && n != 8 {
		panic(fmt.Sprintf("replication: a baseline interval of %d ticks: use 1, 2, 4 or 8", n))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.Grid = delta.Tick(n) })
}

// WithWorkers makes Replicate encode for n peers at a time, on goroutines of its own that end before it returns. The
// packets are the same whatever n is, and all functions of the user are still called on the caller's goroutine, the
// send functions peer after peer in the order in which they connected. The default is 1; more than the number of cores
// is useless.
//
// Panics outside 1 to 64.
func WithWorkers(n int) ServerOption {
	if n < 1 || n > sender.MaxWorkers {
		panic(fmt.Sprintf("replication: WithWorkers(%d): use 1 to %d", n, sender.MaxWorkers))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.Workers = n })
}

// WithSlotRest lets the slot of an entity that has ended rest for a while before another entity gets it. By default the
// next one to spawn gets it, and a client that shows the end later, because it uses package interpolation or its budget
// is short, has to cut that short. In games that spawn all the time, set it to the latency plus the delay of
// interpolation. More slots are in use then, and entities take a little more room in packets, but never more than twice
// as many slots as there are entities at a time: if more are needed, the one that has rested longest is used again.
//
// Panics outside 0 to 10 seconds.
func WithSlotRest(d time.Duration) ServerOption {
	if d < 0 || d > mostSlotRest {
		panic(fmt.Sprintf("replication: WithSlotRest(%v): use 0 to %v", d, mostSlotRest))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.SlotRest = d })
}

// mostSlotRest is beyond what anybody sees of an entity's end.
const mostSlotRest = 10 * time.Second

// WithMarker gives the server a marker component of its own in place of [Replicated], so that several servers can
// replicate one world, each the entities that have its marker:
//
//	type ForSpectators replication.Replicated
//
//	players := replication.NewServer(&world, schema)
//	spectators := replication.NewServer(&world, publicSchema, replication.WithMarker[ForSpectators]())
//	world.NewEntity(positionID, ecs.ComponentID[replication.Replicated](&world), ecs.ComponentID[ForSpectators](&world))
//
// Panics if T is not declared like this.
func WithMarker[T any]() ServerOption {
	if t := reflect.TypeFor[T](); !t.ConvertibleTo(reflect.TypeFor[Replicated]()) {
		panic(fmt.Sprintf("replication: WithMarker: declare the marker like this: type %s replication.Replicated", t.Name()))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.Marker = ecs.ComponentID[T] })
}

// WithStateHash makes the server send every client, on every n-th tick at most, a packet with hashes of what it sees;
// the entities take turns. The client compares them with what it holds; [Client.Divergence] returns what differs. It is
// for finding faults: of this library, of a transport without checksums, of memory. The packets take up to an MTU, and
// are outside of budgets; see [PeerStats]. Without the option there are none.
//
// Entities are compared if the client holds their newest state, so those that change in every tick are compared only if
// the packet of the same tick arrives first. An entity whose hashes take more than a packet is never compared.
// [Client.Verify] checks whether the client's world still has what the client holds.
//
// Panics outside 1 to 3600.
func WithStateHash(n int) ServerOption {
	if n < 1 || n > maxHashEvery {
		panic(fmt.Sprintf("replication: WithStateHash(%d): use 1 to %d ticks", n, maxHashEvery))
	}
	return config.ServerFunc(func(o *config.ServerOptions) { o.HashEvery = delta.Tick(n) })
}

const maxHashEvery = 3600
