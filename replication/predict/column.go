package predict

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/tolerance"
	"github.com/mlange-42/arche/ecs"
)

// depth is how many ticks a client keeps, and may simulate again. With 75 ms each way and outages of 150 ms, rollbacks
// are up to 50 ticks deep at 60 ticks a second.
const depth = 64

// A column has the values of a State of all predicted entities, by tick modulo depth and row.
type column interface {
	inside() *columnHead
	grow(rows int)
	at(tick replication.Tick, row uint32) unsafe.Pointer // of the value
	save(tick replication.Tick, n int, markers, values unsafe.Pointer)
	restore(tick replication.Tick, n int, markers, values unsafe.Pointer)
	set(dst, src unsafe.Pointer)
	clear(p unsafe.Pointer) // makes a value zero
	keep(row uint32, drawn unsafe.Pointer)
	kept(row uint32) unsafe.Pointer // what keep kept
	second() unsafe.Pointer         // scratch memory for a value
	prepared() unsafe.Pointer       // the same, for one that is prepared
}

// columnHead is what does not depend on the type.
type columnHead struct {
	number    int // of the component
	comp      *schema.Component
	id        ecs.ID
	mask      ecs.Mask // of entities that are simulated and have it
	kernel    *blend.Kernel
	exact     bool
	input     bool // what one controls has one's own inputs in it
	tolerance tolerance.Tolerance
	rounding  rounding
	rows      int      // that have the component
	codes     []uint32 // scratch memory, for a row or for all
	read      bool     // codes are those of all rows, as of the tick that is being compared
	causes    uint64   // rollbacks that it caused
}

type typedColumn[T any] struct {
	columnHead
	ring    [depth][]T
	drawn   []T
	scratch [2]T
}

func newColumn[T any]() column { return &typedColumn[T]{} }

func (c *typedColumn[T]) inside() *columnHead { return &c.columnHead }

func (c *typedColumn[T]) grow(rows int) {
	for i := range c.ring {
		c.ring[i] = append(c.ring[i], make([]T, rows-len(c.ring[i]))...)
	}
	c.drawn = append(c.drawn, make([]T, rows-len(c.drawn))...)
}

func (c *typedColumn[T]) at(tick replication.Tick, row uint32) unsafe.Pointer {
	return unsafe.Pointer(&c.ring[tick%depth][row])
}

func (c *typedColumn[T]) save(tick replication.Tick, n int, markers, values unsafe.Pointer) {
	ring, m, v := c.ring[tick%depth], unsafe.Slice((*Predicted)(markers), n), unsafe.Slice((*T)(values), n)
	for i := range m {
		ring[m[i].row] = v[i]
	}
}

func (c *typedColumn[T]) restore(tick replication.Tick, n int, markers, values unsafe.Pointer) {
	ring, m, v := c.ring[tick%depth], unsafe.Slice((*Predicted)(markers), n), unsafe.Slice((*T)(values), n)
	for i := range m {
		v[i] = ring[m[i].row]
	}
}

func (c *typedColumn[T]) set(dst, src unsafe.Pointer) { *(*T)(dst) = *(*T)(src) }

func (c *typedColumn[T]) clear(p unsafe.Pointer) {
	var zero T
	*(*T)(p) = zero
}

func (c *typedColumn[T]) keep(row uint32, drawn unsafe.Pointer) { c.drawn[row] = *(*T)(drawn) }

func (c *typedColumn[T]) kept(row uint32) unsafe.Pointer { return unsafe.Pointer(&c.drawn[row]) }

func (c *typedColumn[T]) second() unsafe.Pointer { return unsafe.Pointer(&c.scratch[0]) }

func (c *typedColumn[T]) prepared() unsafe.Pointer { return unsafe.Pointer(&c.scratch[1]) }
