package encode

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// FullPackets are packets of full states that clients share which join at the same time. The slots of such a packet
// refer to nothing and nothing refers to them, so it is the same for all.
type FullPackets struct {
	Packets []SharedPacket
	Records *baseline.SharedRecords
	filled  bool

	pool    recordPool
	costs   []uint64 // of all entries, by field and symbols of components
	entries int

	// The packet that is being filled.
	w        bitbuf.Writer // contents of its entries
	contents []byte
	lists    wire.SlotLists
	set      wire.ComponentSet // of the entry before
	work     int
	buf      []byte // bodies of packets
	used     int
}

// Begin starts a tick without packets.
func (f *FullPackets) Begin() { f.Packets, f.filled = f.Packets[:0], false }

// Fill makes the packets of some slots, unless they are there already. It leaves out what is larger than a packet.
func (f *FullPackets) Fill(c *Cache, slots bitset.Set) {
	if f.filled {
		return
	}
	f.filled, f.entries, f.used = true, 0, 0
	f.Records = f.pool.replace(f.Records)
	if c.Snap.Tick%ackstate.ResizeTicks == 0 {
		f.pool.shrink()
	}
	if f.costs == nil {
		f.costs, f.contents = make([]uint64, len(c.FieldBits)), make([]byte, c.Snap.Opts.MTU)
	}
	clear(f.costs)
	open := false
	for b, of := range slots {
		for slot := range bitset.Slots(b, of) {
			r := c.FullState(slot)
			if open && f.add(c, slot, r) {
				continue
			}
			if open {
				f.close(c.Snap)
			}
			f.open(c.Snap)
			if open = f.add(c, slot, r); !open {
				f.Packets = f.Packets[:len(f.Packets)-1]
			}
		}
	}
	if open {
		f.close(c.Snap)
	}
}

// open begins a packet.
func (f *FullPackets) open(s *snapshot.Snapshot) {
	f.w.Reset(f.contents[:RoomOf(s)])
	f.lists.BeginApart()
	f.set, f.work = wire.ComponentSet{}, 0
	n := len(f.Records.List)
	f.Packets = append(f.Packets, SharedPacket{Base: s.Tick - 1, first: n, end: n})
}

// add appends a full state to the open packet. It returns false, and adds nothing, if that does not fit.
func (f *FullPackets) add(c *Cache, slot int, r *CachedEntry) bool {
	mark, lists, set := f.w.Mark(), f.lists.Mark(), f.set
	f.lists.AddOther(slot, wire.EntryFull)
	WriteFullHead(&f.w, c.Snap, slot, &f.set)
	c.Copy(&f.w, r)
	k := &f.Packets[len(f.Packets)-1]
	room := 8*RoomOf(c.Snap) - wire.MaxFrontBits
	if f.w.Err() != nil || !f.lists.Fits(room-f.w.Len()) ||
		k.Entries > 0 && !c.Snap.Opts.FreeWork.Allows(f.work+int(r.Work), f.w.Len()) {
		f.w.Rollback(mark)
		f.lists.Rollback(&lists)
		f.set = set
		return false
	}
	f.work += int(r.Work)
	k.Entries++
	f.entries++
	list, record := &f.Records.List, baseline.NewRecord(slot>>6, 1<<(slot&63), baseline.RecordState)
	if n := len(*list); n > k.first && (*list)[n-1].What == record.What {
		last := &(*list)[n-1]
		last.Low, last.High = last.Low|record.Low, last.High|record.High
	} else {
		*list = append(*list, record)
	}
	k.end = len(f.Records.List)
	for _, cost := range c.packed.Costs[r.firstCost:r.lastCost] {
		f.costs[cost.Field] += uint64(cost.Bits)
	}
	return true
}

// close ends the open packet.
func (f *FullPackets) close(s *snapshot.Snapshot) {
	if need := f.used + RoomOf(s) + 8; need > len(f.buf) {
		f.buf, f.used = make([]byte, 2*need), 0 // earlier packets keep the old one
	}
	k := &f.Packets[len(f.Packets)-1]
	w := bitbuf.NewWriter(f.buf[f.used:])
	front := wire.Front{Baselines: delta.Baselines{A1: k.Base}, Shift: s.Steady.Shift}
	front.Write(&w, s.Tick)
	f.lists.Write(&w)
	w.WriteRun(f.w.Bytes(), f.w.Len())
	k.Bits, k.Body = w.Len(), w.Bytes()
	f.used += len(k.Body)
}

// Finish adds what was sent to the counts of a worker. An entry that was copied counts as a mean one.
func (f *FullPackets) Finish(counts *Counts) {
	copies := uint64(0)
	for i := range f.Packets {
		k := &f.Packets[i]
		copies += uint64(k.Copies) * uint64(k.Entries)
		counts.Shared += uint64(k.Copies)
	}
	if copies == 0 {
		return
	}
	for field, bits := range f.costs {
		counts.FieldBits[field] += bits * copies / uint64(f.entries)
	}
	counts.Ages[0] += copies
	counts.Copied += copies
}

// WriteFullHead writes the head of the full state of a slot: the generation, and the component set as the difference
// from that of the full state before, which it replaces.
func WriteFullHead(w *bitbuf.Writer, s *snapshot.Snapshot, slot int, before *wire.ComponentSet) {
	info := &s.Slots.Info[slot]
	w.WriteExpGolomb(uint64(info.Generation), wire.GenerationOrder)
	wire.WriteComponentSet(w, &info.Set, before)
	*before = info.Set
}
