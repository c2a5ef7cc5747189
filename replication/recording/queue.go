package recording

import (
	"io"
	"sync"
)

// A queue takes records on the goroutine of the game and writes them on another one. It never blocks the former for
// longer than it takes to copy them.
type queue struct {
	mu      sync.Mutex
	ready   sync.Cond
	pending []byte // complete records
	limit   int
	writing int // bytes that are being written
	closed  bool
	err     error
	done    chan struct{}
}

func newQueue(w io.Writer, limit int) *queue {
	q := &queue{limit: limit, done: make(chan struct{})}
	q.ready.L = &q.mu
	go q.run(w)
	return q
}

// run writes until the queue is closed and empty, or the writer fails.
func (q *queue) run(w io.Writer) {
	defer close(q.done)
	var b []byte
	for {
		q.mu.Lock()
		q.writing = 0
		for len(q.pending) == 0 && !q.closed {
			q.ready.Wait()
		}
		b, q.pending = q.pending, b[:0]
		q.writing = len(b)
		q.mu.Unlock()
		if len(b) == 0 {
			return
		}
		n, err := w.Write(b)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			q.mu.Lock()
			q.err, q.pending, q.closed = err, nil, true
			q.mu.Unlock()
			return
		}
	}
}

// put adds records, or returns false if there is no room.
func (q *queue) put(b []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.pending)+q.writing+len(b) > q.limit {
		return false
	}
	q.pending = append(q.pending, b...)
	q.ready.Signal()
	return true
}

// drained reports whether the queue is half empty, and the error of the writer, which is final.
func (q *queue) drained() (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pending)+q.writing <= q.limit/2, q.err
}

// close adds the last records, whatever room there is, and waits until everything is written.
func (q *queue) close(b []byte) error {
	q.mu.Lock()
	if !q.closed {
		q.pending, q.closed = append(q.pending, b...), true
	}
	q.ready.Signal()
	q.mu.Unlock()
	<-q.done
	return q.err
}
