package session

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ServerSessions is what sessions are made with.
type ServerSessions struct {
	Opts *config.ServerOptions

	Fingerprint  uint64                                    // of the schema
	Text         string                                    // of the schema, for clients with another one
	Instance     uint64                                    // the NetIDs of two sessions mean the same if this is the same
	UsesMessages bool                                      // the schema has messages or inputs
	Approves     bool                                      // clients are asked about before they get a session
	Ack          wire.Ack                                  // the one in hand
	Random       uint64                                    // state of the session generator
	answer       [wire.MaxAmplification * wire.MinMTU]byte // memory for an answer to a hello
}

// newSessionID returns a number for a new session, never one of the first few: random, or with replication.WithSeed the
// next one of splitmix64.
func (s *ServerSessions) newSessionID() uint64 {
	for {
		id := wire.Random64()
		if s.Opts.Seeded {
			s.Random += wire.Golden64
			id = wire.Mix64(s.Random)
		}
		if id >= wire.Epochs { // tags are the low bits, and no session is 0
			return id
		}
	}
}
