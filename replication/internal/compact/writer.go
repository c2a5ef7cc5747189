package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The state packets of a session with [Compact]: one string of bytes from a range coder, in
// which entries stand as in others. None of it is shared between peers.

// A Writer is what a packetWriter has for them.
type Writer struct {
	Kept  KeptModels
	E     delta.RangeEncoder
	State *State // of the open packet
	Walk  Walk
	Room  int    // bytes
	First int    // slot
	Count int    // entries
	Work  int    // of them, see config/work.go
	Age   uint32 // of its model, in packets; 0: a new one
	Keep  bool
	Costs []uint32 // of the open packet, by field and symbols of components
}

// NewWriter returns a writer for one peer.
func NewWriter(s *snapshot.Snapshot) *Writer {
	return &Writer{Costs: make([]uint32, s.Schema.Layout.Fields()+len(s.Schema.Components))}
}

// An Entry is what is to be written of a slot.
type Entry struct {
	Kind     wire.EntryKind
	Name     Name
	Set, ref delta.Set // of wire.EntrySetChange
	Payload  []byte    // of EntryPart
	Part     [4]uint64 // age, total, size, index
	Work     int       // at most, see config/work.go
	Leaps    bool      // an update that may be longer than the state without baseline
}

const (
	// mostChance is the bits that a decision takes at most, and a little more.
	mostChance = 12
	// EndBytes is more than the end of a packet takes.
	EndBytes = 4
	// compactHead is the bits that a head takes at most, without what is gone through of the
	// list, and with a set.
	compactHead = 100*mostChance + 4*delta.MaxComponents
)

// RowBits returns what the rows of the entry that was written last cost.
func (c *Coder) RowBits() int {
	n := 0
	for _, cost := range c.Coder.Costs {
		n += int(cost.Bits)
	}
	return n / delta.CostUnit
}

// Worst returns the bits that an entry takes at most.
func (x *Writer) Worst(c *Coder, slot int, entry *Entry) int {
	n := compactHead + 8*len(entry.Payload)
	for i := x.Walk.at; i < len(x.Walk.before) && int(x.Walk.before[i].Slot) < slot; i++ {
		n += 2 * mostChance
	}
	if entry.Kind != wire.EntryDespawn && entry.Kind != wire.EntryPart {
		for i := range c.Rows {
			n += c.worst[c.Rows[i].Component]
		}
	}
	return n
}
