package replication

import "fmt"

// A Reason is why a connection ended.
type Reason struct {
	Code ReasonCode

	// Text is for people, in UTF-8. It is cut to 128 bytes, or to what fits into a packet.
	Text string
}

// A ReasonCode is why a connection ended, for programs.
type ReasonCode uint8

// The reasons that the library knows. Codes from ReasonGame on are the game's.
const (
	ReasonClosed  ReasonCode = 0  // that end closed the connection
	ReasonTimeout ReasonCode = 1  // nothing was received for too long; the client reconnects by itself
	ReasonKicked  ReasonCode = 2  // the server does not want this client
	ReasonRefused ReasonCode = 3  // a function of [Server.OnJoin] refused the client; the text is its error's
	ReasonGame    ReasonCode = 64 // the first of the game's own
)

// String returns the name of the code.
func (c ReasonCode) String() string {
	switch c {
	case ReasonClosed:
		return "closed"
	case ReasonTimeout:
		return "timeout"
	case ReasonKicked:
		return "kicked"
	case ReasonRefused:
		return "refused"
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// String returns the code and, if there is one, the text: `kicked: "too slow"`.
func (r Reason) String() string {
	if r.Text == "" {
		return r.Code.String()
	}
	return fmt.Sprintf("%v: %q", r.Code, r.Text)
}
