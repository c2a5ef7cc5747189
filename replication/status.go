package replication

// Status is the status of a client's connection.
type Status uint8

// The statuses of a client.
const (
	StatusConnecting   Status = iota // it sends hellos, or compares the schemas
	StatusConnected                  // the server has accepted it
	StatusReconnecting               // hellos again: the server is silent or has dropped it, or Reconnect was called
	StatusDisconnected               // the connection has ended or was refused: Frame returns why
)

// String returns the name of the status.
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
