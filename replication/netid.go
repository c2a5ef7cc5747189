package replication

import "fmt"

// A NetID identifies an entity on the wire and in logs: a dense index, and a counter that distinguishes the entities
// which had that index one after the other. An ID identifies one entity for 131,072 ticks at least.
type NetID struct {
	Slot       uint32
	Generation uint16
}

// String returns the ID as slot and generation, "17.2".
func (id NetID) String() string { return fmt.Sprintf("%d.%d", id.Slot, id.Generation) }
