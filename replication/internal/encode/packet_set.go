package encode

import (
	"math/bits"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A PacketSet is a set of packets that peers share in a tick. Its entries are in slot order and all
// encoded against the same pair of baselines. It is made for peers that hold this pair and contains
// what they want of it, except what is rare and peers encode themselves; each peer copies the entries that
// it needs. A complete set contains what changed in a send interval, except in the blocks of Lacking. A peer
// that needs that gets its packets as they are, under headers of its own.
//
// The bits of an entry depend on the world, the tick and the baselines only, so the wire does not show
// whether a set was used.
type PacketSet struct {
	snapshot.BasePair                  // its baselines
	period            *snapshot.Period // of a complete set: what changed in it is wanted
	wanted            bitset.Set       // slots to be encoded
	asked             bitset.Set       // by block: Slots and wanted are empty in all others
	places            []int32          // by block of slots: index in blocks, if the block is there

	Packets []SharedPacket
	blocks  []sharedBlock
	entries []sharedEntry
	Records []baseline.SentRecord // of the blocks
	costs   []uint32              // of all entries, by field and symbols of components
	copies  int                   // of single entries, in packets of peers
	Slots   bitset.Set            // that have an entry
	Lacking bitset.Set            // by block: something that changed is missing, in a complete set

	// The packet that is being filled.
	open     bool
	w        bitbuf.Writer // contents of its entries
	contents []byte
	lists    wire.SlotLists
	ref      []wire.SlotBlock // those that changed up to the first baseline, which the slots of a complete set refer to
	refSlots int              // slots in ref
	room     int              // bits of the body
	work     int              // of its entries
	buf      []byte           // bodies of packets
	used     int
}

// A SharedPacket is a packet without its header.
type SharedPacket struct {
	First, End int // its blocks
	Body       []byte
	Bits       int            // of the body
	Range      wire.SlotRange // in which its slots refer to those of the packets of the first baseline
	contents   int            // where in the body the contents of entries begin; all that an incomplete set has
	Entries    int
	Copies     uint32 // peers that were sent it

	// The part of the checksum that all copies have in common. It is computed for the second copy.
	Summed bool
	Sum    uint32
	Shift  wire.CRCShift
}

// A sharedBlock is the entries of a block of slots.
type sharedBlock struct {
	packet  int
	first   int // its first entry
	entries int
}

// A sharedEntry is the position of an entry in the contents of its packet; its work, see
// config/work.go; and the sum of the work of its block up to and including it.
type sharedEntry struct{ from, end, work, sum int32 }

// maxSharedBytes bounds the bodies of a set's packets.
const maxSharedBytes = 1 << 20

// BlockEntries are the entries of a block of slots in a packet set. They are valid in the present tick.
type BlockEntries struct {
	held    uint64 // slots that have an entry
	entries []sharedEntry
	from    *SharedPacket
	copies  *int
}

// In returns the entries of a block, which must be in the set.
func (set *PacketSet) In(b int) BlockEntries {
	x := &set.blocks[set.places[b]]
	return BlockEntries{set.Slots[b], set.entries[x.first : x.first+x.entries], &set.Packets[x.packet], &set.copies}
}

// Size returns how many bits the entries of some slots take, and how much work. Every slot must have an entry.
func (x *BlockEntries) Size(slots uint64) (n, work int) {
	if slots == x.held {
		last := &x.entries[len(x.entries)-1]
		return int(last.end - x.entries[0].from), int(last.sum)
	}
	for ; slots != 0; slots &= slots - 1 {
		e := &x.entries[bits.OnesCount64(x.held&(slots&-slots-1))]
		n, work = n+int(e.end-e.from), work+int(e.work)
	}
	return n, work
}

// Append appends the entries of some slots. Every slot must have an entry.
func (x *BlockEntries) Append(w *bitbuf.Writer, slots uint64) {
	body, contents := x.from.Body, x.from.contents
	if slots == x.held {
		begin := int(x.entries[0].from)
		w.WriteSpan(body, contents+begin, int(x.entries[len(x.entries)-1].end)-begin)
		return
	}
	for ; slots != 0; slots &= slots - 1 {
		e := &x.entries[bits.OnesCount64(x.held&(slots&-slots-1))]
		w.WriteSpan(body, contents+int(e.from), int(e.end-e.from))
	}
}

// Count counts entries that were copied.
func (x *BlockEntries) Count(n int) { *x.copies += n }

// begin empties the set and makes room for the slots of a server, and for the costs of so many fields.
func (set *PacketSet) begin(of snapshot.BasePair, period *snapshot.Period, s *snapshot.SlotTable, fields int) {
	set.BasePair, set.period = of, period
	set.used, set.open = 0, false
	set.Packets, set.blocks, set.Records = set.Packets[:0], set.blocks[:0], set.Records[:0]
	set.entries, set.copies = set.entries[:0], 0
	if len(set.costs) == 0 {
		set.costs = make([]uint32, fields)
	}
	clear(set.costs)
	for w, asked := range set.asked {
		for b := range bitset.Slots(w, asked) {
			set.Slots[b], set.wanted[b] = 0, 0
		}
	}
	clear(set.asked)
	clear(set.Lacking)
	set.Slots, set.wanted = set.Slots.Grown(s.Len()), set.wanted.Grown(s.Len())
	set.asked, set.Lacking = set.asked.Grown(len(set.Slots)), set.Lacking.Grown(len(set.Slots))
	for len(set.places) < len(set.Slots) {
		set.places = append(set.places, 0)
	}
	set.ref, set.refSlots = set.ref[:0], 0
	if period != nil {
		set.ref = appendReference(set.ref, s, of.Base, period.Ticks)
		set.refSlots = wire.CountSlots(set.ref)
		for _, b := range period.Busy {
			set.Want(int(b), period.Changed[b]&s.Alive[b]&^(s.Churned[b]|s.InGroups(int(b))))
		}
	}
}

// appendReference appends the slots of the packets of a recent tick to peers that were sent exactly what
// changed in so many ticks up to it.
func appendReference(ref []wire.SlotBlock, s *snapshot.SlotTable, at, ticks delta.Tick) []wire.SlotBlock {
	for b := range s.LiveLog[0] {
		if mask := s.LiveIn(ticks, at, b); mask != 0 {
			ref = append(ref, wire.SlotBlock{Block: uint32(b), Mask: mask})
		}
	}
	return ref
}

// Want adds slots of a block to those that the set is to contain.
func (set *PacketSet) Want(b int, slots uint64) {
	set.wanted[b] |= slots
	set.asked.Add(b)
}

// LacksAny reports whether a complete set misses something.
func (set *PacketSet) LacksAny() bool {
	return slices.ContainsFunc(set.Lacking, func(blocks uint64) bool { return blocks != 0 })
}

// findLacking finds the blocks of which a complete set misses something.
func (set *PacketSet) findLacking(s *snapshot.SlotTable) {
	if set.period == nil {
		return
	}
	for _, b := range set.period.Busy {
		if set.period.Changed[b]&s.Alive[b]&^set.Slots[b] != 0 {
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
	if len(set.contents) < room {
		set.contents = make([]byte, room)
	}
	set.w.Reset(set.contents[:room])
	set.lists.Begin(set.ref, set.refSlots)
	set.room, set.work = 8*room-wire.MaxFrontBits, 0
	set.Packets = append(set.Packets, SharedPacket{First: len(set.blocks)})
	set.open = true
	return true
}

// closePacket ends the open packet, if there is one.
func (set *PacketSet) closePacket(now delta.Tick, shift delta.Shift) {
	if !set.open {
		return
	}
	set.open = false
	k := &set.Packets[len(set.Packets)-1]
	w := bitbuf.NewWriter(set.buf[set.used:])
	if set.period != nil {
		front := wire.Front{Baselines: delta.Baselines{A1: set.Base, A2: set.Second, Two: true}, Shift: shift}
		front.Write(&w, now)
		k.Range = set.lists.Write(&w)
	}
	k.contents = w.Len()
	w.WriteRun(set.w.Bytes(), set.w.Len())
	k.Bits, k.Body, k.End = w.Len(), w.Bytes(), len(set.blocks)
	set.used += len(k.Body)
}

// finish adds what was sent of the set to the counts of a worker. An entry that was copied counts as a mean one.
func (set *PacketSet) finish(counts *Counts, now delta.Tick) {
	copies, entries := uint64(set.copies), uint64(len(set.entries))
	for i := range set.Packets {
		k := &set.Packets[i]
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
