package snapshot

// Sub-entities. The components of an entity under one condition form a sub-entity. It has a slot of
// its own and is sent, like an entity, to the peers that meet the condition: with its own
// baselines, acknowledgements and share of the budget. Everything that is kept per peer works on
// slots and knows nothing of conditions.
//
// The first column of a sub-entity is a link, a reference to its entity; clients put its components
// on that entity (see apply/attach.go). Once an entity has a sub-entity, it keeps it to its end, if
// need be with nothing but the link. So there is never more than one per condition.
//
// Sub-entities have blocks of slots of their own, a class for each condition. So the slots of
// entities stay consecutive, and their numbers reveal nothing about sub-entities but how many
// blocks these have.

// Class returns the class of the slots of a block.
func (t *SlotTable) Class(b int) int {
	if b >= len(t.Classes) {
		return 0
	}
	return int(t.Classes[b])
}

// HoldsSubEntities reports whether the slots of a block are for sub-entities.
func (t *SlotTable) HoldsSubEntities(b int) bool { return t.Class(b) != 0 }

// SubEntity returns the slot of an entity's sub-entity under a condition, if it has one.
func (t *SlotTable) SubEntity(condition, slot int) (sub int, ok bool) {
	list := t.subEntityOf[condition]
	if slot >= len(list) || list[slot] == 0 {
		return 0, false
	}
	return int(list[slot]) - 1, true
}
