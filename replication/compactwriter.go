package replication

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// The state packets of a session with [Compact]: one string of bytes from a range coder, in
// which entries stand as in others. None of it is shared between peers.

// A compactWriter is what a packetWriter has for them.
type compactWriter struct {
	kept  keptModels
	e     delta.RangeEncoder
	state *compactState // of the open packet
	walk  compactWalk
	room  int    // bytes
	first int    // slot
	count int    // entries
	work  int    // of them, see work.go
	age   uint32 // of its model, in packets; 0: a new one
	keep  bool
	costs []uint32 // of the open packet, by field and symbols of components
}

func newCompactWriter(s *snapshot) *compactWriter {
	return &compactWriter{costs: make([]uint32, s.schema.Layout.Fields()+len(s.schema.Components))}
}

// A compactEntry is what is to be written of a slot.
type compactEntry struct {
	kind     wire.EntryKind
	name     compactName
	set, ref delta.Set // of entryRestructure
	payload  []byte    // of entryPart
	part     [4]uint64 // age, total, size, index
	work     int       // at most, see work.go
	leaps    bool      // an update that may be longer than the state without baseline
}

const (
	// mostChance is the bits that a decision takes at most, and a little more.
	mostChance = 12
	// endBytes is more than the end of a packet takes.
	endBytes = 4
	// compactHead is the bits that a head takes at most, without what is gone through of the
	// list, and with a set.
	compactHead = 100*mostChance + 4*delta.MaxComponents
)

// startCompact opens a packet whose first entry is of a slot.
func (k *packetWriter) startCompact(slot int, part bool) {
	p, x := k.peer, k.compact
	k.start()
	x.room = len(k.buf) - k.body
	x.e = delta.NewRangeEncoder(k.buf[k.body:])
	x.state = x.kept.take()
	var from *keptModel
	if !part { // a part is to take as much in any packet
		from = x.kept.choose(slot)
	}
	if from != nil && p.acked.log.next-from.sequence >= maxModelAge {
		from = nil
	}
	if x.age = 0; from == nil {
		x.state.copyFrom(nil)
		x.walk.begin(nil, p.snap.tick)
	} else {
		x.state.copyFrom(from.state)
		x.walk.begin(from.state, p.snap.tick)
		x.age = p.acked.log.next - from.sequence
	}
	x.e.PutExpGolomb(uint64(x.age>>ageLow), modelRef)
	x.state.tick = p.snap.tick
	x.first, x.count, x.work = slot, 0, 0
	x.keep = !part && x.kept.room()
	clear(x.costs)
}

// dropCompact gives up the open packet.
func (k *packetWriter) dropCompact() {
	x := k.compact
	x.kept.give(x.state)
	x.state = nil
	k.open, k.sent.status = false, sentUnused
}

// finishCompact sends the open packet.
func (k *packetWriter) finishCompact() {
	p, x := k.peer, k.compact
	c := p.runs.compactCoder()
	c.coder.Begin(&x.state.model)
	x.putEnd(c.coder)
	body, err := x.e.Finish()
	if err != nil {
		panic("replication: " + err.Error()) // there was room
	}
	for i, cost := range x.costs {
		c.costs[i] += uint64(cost)
	}
	k.open, k.sent = false, nil
	packet := k.buf[:k.body+len(body)]
	seal := p.seal
	k.header.Put(packet[seal.Size():])
	packet[seal.Size()] |= byte(x.age&(1<<ageLow-1)) << (wire.PadShift + 1)
	if x.keep {
		packet[seal.Size()] |= wire.KeptBit
		x.kept.keep(k.header.Sequence, uint32(x.first), uint32(x.walk.next-1), x.state)
	} else {
		x.kept.give(x.state)
	}
	x.state = nil
	seal.Write(packet, k.header.Sequence, k.header.Tick)
	p.put(packet, k.commit(len(packet), 8*len(body)))
}

// putCompact appends the state of a slot, to a new packet if need be, and returns the counter
// of its kind. The error is that of packetWriter.put.
func (k *packetWriter) putCompact(slot int, c *class) (count *uint64, err error) {
	p := k.peer
	entry := p.prepareCompact(slot, c)
	whole := entry.kind == wire.EntryFull
	if err = k.addCompact(slot, recordState, &entry); err == nil {
		p.runs.countCompact(&entry)
	}
	return p.counterOf(&entry, whole), err
}

// counterOf returns the counter of an entry that was written, which was to be whole or not.
func (p *sender) counterOf(entry *compactEntry, whole bool) *uint64 {
	switch {
	case whole:
		return &p.stats.Wholes
	case entry.kind == wire.EntryFull:
		return &p.stats.Jumps
	}
	return &p.stats.Updates
}

// countCompact counts an entry that is sent.
func (c *runCache) countCompact(entry *compactEntry) {
	age := delta.Tick(0)
	if entry.kind != wire.EntryFull {
		age = min(c.tick-entry.name.a1, 32)
	}
	c.ages[age]++
	c.copied++
	c.made++
}

// addCompact appends an entry, to a new packet if need be.
func (k *packetWriter) addCompact(slot int, kind recordKind, entry *compactEntry) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.startCompact(slot, entry.kind == wire.EntryPart)
		}
		if k.tryCompact(slot, entry) {
			k.record(slot, kind)
			return nil
		}
		if k.compact.count == 0 {
			k.dropCompact()
			return errTooLarge
		}
		k.finish()
	}
}

// tryCompact appends an entry to the open packet, or nothing if it does not fit.
func (k *packetWriter) tryCompact(slot int, entry *compactEntry) bool {
	x, c := k.compact, k.peer.runs.compactCoder()
	if x.count == maxCompact || x.count > 0 && !k.peer.opts.freeWork.allows(x.work+entry.work, 8*(x.e.Len()-endBytes)) {
		return false
	}
	c.coder.Begin(&x.state.model)
	safe := x.e.Len()+endBytes+(x.worst(c, slot, entry)+7)/8 < x.room
	var e delta.RangeEncoder
	var walk compactWalk
	listed := len(x.state.slots)
	if !safe || entry.leaps {
		e, walk, c.mark = x.e, x.walk, x.state.model
	}
	back := func() {
		x.e, x.walk, x.state.model = e, walk, c.mark
		x.state.slots = x.state.slots[:listed]
		c.coder.Costs = c.coder.Costs[:0]
	}
	x.put(c, slot, entry)
	if entry.leaps && k.peer.runs.jumped(slot, c.rowBits()) {
		back()
		c.forgetPast(k.peer.snap, slot, entry)
		x.put(c, slot, entry)
	}
	if !safe && x.e.Len()+endBytes > x.room {
		back()
		return false
	}
	for _, cost := range c.coder.Costs {
		x.costs[cost.Field] += cost.Bits
	}
	c.coder.Costs = c.coder.Costs[:0]
	x.count++
	x.work += entry.work
	return true
}

// rowBits returns what the rows of the entry that was written last cost.
func (c *compactCoder) rowBits() int {
	n := 0
	for _, cost := range c.coder.Costs {
		n += int(cost.Bits)
	}
	return n / delta.CostUnit
}

// worst returns the bits that an entry takes at most.
func (x *compactWriter) worst(c *compactCoder, slot int, entry *compactEntry) int {
	n := compactHead + 8*len(entry.payload)
	for i := x.walk.at; i < len(x.walk.before) && int(x.walk.before[i].slot) < slot; i++ {
		n += 2 * mostChance
	}
	if entry.kind != wire.EntryDespawn && entry.kind != wire.EntryPart {
		for i := range c.rows {
			n += c.worst[c.rows[i].component]
		}
	}
	return n
}

// compactTogether is putTogether.
func (k *packetWriter) compactTogether(entries []bundleEntry) bool {
	p := k.peer
	slices.SortFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.startCompact(int(entries[0].slot), false)
	ages, copied, made := p.runs.ages, p.runs.copied, p.runs.made
	for i := range entries {
		slot := int(entries[i].slot)
		entry := compactEntry{kind: wire.EntryDespawn}
		if entries[i].kind == bundleState {
			entry = p.prepareCompact(slot, p.acked.classOfSlot(slot))
		}
		whole := entry.kind == wire.EntryFull
		if !k.tryCompact(slot, &entry) {
			k.dropCompact()
			p.runs.ages, p.runs.copied, p.runs.made = ages, copied, made
			return false
		}
		if entry.kind != wire.EntryDespawn {
			p.runs.countCompact(&entry)
			entries[i].count = p.counterOf(&entry, whole)
		}
	}
	bits := 0
	for i := range entries {
		bits -= int(entries[i].bits)
		k.book(&entries[i])
	}
	bits += 8 * k.compact.e.Len()
	n := len(entries)
	k.heads = max(bits/n+2, k.heads-1)
	k.finish()
	return true
}

// classOfSlot returns the class of a slot that the peer is to be sent.
func (p *tracker) classOfSlot(slot int) *class {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.classify(b, bit)
	return &p.classes.list[0]
}
