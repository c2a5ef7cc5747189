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
// what they want of it, except slots whose component set changed or whose full state is smaller: peers
// encode those themselves. Each peer copies the entries that it needs. A set of a period is divided into
// parts, see partition, and has what changed in the period in those that peers want. They get the packets
// of these as they are, under headers of their own.
//
// The bits of an entry depend on the world, the tick and the baselines only, so the wire does not show
// whether a set was used.
type PacketSet struct {
	snapshot.BasePair // its baselines
	parts             setParts
	peers             int        // whose likely baselines these are
	wanted            bitset.Set // slots to be encoded
	asked             bitset.Set // by block: Slots and wanted are empty in all others
	places            []int32    // by block of slots: index in blocks, if the block is there

	packets []SharedPacket
	blocks  []sharedBlock
	entries []sharedEntry
	records *baseline.SharedRecords // of the blocks
	costs   []uint32                // of all entries, by field and symbols of components
	copies  int                     // of single entries, in packets of peers
	Slots   bitset.Set              // that have an entry
	missing int                     // slots that changed in the parts that were wanted and have none

	// The packet that is being filled.
	open     bool
	w        bitbuf.Writer // contents of its entries
	contents []byte
	lists    wire.SlotLists
	ref      []wire.SlotBlock // those that changed up to the first baseline, to which those of the parts refer
	refSlots int              // slots in ref
	room     int              // bits of the body
	work     int              // of its entries
	buf      []byte           // bodies of packets
	used     int
}

// A SharedPacket is a packet without its header.
type SharedPacket struct {
	Base       delta.Tick // first baseline of its entries
	first, end int        // its blocks
	Body       []byte
	Bits       int // of the body
	contents   int // where in the body the contents of entries begin; all that a set without parts has
	Entries    int
	Copies     uint32 // peers that were sent it

	// The part of the checksum that all copies have in common. It is computed for the second copy.
	Summed bool
	Sum    uint32
	Shift  wire.CRCShift
}

// Records returns what the packet carries, as a range of the records of its set.
func (k *SharedPacket) Records() (first, end int) { return k.first, k.end }

// A sharedBlock is the entries of a block of slots.
type sharedBlock struct {
	packet     int32
	first, end int32 // its entries
	begin      int32 // where they begin in the contents of their packet
}

// A sharedEntry is where an entry ends in the contents of its packet, and the work of its block up to and including it,
// see config/work.go. The entry begins where the one before ends, or its block begins. A peer looks at a few entries in
// many blocks, so they are small.
type sharedEntry struct{ end, work int32 }

// maxSharedBytes bounds the bodies of a set's packets, about.
const maxSharedBytes = 1 << 20

// leastOfPart is the number of packets that a part may have, at least.
const leastOfPart = 4

// BlockEntries are the entries of a block of slots in a packet set. They are valid in the present tick.
type BlockEntries struct {
	held    uint64 // slots that have an entry
	entries []sharedEntry
	begin   sharedEntry // stands for the entry before the first
	from    *SharedPacket
	copies  *int
}

// In returns the entries of a block, which must be in the set.
func (set *PacketSet) In(b int) BlockEntries {
	x := &set.blocks[set.places[b]]
	return BlockEntries{
		held: set.Slots[b], entries: set.entries[x.first:x.end], begin: sharedEntry{end: x.begin},
		from: &set.packets[x.packet], copies: &set.copies,
	}
}

// entry returns the entry of a slot, given as its bit, after the one before it.
func (x *BlockEntries) entry(bit uint64) (before, e *sharedEntry) {
	i := bits.OnesCount64(x.held & (bit - 1))
	if i == 0 {
		return &x.begin, &x.entries[0]
	}
	return &x.entries[i-1], &x.entries[i]
}

// Size returns how many bits the entries of some slots take, and how much work. Every slot must have an entry.
func (x *BlockEntries) Size(slots uint64) (n, work int) {
	if slots == x.held {
		last := &x.entries[len(x.entries)-1]
		return int(last.end - x.begin.end), int(last.work)
	}
	for ; slots != 0; slots &= slots - 1 {
		before, e := x.entry(slots & -slots)
		n, work = n+int(e.end-before.end), work+int(e.work-before.work)
	}
	return n, work
}

// Append appends the entries of some slots. Every slot must have an entry.
func (x *BlockEntries) Append(w *bitbuf.Writer, slots uint64) {
	body, contents := x.from.Body, x.from.contents
	if slots == x.held {
		begin := int(x.begin.end)
		w.WriteSpan(body, contents+begin, int(x.entries[len(x.entries)-1].end)-begin)
		return
	}
	for ; slots != 0; slots &= slots - 1 {
		before, e := x.entry(slots & -slots)
		w.WriteSpan(body, contents+int(before.end), int(e.end-before.end))
	}
}

// Count counts entries that were copied.
func (x *BlockEntries) Count(n int) { *x.copies += n }

// begin empties the set and makes room for the slots of a server, and for the costs of so many fields. records are
// where the set keeps its own.
func (set *PacketSet) begin(of snapshot.BasePair, s *snapshot.SlotTable, fields int, records *baseline.SharedRecords) {
	set.BasePair, set.records, set.peers, set.missing = of, records, 0, 0
	set.parts = setParts{list: set.parts.list[:0]}
	set.used, set.open = 0, false
	set.packets, set.blocks = set.packets[:0], set.blocks[:0]
	set.entries, set.copies = set.entries[:0], 0
	if len(set.costs) == 0 {
		set.costs = make([]uint32, fields)
	}
	clear(set.costs)
	for b := range set.asked.All() {
		set.Slots[b], set.wanted[b] = 0, 0
	}
	clear(set.asked)
	set.Slots, set.wanted = set.Slots.Grown(s.Len()), set.wanted.Grown(s.Len())
	set.asked = set.asked.Grown(len(set.Slots))
	for len(set.places) < len(set.Slots) {
		set.places = append(set.places, 0)
	}
	set.ref, set.refSlots = set.ref[:0], 0
}

// split divides the set into the parts of a period.
func (set *PacketSet) split(period *snapshot.Period, of *partition, s *snapshot.SlotTable) {
	set.parts.begin(period, of)
	set.ref = s.AppendLive(set.ref, period.Ticks, set.Base)
	set.refSlots = wire.CountSlots(set.ref)
}

// wantPart adds a part to what the set is to contain.
func (set *PacketSet) wantPart(part int, s *snapshot.SlotTable) {
	k := &set.parts.list[part]
	if k.wanted {
		return
	}
	k.wanted = true
	period := set.parts.period
	for b := range period.Blocks.Between(set.parts.bounds(part)) {
		alive := period.Changed[b] & s.Alive[b]
		set.missing += bits.OnesCount64(alive)
		if slots := alive &^ (s.Churned[b] | s.InGroups(b)); slots != 0 {
			set.Want(b, slots)
		}
	}
}

// packetsOf returns the packets of parts in a row, which were wanted.
func (set *PacketSet) packetsOf(first, end int) []SharedPacket {
	var of setPart
	for i := first; i < end; i++ {
		switch k := &set.parts.list[i]; {
		case k.end == 0: // nothing changed in it
		case of.end == 0:
			of = *k
		default:
			of.end = k.end
		}
	}
	return set.packets[of.first:of.end]
}

// Front returns the baselines in front of the packets of parts.
func (set *PacketSet) Front() delta.Baselines {
	return delta.Baselines{A1: set.Base, A2: set.Second, Two: true}
}

// BeginLists begins the slot lists of a packet with entries of a part.
func (set *PacketSet) BeginLists(l *wire.SlotLists, part int) {
	l.Begin(set.ref, set.refSlots)
	l.Within(set.parts.partition.slots(part))
}

// Records returns what the packets of the set carry, see SharedPacket.Records.
func (set *PacketSet) Records() *baseline.SharedRecords { return set.records }

// Wanted returns the slots of a block that the set is to contain.
func (set *PacketSet) Wanted(b int) uint64 { return set.wanted[b] }

// Want adds slots of a block to those that the set is to contain.
func (set *PacketSet) Want(b int, slots uint64) {
	set.wanted[b] |= slots
	set.asked.Add(b)
}

// sizeOf returns about how many bits a block takes in a packet. The slot lists take half a bit for each slot.
func (set *PacketSet) sizeOf(b int) int32 {
	x := &set.blocks[set.places[b]]
	return set.entries[x.end-1].end - x.begin + (x.end-x.first)/2
}

// enter moves on to the part of a block.
func (set *PacketSet) enter(b int, now delta.Tick, shift delta.Shift) {
	for set.parts.period != nil {
		if _, to := set.parts.bounds(set.parts.at); b < to {
			return
		}
		set.closePacket(now, shift)
		set.parts.at++
	}
}

// RoomOf returns the bytes that the body of a shared packet may have.
func RoomOf(s *snapshot.Snapshot) int {
	room := s.Opts.MTU - wire.MaxStateHeader
	if !s.Opts.NoChecksum {
		room -= wire.ChecksumSize
	}
	return room
}

// mayOpen reports whether the set may have one more packet, if a set has so many at most. Which packets of a part there
// are must not depend on other parts, as other workers may want these.
func (set *PacketSet) mayOpen(most int) bool {
	if set.parts.period == nil {
		return len(set.packets) <= most
	}
	part := &set.parts.list[set.parts.at]
	return part.end-part.first <= max(most/len(set.parts.list), leastOfPart)
}

// openPacket begins a packet. It returns false if the set has reached its limit.
func (set *PacketSet) openPacket(s *snapshot.Snapshot) bool {
	room := RoomOf(s)
	if !set.mayOpen(maxSharedBytes / room) {
		return false
	}
	if need := set.used + room; need > len(set.buf) {
		set.buf, set.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	if len(set.contents) < room {
		set.contents = make([]byte, room)
	}
	set.w.Reset(set.contents[:room])
	if set.parts.period != nil {
		set.BeginLists(&set.lists, set.parts.at)
	} else {
		set.lists.Begin(nil, 0)
	}
	set.room, set.work = 8*room-wire.MaxFrontBits, 0
	set.packets = append(set.packets, SharedPacket{Base: set.Base, first: len(set.blocks)})
	set.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (set *PacketSet) closePacket(now delta.Tick, shift delta.Shift) {
	if !set.open {
		return
	}
	set.open = false
	k := &set.packets[len(set.packets)-1]
	w := bitbuf.NewWriter(set.buf[set.used:])
	if set.parts.period != nil {
		front := wire.Front{Baselines: set.Front(), Shift: shift}
		front.Write(&w, now)
		set.lists.Write(&w)
		set.parts.list[set.parts.at].add(len(set.packets) - 1)
	}
	k.contents = w.Len()
	w.WriteRun(set.w.Bytes(), set.w.Len())
	k.Bits, k.Body, k.end = w.Len(), w.Bytes(), len(set.blocks)
	set.used += len(k.Body)
}

// finish adds what was sent of the set to the counts of a worker. An entry that was copied counts as a mean one.
func (set *PacketSet) finish(counts *Counts, now delta.Tick) {
	copies, entries := uint64(set.copies), uint64(len(set.entries))
	for i := range set.packets {
		k := &set.packets[i]
		copies += uint64(k.Copies) * uint64(k.Entries)
		counts.Shared += uint64(k.Copies)
	}
	if entries == 0 {
		return
	}
	for f, bits := range set.costs {
		counts.FieldBits[f] += uint64(bits) * copies / entries
	}
	counts.Ages[min(now-set.Base, 32)] += copies
	counts.Made += entries
	counts.Copied += copies
}
