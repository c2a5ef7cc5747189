package replication

// Status is how a client stands with its server.
type Status uint8

// What a client can be.
const (
	StatusConnecting   Status = iota // it introduces itself, or looks for the difference of the schemas
	StatusConnected                  // the server has accepted it
	StatusReconnecting               // it looks for a server that accepted it once and is silent, or forgot it
	StatusDisconnected               // the connection has ended or never was: Apply returns why
)

func (s Status) String() string {
	switch s {
	case StatusConnecting:
		return "connecting"
	case StatusConnected:
		return "connected"
	case StatusReconnecting:
		return "reconnecting"
	}
	return "disconnected"
}
