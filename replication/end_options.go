package replication

import (
	"fmt"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// WithMTU sets the size of the largest packet that the end, or the peer, sends, in bytes; the default is 1200. The two
// ends may differ. A client's packets take at most 215 bytes, apart from those with messages, inputs or join data.
//
// Panics on less than 64, for [NewClient] 256, or more than 65,507, the most that UDP carries.
func WithMTU(bytes int) MTUOption {
	if bytes < wire.MinMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: an MTU of %d bytes: use %d to %d", bytes, wire.MinMTU, wire.MaxMTU))
	}
	return mtuOption{config.EndFunc(func(o *config.EndOptions) { o.MTU = bytes }), bytes}
}

type mtuOption struct {
	config.EndFunc
	bytes int
}

func (m mtuOption) applyToPeer(o *peerOptions) { o.mtu = m.bytes }

const (
	defaultMTU   = 1200
	minClientMTU = 256 // has room for the largest ack packet
)

// WithTimeout sets for how long the other end may be silent; 0 is for ever. Both ends count their ticks, rounded up: a
// server its calls of [Server.Replicate], by [WithTickRate].
//
// A server then disconnects the peer with [ReasonTimeout], also one whose client never connected. A client that is
// still there begins a new session by itself. The default is 30 seconds. Long before that, a server sends less and less
// to a peer that acknowledges nothing.
//
// A client then asks the server whether it still has the session. If so, everything continues; if not, a new session
// begins: see [Client.Reconnect]. The default is 10 seconds. At most a second of a pause of the client itself counts. A
// server sends something every second, also when its world is idle.
//
// Panics if it is not 0, or 1 ms to 240 hours.
func WithTimeout(d time.Duration) Option {
	if d != 0 && d < time.Millisecond || d > 240*time.Hour {
		panic(fmt.Sprintf("replication: a timeout of %v: use 1ms to 240 hours, or 0 for none", d))
	}
	return config.EndFunc(func(o *config.EndOptions) { o.Timeout = d })
}

const defaultServerTimeout = 30 * time.Second

// WithSeed derives the numbers that distinguish sessions from a seed, for tests, recordings and runs that must be the
// same each time. By default they are random, which makes them hard to forge.
//
// Two servers that a client meets must not have the same seed, nor two clients of one [Peer]: the other end would take
// them for one.
func WithSeed(seed uint64) Option {
	return config.EndFunc(func(o *config.EndOptions) { o.Seed, o.Seeded = seed, true })
}
