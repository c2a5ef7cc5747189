package playout

import (
	"reflect"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// OnServerMessage sets the function that handles messages of type T from the server when their tick is shown: an
// explosion sounds when it is seen. If the peer has a send interval, that is when the state is shown with which the
// server sent what it had in that tick. It replaces the function of [replication.OnServerMessage] for the type.
//
// It is called in [Playout.Advance], after the components were written. Messages keep the order in which they would
// have been handled without play-out. The function may change the world and send messages. It must not call Apply or
// Advance. An entity that a message refers to may be gone by then: see [ecs.World.Alive]. If the world was reset in the
// meantime, the field is the zero entity.
//
// When a new session begins, messages that still wait are delivered at once. If more than 4096 wait, the oldest ones
// are.
//
// Panics if T is not registered with [replication.RegisterMessage], and if handle is nil.
func OnServerMessage[T any](p *Playout, handle func(message T)) {
	p.mustExist()
	if handle == nil {
		panic("playout: OnServerMessage: the function is nil: replication.OnServerMessage with nil ends the handling")
	}
	q := &queue[T]{handle: handle}
	replication.OnServerMessage(p.client, func(message T) {
		q.messages.push(message)
		tick := delta.Tick(p.client.MessageTick())
		p.messages.push(waitingMessage{tick, p.nextState(tick), p.inside.Apply.Resets, q})
	})
	types := p.inside.Schema
	q.component = &types.Messages[types.MessageNumber(reflect.TypeFor[T]())].Component
}

// A waitingMessage is a message that is handled later.
type waitingMessage struct {
	tick   delta.Tick
	at     delta.Tick                     // when it is handled
	resets int                            // of the world before it came
	in     interface{ handleFirst(bool) } // the queue of its type
}

// maxWaiting bounds the number of waiting messages, since their ticks are the server's word.
const maxWaiting = 4096

// A timeline has the waiting messages of all types, in the order in which they arrived.
type timeline struct{ fifo[waitingMessage] }

// handle delivers the messages up to a tick, or all of them, until the client is closed. begin is called before each of
// them, and reports whether the world has been reset since the message came.
func (m *timeline) handle(
	calls *exclusive.Guard, closed *bool, begin func(waitingMessage) (reset bool), now delta.Tick, all bool,
) {
	for m.len() > 0 && !*closed {
		if !all && m.len() <= maxWaiting && m.first().at.After(now) {
			return
		}
		was := calls.Open()
		first := m.pop()
		first.in.handleFirst(begin(first))
		calls.Leave(was)
	}
}

// A queue has the waiting messages of one type.
type queue[T any] struct {
	messages  fifo[T]
	handle    func(T)
	component *schema.Component // of the type
}

// handleFirst delivers the first message. After a reset of the world, handles from before may be those of others.
func (q *queue[T]) handleFirst(reset bool) {
	message := q.messages.pop()
	if reset {
		for _, k := range q.component.References {
			*(*ecs.Entity)(unsafe.Add(unsafe.Pointer(&message), q.component.Columns[k].Offset())) = ecs.Entity{}
		}
	}
	q.handle(message)
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
