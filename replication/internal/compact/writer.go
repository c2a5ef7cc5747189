package compact

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A state packet of the coding Compact is the output of one range encoder. Its model depends on
// what one peer has acknowledged, so that peers don't share any of it.

// A Writer writes the state packets of one peer.
type Writer struct {
	Kept KeptModels

	// The open packet.
	E     delta.RangeEncoder
	State *State
	Walk  Walk
	Room  int      // bytes
	First int      // slot
	Count int      // entries
	Work  int      // of the entries, see config/work.go
	Age   uint32   // of the model that it begins with, in packets; 0: a new model
	Keep  bool     // the model at its end is to be kept
	Costs []uint32 // by field and symbols of components
}

// NewWriter returns a writer for one peer.
func NewWriter(s *snapshot.Snapshot) *Writer {
	return &Writer{Costs: make([]uint32, s.Schema.Layout.Fields()+len(s.Schema.Components))}
}

// An Entry is what a packet carries of a slot; the rows are in the [Coder].
type Entry struct {
	Kind     wire.EntryKind
	Name     Name
	Set, ref wire.ComponentSet // of wire.EntrySetChange
	Payload  []byte            // of wire.EntryPart
	Part     [4]uint64         // of wire.EntryPart: age, total, size, index; of wire.EntryFull: generation
	Work     int               // upper bound, see config/work.go
	Bits     int32             // that the rows of wire.EntryFull took
	left     bool              // of wire.EntryDespawn: the entity lives on
	Far      bool              // an update so far from its baselines that the full state may be shorter
}

// Despawn returns the entry that a slot is empty. left reports that its entity lives on.
func Despawn(left bool) *Entry {
	return &Entry{Kind: wire.EntryDespawn, Work: wire.SlotWork, left: left}
}

const (
	// decisionBits exceeds the bits that a decision takes.
	decisionBits = 12
	// EndBytes exceeds the bytes that the end of a packet takes.
	EndBytes = 4
	// headBits bounds the bits of a head with a component set, without the listed slots that it
	// passes.
	headBits = 100*decisionBits + 4*delta.MaxComponents
)

// RowBits returns the bits that the rows of the last entry took.
func (c *Coder) RowBits() int {
	n := 0
	for _, cost := range c.Coder.Costs {
		n += int(cost.Bits)
	}
	return n / delta.CostUnit
}

// Worst returns an upper bound for the bits of an entry.
func (x *Writer) Worst(c *Coder, slot int, entry *Entry) int {
	n := headBits + 8*len(entry.Payload)
	for i := x.Walk.at; i < len(x.Walk.before) && int(x.Walk.before[i].Slot) < slot; i++ {
		n += 2 * decisionBits
	}
	if entry.Kind != wire.EntryDespawn && entry.Kind != wire.EntryPart {
		for i := range c.Rows {
			n += c.worst[c.Rows[i].Component]
		}
	}
	return n
}
