package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

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

// dropSilent disconnects the peers that have been silent for too long.
func (s *Server) dropSilent() {
	if s.opts.Timeout == 0 {
		return
	}
	for i := len(s.peers) - 1; i >= 0; i-- {
		if i >= len(s.peers) {
			continue // a hook has disconnected others
		}
		if p := s.peers[i]; s.snap.Tick-p.conn.ReceivedAt > delta.Tick(s.opts.Timeout) {
			s.stats.Timeouts++
			p.Disconnect(Reason{Code: ReasonTimeout})
		}
	}
}

// WithServerTimeout makes the client ask whether the server still knows it, when nothing
// came from it in so many calls of Apply. The default is 600, ten seconds at 60 per
// second; 0 is never. A server sends something every second (see [WithTickRate]), also
// when its world rests.
//
// If the server knows it, all goes on as if nothing had been. If not, because it was
// started anew or has dropped the client, a new session begins; see [Client.Reconnect].
//
// Panics if it is negative.
func WithServerTimeout(applies int) ClientOption {
	if applies < 0 {
		panic(fmt.Sprintf("replication: a server timeout of %d calls of Apply: use 1 or more, or 0 for none", applies))
	}
	return func(o *config.ClientOptions) { o.Timeout = applies }
}

const defaultServerTimeout = 600
