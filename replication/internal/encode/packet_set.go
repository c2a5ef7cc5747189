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

// A PacketSet is a set of packets that peers share in a tick. Its entries are in slot order and all
// encoded against the same pair of baselines. It is made for peers that hold this pair and contains
// what any of them needs against it; each peer copies the entries that it needs. A complete set
// contains everything that changed in the tick: a peer that needs exactly that gets its packets as
// they are, under headers of its own.
//
// The bits of an entry depend on the world and the tick only, so the wire does not show whether a
// set was used.
type PacketSet struct {
	snapshot.BasePair            // its baselines
	complete          bool       // it contains everything that changed in the tick
	Order             uint       // of the Rice code of slot gaps
	wanted            bitset.Set // slots to be encoded
	asked             bitset.Set // by block: Slots, Plain and wanted are empty in all others
	Places            []int32    // by block of slots: index in Blocks, if the block is there

	Packets []SharedPacket
	Blocks  []SharedBlock
	Entries []SharedEntry
	Records []baseline.SentRecord // of the blocks
	costs   []delta.Cost          // of the blocks, by field and symbols of components
	ages    []sharedAge           // of the blocks
	Slots   bitset.Set            // that have an entry
	Plain   bitset.Set            // of these, those whose entries can be copied: they use both of the set's baselines
	Lacking bitset.Set            // by block: something that changed is missing, in a complete set

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
	Copies     uint32 // peers that were sent it

	// The part of the checksum that all copies have in common. It is computed for the second copy.
	Summed bool
	Sum    uint32
	Shift  wire.CRCShift
}

// A SharedBlock is the entries of a block of slots.
type SharedBlock struct {
	Packet  int
	First   int // its first entry
	Entries int
	Copies  uint32 // of single entries, in packets of peers

	firstAge, lastAge   int
	firstCost, lastCost int
}

// A SharedEntry is the position of an entry in the body of its packet, without the gap before it;
// its work, see config/work.go; and the sum of the work of its block up to and including it.
type SharedEntry struct{ From, End, Work, Sum int32 }

// A sharedAge counts entries by the age of their baselines.
type sharedAge struct{ age, entries uint8 }

// maxSharedBytes bounds the bodies of a set's packets.
const maxSharedBytes = 1 << 20

// Find returns the block of a slot of the set, and the slot's entry followed by those after it in
// the block.
func (set *PacketSet) Find(slot int) (*SharedBlock, []SharedEntry) {
	b := slot >> 6
	x := &set.Blocks[set.Places[b]]
	before := bits.OnesCount64(set.Slots[b] & (1<<(slot&63) - 1))
	return x, set.Entries[x.First+before : x.First+x.Entries]
}

// begin empties the set and makes room for the slots of a server.
func (set *PacketSet) begin(of snapshot.BasePair, complete bool, order uint, s *snapshot.SlotTable) {
	set.BasePair, set.complete, set.Order = of, complete, order
	set.used, set.open = 0, false
	set.Packets, set.Blocks, set.Records = set.Packets[:0], set.Blocks[:0], set.Records[:0]
	set.costs, set.ages, set.Entries = set.costs[:0], set.ages[:0], set.Entries[:0]
	for w, asked := range set.asked {
		for b := range bitset.Slots(w, asked) {
			set.Slots[b], set.Plain[b], set.wanted[b] = 0, 0, 0
		}
	}
	clear(set.asked)
	clear(set.Lacking)
	set.Slots, set.Plain, set.wanted = set.Slots.Grown(s.Len()), set.Plain.Grown(s.Len()), set.wanted.Grown(s.Len())
	set.asked, set.Lacking = set.asked.Grown(len(set.Slots)), set.Lacking.Grown(len(set.Slots))
	for len(set.Places) < len(set.Slots) {
		set.Places = append(set.Places, 0)
	}
	if complete {
		for _, b := range s.Busy {
			set.Want(int(b), s.Changed[b]&s.Alive[b]&^(s.Churned[b]|s.InGroups(int(b))))
		}
	}
}

// Want adds slots of a block to those that the set is to contain.
func (set *PacketSet) Want(b int, slots uint64) {
	set.wanted[b] |= slots
	set.asked.Add(b)
}

// findLacking finds the blocks of which a complete set misses something.
func (set *PacketSet) findLacking(s *snapshot.SlotTable) {
	if !set.complete {
		return
	}
	for _, b := range s.Busy {
		if s.Changed[b]&s.Alive[b]&^set.Slots[b] != 0 {
			set.Lacking.Add(int(b))
		}
	}
}

// openPacket begins a packet. It returns false if the set has reached its limit.
func (set *PacketSet) openPacket(s *snapshot.Snapshot) bool {
	room := s.Opts.MTU - wire.MaxStateHeader
	if !s.Opts.NoChecksum {
		room -= wire.ChecksumSize
	}
	if len(set.Packets)*room > maxSharedBytes {
		return false
	}
	if need := set.used + room; need > len(set.buf) {
		set.buf, set.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	set.w.Reset(set.buf[set.used:][:room:room])
	set.w.WriteBits(uint64(set.Order), wire.GapOrderBits)
	set.context, set.work = wire.Context{Names: delta.NamesAt(s.Tick)}, 0
	set.context.Names.Write(&set.w, delta.Baselines{A1: set.Base, A2: set.Second, Two: true})
	set.Packets = append(set.Packets, SharedPacket{First: len(set.Blocks)})
	set.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (set *PacketSet) closePacket() {
	if !set.open {
		return
	}
	set.open = false
	k := &set.Packets[len(set.Packets)-1]
	k.Bits, k.Body, k.End = set.w.Len(), set.w.Bytes(), len(set.Blocks)
	set.used += len(k.Body)
}

// finish adds what was sent of the set to the counts of a worker.
func (set *PacketSet) finish(counts *Counts, now delta.Tick) {
	for i := range set.Blocks {
		k := &set.Blocks[i]
		entries, packets := uint64(k.Entries), uint64(set.Packets[k.Packet].Copies)
		copies := packets*entries + uint64(k.Copies)
		for _, cost := range set.costs[k.firstCost:k.lastCost] {
			counts.FieldBits[cost.Field] += uint64(cost.Bits) * copies / entries
		}
		for _, a := range set.ages[k.firstAge:k.lastAge] {
			counts.Ages[a.age] += uint64(a.entries) * packets
		}
		counts.Ages[min(now-set.Base, 32)] += uint64(k.Copies)
		counts.Made += entries
		counts.Copied += copies
	}
	for i := range set.Packets {
		counts.Shared += uint64(set.Packets[i].Copies)
	}
}
