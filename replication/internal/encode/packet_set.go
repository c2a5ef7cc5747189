package encode

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A PacketSet is entries of a tick, in the order of slots, all encoded against the same two baselines, and put into
// packets. It is made for peers that hold these baselines, and has what any of them needs against them; each copies
// from it what it needs itself. A stream that is whole has all that changed in the tick: who needs just that gets its
// packets, under headers of its own.
//
// The bits of an entry depend on the world and the tick alone, so nobody can tell whether there was a stream.
type PacketSet struct {
	snapshot.BasePair // its baselines
	full              bool
	Order             uint       // of the Rice code of slot gaps
	wanted            bitset.Set // slots that it is to have
	asked             bitset.Set // by block: it may have some; slots, plain and wanted are empty elsewhere
	Places            []int32    // by block of slots: index in blocks, if it is there

	Packets []SharedPacket
	Blocks  []SharedBlock
	Entries []SharedEntry
	Records []baseline.SentRecord // of the blocks
	costs   []delta.Cost          // of the blocks, by field and symbols of components
	ages    []sharedAge           // of the blocks
	Slots   bitset.Set            // that are in the stream
	Plain   bitset.Set            // of these, those whose entries can be copied: they have its baselines
	Lacking bitset.Set            // by block: something that changed in it is not in the stream, if that is whole

	// The packet that is being filled.
	open    bool
	w       bitbuf.Writer
	context wire.Context
	work    int    // of its entries
	buf     []byte // bodies of packets
	used    int
}

// A SharedPacket is a packet without its header.
type SharedPacket struct {
	First, End int // its blocks
	Body       []byte
	Bits       int // of the body
	Entries    int
	Copies     uint32 // peers that got it

	// What the checksums of the copies have in common, from the second one on.
	Summed bool
	Sum    uint32
	Shift  wire.CRCShift
}

// A SharedBlock is the entries of a block of slots.
type SharedBlock struct {
	Packet  int
	First   int // its first entry
	Entries int
	Copies  uint32 // of entries, in packets of peers

	firstAge, lastAge   int
	firstCost, lastCost int
}

// A SharedEntry is where an entry stands in the body of its packet, without the gap before it, its work, see config/work.go, and that
// of all entries of its block up to it.
type SharedEntry struct{ From, End, Work, Sum int32 }

// A sharedAge counts entries by the age of their baselines.
type sharedAge struct{ age, entries uint8 }

const (
	// maxSharedBytes bounds the bodies of a stream's packets.
	maxSharedBytes = 1 << 20
	// MaxPacketSets bounds the streams of a tick.
	MaxPacketSets = 64
	// SharedFraction is the share of what changed that a peer must need to have its gaps coded as in a stream.
	SharedFraction = 32
)

// ChangedIn returns how many slots changed in the last ticks, the present one among them.
func (c *Cache) ChangedIn(span delta.Tick) int {
	if span == 1 {
		return c.Snap.Slots.Changes
	}
	return c.ChangedSince(c.tick - span)
}

// Find returns the block of a slot that is in the stream, and the slot's entry in it and those after it.
func (set *PacketSet) Find(slot int) (*SharedBlock, []SharedEntry) {
	b := slot >> 6
	x := &set.Blocks[set.Places[b]]
	before := bits.OnesCount64(set.Slots[b] & (1<<(slot&63) - 1))
	return x, set.Entries[x.First+before : x.First+x.Entries]
}

// Ready returns the stream that has a slot's entry against baselines, or nil if there is none.
func (c *Cache) Ready(slot int, of *baseline.Class) *PacketSet {
	if !of.Two {
		return nil
	}
	for i := range c.PacketSets {
		if set := &c.PacketSets[i]; set.Base == of.A1 && set.Second == of.A2 && set.Plain.Has(slot) {
			return set
		}
	}
	return nil
}
