package session

import (
	"fmt"
	"strings"

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
	Refused      uint64                                    // hellos with another schema or version
	refused      struct{ version, offset uint32 }          // what the latest of these had
	answer       [wire.MaxAmplification * wire.MinMTU]byte // memory for an answer to a hello
}

// pieceSize returns how much of the schema's text fits into an answer.
func (s *ServerSessions) pieceSize() int {
	return min(s.Opts.MTU, len(s.answer)) - wire.ChecksumSize - wire.RefuseSize
}

// LastRefusal describes the latest hello that was refused for its version or schema. A client asks for the part of the
// text in which it has not found a difference before, so the last part that it asked for has the difference.
func (s *ServerSessions) LastRefusal() string {
	switch at := s.refused; {
	case s.Refused == 0:
		return ""
	case at.version != wire.ProtocolVersion:
		return fmt.Sprintf("a client speaks protocol version %d, this server %d: use the same release on both sides",
			at.version, wire.ProtocolVersion)
	default:
		from := int(min(uint64(at.offset), uint64(len(s.Text))))
		before, rest := s.Text[:from], s.Text[from:]
		first := 1 + strings.Count(before, "\n")
		line, _, _ := strings.Cut(before[strings.LastIndexByte(before, '\n')+1:]+rest, "\n")
		return fmt.Sprintf("the schema of a client differs from this server's in one of the lines %d (here %q) to %d: "+
			"register the same types in the same order on both ends, with the same fields, options and tables of Tune",
			first, ShortenLine(line), first+strings.Count(rest[:min(s.pieceSize(), len(rest))], "\n"))
	}
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
