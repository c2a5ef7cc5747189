package replication

import (
	"fmt"
	"strings"
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

// maxLineShown bounds what a line from the wire can put into a message, in bytes.
const maxLineShown = 200

// compareSchemas returns where two schema texts differ first, nil if they are equal. It takes any text and time linear in
// the length of the shorter one.
func compareSchemas(server, client string) *SchemaError {
	if server == client {
		return nil
	}
	for line := 1; ; line++ {
		s, restServer, moreServer := strings.Cut(server, "\n")
		c, restClient, moreClient := strings.Cut(client, "\n")
		if s != c || moreServer != moreClient || !moreServer {
			if s == c { // one text ends without a line break: show the line after it
				line++
				s, _, _ = strings.Cut(restServer, "\n")
				c, _, _ = strings.Cut(restClient, "\n")
			}
			return &SchemaError{Line: line, Server: shortenLine(s), Client: shortenLine(c)}
		}
		server, client = restServer, restClient
	}
}

// firstDifference returns the first difference of two schema texts as a sentence, empty if they are equal.
func firstDifference(server, client string) string {
	if e := compareSchemas(server, client); e != nil {
		return e.sentence()
	}
	return ""
}

func shortenLine(line string) string {
	if len(line) > maxLineShown {
		// A copy, so that a long text from the wire is not kept for the sake of one line.
		return strings.ToValidUTF8(line[:maxLineShown], "?") + "..."
	}
	return strings.Clone(line)
}
