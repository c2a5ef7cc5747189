package replication

import (
	"cmp"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
)

// The state packets of a session with [Compact]: one string of bytes from a range coder, in
// which entries stand as in others. None of it is shared between peers.

// A compactWriter is what a packetWriter has for them.
type compactWriter struct {
	kept  keptModels
	e     delta.RangeEncoder
	state *compactState // of the open packet
	walk  compactWalk
	room  int // bytes
	first int // slot
	count int // entries
	keep  bool
	costs []uint32 // of the open packet, by field and symbols of components
}

func newCompactWriter(s *Server) *compactWriter {
	return &compactWriter{costs: make([]uint32, s.schema.layout.Fields()+len(s.schema.components))}
}

// A compactCoder is scratch memory, which the peers of a worker share.
type compactCoder struct {
	coder *delta.Compact
	rows  []compactRow
	mark  delta.Model
	worst []int    // bits that a row takes at most, by component
	costs []uint64 // sent so far, by field and symbols of components, in units of delta.CostUnit
}

type compactRow struct {
	component int
	cur       []uint32
	past      delta.Past
}

func newCompactCoder(s *Schema) *compactCoder {
	c := &compactCoder{coder: delta.NewCompact(s.layout), costs: make([]uint64, s.layout.Fields()+len(s.components))}
	for i := range s.layout.Components {
		c.worst = append(c.worst, s.layout.Components[i].CompactWidth())
	}
	return c
}

// compactCoder returns the worker's.
func (c *runCache) compactCoder() *compactCoder {
	if c.compact == nil {
		c.compact = newCompactCoder(c.server.schema)
	}
	return c.compact
}

// A compactEntry is what is to be written of a slot.
type compactEntry struct {
	kind     entryKind
	name     compactName
	set, ref delta.Set // of entryRestructure
	payload  []byte    // of entryPart
	part     [4]uint64 // age, total, size, index
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
	if from != nil && p.log.next-from.sequence >= maxModelAge {
		from = nil
	}
	if from == nil {
		x.state.copyFrom(nil)
		x.walk.begin(nil, p.server.tick)
		x.e.PutExpGolomb(0, modelRef)
	} else {
		x.state.copyFrom(from.state)
		x.walk.begin(from.state, p.server.tick)
		x.e.PutExpGolomb(uint64(p.log.next-from.sequence), modelRef)
	}
	x.state.tick = p.server.tick
	x.first, x.count = slot, 0
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
	seal := p.session.down
	k.header.put(packet[seal.size():])
	if x.keep {
		packet[seal.size()] |= keptBit
		x.kept.keep(k.header.sequence, uint32(x.first), uint32(x.walk.next-1), x.state)
	} else {
		x.kept.give(x.state)
	}
	x.state = nil
	seal.close(packet, k.header.sequence, k.header.tick)
	p.put(packet, k.commit(len(packet), 8*len(body)))
}

// putCompact appends the state of a slot, to a new packet if need be, and returns the counter
// of its kind. The error is that of packetWriter.put.
func (k *packetWriter) putCompact(slot int, c *class) (err error, count *uint64) {
	p := k.peer
	entry := p.prepareCompact(slot, c)
	count = &p.stats.Updates
	if entry.kind == entryWhole {
		count = &p.stats.Wholes
	}
	if err = k.addCompact(slot, recordState, entry); err == nil {
		p.runs.countCompact(&entry)
	}
	return err, count
}

// countCompact counts an entry that is sent.
func (c *runCache) countCompact(entry *compactEntry) {
	age := delta.Tick(0)
	if entry.kind != entryWhole {
		age = min(c.tick-entry.name.a1, 32)
	}
	c.ages[age]++
	c.copied++
	c.made++
}

// addCompact appends an entry, to a new packet if need be.
func (k *packetWriter) addCompact(slot int, kind recordKind, entry compactEntry) error {
	for {
		if !k.open {
			if k.peer.blocked() {
				return errFull
			}
			k.startCompact(slot, entry.kind == entryPart)
		}
		if k.tryCompact(slot, &entry) {
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
	if x.count == maxCompact {
		return false
	}
	c.coder.Begin(&x.state.model)
	safe := x.e.Len()+endBytes+(x.worst(c, slot, entry)+7)/8 < x.room
	var e delta.RangeEncoder
	var walk compactWalk
	listed := len(x.state.slots)
	if !safe {
		e, walk, c.mark = x.e, x.walk, x.state.model
	}
	x.put(c, slot, entry)
	if !safe && x.e.Len()+endBytes > x.room {
		x.e, x.walk, x.state.model = e, walk, c.mark
		x.state.slots = x.state.slots[:listed]
		c.coder.Costs = c.coder.Costs[:0]
		return false
	}
	for _, cost := range c.coder.Costs {
		x.costs[cost.Field] += cost.Bits
	}
	c.coder.Costs = c.coder.Costs[:0]
	x.count++
	return true
}

// worst returns the bits that an entry takes at most.
func (x *compactWriter) worst(c *compactCoder, slot int, entry *compactEntry) int {
	n := compactHead + 8*len(entry.payload)
	for i := x.walk.at; i < len(x.walk.before) && int(x.walk.before[i].slot) < slot; i++ {
		n += 2 * mostChance
	}
	if entry.kind <= entryWhole {
		for i := range c.rows {
			n += c.worst[c.rows[i].component]
		}
	}
	return n
}

// putEnd ends the entries.
func (x *compactWriter) putEnd(c *delta.Compact) {
	w := &x.walk
	if !w.begun && len(w.before) > 0 {
		c.PutHead(&x.e, headJump, false)
	}
	room := w.room()
	if room >= 0 {
		c.PutHead(&x.e, w.otherContext(room), true)
	}
	if room != 0 {
		c.PutHead(&x.e, w.endContext(room), true)
	}
	w.end(x.state)
}

// putSlot says which slot the next entry is of.
func (x *compactWriter) putSlot(c *delta.Compact, slot int) (origin int) {
	w := &x.walk
	if !w.begun {
		w.begun = true
		if len(w.before) > 0 {
			jump := len(w.before) > maxPassed && int(w.before[maxPassed].slot) < slot
			c.PutHead(&x.e, headJump, jump)
			if jump {
				x.e.PutExpGolomb(uint64(slot), jumpBits)
				w.jump(slot)
				if w.room() == 0 {
					return w.pass(x.state, true)
				}
				w.found(x.state, slot)
				return originNew
			}
		}
	}
	for {
		room := w.room()
		if room >= 0 {
			other := slot-w.next < room
			c.PutHead(&x.e, w.otherContext(room), other)
			if !other {
				again := slot == w.next+room
				c.PutHead(&x.e, w.againContext(), again)
				if origin = w.pass(x.state, again); again {
					return origin
				}
				continue
			}
		}
		c.PutHead(&x.e, w.endContext(room), false)
		context, width := w.gapWidth(room)
		c.PutHeadLength(&x.e, context, gapLengths, uint64(slot-w.next), width)
		w.found(x.state, slot)
		return originNew
	}
}

// maxPassed is how many listed slots are gone through at the beginning of a packet, rather
// than left out at once.
const maxPassed = 12

// put writes an entry.
func (x *compactWriter) put(c *compactCoder, slot int, entry *compactEntry) {
	origin := x.putSlot(c.coder, slot)
	for i := range kindSteps {
		more := int(entry.kind) > i
		c.coder.PutHead(&x.e, headKind+origin*kindSteps+i, more)
		if !more {
			break
		}
	}
	switch entry.kind {
	case entryUpdate:
		x.putName(c.coder, origin, &entry.name)
	case entryRestructure:
		x.putName(c.coder, origin, &entry.name)
		x.putSet(&entry.set, &entry.ref)
	case entryWhole:
		x.putWhole(c.coder, entry)
	case entryPart:
		for _, v := range entry.part {
			x.e.PutExpGolomb(v, partOrder)
		}
		for _, b := range entry.payload {
			x.e.PutBits(uint64(b), 8)
		}
		return
	default:
		return
	}
	c.coder.Entity(origin == originAgain)
	for i := range c.rows {
		r := &c.rows[i]
		c.coder.EncodeRow(&x.e, r.component, r.cur, &r.past)
	}
}

// putName names the baselines.
func (x *compactWriter) putName(c *delta.Compact, origin int, name *compactName) {
	x.state.named(x.walk.next-1, name)
	last := &x.walk.names[origin]
	same := *name == *last
	c.PutHead(&x.e, x.walk.nameContext(origin), same)
	if same {
		return
	}
	if origin == originAgain && *last != x.walk.own {
		own := *name == x.walk.own
		c.PutHead(&x.e, headOwn, own)
		if own {
			*last = *name
			return
		}
	}
	*last = *name
	atRef := name.a1 == x.walk.ref && !name.old
	c.PutHead(&x.e, headFirst+origin, atRef)
	if !atRef {
		c.PutHead(&x.e, headOld, name.old)
		if name.old {
			x.e.PutBits(uint64(name.a1)&(maxHeld-1), delta.NameBits)
			return
		}
		differ := int32(name.a1 - x.walk.ref)
		c.PutHead(&x.e, headNewer, differ > 0)
		if differ < 0 {
			differ = -differ
		}
		c.PutHeadLength(&x.e, headTicks, tickLengths, uint64(differ-1), tickBits)
	}
	c.PutHead(&x.e, headTwo+origin, name.span != 0)
	if name.span != 0 {
		x.putTree(c, headSpan, uint(name.span-1), delta.SpanBits)
		x.putTree(c, headThird, uint(name.third), thirdBits)
	}
}

// putTree codes a number of n bits, from the highest on, each by a decision for those before it.
func (x *compactWriter) putTree(c *delta.Compact, tree int, v, n uint) {
	node := uint(1)
	for i := n; i > 0; i-- {
		bit := v >> (i - 1) & 1
		c.PutHead(&x.e, tree+int(node), bit != 0)
		node = node<<1 | bit
	}
}

// putWhole writes the generation and component set of an entity without baseline.
func (x *compactWriter) putWhole(c *delta.Compact, entry *compactEntry) {
	c.PutHeadLength(&x.e, headLife, lifeLengths, entry.part[0], 16)
	same := entry.set == x.walk.set
	c.PutHead(&x.e, headSet, same)
	if !same {
		x.putSet(&entry.set, &x.walk.set)
		x.walk.set = entry.set
	}
}

// putSet writes how a component set differs from another one.
func (x *compactWriter) putSet(set, ref *delta.Set) {
	diff := *set
	for c := ref.Next(0); c >= 0; c = ref.Next(c + 1) {
		diff.Toggle(c)
	}
	count := 0
	for c := diff.Next(0); c >= 0; c = diff.Next(c + 1) {
		count++
	}
	x.e.PutExpGolomb(uint64(count), 0)
	next := 0
	for c := diff.Next(0); c >= 0; c = diff.Next(c + 1) {
		x.e.PutExpGolomb(uint64(c-next), 0)
		next = c + 1
	}
}

// prepareCompact finds the rows of a slot and what they are coded against.
func (p *Peer) prepareCompact(slot int, k *class) (entry compactEntry) {
	s, c := p.server, p.runs.compactCoder()
	info := &s.slots.info[slot]
	entry.set = info.set
	if !k.whole {
		name := compactName{a1: k.A1, old: k.Old}
		if k.Two {
			name.span, name.third = k.A1-k.A2, delta.Tick(k.third)
		}
		for tries := 0; ; tries++ { // again with fewer baselines, if some are not kept any more
			if c.gather(s, slot, name, &entry) {
				entry.name = name
				return entry
			}
			if name.span == 0 {
				break
			}
			if name.third != 0 {
				name.third = 0
			} else {
				name.span = 0
			}
		}
	}
	entry.kind, entry.part[0] = entryWhole, uint64(info.generation)
	c.rows = c.rows[:0]
	for k := info.set.Next(0); k >= 0; k = info.set.Next(k + 1) {
		c.rows = append(c.rows, compactRow{component: k, cur: s.histories[k].Row(slot)})
	}
	return entry
}

// gather finds the rows of a slot and those at its baselines. It returns false if one of them
// is not kept any more.
func (c *compactCoder) gather(s *Server, slot int, name compactName, entry *compactEntry) bool {
	info := &s.slots.info[slot]
	entry.kind = entryUpdate
	if info.restructured.After(name.a1) {
		var base delta.Set
		for k, h := range s.histories {
			switch _, found := h.At(slot, name.a1); found {
			case delta.Forgotten:
				return false
			case delta.Present:
				base.Add(k)
			}
		}
		if base != info.set {
			entry.kind, entry.ref = entryRestructure, base
		}
	}
	ratio, ratio3 := name.ratios(s.tick)
	oldest := name.a1
	if ratio != 0 {
		oldest -= name.span
	}
	c.rows = c.rows[:0]
	for k := info.set.Next(0); k >= 0; k = info.set.Next(k + 1) {
		v := s.histories[k].Versions(slot)
		r := compactRow{component: k, cur: v.Row()}
		if !v.Began().After(oldest) {
			r.past.Base = r.cur
			c.rows = append(c.rows, r)
			continue
		}
		known := false
		if r.past.Base, known = before(&v, name.a1); !known {
			return false
		}
		if r.past.Base != nil && ratio != 0 {
			if r.past.Base2, known = before(&v, name.a1-name.span); !known {
				return false
			}
			r.past.Ratio = ratio
			if r.past.Base2 != nil && ratio3 != 0 {
				if r.past.Near, known = before(&v, name.a1-name.third); !known {
					return false
				}
				r.past.NearRatio = ratio3
			}
		}
		c.rows = append(c.rows, r)
	}
	return true
}

// ratios returns those of the second and the third baseline, for a packet of a tick.
func (n *compactName) ratios(now delta.Tick) (ratio, ratio3 int64) {
	if n.span != 0 {
		ratio = delta.Ratio(now, n.a1, n.a1-n.span)
	}
	if ratio != 0 && n.third != 0 {
		ratio3 = delta.Ratio(now, n.a1, n.a1-n.third)
	}
	return ratio, ratio3
}

// compactTogether is putTogether.
func (k *packetWriter) compactTogether(entries []bundleEntry) bool {
	p := k.peer
	slices.SortFunc(entries, func(a, b bundleEntry) int { return cmp.Compare(a.slot, b.slot) })
	k.startCompact(int(entries[0].slot), false)
	for i := range entries {
		slot := int(entries[i].slot)
		entry := compactEntry{kind: entryDespawn}
		if entries[i].kind == bundleState {
			entry = p.prepareCompact(slot, p.classOfSlot(slot))
		}
		if !k.tryCompact(slot, &entry) {
			k.dropCompact()
			return false
		}
		if entry.kind != entryDespawn {
			p.runs.countCompact(&entry)
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
func (p *Peer) classOfSlot(slot int) *class {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	if p.steps && p.inStep(b)&bit != 0 {
		p.classes.list = p.classes.list[:0]
		p.classes.addInStep(b, bit, p.base())
	} else {
		p.classify(b, bit)
	}
	return &p.classes.list[0]
}

// compactReach is how many ticks before the newest tick of which a peer has everything its
// baselines may be, of what has changed in the last spanGrid ticks.
const compactReach = spanGrid + maxStep

// addSpread adds the classes of slots, whose newest acknowledged state is that of tick at, that
// have the baselines that are best for Compact, and returns the others.
func (c *classes) addSpread(b int, m uint64, at delta.Tick, rows *slotRows) uint64 {
	held := func(d delta.Tick) uint64 {
		if !c.recent(at-d) || c.server.tick-at > delta.MaxExtrapolation*d || at == c.server.tick {
			return 0
		}
		return rows[(at-d)&(c.server.slots.rows-1)%recentTicks][b%chunkBlocks]
	}
	for span := delta.Tick(2); span <= 4 && m != 0; span++ {
		two := m & held(span)
		if two == 0 {
			continue
		}
		m &^= two
		for third := delta.Tick(1); third < span && third <= 3 && two != 0; third++ {
			if three := two & held(third); three != 0 {
				two &^= three
				c.addClass(class{mask: three, third: uint8(third), Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
			}
		}
		if two == 0 {
			continue
		}
		c.addClass(class{mask: two, Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
	}
	return m
}

// addClass adds the slots of a class.
func (c *classes) addClass(k class) {
	for i := range c.list {
		if o := &c.list[i]; o.Baselines == k.Baselines && o.third == k.third && !o.whole {
			o.mask |= k.mask
			return
		}
	}
	c.list = append(c.list, k)
}
