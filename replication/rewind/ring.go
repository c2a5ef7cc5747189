package rewind

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/mlange-42/arche/ecs"
)

// A ring has the values of a component that is not replicated, at the end of the latest ticks.
type ring[T any] struct {
	history *History
	id      ecs.ID
	filter  ecs.Filter
	mark    archeutil.WorldWatch
	ticks   []values[T] // by tick modulo their number, a power of two, so that places go on where ticks wrap
}

// values are those of one tick, by the ID of the entity.
type values[T any] struct {
	tick  delta.Tick
	any   bool
	cells []cell[T]
}

type cell[T any] struct {
	entity ecs.Entity
	tick   delta.Tick // of the value; an older one is of a former round of the ring
	value  T
}

func newRing[T any](h *History) *ring[T] {
	id := ecs.ComponentID[T](h.in.Snap.World)
	return &ring[T]{
		history: h, id: id, filter: ecs.All(id), mark: archeutil.WatchWorld(h.in.Snap.World),
		ticks: make([]values[T], 1<<bits.Len32(uint32(h.limits.rewind))),
	}
}

func (r *ring[T]) at(tick delta.Tick) *values[T] { return &r.ticks[tick%delta.Tick(len(r.ticks))] }

// capture copies the values of the present tick. If the world was reset, those before were of other entities with the
// same handles.
func (r *ring[T]) capture() {
	if !r.mark.Intact() {
		r.mark.Set()
		clear(r.ticks)
	}
	now := r.history.in.Snap.Tick
	t := r.at(now)
	t.tick, t.any = now, true
	q := r.history.in.Snap.World.Query(r.filter)
	for q.Next() {
		e := q.Entity()
		for int(e.ID()) >= len(t.cells) {
			t.cells = append(t.cells, cell[T]{})
		}
		t.cells[e.ID()] = cell[T]{e, now, *(*T)(q.Get(r.id))}
	}
}

// get stores the value that an entity had in the tick of a view, if the client showed the entity.
func (r *ring[T]) get(v View, e ecs.Entity, out *T) bool {
	if !v.shows(e) || !r.mark.Intact() {
		return false
	}
	t := r.at(v.time.Tick)
	if !t.any || t.tick != v.time.Tick || int(e.ID()) >= len(t.cells) {
		return false
	}
	c := &t.cells[e.ID()]
	if c.entity != e || c.tick != t.tick {
		return false
	}
	*out = c.value
	return true
}
