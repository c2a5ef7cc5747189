package seam

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Server is the inside of a *replication.Server. The pointers stay valid as long as the server.
type Server struct {
	Schema *schema.Schema
	Opts   *config.ServerOptions // KeepArrivals and Verdicts may be set
	Snap   *snapshot.Snapshot    // the world as slots and versions, by tick
	// Captured has functions that Replicate calls when it has captured the world.
	Captured *[]func()
	Watchers *Watchers
	// Listen connects a [Listener], whose packets send gets. It must not keep them. A deaf one gets no messages before
	// its first Resolve.
	Listen func(send func(packet []byte) error, deaf bool) Listener
	// Stats fills a *replication.ServerStats, whose Fields it uses again, without Unmarked.
	Stats func(stats any)
}

// A Listener is a peer without a client. It is sent everything, also what is for owners, in Compact, without checksums
// and each tick at once; the game does not see it. Its packets begin with the welcome.
type Listener struct {
	Stats   *counters.PeerCounters
	Resolve func() // acknowledges all that was sent; to be called after each Replicate
	Close   func()
}

// A Peer is the inside of a *replication.Peer, as long as its session lasts.
type Peer struct {
	Server   any    // the *replication.Server that the peer belongs to
	Number   uint64 // peers that the server had before
	MTU      int
	Acked    *ackstate.Tracker     // what the client holds
	Messages *message.PeerMessages // its inputs; nil if there is no session, or the schema has no messages and inputs
}

// OfServer returns the inside of a *replication.Server, and OfPeer that of a *replication.Peer. They
// panic if there is none. The first replication.NewServer sets them.
var (
	OfServer = func(any) Server { panic("replication: there is no server: NewServer makes one") }
	OfPeer   = func(any) Peer { panic("replication: there is no peer: Server.Connect returns one") }
)
