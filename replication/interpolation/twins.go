package interpolation

import "github.com/mlange-42/arche/ecs"

// A twin is a component that has the interpolated values of another one.
type twin struct {
	of            ecs.ID    // the other component
	ids           [1]ecs.ID // of the component: as a slice, it costs no allocation in each call
	column        *column
	without, idle ecs.CachedFilter // entities that lack the twin, and those that lack what it follows
	entities      []ecs.Entity     // scratch memory
}

func newTwin(p *Interpolation, of, id ecs.ID, c *column) twin {
	without, idle := ecs.All(p.marker, of).Without(id), ecs.All(p.marker, id).Without(of)
	return twin{
		of: of, ids: [1]ecs.ID{id}, column: c,
		without: p.world.Cache().Register(&without), idle: p.world.Cache().Register(&idle),
	}
}

// match adds the twin to entities that lack it, and removes it from those that no longer have what it follows.
func (t *twin) match(p *Interpolation) {
	for _, e := range t.find(p, &t.without, true) {
		p.world.Add(e, t.ids[:]...)
		t.column.copy(p.world.Get(e, t.ids[0]), p.world.Get(e, t.of)) // there may be no state to show yet
	}
	for _, e := range t.find(p, &t.idle, false) {
		p.world.Remove(e, t.ids[:]...)
	}
}

// find returns the entities of a filter, which it makes the column look at again if they are new.
func (t *twin) find(p *Interpolation, filter *ecs.CachedFilter, isNew bool) []ecs.Entity {
	t.entities = t.entities[:0]
	q := p.world.Query(filter)
	for q.Next() {
		id, own := p.replica(q.Get(p.marker))
		if !own {
			continue
		}
		t.entities = append(t.entities, q.Entity())
		if isNew {
			t.column.pages.invalidate(id.Slot, p.at.Tick)
		}
	}
	return t.entities
}

// followPredicted gives twins what package predict has drawn.
func followPredicted(p *Interpolation) {
	marker := p.inside.Apply.View.Withheld.Marker
	for i := range p.twins {
		t := &p.twins[i]
		if !p.inside.Apply.View.Withheld.Components.Has(t.column.number) {
			continue
		}
		mask := ecs.All(marker, t.of, t.ids[0])
		for q := p.world.Query(&mask); q.Next(); {
			t.column.copy(q.Get(t.ids[0]), q.Get(t.of))
		}
	}
}
