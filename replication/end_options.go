package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// WithMTU sets the largest packet that the end sends, in bytes. The default is 1200, which passes everywhere. No packet
// of a server is ever larger than its MTU. Of a client only messages and inputs make large packets: all others take at
// most 215 bytes. The two ends may have different ones.
//
// Panics on less than 64 or more than 65,507, which is all that UDP carries. [NewClient] panics on less than 256.
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

// WithTimeout sets for how long the other end may be silent, in ticks: of a server calls of [Server.Replicate], of a
// client see [Client.Advance]. 0 is for ever.
//
// A server disconnects the peer then, with [ReasonTimeout]: see [Server.OnDisconnect]. A client that is still there
// begins a new session by itself. That holds for peers whose client never came as well. The default is 30 seconds by
// [WithTickRate]: 1800 ticks at 60 per second.
//
// A client asks the server then whether it still knows it. If so, all goes on as if nothing had been. If not, because
// the server was started anew or has dropped the client, a new session begins: see [Client.Reconnect]. The default is
// 10 seconds by the server's [WithTickRate]. Of a pause of the client's own, a second counts at most. A server sends
// something every second (see [WithTickRate]), also when its world rests.
//
// Whatever its timeout is, a server sends less and less to a peer that acknowledges nothing. Its patience is 1.5 times
// the time that an acknowledgement may take, which is the round trip and four times its deviation; it is 32 to 192
// ticks, or four send intervals if these are more. After that, state is sent only when an eighth of the silence has
// passed since the last packet. After three times the patience nothing is sent but empty packets of 13 bytes, in
// the end one per second; unreliable messages are dropped, and reliable ones wait. The first acknowledgement ends all
// that.
//
// Panics if it is negative or more than 2^30.
func WithTimeout(ticks int) Option {
	if ticks < 0 || ticks > wire.Ancient {
		panic(fmt.Sprintf("replication: a timeout of %d ticks: use 1 to 2^30, or 0 for none", ticks))
	}
	return config.EndFunc(func(o *config.EndOptions) { o.Timeout = ticks })
}

const defaultServerTimeout = 30 // seconds

// WithSeed makes the numbers that distinguish sessions follow from a seed, for tests, recordings
// and runs that are to be the same each time. By default they are random, which is what makes them
// hard to forge.
//
// Two servers that a client meets one after the other must not have the same seed: it would take them for one. Nor must
// two clients that use a [Peer] one after the other: the server would take the second for the first, and go on where
// that one was.
func WithSeed(seed uint64) Option {
	return config.EndFunc(func(o *config.EndOptions) { o.Seed, o.Seeded = seed, true })
}
