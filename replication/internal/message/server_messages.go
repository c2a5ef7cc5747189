package message

// ServerMessages has what a server's peers share to send and receive messages.
type ServerMessages struct {
	Messenger Messenger
	Waits     bool // there are types of messages that wait for the state of their tick
	Handling  bool // a message handler or a hook is running

	forViewers, viewersBytes int // number and size of pending messages for viewers
}

// Bounds of the messages for viewers that may be pending, for all peers together.
const (
	maxForViewers   = 1 << 14
	maxViewersBytes = 1 << 20
)

// TakesForViewers reports whether another message for viewers may be pending, and counts it.
func (s *ServerMessages) TakesForViewers(d *PendingMessage) bool {
	if s.forViewers == maxForViewers || s.viewersBytes+d.size > maxViewersBytes {
		return false
	}
	s.forViewers, s.viewersBytes = s.forViewers+1, s.viewersBytes+d.size
	return true
}

// End ends a tick: nothing is pending any more.
func (s *ServerMessages) End() {
	s.forViewers, s.viewersBytes = 0, 0
	s.Messenger.clear()
}
