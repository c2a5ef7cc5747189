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

// HasRoomFor reports whether another message for viewers may be pending.
func (s *ServerMessages) HasRoomFor(d *PendingMessage) bool {
	return s.forViewers < maxForViewers && s.viewersBytes+d.size <= maxViewersBytes
}

// Take counts a pending message for viewers.
func (s *ServerMessages) Take(d *PendingMessage) {
	s.forViewers, s.viewersBytes = s.forViewers+1, s.viewersBytes+d.size
}

// End ends a tick: nothing is pending any more.
func (s *ServerMessages) End() {
	s.forViewers, s.viewersBytes = 0, 0
	s.Messenger.clear()
}
