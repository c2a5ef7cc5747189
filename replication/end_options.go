package replication

import (
	"fmt"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// WithMTU sets the size of the largest packet that the end sends, in bytes. The default is 1200, which passes
// everywhere. No packet of a server is ever larger than its MTU. A client's packets take at most 215 bytes, apart from
// those with messages, inputs or join data. The two ends may have different MTUs.
//
// Panics on less than 64 or more than 65,507, the most that UDP carries. [NewClient] panics on less than 256.
func WithMTU(bytes int) Option {
	if bytes < wire.MinMTU || bytes > wire.MaxMTU {
		panic(fmt.Sprintf("replication: an MTU of %d bytes: use %d to %d", bytes, wire.MinMTU, wire.MaxMTU))
	}
	return config.EndFunc(func(o *config.EndOptions) { o.MTU = bytes })
}

const (
	defaultMTU   = 1200
	minClientMTU = 256 // has room for the largest ack packet
)

// WithTimeout sets for how long the other end may be silent; 0 is for ever. Both ends count their ticks, rounded up: a
// server its calls of [Server.Replicate], by [WithTickRate].
//
// A server then disconnects the peer with [ReasonTimeout]: see [Server.OnDisconnect]. This includes peers whose client
// never connected. A client that is still there begins a new session by itself. The default is 30 seconds.
//
// A client then asks the server whether it still has the session. If so, everything continues as if nothing had
// happened. If not, because the server was restarted or has dropped the client, a new session begins: see
// [Client.Reconnect]. The default is 10 seconds. At most a second of a pause of the
// client itself counts. A server sends something every second (see [WithTickRate]), also when its world is idle.
// Long before its timeout, after 1.5 seconds plus twice the longest recent silence, the client asks as well, at longer
// intervals and without a change of its [Status].
//
// Whatever its timeout is, a server sends less and less to a peer that acknowledges nothing. Its patience is 1.5 times
// the time that an acknowledgement may take, which is the round trip plus four times its deviation; it is 32 to 192
// ticks, or four send intervals if these are more. After that, state is sent only when an eighth of the silence has
// passed since the last packet. After three times the patience only empty packets of 14 bytes are sent, in the end one
// per second; unreliable messages are dropped, and reliable ones wait. The first acknowledgement ends all that.
//
// Panics if it is negative or more than 240 hours.
func WithTimeout(d time.Duration) Option {
	if d < 0 || d > 240*time.Hour {
		panic(fmt.Sprintf("replication: a timeout of %v: use up to 240 hours, or 0 for none", d))
	}
	return config.EndFunc(func(o *config.EndOptions) { o.Timeout = d })
}

const defaultServerTimeout = 30 * time.Second

// WithSeed derives the numbers that distinguish sessions from a seed, for tests, recordings and runs that must be the
// same each time. By default they are random, which makes them hard to forge.
//
// Two servers that a client meets one after the other must not have the same seed: the client would take them for one.
// Nor must two clients that use a [Peer] one after the other: the server would take the second for the first, and
// continue its session.
func WithSeed(seed uint64) Option {
	return config.EndFunc(func(o *config.EndOptions) { o.Seed, o.Seeded = seed, true })
}
