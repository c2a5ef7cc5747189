package archeutil

import "github.com/mlange-42/arche/ecs"

// Relations finds the relation among the components of an entity, registered or not. There is at
// most one; Arche panics on a second one.
type Relations struct {
	known ecs.Mask // components that were examined
	all   ecs.Mask // those of them that are relations
	ids   []ecs.ID
}

// Of returns the entity's component that is a relation.
func (r *Relations) Of(w *ecs.World, e ecs.Entity) (id ecs.ID, ok bool) {
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

// Remove removes an entity. It first clears the target of an entity that is its own target: Arche
// (v0.15.3) panics when it removes the archetype of such an entity.
func (r *Relations) Remove(w *ecs.World, e ecs.Entity) {
	if id, ok := r.Of(w, e); ok && w.Relations().Get(e, id) == e {
		w.Relations().Set(e, id, ecs.Entity{})
	}
	w.RemoveEntity(e)
}

// PutTargets writes targets into the first column of rows.
func PutTargets(rows []uint32, words int, targets []ecs.Entity) {
	for i, e := range targets {
		rows[i*words], rows[i*words+1] = e.ID(), e.Generation()
	}
}
