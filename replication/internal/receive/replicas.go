package receive

import "github.com/arche-replicate/arche-replicate/delta"

// What the client holds of each slot, found by slot.

// A Replica holds what the client received of a slot: the states, which may serve as baselines.
// What the world shows of the slot is in package apply.
type Replica struct {
	Held   HeldStates
	Newest delta.Tick // of the newest state that was received; survives despawns
	Any    bool       // Newest is valid
	Ended  delta.Tick // the tick from which on the slot is empty, if it is
	Left   bool       // its entity lives on out of view
	Empty  bool       // the newest state is that the slot is empty
	Dirty  bool       // the world does not show the newest state yet

	watched uint8 // the watches that have the slot, a bit for each
}

// A ReplicaTable finds replicas by slot. It consists of pages, so that one packet can't make it
// huge by naming a high slot.
type ReplicaTable struct {
	Pages [][]Replica
	Limit uint32 // slots from here on are refused
}

// ReplicaPage is the number of slots on a page. An entry of an unused slot may make a page here and one in package
// apply: see wire.SlotWork.
const ReplicaPage = 16

// At returns the slot's replica, or nil if there is none.
func (t *ReplicaTable) At(slot uint32) *Replica {
	if i := int(slot / ReplicaPage); i < len(t.Pages) && t.Pages[i] != nil {
		return &t.Pages[i][slot%ReplicaPage]
	}
	return nil
}

// add returns the slot's replica and makes one if there is none. The slot is below the limit.
func (t *ReplicaTable) add(slot uint32) *Replica {
	i := int(slot / ReplicaPage)
	if i >= len(t.Pages) {
		t.Pages = append(t.Pages, make([][]Replica, i+1-len(t.Pages))...)
	}
	if t.Pages[i] == nil {
		t.Pages[i] = make([]Replica, ReplicaPage)
	}
	return &t.Pages[i][slot%ReplicaPage]
}

// forgetStates forgets the states of all slots.
func (t *ReplicaTable) forgetStates() {
	for _, page := range t.Pages {
		for i := range page {
			m := &page[i]
			m.Held.forget()
			m.Any, m.Empty, m.Dirty = false, false, false
		}
	}
}
