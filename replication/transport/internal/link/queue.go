package link

import "sync"

// A queue has packets that wait for a loop, each with its sender. Memory of packets is used again.
type queue[F any] struct {
	mu      sync.Mutex
	waiting []packet[F]
	taken   []packet[F]
	free    [][]byte
}

type packet[F any] struct {
	from F
	data []byte
}

// put copies a packet into the queue, which must be locked.
func (q *queue[F]) put(from F, data []byte) {
	var room []byte
	if n := len(q.free); n > 0 {
		room, q.free = q.free[n-1], q.free[:n-1]
	}
	q.waiting = append(q.waiting, packet[F]{from, append(room[:0], data...)})
}

// take returns what waits, until release is called. The queue must be locked.
func (q *queue[F]) take() []packet[F] {
	q.taken, q.waiting = q.waiting, q.taken[:0]
	return q.taken
}

// release makes the memory of what was taken free. The queue must be locked. What a flood needed is given back in time:
// at most mostFree packets are kept, and no unusually large ones.
func (q *queue[F]) release() {
	for i := range q.taken {
		if len(q.free) < mostFree && cap(q.taken[i].data) <= 2*usualBytes {
			q.free = append(q.free, q.taken[i].data)
		}
		q.taken[i] = packet[F]{}
	}
}

const (
	mostFree   = 4096
	usualBytes = 2048 // more than most packets have
)
