package session

import "strings"

// SchemaDifference is the first difference of two schema texts; replication.SchemaError is the public
// twin.
type SchemaDifference struct {
	Line           int
	Server, Client string
}

// MaxLineShown is the largest part of a line from the wire that goes into an error, in bytes.
const MaxLineShown = 200

// CompareSchemas returns the first difference of two schema texts, nil if they are equal. It accepts any
// text, and takes time linear in the length of the shorter one.
func CompareSchemas(server, client string) *SchemaDifference {
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
			return &SchemaDifference{Line: line, Server: ShortenLine(s), Client: ShortenLine(c)}
		}
		server, client = restServer, restClient
	}
}

// ShortenLine returns a copy of a line, of bounded length and in valid UTF-8.
func ShortenLine(line string) string {
	if len(line) > MaxLineShown {
		// A copy, so that one line does not keep a long text from the wire alive.
		return strings.ToValidUTF8(line[:MaxLineShown], "?") + "..."
	}
	return strings.Clone(line)
}
