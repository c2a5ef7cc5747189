package session

import (
	"encoding/binary"
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
	secret       [32]byte                                  // of session numbers
	Refused      uint64                                    // hellos with another schema or version
	refused      refusedHello                              // what the latest of these had
	answer       [wire.MaxAmplification * wire.MinMTU]byte // memory for an answer to a hello
}

// refusedHello is what a hello had that was refused for its version or schema.
type refusedHello struct {
	version, offset uint32
	mtu             int // of the answer
}

// SetSecret sets the secret of session numbers: random, or made from a seed, with replication.WithSeed.
func (s *ServerSessions) SetSecret(seeded bool, seed uint64) {
	for i := range len(s.secret) / 8 {
		part := wire.Random64()
		if seeded {
			seed += wire.Golden64
			part = wire.Mix64(seed)
		}
		binary.LittleEndian.PutUint64(s.secret[8*i:], part)
	}
}

// Hello returns the packet with which a client of this release asks for a session, for a client in this process.
func (s *ServerSessions) Hello(nonce uint64) []byte {
	h := wire.Hello{Version: wire.ProtocolVersion, Fingerprint: s.Fingerprint, Nonce: nonce, Codings: wire.TakesCompact}
	return wire.WithChecksum(h.Append(nil))
}

// pieceSize returns how much of the schema's text fits into an answer.
func (s *ServerSessions) pieceSize(mtu int) int {
	return min(mtu, len(s.answer)) - wire.ChecksumSize - wire.RefuseSize
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
			first, ShortenLine(line), first+strings.Count(rest[:min(s.pieceSize(at.mtu), len(rest))], "\n"))
	}
}

// sessionID returns the number of the session that a connection offers to whoever sends a hello, beginning with the
// given sequence: always the same one. Nobody can compute it without the secret, so a client that knows it has
// received the offer, at the address of the connection.
func (s *ServerSessions) sessionID(connection uint64, h *wire.Hello, first uint32) uint64 {
	b := make([]byte, 0, 8+8+4+1+4+wire.MaxJoinData)
	b = binary.LittleEndian.AppendUint64(b, connection)
	b = binary.LittleEndian.AppendUint64(b, h.Nonce)
	b = binary.LittleEndian.AppendUint32(b, first)
	b = append(b, h.Codings)
	b = binary.LittleEndian.AppendUint32(b, h.Slots)
	id := wire.MAC(&s.secret, append(b, h.Data...))
	if id < wire.Epochs { // epochs are the low bits, and no session is 0
		id |= wire.Epochs
	}
	return id
}
