package archeutil

import "github.com/mlange-42/arche/ecs"

// A WorldWatch detects that a world was reset: [ecs.World.Reset] silently removes all resources,
// and new entities then look like those from before.
type WorldWatch struct {
	world *ecs.World
	mark  *worldMark // in the world until it is reset
	id    ecs.ResID
}

// Set puts a mark into the world, or uses the one that is there: all watches of a world share it.
func (x *WorldWatch) Set() {
	r := x.world.Resources()
	if m, ok := r.Get(x.id).(*worldMark); ok {
		x.mark = m
		return
	}
	x.mark = &worldMark{}
	r.Add(x.id, x.mark)
}

// Intact reports whether the world was not reset since Set.
func (x *WorldWatch) Intact() bool {
	m, _ := x.world.Resources().Get(x.id).(*worldMark)
	return m == x.mark
}

// WatchWorld returns a watch of a world, to which it adds a resource.
func WatchWorld(w *ecs.World) WorldWatch {
	x := WorldWatch{world: w, id: ecs.ResourceID[worldMark](w)}
	x.Set()
	return x
}

// A worldMark is a resource that marks a world until it is reset.
type worldMark struct {
	_ byte // so that no two have the same address
}

// ResourceOf returns a world's resource of a type, which it adds if the world has none.
func ResourceOf[T any](w *ecs.World) *T {
	id, r := ecs.ResourceID[T](w), w.Resources()
	if !r.Has(id) {
		r.Add(id, new(T))
	}
	return r.Get(id).(*T)
}
