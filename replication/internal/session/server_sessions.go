package session

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ServerSessions has what the connections of a server share.
type ServerSessions struct {
	Opts *config.ServerOptions

	Fingerprint  uint64                                    // of the schema
	Text         string                                    // of the schema, for clients with another schema
	Instance     uint64                                    // sessions with the same instance share their NetIDs
	UsesMessages bool                                      // the schema has messages or inputs
	Approves     bool                                      // the user decides which clients get a session
	Ack          wire.Ack                                  // scratch memory
	Random       uint64                                    // state of the session generator
	answer       [wire.MaxAmplification * wire.MinMTU]byte // memory for an answer to a hello
}

// newSessionID returns the number of a new session: random, or with replication.WithSeed the next one
// of splitmix64.
func (s *ServerSessions) newSessionID() uint64 {
	for {
		id := wire.Random64()
		if s.Opts.Seeded {
			s.Random += wire.Golden64
			id = wire.Mix64(s.Random)
		}
		if id >= wire.Epochs { // epochs are the low bits, and no session is 0
			return id
		}
	}
}
