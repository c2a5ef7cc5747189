package snapshot

// The components of an entity that stand under one condition are its sub-entity: they have a
// slot of their own, which is sent to those for whom the condition holds, like an entity of
// its own: with baselines, acknowledgements and a turn in the budget that nobody else knows
// of. All that is kept per peer works on slots and need not know of conditions.
//
// A sub-entity's row begins with a link, a reference to its entity. Clients put its components
// on that entity; see attach.go. An entity keeps a sub-entity to its end once it has it, with
// the link only if need be: so there is never more than one of a condition.
//
// Sub-entities have blocks of slots of their own, a class for each condition. So the slots of
// entities stay neighbours, and their numbers say nothing of sub-entities but how many blocks
// these have.

// Class returns the class of the slots of a block.
func (t *SlotTable) Class(b int) int {
	if b >= len(t.Classes) {
		return 0
	}
	return int(t.Classes[b])
}

// HoldsSubEntities reports whether the slots of a block are for sub-entities.
func (t *SlotTable) HoldsSubEntities(b int) bool { return t.Class(b) != 0 }

// SubEntity returns the slot of the sub-entity under a condition of what is in a slot, if it has one.
func (t *SlotTable) SubEntity(condition, slot int) (sub int, ok bool) {
	list := t.subEntityOf[condition]
	if slot >= len(list) || list[slot] == 0 {
		return 0, false
	}
	return int(list[slot]) - 1, true
}
