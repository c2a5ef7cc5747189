package wire

import "errors"

// ErrMalformed means that the packet is not one of this protocol, or damaged.
var ErrMalformed = errors.New("replication: malformed packet")

// ErrStale means that the packet is a duplicate, or too old to know whether it is one.
var ErrStale = errors.New("replication: packet is a duplicate or too old")

// ErrUnexpected means that this end does not accept packets of that kind now.
var ErrUnexpected = errors.New("replication: unexpected kind of packet")

// ErrChecksum means that the packet is damaged, or of another session or schema.
var ErrChecksum = errors.New("replication: checksum does not match: the packet is damaged or of another session")

// ErrMissingBaseline means that the packet needs a state that this end does not hold. It reports the
// baseline to the server, which then sends the entity in full.
var ErrMissingBaseline = errors.New("replication: a baseline is missing")

// ErrMissingModel means that the packet, of a session with the coding Compact, needs the model of another
// packet that this end no longer has: the packet was on its way for very long. It counts as lost.
var ErrMissingModel = errors.New("replication: a model is missing")
