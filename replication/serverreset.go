package replication

import "github.com/mlange-42/arche/ecs"

// What becomes of what the user has told the server of entities when its world is reset: handles begin anew then, and those
// of before may mean others. The entities themselves need no care, since their markers are gone with them.

// noticeReset makes groups, sets and owners forget their entities if the world was reset.
func (s *Server) noticeReset() {
	if s.snap.mark.intact() {
		return
	}
	s.snap.mark.set()
	for _, g := range s.interest.groups.list {
		for i := range g.members {
			g.part(&g.members[i], s.snap.tick+1)
		}
		clear(g.members)
		g.members, g.stirred = g.members[:0], true
	}
	s.interest.groups.of = nil
	for _, e := range s.interest.sets {
		e.forget()
	}
	for _, p := range s.peers {
		s.interest.disownAll(&p.sight)
	}
	s.interest.owners = ownership{}
	clear(s.snap.weights)
	s.messages.messenger.forgetEntities()
}

// forget empties the set.
func (e *entitySet) forget() {
	clear(e.seated)
	clear(e.holders)
	clear(e.waiting)
	clear(e.slots)
}

// A worldWatch notices that a world was reset: [ecs.World.Reset] removes all resources without a word, and makes entities
// that look like those from before.
type worldWatch struct {
	world *ecs.World
	mark  *worldMark // in the world until it is reset
	id    ecs.ResID
}

func watchWorld(w *ecs.World) worldWatch {
	x := worldWatch{world: w, id: ecs.ResourceID[worldMark](w)}
	x.set()
	return x
}

// set puts a mark into the world, or takes the one that is there: all who watch a world share it.
func (x *worldWatch) set() {
	r := x.world.Resources()
	if m, ok := r.Get(x.id).(*worldMark); ok {
		x.mark = m
		return
	}
	x.mark = &worldMark{}
	r.Add(x.id, x.mark)
}

// intact reports whether the world was not reset since the mark was set.
func (x *worldWatch) intact() bool {
	m, _ := x.world.Resources().Get(x.id).(*worldMark)
	return m == x.mark
}
