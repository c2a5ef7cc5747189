package message

// ServerMessages is the server's end of messages.
type ServerMessages struct {
	Messenger Messenger
	Waits     bool // there are messages that wait for the state of their tick
	Handling  bool // in one of the handlers, or in a hook
}
