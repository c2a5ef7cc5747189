package message

// ServerMessages has what a server's peers share to send and receive messages.
type ServerMessages struct {
	Messenger Messenger
	Waits     bool // there are types of messages that wait for the state of their tick
	Handling  bool // a message handler or a hook is running
}
