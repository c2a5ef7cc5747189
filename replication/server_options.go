package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/sender"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// A ServerOption configures a [Server].
type ServerOption func(*config.ServerOptions)

// WithMTU sets the largest packet the server sends, in bytes. The default is 1200,
// which passes everywhere; the least is 64. No packet of the server is ever larger;
// those of clients have a limit of their own, see [WithClientMTU].
//
// Panics on less than 64 or more than 65,507, which is all that UDP carries.
func WithMTU(bytes int) ServerOption {
	if bytes < wire.MinMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: an MTU of %d bytes: use %d to %d", bytes, wire.MinMTU, wire.MaxMTU))
	}
	return func(o *config.ServerOptions) { o.MTU = bytes }
}

// WithWindow sets for how many ticks the server keeps versions of changed state, and so
// how old an acknowledged state may be to serve as baseline. What is older is sent
// whole. The default is 64; it should be more than twice the longest round trip.
//
// Panics outside 8 to 120: the names of baselines on the wire have room for no more.
func WithWindow(ticks int) ServerOption {
	if ticks < 8 || ticks > wire.MaxWindow {
		panic(fmt.Sprintf("replication: a window of %d ticks: use 8 to %d", ticks, wire.MaxWindow))
	}
	return func(o *config.ServerOptions) { o.Window = ticks }
}

// WithFirstTick sets the tick of the first Replicate, 0 by default. Ticks wrap.
func WithFirstTick(t uint32) ServerOption {
	return func(o *config.ServerOptions) { o.FirstTick = t }
}

// WithFirstSequence sets the sequence number of the first packet to each peer, 0 by
// default. Sequences wrap.
func WithFirstSequence(s uint16) ServerOption {
	return func(o *config.ServerOptions) { o.FirstSequence = s }
}

// WithSeed makes session numbers reproducible, for tests and recordings. By default
// they are random. Two servers that a client meets one after the other must not have the
// same seed: it would take them for one.
func WithSeed(seed uint64) ServerOption {
	return func(o *config.ServerOptions) { o.Seed, o.Seeded = seed, true }
}

// WithoutChecksum leaves out the 4 bytes of checksum of every packet. Use it where the
// transport guards integrity and sessions, as DTLS, QUIC and WebSockets do, and never
// over plain UDP: without it nothing tells damaged, forged and late packets from genuine
// ones. Handshakes, the first words of a session and disconnects keep theirs. Clients learn of
// it in the handshake.
func WithoutChecksum() ServerOption {
	return func(o *config.ServerOptions) { o.NoChecksum = true }
}

// WithTickRate says how many times per second Replicate is called, 60 by default. It is
// what budgets, and the timeout if none is set, are counted by; the server reads no clock.
//
// Panics outside 1 to 1000.
func WithTickRate(perSecond int) ServerOption {
	if perSecond < 1 || perSecond > 1000 {
		panic(fmt.Sprintf("replication: %d ticks per second: use 1 to 1000", perSecond))
	}
	return func(o *config.ServerOptions) { o.TickRate = perSecond }
}

// WithBaselineInterval makes the server take updates against the newest acknowledged state
// of a tick that is a multiple of n, where a peer got everything so far. Peers with other
// round trips then share more of the encoding, and updates are a little larger, since
// baselines are older by (n-1)/2 ticks in the mean. The default is 1; with hundreds of
// peers 2 or 4 may pay. It changes nothing for peers that have a send interval.
//
// Panics if n is not 1, 2, 4 or 8.
func WithBaselineInterval(n int) ServerOption {
	if n != 1 && n != 2 && n != 4 && n != 8 {
		panic(fmt.Sprintf("replication: a baseline interval of %d ticks: use 1, 2, 4 or 8", n))
	}
	return func(o *config.ServerOptions) { o.Grid = delta.Tick(n) }
}

// WithWorkers makes Replicate encode for n peers at a time, on goroutines of its own that
// end before it returns. The packets are the same whatever n is, and all functions of the
// user are still called on the caller's goroutine, the send functions peer after peer in
// the order in which they connected. The default is 1; more than the number of cores is of
// no use.
//
// Panics outside 1 to 64.
func WithWorkers(n int) ServerOption {
	if n < 1 || n > sender.MaxWorkers {
		panic(fmt.Sprintf("replication: WithWorkers(%d): use 1 to %d", n, sender.MaxWorkers))
	}
	return func(o *config.ServerOptions) { o.Workers = n }
}

// WithTimeout makes the server disconnect a peer from which nothing came for so many ticks,
// with [ReasonTimeout]; a client that is still there introduces itself again. That holds for
// peers whose client never came as well. The default is 30 seconds by [WithTickRate]: 1800
// ticks at 60 per second. 0 is never. [Server.OnDisconnect] tells of those that are gone.
//
// Until then a peer that acknowledges nothing is sent less and less, whatever the timeout is.
// The server's patience is 1.5 times the time that an acknowledgement may take, which is the
// round trip and four times its deviation; it is 32 to 192 ticks, or four send intervals if
// these are more. After that, state is sent only when an eighth of the silence has passed since
// the last packet. After three times the patience nothing is sent but empty packets of about 10
// bytes, in the end one per second; unreliable messages are dropped, and reliable ones wait. The
// first acknowledgement ends all that.
//
// Panics if it is negative or more than 2^30.
func WithTimeout(ticks int) ServerOption {
	if ticks < 0 || ticks > wire.Ancient {
		panic(fmt.Sprintf("replication: a timeout of %d ticks: use 1 to 2^30, or 0 for none", ticks))
	}
	return func(o *config.ServerOptions) { o.Timeout = ticks }
}

// defaultTimeout is the timeout in seconds if none is set.
const defaultTimeout = 30

// WithMarker gives the server a marker component of its own in place of [Replicated], so
// that several servers can replicate one world, each the entities that have its marker:
//
//	type ForSpectators replication.Replicated
//
//	players := replication.NewServer(&world, schema)
//	spectators := replication.NewServer(&world, publicSchema, replication.WithMarker[ForSpectators]())
//	world.NewEntity(positionID, replication.ReplicatedID(&world), ecs.ComponentID[ForSpectators](&world))
//
// T is a type of the user's that is made of Replicated in this way.
func WithMarker[T ~struct{ slot, owner uint32 }]() ServerOption {
	return func(o *config.ServerOptions) { o.Marker = ecs.ComponentID[T] }
}

// WithStateHash makes the server send every client, on every n-th tick at most, a packet
// with hashes of what it sees, in turns until all had theirs. The client compares them with
// what it holds; [Client.Divergence] names what differs. It is for finding faults: of this
// library, of a transport without checksums, of memory. The packets take up to an MTU, and are
// outside of budgets; see [PeerStats]. Without the option there is none.
//
// Entities are compared if the client holds their newest state, so that those that change
// in every tick are only if the packet of the same tick arrives first. An entity whose
// digests take more than a packet is never compared. Whether the client's world still holds
// what the client does, [Client.Verify] tells.
//
// Panics outside 1 to 3600.
func WithStateHash(n int) ServerOption {
	if n < 1 || n > maxHashEvery {
		panic(fmt.Sprintf("replication: WithStateHash(%d): use 1 to %d ticks", n, maxHashEvery))
	}
	return func(o *config.ServerOptions) { o.HashEvery = delta.Tick(n) }
}

const maxHashEvery = 3600
