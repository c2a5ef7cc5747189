package session

import "strings"

// SchemaDifference becomes replication.SchemaError at the face.
type SchemaDifference struct {
	Line           int
	Server, Client string
}

// MaxLineShown bounds what a line from the wire can put into a message, in bytes.
const MaxLineShown = 200

// CompareSchemas returns where two schema texts differ first, nil if they are equal. It takes any text and time linear in
// the length of the shorter one.
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

// ShortenLine returns a line of bounded length, in valid UTF-8, which keeps no longer text alive.
func ShortenLine(line string) string {
	if len(line) > MaxLineShown {
		// A copy, so that a long text from the wire is not kept for the sake of one line.
		return strings.ToValidUTF8(line[:MaxLineShown], "?") + "..."
	}
	return strings.Clone(line)
}
