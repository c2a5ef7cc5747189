package main

import (
	"reflect"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// stage is the server's world, in which the rows of a trace are played: one entity for each live
// one, with exactly the components of its latest row.
type stage struct {
	world  ecs.World
	marker ecs.ID
	types  []reflect.Type // by component
	ids    []ecs.ID       // by component
	actors map[uint64]ecs.Entity

	references []reference
	pending    []pendingReference

	add, remove []ecs.ID // of one exchange
}

func newStage(components []component) *stage {
	s := &stage{world: ecs.NewWorld(), actors: map[uint64]ecs.Entity{}}
	s.marker = ecs.ComponentID[replication.Replicated](&s.world)
	s.types, s.ids = componentIDs(&s.world, components)
	s.references = referencesOf(components)
	return s
}

// componentIDs returns a world's IDs of the components of a trace.
func componentIDs(world *ecs.World, components []component) (types []reflect.Type, ids []ecs.ID) {
	for _, c := range components {
		types = append(types, c.typ)
		ids = append(ids, ecs.TypeID(world, c.typ))
	}
	return types, ids
}

// play gives the entity of a row its components and values. A row without components removes it.
func (s *stage) play(r *reader) {
	e, lives := s.actors[r.entity]
	s.add, s.remove = s.add[:0], s.remove[:0]
	gone := true
	for i, has := range r.has {
		had := lives && s.world.Has(e, s.ids[i])
		gone = gone && !has
		switch {
		case has && !had:
			s.add = append(s.add, s.ids[i])
		case had && !has:
			s.remove = append(s.remove, s.ids[i])
		}
	}
	switch {
	case gone && lives:
		s.world.RemoveEntity(e)
		delete(s.actors, r.entity)
		return
	case gone:
		return
	case !lives:
		e = s.world.NewEntity(append(s.add, s.marker)...)
		s.actors[r.entity] = e
	case len(s.add)+len(s.remove) > 0:
		s.world.Exchange(e, s.add, s.remove)
	}
	for i, has := range r.has {
		if has {
			reflect.NewAt(s.types[i], s.world.Get(e, s.ids[i])).Elem().Set(r.values[i].Elem())
		}
	}
	s.refer(r)
}
