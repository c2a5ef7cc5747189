package replication

import "strings"

// schemaDifference is a SchemaError inside.
type schemaDifference struct {
	Line           int
	Server, Client string
}

// maxLineShown bounds what a line from the wire can put into a message, in bytes.
const maxLineShown = 200

// compareSchemas returns where two schema texts differ first, nil if they are equal. It takes any text and time linear in
// the length of the shorter one.
func compareSchemas(server, client string) *schemaDifference {
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
			return &schemaDifference{Line: line, Server: shortenLine(s), Client: shortenLine(c)}
		}
		server, client = restServer, restClient
	}
}

func shortenLine(line string) string {
	if len(line) > maxLineShown {
		// A copy, so that a long text from the wire is not kept for the sake of one line.
		return strings.ToValidUTF8(line[:maxLineShown], "?") + "..."
	}
	return strings.Clone(line)
}
