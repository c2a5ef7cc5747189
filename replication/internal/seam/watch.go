package seam

// A Moment is a point in a call of a server or client.
type Moment uint8

// The moments. A packet is received between ReceiveBegins and ReceiveEnds.
const (
	ReplicateBegins Moment = iota
	Replicated             // Replicate has sent everything: it does not panic any more
	ReplicateEnds          // also where it panics
	Sent                   // the send function of a peer or client has taken or refused a packet
	ReceiveBegins
	ReceiveEnds
	FrameBegins
	FrameEnds
)

// A Watcher is called at moments of a server or client, on its goroutine. bytes is the size of the packet that is sent
// or received, 0 at other moments. It may read counters, and change the server or client, only when Replicate or Frame
// ends.
type Watcher interface{ Note(at Moment, bytes int) }

// Watchers are all of a server or client.
type Watchers []Watcher

// Note calls them.
func (w Watchers) Note(at Moment, bytes int) {
	for _, each := range w {
		each.Note(at, bytes)
	}
}

// Without returns the others in a new list: the present one may be gone through at this moment.
func (w Watchers) Without(which Watcher) (others Watchers) {
	for _, each := range w {
		if each != which {
			others = append(others, each)
		}
	}
	return others
}
