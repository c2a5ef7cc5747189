package link

import (
	"errors"
	"sync"
)

// An outbox has packets that wait for a socket that may block, so that the loop does not.
type outbox struct {
	mu     sync.Mutex
	out    chan []byte
	free   [][]byte
	closed bool
	full   uint64 // packets that found no room
}

var (
	errClosed = errors.New("the connection is closed")
	errSlow   = errors.New("the connection is too slow: its queue is full, so this packet is dropped")
)

func newOutbox(packets int) *outbox { return &outbox{out: make(chan []byte, packets)} }

// send copies a packet into the box.
func (o *outbox) send(packet []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errClosed
	}
	var room []byte
	if n := len(o.free); n > 0 {
		room, o.free = o.free[n-1], o.free[:n-1]
	}
	room = append(room[:0], packet...)
	select {
	case o.out <- room:
		return nil
	default:
		o.free = append(o.free, room)
		o.full++
		return errSlow
	}
}

// close lets run end when it has written what is in the box.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.out)
	}
}

// run writes packets until the box is closed and empty. After an error of write, packets are dropped.
func (o *outbox) run(write func(packet []byte) error) (err error) {
	for packet := range o.out {
		if err == nil {
			if err = write(packet); err != nil {
				o.close()
			}
		}
		o.mu.Lock()
		o.free = append(o.free, packet)
		o.mu.Unlock()
	}
	return err
}

// dropped returns how many packets found no room.
func (o *outbox) dropped() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full
}
