package archeutil

import "github.com/mlange-42/arche/ecs"

// A WorldWatch notices that a world was reset: [ecs.World.Reset] removes all resources without a word, and makes entities
// that look like those from before.
type WorldWatch struct {
	world *ecs.World
	mark  *worldMark // in the world until it is reset
	id    ecs.ResID
}

// Set puts a mark into the world, or takes the one that is there: all who watch a world share it.
func (x *WorldWatch) Set() {
	r := x.world.Resources()
	if m, ok := r.Get(x.id).(*worldMark); ok {
		x.mark = m
		return
	}
	x.mark = &worldMark{}
	r.Add(x.id, x.mark)
}

// Intact reports whether the world was not reset since the mark was set.
func (x *WorldWatch) Intact() bool {
	m, _ := x.world.Resources().Get(x.id).(*worldMark)
	return m == x.mark
}

// WatchWorld returns a watch of a world. It adds a resource to it.
func WatchWorld(w *ecs.World) WorldWatch {
	x := WorldWatch{world: w, id: ecs.ResourceID[worldMark](w)}
	x.Set()
	return x
}

// A worldMark is a resource of a world. That it is gone tells that the world was reset; see WorldWatch.
type worldMark struct {
	_ byte // so that no two have the same address
}
