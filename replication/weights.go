package replication

import (
	"fmt"

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
	if slot, ok := s.snap.slotOf(e); ok {
		s.snap.giveWeight(slot, weight)
	} else if alive(s.snap.world, e) {
		if s.snap.weights == nil {
			s.snap.weights = map[ecs.Entity]float32{}
		}
		s.snap.weights[e] = weight
	}
}

// settleWeights gives weights to entities that had no slot when these were set.
func (s *snapshot) settleWeights() {
	for e, weight := range s.weights {
		if slot, ok := s.slotOf(e); ok {
			s.giveWeight(slot, weight)
			delete(s.weights, e)
		} else if !alive(s.world, e) {
			delete(s.weights, e)
		}
	}
}

// giveWeight gives a weight to what is in a slot. What it has under conditions has slots of its own.
func (s *snapshot) giveWeight(slot int, weight float32) {
	s.slots.info[slot].weight = weight
	s.slots.weights.forgetAll()
}
