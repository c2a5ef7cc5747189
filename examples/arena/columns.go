package main

import (
	"encoding/json"
	"reflect"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/examples/arena/game"
	"github.com/arche-replicate/arche-replicate/replication"
)

// A reader reads an entity as it is replicated: its components and the codes of their fields. It
// uses Arche's ordinary access by entity and shares nothing with the library but the schema, so
// that each can check the other.
type reader struct {
	world   *ecs.World
	columns []column
}

// A column is a component of all entities.
type column struct {
	name  string
	codes func(e ecs.Entity, before, dst []uint64) ([]uint64, bool)
	value func(e ecs.Entity) (component any, has bool)
	count int // of codes
}

// newReader returns a reader for one world. Its list of components is written by hand: a missing
// one would not be checked, so a test compares the list with game.NewSchema.
func newReader(w *ecs.World, s *replication.Schema) *reader {
	r := &reader{world: w}
	addColumn[game.Position](r, s)
	addColumn[game.Heading](r, s)
	addColumn[game.Ship](r, s)
	addColumn[game.Hull](r, s)
	addColumn[game.Ammo](r, s)
	addColumn[game.Score](r, s)
	addColumn[game.Shield](r, s)
	addColumn[game.Bullet](r, s)
	addColumn[game.PowerUp](r, s)
	addColumn[game.Match](r, s)
	addColumn[game.Callsign](r, s)
	return r
}

func addColumn[T any](r *reader, s *replication.Schema) {
	id := ecs.ComponentID[T](r.world)
	get := func(e ecs.Entity) *T { return (*T)(r.world.Get(e, id)) }
	r.columns = append(r.columns, column{
		name: reflect.TypeFor[T]().Name(),
		codes: func(e ecs.Entity, before, dst []uint64) ([]uint64, bool) {
			component := get(e)
			switch {
			case component == nil:
				return dst, false
			case before == nil:
				return s.Codes(component, dst), true
			}
			return s.CodesAfter(component, before, dst), true
		},
		count: len(s.Codes(new(T), nil)),
		value: func(e ecs.Entity) (any, bool) {
			component := get(e)
			return component, component != nil
		},
	})
}

// codes appends a mask of the components that the entity has, and their codes.
func (r *reader) codes(e ecs.Entity, dst []uint64) []uint64 { return r.codesAfter(e, nil, dst) }

// codesAfter is codes for an entity of the server, for which it returned before in the tick before; nil if it was not
// there.
func (r *reader) codesAfter(e ecs.Entity, before, dst []uint64) []uint64 {
	mask, had := len(dst), uint64(0)
	if before != nil {
		had, before = before[0], before[1:]
	}
	dst = append(dst, 0)
	for i, column := range r.columns {
		var has bool
		var recorded []uint64
		if had>>i&1 != 0 {
			recorded, before = before[:column.count], before[column.count:]
		}
		if dst, has = column.codes(e, recorded, dst); has {
			dst[mask] |= 1 << i
		}
	}
	return dst
}

// json returns the entity as encoding/json writes it: its ID and its components by name.
func (r *reader) json(e ecs.Entity, id replication.NetID) ([]byte, error) {
	entity := map[string]any{"id": id.String()}
	for _, column := range r.columns {
		if component, has := column.value(e); has {
			entity[column.name] = component
		}
	}
	return json.Marshal(entity)
}
