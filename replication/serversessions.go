package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// serverSessions is what sessions are made with.
type serverSessions struct {
	opts *serverOptions

	fingerprint uint64                                    // of the schema
	text        string                                    // of the schema, for clients with another one
	origin      uint64                                    // the NetIDs of two sessions mean the same if this is the same
	talks       bool                                      // the schema has messages or inputs
	ack         wire.Ack                                  // the one in hand
	joined      delta.Tick                                // peers so far
	random      uint64                                    // state of the session generator
	answer      [wire.MaxAmplification * wire.MinMTU]byte // memory for an answer to a hello
}
