package interpolation

import (
	"reflect"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// A waitingMessage is a message that is handled later, when its tick is shown.
type waitingMessage struct {
	tick   delta.Tick
	at     delta.Tick // when it is handled
	resets int        // of the world before it came
	number int        // of its type
}

// maxWaiting bounds the number of waiting messages, since their ticks are the server's word.
const maxWaiting = 4096

// A timeline has the waiting messages of all types, in the order in which they arrived.
type timeline struct {
	fifo[waitingMessage]
	values []queue // by type
}

// delay lets a message wait that is to be handled.
func (p *Interpolation) delay(number int) {
	m, w := p.inside.Messages, &p.messages
	if w.values == nil {
		w.values = make([]queue, len(p.inside.Schema.Messages))
	}
	w.values[number].push(m.Values[number].Value)
	w.push(waitingMessage{m.Tick, p.nextState(m.Tick), p.inside.Apply.Resets, number})
}

// deliver delivers the messages that have arrived for what is shown, or all of them.
func (p *Interpolation) deliver(all bool) {
	if m := p.inside.Messages; m != nil {
		p.messages.deliver(p.at.Tick, all, &m.Closed, p.deliverOne)
	}
}

// deliver calls one for each message up to a tick, or all of them, until the client is closed.
func (w *timeline) deliver(now delta.Tick, all bool, closed *bool, one func(waitingMessage)) {
	for w.len() > 0 && !*closed {
		if !all && w.len() <= maxWaiting && w.first().at.After(now) {
			return
		}
		one(w.pop())
	}
}

// deliverOne delivers a message. After a reset of the world, handles from before may be those of others.
func (p *Interpolation) deliverOne(w waitingMessage) {
	m := p.inside.Messages
	value := m.Values[w.number].Value
	p.messages.values[w.number].pop(value)
	if w.resets != p.inside.Apply.Resets || !p.inside.Apply.View.Intact() {
		c := &p.inside.Schema.Messages[w.number].Component
		for _, k := range c.References {
			c.WriteEntity(value.Addr().UnsafePointer(), k, ecs.Entity{})
		}
	}
	m.Tick = w.tick
	m.Deliver(w.number)
}

// nextState returns the first tick from the given one on in which the send interval allows a state. What the server has
// sent with a message is shown then.
func (p *Interpolation) nextState(tick delta.Tick) delta.Tick {
	c := &p.clock
	if !c.any {
		return tick
	}
	interval := int64(max(p.inside.Recv.Interval, 1))
	until := (int64(c.newest) - int64(int32(tick-p.zero))) % interval
	return tick + delta.Tick((until+interval)%interval)
}

// A queue has the waiting messages of one type, in a ring. The type is known at run time only.
type queue struct {
	ring     reflect.Value // a slice
	first, n int
}

// push adds a copy of a message.
func (q *queue) push(message reflect.Value) {
	if !q.ring.IsValid() || q.n == q.ring.Len() {
		q.grow(message.Type())
	}
	q.ring.Index((q.first + q.n) % q.ring.Len()).Set(message)
	q.n++
}

// grow makes room for twice as many.
func (q *queue) grow(t reflect.Type) {
	ring := reflect.MakeSlice(reflect.SliceOf(t), max(4, 2*q.n), max(4, 2*q.n))
	for i := range q.n {
		ring.Index(i).Set(q.ring.Index((q.first + i) % q.n))
	}
	q.ring, q.first = ring, 0
}

// pop moves the first message to a value of its type.
func (q *queue) pop(to reflect.Value) {
	first := q.ring.Index(q.first)
	to.Set(first)
	first.SetZero()
	q.first = (q.first + 1) % q.ring.Len()
	q.n--
}

// A fifo is a queue that uses its memory again.
type fifo[T any] struct {
	items []T
	done  int // items in front that were taken
}

func (f *fifo[T]) len() int { return len(f.items) - f.done }

func (f *fifo[T]) first() *T { return &f.items[f.done] }

func (f *fifo[T]) push(v T) {
	if f.done > len(f.items)/2 {
		n := copy(f.items, f.items[f.done:])
		clear(f.items[n:])
		f.items, f.done = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) pop() (v T) {
	var zero T
	v, f.items[f.done] = f.items[f.done], zero
	f.done++
	return v
}
