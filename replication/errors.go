package replication

import "github.com/arche-replicate/arche-replicate/replication/internal/wire"

// ProtocolVersion is the version of the wire format. Ends with different versions
// refuse each other in the handshake.
const ProtocolVersion = wire.ProtocolVersion

// Errors of Receive. They are values to log or count: the connection goes on.
var (
	// ErrMalformed: the packet is not one of this protocol, or damaged.
	ErrMalformed = wire.ErrMalformed
	// ErrChecksum: the packet is damaged, or of another session or schema.
	ErrChecksum = wire.ErrChecksum
	// ErrStale: the packet came twice, or too late to tell whether it did.
	ErrStale = wire.ErrStale
	// ErrUnexpected: the packet is of a kind that this end does not take now.
	ErrUnexpected = wire.ErrUnexpected
	// ErrMissingBaseline: the packet needs a state that this end does not hold. It
	// says so to the server, which then sends that entity whole.
	ErrMissingBaseline = wire.ErrMissingBaseline
	// ErrMissingModel: the packet needs what was learnt from another one, in a session with
	// [Compact], and this end does not remember it: the packet was on its way for very long.
	// It counts as lost.
	ErrMissingModel = wire.ErrMissingModel
)
