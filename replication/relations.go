package replication

import "github.com/mlange-42/arche/ecs"

// A relation of Arche is a component whose first field is an embedded [ecs.Relation]. Its
// target is no part of the component's memory: Arche keeps the entities with the same
// components and the same target together, in a table (an archetype) of their own. Here
// the target is the first column of the component's row, a reference like others.

// findTarget notes the target of the row that the query is at.
func (t *table) findTarget(row int, m *member, q *ecs.Query) {
	// Who gets another target leaves its archetype, but may have the same row in the next.
	if target := q.Relation(m.id); t.targets[row] != target {
		t.targets[row] = target
		m.blocks[row/captureRows].rows = 0
	}
}

// gatherReferences brings the next n values together of components that refer to entities.
func (s *snapshot) gatherReferences(t *table, n int, q *ecs.Query) {
	for i := range n {
		q.Next()
		for j := range t.members {
			if m := &t.members[j]; m.values.Refers() {
				m.values.CopyTo(m.gathered, i, q.Get(m.id))
			}
		}
	}
}

// putTargets puts targets into the first column of rows.
func putTargets(rows []uint32, words int, targets []ecs.Entity) {
	for i, e := range targets {
		rows[i*words], rows[i*words+1] = e.ID(), e.Generation()
	}
}

// relations finds the relation among the components of an entity, registered or not:
// there is one at most, and Arche panics rather than add another.
type relations struct {
	known ecs.Mask // components that were looked at
	all   ecs.Mask // those of them that are relations
	ids   []ecs.ID
}

// of returns the component of the entity that is a relation.
func (r *relations) of(w *ecs.World, e ecs.Entity) (id ecs.ID, ok bool) {
	mask := w.Mask(e)
	if !r.known.Contains(&mask) {
		for _, id := range ecs.ComponentIDs(w) {
			if info, ok := ecs.ComponentInfo(w, id); ok && info.IsRelation && !r.known.Get(id) {
				r.all.Set(id, true)
				r.ids = append(r.ids, id)
			}
			r.known.Set(id, true)
		}
	}
	if mask.ContainsAny(&r.all) {
		for _, id := range r.ids {
			if mask.Get(id) {
				return id, true
			}
		}
	}
	return ecs.ID{}, false
}

// remove removes an entity. One that is its own target lets go first: Arche (v0.15.3)
// panics when it removes the archetype of such an entity, and does so twice.
func (r *relations) remove(w *ecs.World, e ecs.Entity) {
	if id, ok := r.of(w, e); ok && w.Relations().Get(e, id) == e {
		w.Relations().Set(e, id, ecs.Entity{})
	}
	w.RemoveEntity(e)
}
