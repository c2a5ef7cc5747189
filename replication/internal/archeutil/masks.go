package archeutil

import "github.com/mlange-42/arche/ecs"

// MaskProbe is a filter that matches nothing and records which component sets of a world's entities
// contain others.
type MaskProbe struct {
	Wanted ecs.Mask // components that the sets must have
	Masks  []ecs.Mask
}

// Find sets Masks to the component sets in a world that contain Wanted.
func (p *MaskProbe) Find(w *ecs.World) {
	p.Masks = p.Masks[:0]
	q := w.Query(p)
	q.Count()
	q.Close()
}

// Matches implements [ecs.Filter].
func (p *MaskProbe) Matches(mask *ecs.Mask) bool {
	if mask.Contains(&p.Wanted) {
		p.Masks = append(p.Masks, *mask)
	}
	return false
}

// unmarked is a filter for component sets that have some of the wanted components, but not the marker.
type unmarked struct{ wanted, marker ecs.Mask }

// CountUnmarked returns the number of a world's entities that have a wanted component, but not the marker. It takes
// time for each component set of the world, not for each entity.
func CountUnmarked(w *ecs.World, wanted ecs.Mask, marker ecs.ID) int {
	q := w.Query(&unmarked{wanted, ecs.All(marker)})
	defer q.Close()
	return q.Count()
}

// Matches implements [ecs.Filter].
func (f *unmarked) Matches(mask *ecs.Mask) bool {
	return mask.ContainsAny(&f.wanted) && !mask.Contains(&f.marker)
}

// HasRelation reports whether a component set has a relation. Entities with one are contiguous in memory
// only if they have the same target.
func HasRelation(w *ecs.World, mask *ecs.Mask) bool {
	for _, id := range ecs.ComponentIDs(w) {
		if info, ok := ecs.ComponentInfo(w, id); ok && info.IsRelation && mask.Get(id) {
			return true
		}
	}
	return false
}
