package netsim

// queue holds the packets that wait for bandwidth, first in, first out.
//
// Bandwidth is a credit that each tick adds to. While a packet waits, credit is the part of it that
// has been sent already; with no packet waiting it is the rest of this tick, and the next tick
// starts from zero.
type queue struct {
	waiting []waiting // from head on
	head    int
	bytes   int // in waiting
	credit  int // bytes
}

// waiting is a packet that waits, and the pipe that it is in.
type waiting struct {
	packet
	pipe *Pipe
}

func (q *queue) len() int { return len(q.waiting) - q.head }

func (q *queue) push(p waiting) {
	if q.head > len(q.waiting)/2 {
		n := copy(q.waiting, q.waiting[q.head:])
		clear(q.waiting[n:])
		q.waiting, q.head = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, p)
	q.bytes += len(p.data)
}

// step grants the bytes of a new tick.
func (q *queue) step(bandwidth int) {
	if q.len() == 0 {
		q.credit = 0
	}
	q.credit += bandwidth
}

// passes reports whether a packet of size bytes may enter the line now, and takes the bytes if so.
// A bandwidth of 0 is unlimited.
func (q *queue) passes(size, bandwidth int) bool {
	if bandwidth == 0 {
		return true
	}
	if size > q.credit {
		return false
	}
	q.credit -= size
	return true
}

// next removes the packet at the head if it may enter the line now.
func (q *queue) next(bandwidth int) (waiting, bool) {
	if q.len() == 0 || !q.passes(len(q.waiting[q.head].data), bandwidth) {
		return waiting{}, false
	}
	p := q.waiting[q.head]
	q.waiting[q.head] = waiting{}
	q.head++
	q.bytes -= len(p.data)
	return p, true
}
