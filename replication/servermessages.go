package replication

// serverMessages is the server's end of messages.
type serverMessages struct {
	messenger messenger
	waits     bool // there are messages that wait for the state of their tick
	handling  bool // in one of the handlers, or in a hook
}
