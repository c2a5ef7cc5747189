package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/session"
)

// A SchemaError says that server and client do not replicate the same components in the same way, and where their schema
// texts part; see [Schema.Text]. The lines are shortened if they are very long, and empty where a text has ended. One of
// them came from the wire: print them quoted, as Error does.
type SchemaError struct {
	Line           int // of the first difference, from 1
	Server, Client string
}

// Error returns the difference as a sentence.
func (e *SchemaError) Error() string {
	if e == nil {
		return nilError
	}
	return "replication: the schemas differ, register the same components in the same order on both ends: " + e.sentence()
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
