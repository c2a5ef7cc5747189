package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/session"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// ProtocolVersion is the version of the wire format. Ends with different versions
// refuse each other in the handshake.
const ProtocolVersion = 1

var _ = [1]struct{}{}[ProtocolVersion-wire.ProtocolVersion] // they are equal

// ErrJoinPending is returned by a function of [Server.OnJoin] while it is not decided whether the client may join.
var ErrJoinPending error

// Errors of Receive. They are values to log or count: the connection continues.
var (
	ErrMalformed       error // the packet is not one of this protocol, or damaged
	ErrChecksum        error // the packet is damaged, or belongs to another session or schema
	ErrOverwritten     error // the other end's send function kept the packet, whose memory was used again: it must copy
	ErrStale           error // the packet arrived twice, or too late to know whether it did
	ErrUnexpected      error // the packet is of a kind that this end does not accept now
	ErrFlood           error // there were too many packets of messages or inputs from a client in a tick
	ErrMissingBaseline error // the packet needs a state that this end does not hold; the server sends it in full
	ErrMissingModel    error // with [Compact]: the packet was in flight for so long that it counts as lost
)

func init() {
	ErrMalformed, ErrChecksum, ErrOverwritten = wire.ErrMalformed, wire.ErrChecksum, wire.ErrOverwritten
	ErrStale, ErrUnexpected, ErrFlood = wire.ErrStale, wire.ErrUnexpected, message.ErrFlood
	ErrMissingBaseline, ErrMissingModel = wire.ErrMissingBaseline, wire.ErrMissingModel
	ErrBufferFull, ErrMessageTooLarge = message.ErrBufferFull, schema.ErrMessageTooLarge
	ErrJoinPending = session.ErrJoinPending
}

// A DisconnectError is returned by [Client.Frame] and [Peer.Err] if one of the ends has ended the connection.
type DisconnectError struct {
	Reason Reason
	Remote bool // the other end ended it

	// SendError is why the server's send function refused the last packet, nil if it did not.
	SendError error
}

// Unwrap returns SendError.
func (e *DisconnectError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.SendError
}

// Error returns the reason as a sentence.
func (e *DisconnectError) Error() string {
	if e == nil {
		return nilError
	}
	if e.Remote {
		return "replication: disconnected by the other end: " + e.Reason.String()
	}
	text := "replication: disconnected: " + e.Reason.String()
	if e.SendError != nil {
		text += "; the last packet could not be sent: " + e.SendError.Error()
	}
	return text
}

// A SchemaError reports where the schema texts of server and client first differ; see [Schema.Text]. The lines are
// shortened if they are very long, and empty where a text has ended. One of them comes from the wire: print them
// quoted, as Error does.
type SchemaError struct {
	Line           int // of the first difference, from 1
	Server, Client string
}

// Error returns the difference as a sentence.
func (e *SchemaError) Error() string {
	if e == nil {
		return nilError
	}
	return "replication: the schemas differ, register the same types in the same order on both ends, with the same " +
		"fields, options and tables of Tune: " + e.sentence()
}

func (e *SchemaError) sentence() string {
	return fmt.Sprintf("line %d: server has %s, client has %s", e.Line, quoteLine(e.Server), quoteLine(e.Client))
}

func quoteLine(line string) string {
	if line == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", line)
}

// firstDifference returns the first difference of two schema texts as a sentence, empty if they are equal.
func firstDifference(server, client string) string {
	if e := session.CompareSchemas(server, client); e != nil {
		return (*SchemaError)(e).sentence()
	}
	return ""
}

// clientErrors make the errors of a client's session.
var clientErrors = session.PublicErrors{
	Disconnected: func(why session.Farewell) error {
		return &DisconnectError{Reason: Reason{ReasonCode(why.Code), why.Text}, Remote: why.Remote}
	},
	Differs: func(d *session.SchemaDifference) error { return (*SchemaError)(d) },
}

// nilError is what methods of nil errors return, as fmt prints it.
const nilError = "<nil>"
