package sender

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// Packets of the coding Compact, which are made for one peer each.

// prepareCompact finds the rows of a slot and what they are coded against.
func (p *Sender) prepareCompact(slot int, k *baseline.Class) (entry compact.Entry) {
	s, c := p.snap, p.Worker.CompactCoder()
	info := &s.Slots.Info[slot]
	entry.Set = info.Set
	if !k.Full {
		name := compact.Name{A1: k.A1}
		if k.Two {
			name.Span, name.Third = k.A1-k.A2, delta.Tick(k.Third)
		}
		for tries := 0; ; tries++ { // again with fewer baselines, if some are not kept any more
			if c.Gather(s, slot, name, &entry) {
				entry.Name = name
				return entry
			}
			if name.Span == 0 {
				break
			}
			if name.Third != 0 {
				name.Third = 0
			} else {
				name.Span = 0
			}
		}
	}
	entry.Kind, entry.Part[0] = wire.EntryFull, uint64(info.Generation)
	c.Rows, entry.Work = c.Rows[:0], s.Schema.FullWork(&info.Set)
	for k := info.Set.Next(0); k >= 0; k = info.Set.Next(k + 1) {
		c.Rows = append(c.Rows, compact.Row{Component: k, Cur: s.Histories[k].Row(slot)})
	}
	return entry
}

// counterOf returns the counter of an entry that was written, which was to be whole or not.
func (p *Sender) counterOf(entry *compact.Entry, full bool) *uint64 {
	switch {
	case full:
		return &p.stats.FullStates
	case entry.Kind == wire.EntryFull:
		return &p.stats.KeyframeFallbacks
	}
	return &p.stats.Updates
}

// startCompact opens a packet whose first entry is of a slot.
func (k *packetWriter) startCompact(slot int, part bool) {
	p, x := k.peer, k.Compact
	k.start()
	x.Room = len(k.buf) - k.body
	x.E = delta.NewRangeEncoder(k.buf[k.body:])
	x.State = x.Kept.Take()
	var from *compact.KeptModel
	if !part { // a part is to take as much in any packet
		from = x.Kept.Choose(slot)
	}
	if from != nil && p.acked.Log.Next-from.Sequence >= compact.MaxModelAge {
		from = nil
	}
	if x.Age = 0; from == nil {
		x.State.CopyFrom(nil)
		x.Walk.Begin(nil, p.snap.Tick)
	} else {
		x.State.CopyFrom(from.State)
		x.Walk.Begin(from.State, p.snap.Tick)
		x.Age = p.acked.Log.Next - from.Sequence
	}
	x.E.PutExpGolomb(uint64(x.Age>>compact.AgeLow), compact.ModelRef)
	x.State.Tick = p.snap.Tick
	x.First, x.Count, x.Work = slot, 0, 0
	x.Keep = !part && x.Kept.Room()
	clear(x.Costs)
}

// dropCompact gives up the open packet.
func (k *packetWriter) dropCompact() {
	x := k.Compact
	x.Kept.Give(x.State)
	x.State = nil
	k.open, k.sent.Status = false, ackstate.SentUnused
}

// finishCompact sends the open packet.
func (k *packetWriter) finishCompact() {
	p, x := k.peer, k.Compact
	c := p.Worker.CompactCoder()
	c.Coder.Begin(&x.State.Model)
	x.PutEnd(c.Coder)
	body, err := x.E.Finish()
	if err != nil {
		panic("replication: " + err.Error()) // there was room
	}
	for i, cost := range x.Costs {
		c.Costs[i] += uint64(cost)
	}
	k.open, k.sent = false, nil
	packet := k.buf[:k.body+len(body)]
	key := p.key
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
	p.put(packet, k.commit(len(packet), 8*len(body)))
}

// putCompact appends the state of a slot, to a new packet if need be, and returns the counter
// of its kind. The error is that of packetWriter.put.
func (k *packetWriter) putCompact(slot int, c *baseline.Class) (count *uint64, err error) {
	p := k.peer
	entry := p.prepareCompact(slot, c)
	full := entry.Kind == wire.EntryFull
	if err = k.addCompact(slot, baseline.RecordState, &entry); err == nil {
		p.Worker.CountCompact(&entry)
	}
	return p.counterOf(&entry, full), err
}

// addCompact appends an entry, to a new packet if need be.
func (k *packetWriter) addCompact(slot int, kind baseline.RecordKind, entry *compact.Entry) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.startCompact(slot, entry.Kind == wire.EntryPart)
		}
		if k.tryCompact(slot, entry) {
			k.record(slot, kind)
			return nil
		}
		if k.Compact.Count == 0 {
			k.dropCompact()
			return errTooLarge
		}
		k.finish()
	}
}

// tryCompact appends an entry to the open packet, or nothing if it does not fit.
func (k *packetWriter) tryCompact(slot int, entry *compact.Entry) bool {
	x, c := k.Compact, k.peer.Worker.CompactCoder()
	if x.Count == compact.MaxCompact || x.Count > 0 && !k.peer.opts.FreeWork.Allows(x.Work+entry.Work, 8*(x.E.Len()-compact.EndBytes)) {
		return false
	}
	c.Coder.Begin(&x.State.Model)
	safe := x.E.Len()+compact.EndBytes+(x.Worst(c, slot, entry)+7)/8 < x.Room
	var e delta.RangeEncoder
	var walk compact.Walk
	listed := len(x.State.Slots)
	if !safe || entry.Far {
		e, walk, c.Mark = x.E, x.Walk, x.State.Model
	}
	back := func() {
		x.E, x.Walk, x.State.Model = e, walk, c.Mark
		x.State.Slots = x.State.Slots[:listed]
		c.Coder.Costs = c.Coder.Costs[:0]
	}
	x.Put(c, slot, entry)
	if entry.Far && encode.FullIsSmaller(k.peer.snap, slot, c.RowBits()) {
		back()
		c.ForgetPast(k.peer.snap, slot, entry)
		x.Put(c, slot, entry)
	}
	if !safe && x.E.Len()+compact.EndBytes > x.Room {
		back()
		return false
	}
	for _, cost := range c.Coder.Costs {
		x.Costs[cost.Field] += cost.Bits
	}
	c.Coder.Costs = c.Coder.Costs[:0]
	x.Count++
	x.Work += entry.Work
	return true
}

// compactTogether is putTogether.
func (k *packetWriter) compactTogether(entries []batchEntry) bool {
	p := k.peer
	slices.SortFunc(entries, func(a, b batchEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.startCompact(int(entries[0].slot), false)
	ages, copied, made := p.Worker.Ages, p.Worker.Copied, p.Worker.Made
	for i := range entries {
		slot := int(entries[i].slot)
		entry := compact.Entry{Kind: wire.EntryDespawn}
		if entries[i].kind == batchState {
			entry = p.prepareCompact(slot, p.acked.ClassOfSlot(slot))
		}
		full := entry.Kind == wire.EntryFull
		if !k.tryCompact(slot, &entry) {
			k.dropCompact()
			p.Worker.Ages, p.Worker.Copied, p.Worker.Made = ages, copied, made
			return false
		}
		if entry.Kind != wire.EntryDespawn {
			p.Worker.CountCompact(&entry)
			entries[i].count = p.counterOf(&entry, full)
		}
	}
	bits := 0
	for i := range entries {
		bits -= int(entries[i].bits)
		k.book(&entries[i])
	}
	bits += 8 * k.Compact.E.Len()
	n := len(entries)
	k.heads = max(bits/n+2, k.heads-1)
	k.finish()
	return true
}
