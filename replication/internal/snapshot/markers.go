package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Markers: a server writes the slot of each entity into a component of the entity. Two servers that
// write to the same markers would take the entities from each other.

// contest notes if the marker that this server wrote to a slot's entity is another's now.
func (c *capture) contest(m *marker, slot uint32) {
	if m.owner != 0 && m.owner != c.Owner {
		c.contested = true
		*m = marker{slot + 1, c.Owner} // the other server, if it is in use, will notice that
	}
}

// settleContests panics if two servers keep taking the same markers from each other.
func (c *capture) settleContests() {
	if !c.contested {
		c.contests = 0
		return
	}
	c.contested = false
	if c.contests++; c.contests == maxContests {
		c.contests = 0
		panic("replication: two servers replicate this world and write to the same markers: " +
			"give each its own with WithMarker, or Close the one that is not in use")
	}
}

// A marker is what a server writes into the marker component of an entity, which has the same
// memory layout.
type marker struct {
	slot  uint32 // slot+1; 0 before the server has seen the entity
	owner uint32 // the server that wrote it
}

// newOwner returns a random number, not 0, that identifies a server's markers.
func newOwner() uint32 { return uint32(wire.Random64()) | 1 }

// maxContests is the number of consecutive ticks in which another server's markers may be found.
// One such tick may be due to a saved world that was loaded.
const maxContests = 3

// markersAt returns the n markers from p on.
func markersAt(p unsafe.Pointer, n int) []marker { return unsafe.Slice((*marker)(p), n) }
