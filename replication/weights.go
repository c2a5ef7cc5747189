package replication

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/mlange-42/arche/ecs"
)

// SetPriority gives an entity a weight for all peers, on top of those of its components:
// the weights added up over the ticks that it waited say who is sent first where the budget
// does not suffice. The default is 1. The entity may get its marker later; its weight lasts until it
// leaves replication. A dead entity has none.
//
// Panics if the weight is not positive.
func (s *Server) SetPriority(e ecs.Entity, weight float32) {
	s.mustExist()
	if !(weight > 0) {
		panic(fmt.Sprintf("replication: SetPriority(%v): use a positive weight", weight))
	}
	s.noticeReset()
	if slot, ok := s.snap.SlotOf(e); ok {
		s.snap.GiveWeight(slot, weight)
	} else if archeutil.Alive(s.snap.World, e) {
		if s.snap.Weights == nil {
			s.snap.Weights = map[ecs.Entity]float32{}
		}
		s.snap.Weights[e] = weight
	}
}
