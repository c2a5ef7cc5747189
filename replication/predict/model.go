package predict

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/mlange-42/arche/ecs"
)

// A Model is what both ends need to simulate the same: the step of the game, and which components it changes. I is the
// input type of the schema. Make it in one function that both ends call, beside the schema.
type Model[I any] struct {
	model
	missed func(in *I, ticks int)
}

// model is what does not depend on the type of inputs.
type model struct {
	schema        *replication.Schema
	step          func(*Tick)
	input         reflect.Type
	states        []*state
	save, restore func(tick replication.Tick)
	used          *atomic.Bool
}

// A state is a component that the step changes.
type state struct {
	typ       reflect.Type
	exact     bool
	tolerance int // steps
	half      time.Duration
	column    func() column
}

// Mine is the component that shows a client which entities it controls: only their owner has it. [Host.Own] adds it.
// The client predicts what has it. Query for it to find what the camera follows.
type Mine struct{}

// Born is the component that names what a step has spawned: by whom, in which tick, and which of those. Both ends know
// the same entity by it.
type Born struct {
	By   ecs.Entity
	Tick uint16 // the low bits
	Key  uint8
}

// NewModel returns a model with the given step, and registers [Mine] and [Born] in the schema. step simulates one tick:
// see [Tick]. The schema must have the input type I.
//
// Panics if step is nil, if a server or client has been made with the schema, or if it has a model already.
func NewModel[I any](schema *replication.Schema, step func(t *Tick)) *Model[I] {
	if step == nil {
		panic("predict: NewModel needs the function that simulates a tick")
	}
	replication.Register[Mine](schema, replication.Name("predict.Mine"), replication.OwnerOnly())
	replication.Register[Born](schema, replication.Name("predict.Born"), replication.Once())
	return &Model[I]{model: model{schema: schema, step: step, input: reflect.TypeFor[I](), used: new(atomic.Bool)}}
}

// State declares that the step changes the component T of the entities that it simulates. A client then predicts T
// where it predicts the entity, and the server's state of it is compared with that, within a tolerance of two steps
// for floats with a range or precision and for angles and rotations; all else must be equal.
//
// A step may read components that are no State: they have the newest values, or those that are interpolated.
//
// Panics if T is a State already, or when the model is used if T is not a component of the schema or is registered with
// [replication.Every] or [replication.Once].
func State[T, I any](m *Model[I], opts ...StateOption) {
	t := reflect.TypeFor[T]()
	if m.used.Load() {
		panic(fmt.Sprintf("predict: State[%v] after the model is in use: declare states where it is made", t))
	}
	for _, s := range m.states {
		if s.typ == t {
			panic(fmt.Sprintf("predict: State[%v]: it is a State already", t))
		}
	}
	s := newState[T]()
	for _, opt := range opts {
		opt(s)
	}
	m.states = append(m.states, s)
}

func newState[T any]() *state {
	return &state{typ: reflect.TypeFor[T](), tolerance: defaultTolerance, half: defaultHalf, column: newColumn[T]}
}

const (
	defaultTolerance = 2
	defaultHalf      = 80 * time.Millisecond
)

// A StateOption configures a [State].
type StateOption func(*state)

// Tolerance sets by how many steps of its precision a number may differ from the server's without being corrected. The
// default is 2.
//
// Panics unless steps is 1 to 1,000.
func Tolerance(steps int) StateOption {
	if steps < 1 || steps > 1000 {
		panic(fmt.Sprintf("predict: Tolerance(%d): use 1 to 1000 steps, or Exact", steps))
	}
	return func(s *state) { s.tolerance = steps }
}

// Exact rounds the component to its precision after each step, at both ends, and corrects any difference. It changes
// the game: what moves by less than half a step in a tick stands still.
func Exact() StateOption {
	return func(s *state) { s.exact, s.tolerance = true, 0 }
}

// Smooth sets how long it takes until half of a correction is shown; 0 shows it at once. The default is 80 ms.
//
// Panics unless half is 0 to 2 seconds.
func Smooth(half time.Duration) StateOption {
	if half < 0 || half > 2*time.Second {
		panic(fmt.Sprintf("predict: Smooth(%v): use 0 to 2s", half))
	}
	return func(s *state) { s.half = half }
}

// Missed sets how an input that the server lacks is replaced: it gets the last one that was simulated, and for how many
// ticks that has been repeated, 1 at first, and may change it, such as to let go of a trigger. It must do the same at
// both ends. By default it is repeated as it is. After 32 ticks it is the zero value in any case.
//
// Panics if fn is nil.
func Missed[I any](m *Model[I], fn func(in *I, ticks int)) {
	if fn == nil {
		panic("predict: Missed needs a function: leave it out for inputs that are repeated as they are")
	}
	m.missed = fn
}

// External adds what is outside of components, such as the bodies of a physics engine. save is called after each step,
// to keep a copy by tick of all that the next step begins with; restore is called before ticks are simulated again, to
// go back to what was saved as of the given one, when the components have their values of that tick. A copy is needed
// for 64 ticks. restore may be called for a tick that was never saved, and a step may begin with components that the
// server has corrected, so the step has to begin with what the components have.
//
// Panics if one of them is nil, or there is an External already.
func External[I any](m *Model[I], save, restore func(tick replication.Tick)) {
	if save == nil || restore == nil {
		panic("predict: External needs a function that saves and one that restores")
	}
	if m.save != nil {
		panic("predict: External: this model has one already: call both from one pair of functions")
	}
	m.save, m.restore = save, restore
}

// replaced returns what is simulated in place of an input that the server lacks, age ticks after the last one it had.
func (m *Model[I]) replaced(last I, age int) I {
	if age > longestRepeat {
		var zero I
		return zero
	}
	if m.missed != nil {
		m.missed(&last, age)
	}
	return last
}

// longestRepeat is for how many ticks an input is repeated.
const longestRepeat = 32

// check panics if the model does not suit the schema of a server or client.
func (m *model) mustExist(name string) {
	if m == nil || m.step == nil {
		panic("predict: " + name + " without a model: make one with NewModel")
	}
	m.used.Store(true)
}
