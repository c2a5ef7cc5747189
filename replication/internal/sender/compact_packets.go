package sender

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Packets of the coding Compact: their model depends on what the peer acknowledged, so nothing of them is shared.

// prepareCompact loads the rows of a slot, and of the baselines of its class, into the coder.
func (k *packetWriter) prepareCompact(slot int, of *baseline.Class) (entry compact.Entry) {
	s, c := k.snap, k.cache.CompactCoder()
	info := &s.Slots.Info[slot]
	entry.Set = info.Set
	if !of.Full {
		name := compact.Name{A1: of.A1}
		if of.Two {
			name.Span, name.Third, name.Fourth = of.A1-of.A2, delta.Tick(of.Third), delta.Tick(of.Fourth)
		}
		for { // with fewer baselines each time, if the history no longer has them all
			if c.Gather(s, slot, name, &entry) {
				entry.Name = name
				return entry
			}
			if name.Span == 0 {
				break
			}
			if name.Third != 0 {
				name.Third, name.Fourth = 0, 0
			} else {
				name.Span = 0
			}
		}
	}
	entry.Kind, entry.Part[0] = wire.EntryFull, uint64(info.Generation)
	c.Rows, entry.Work = c.Rows[:0], s.Schema.FullWork(&info.Set)
	for k := range info.Set.All() {
		c.Rows = append(c.Rows, compact.Row{Component: k, Cur: s.Histories[k].Row(slot)})
	}
	return entry
}

// counterOf returns the counter of an entry that was written. full is set if there were no baselines for an update.
func (k *packetWriter) counterOf(entry *compact.Entry, full bool) *uint64 {
	switch {
	case full:
		return &k.stats.FullStates
	case entry.Kind == wire.EntryFull:
		return &k.stats.KeyframeFallbacks
	}
	return &k.stats.Updates
}

// startCompact is start for the coding Compact. The packet is open.
func (k *packetWriter) startCompact(slot int, part bool) {
	x := k.Compact
	x.Room = k.opts.MTU - k.body
	x.E = delta.NewRangeEncoder(k.out.box.packet[k.body:k.opts.MTU])
	x.State = x.Kept.Take()
	var from *compact.KeptModel
	if !part { // a part takes the same room in any packet
		from = x.Kept.Choose(slot)
	}
	if from != nil && k.header.Sequence-from.Sequence >= compact.MaxModelAge {
		from = nil
	}
	base := k.snap.Tick - 1
	if x.Age = 0; from == nil {
		x.State.CopyFrom(nil, k.cache.CompactCoder().Coder)
		x.Walk.Begin(nil, k.snap.Tick)
	} else {
		x.State.CopyFrom(from.State, k.cache.CompactCoder().Coder)
		x.Walk.Begin(from.State, k.snap.Tick)
		x.Age = k.header.Sequence - from.Sequence
		base = from.State.Tick
	}
	k.header.Settled = k.acked.Certify(k.header.Sequence, base)
	x.E.PutExpGolomb(uint64(x.Age>>compact.AgeLow), compact.ModelRef)
	x.State.Tick = k.snap.Tick
	x.First, x.Count, x.Work = slot, 0, 0
	x.Keep = !part && x.Kept.Room()
	clear(x.Costs)
}

// dropCompact is abandon for the coding Compact.
func (k *packetWriter) dropCompact() {
	k.Compact.Kept.Give(k.Compact.State)
	k.Compact.State = nil
}

// finishCompact sends the open packet.
func (k *packetWriter) finishCompact() {
	x, c := k.Compact, k.cache.CompactCoder()
	c.Coder.Begin(&x.State.Model)
	x.PutEnd(c.Coder)
	body, err := x.E.Finish()
	if err != nil {
		panic("replication: " + err.Error()) // tryCompact leaves room for the end
	}
	for i, cost := range x.Costs {
		c.Costs[i] += uint64(cost)
	}
	k.isOpen, k.sent = false, nil
	packet := k.out.box.packet[:k.body+len(body)]
	key := &k.out.key
	k.header.Put(packet[key.Size():])
	packet[key.Size()] |= byte(x.Age&(1<<compact.AgeLow-1)) << (wire.PadShift + 1)
	if x.Keep {
		packet[key.Size()] |= wire.KeptBit
		x.Kept.Keep(k.header.Sequence, uint32(x.First), uint32(x.Walk.Next-1), x.State)
	} else {
		x.Kept.Give(x.State)
	}
	x.State = nil
	key.Write(packet, k.header.Sequence, k.header.Tick)
	k.out.put(packet, k.commit(len(packet), 8*len(body)))
}

// putCompact appends the state of a slot of a class and returns its counter. The error is that of append.
func (k *packetWriter) putCompact(slot int, c *baseline.Class) (count *uint64, err error) {
	entry := k.prepareCompact(slot, c)
	full := entry.Kind == wire.EntryFull
	if err = k.addCompact(slot, baseline.RecordState, &entry); err == nil {
		k.cache.CountCompact(&entry)
		if full {
			k.budget.bookFull(entry.Bits)
		}
	}
	return k.counterOf(&entry, full), err
}

// addCompact appends an entry. The error is that of append.
func (k *packetWriter) addCompact(slot int, kind baseline.RecordKind, entry *compact.Entry) error {
	err := k.append(slot, kind == baseline.RecordPart, func() bool { return k.tryCompact(slot, entry) })
	if err == nil {
		k.record(slot, kind)
	}
	return err
}

// tryCompact appends an entry to the open packet. It returns false, and appends nothing, if the entry does not fit.
func (k *packetWriter) tryCompact(slot int, entry *compact.Entry) bool {
	x, c := k.Compact, k.cache.CompactCoder()
	if x.Count == compact.MaxCompact ||
		x.Count > 0 && !k.opts.FreeWork.Allows(x.Work+entry.Work, 8*(x.E.Len()-compact.EndBytes)) {
		return false
	}
	c.Coder.Begin(&x.State.Model)
	safe := x.E.Len()+compact.EndBytes+(x.Worst(c, slot, entry)+7)/8 < x.Room
	var e delta.RangeEncoder
	var walk compact.Walk
	listed := len(x.State.Slots)
	if !safe || entry.Far {
		e, walk = x.E, x.Walk
		c.Mark.CopyFrom(&x.State.Model)
	}
	undo := func() {
		x.E, x.Walk = e, walk
		x.State.Model.CopyFrom(&c.Mark)
		x.State.Slots = x.State.Slots[:listed]
		c.Coder.Costs = c.Coder.Costs[:0]
	}
	x.Put(c, slot, entry)
	if entry.Far && encode.FullIsSmaller(k.snap, slot, c.RowBits()) {
		undo()
		c.ForgetPast(k.snap, slot, entry)
		x.Put(c, slot, entry)
	}
	if !safe && x.E.Len()+compact.EndBytes > x.Room {
		undo()
		return false
	}
	if entry.Kind == wire.EntryFull {
		entry.Bits = int32(c.RowBits())
	}
	for _, cost := range c.Coder.Costs {
		x.Costs[cost.Field] += cost.Bits
	}
	c.Coder.Costs = c.Coder.Costs[:0]
	x.Count++
	x.Work += entry.Work
	return true
}

// compactTogether is writeTogether for the coding Compact.
func (k *packetWriter) compactTogether(entries []batchEntry) (size int, ok bool) {
	counts := k.cache.Counts
	for i := range entries {
		slot := int(entries[i].slot)
		entry := *compact.Despawn(k.acked.Acks.Left.Has(slot))
		if entries[i].kind == batchState {
			entry = k.prepareCompact(slot, k.acked.ClassOfSlot(slot))
		}
		full := entry.Kind == wire.EntryFull
		if !k.tryCompact(slot, &entry) {
			k.cache.Counts = counts // nothing was sent
			return 0, false
		}
		if entry.Kind != wire.EntryDespawn {
			k.cache.CountCompact(&entry)
			entries[i].count = k.counterOf(&entry, full)
		}
	}
	return 8 * k.Compact.E.Len(), true
}
