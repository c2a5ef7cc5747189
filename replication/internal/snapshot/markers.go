package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// contest notes if the marker that this server wrote to a slot's entity is another's now.
func (c *capture) contest(m *Marker, slot uint32) {
	if m.owner != 0 && m.owner != c.Owner {
		c.contested = true
		*m = Marker{slot + 1, c.Owner} // who is still there will notice in turn
	}
}

// settleContests panics if two servers go on to take the same markers from each other.
func (c *capture) settleContests() {
	if !c.contested {
		c.contests = 0
		return
	}
	c.contested = false
	if c.contests++; c.contests == maxContests {
		c.contests = 0
		panic("replication: two servers replicate this world and write to the same markers: give each its own with WithMarker, or Close the one that is not in use")
	}
}

// A Marker is what a server writes into the marker component of an entity. The component has the same memory layout.
type Marker struct {
	Slot  uint32 // slot+1; 0 before the server has seen the entity
	owner uint32 // the server that wrote it
}

// newOwner returns a number that tells a server's markers from those of others. It is
// never 0.
func newOwner() uint32 { return uint32(wire.Random64()) | 1 }

// maxContests is in how many ticks in a row the markers that a server wrote may be found
// with another server's writing. Once may be a saved world that was put back.
const maxContests = 3

// MarkersAt returns the n markers from p on.
func MarkersAt(p unsafe.Pointer, n int) []Marker { return unsafe.Slice((*Marker)(p), n) }
