package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A compactReader is what a client has for a session with [Compact].
type compactReader struct {
	coder *delta.Compact
	held  modelStore
	spare *compactState
	d     delta.RangeDecoder
	walk  compactWalk
}

func newCompactReader(s *schema.Schema) *compactReader {
	return &compactReader{coder: delta.NewCompact(s.Layout), spare: new(compactState)}
}

// decodeBody reads the entries of a state packet and takes them over, as decode does.
func (rc *receiver) decodeBody(body []byte, pad int, sequence uint32, tick delta.Tick) error {
	defer rc.staged.end(rc.shapes.rows)
	if rc.compact == nil {
		return rc.decode(body, pad, tick)
	}
	rc.staged.begin(8*len(body), rc.freeWork)
	kept, age := pad&1 != 0, uint32(pad>>1)
	if len(body) == 0 {
		if pad != 0 {
			return wire.ErrMalformed
		}
		return nil
	}
	x := rc.compact
	if err := rc.decodeCompact(body, age, sequence, tick); err != nil {
		return err
	}
	if err := rc.commit(tick); err != nil {
		return err
	}
	if kept {
		x.spare = x.held.keep(sequence, x.spare)
	}
	return nil
}

// decodeCompact reads the entries into the staging area.
func (rc *receiver) decodeCompact(body []byte, age, sequence uint32, tick delta.Tick) error {
	x := rc.compact
	x.d = delta.NewRangeDecoder(body)
	high := x.d.GetExpGolomb(modelRef)
	if x.d.Err() != nil || high >= maxModelAge>>ageLow {
		return wire.ErrMalformed
	}
	age |= uint32(high << ageLow)
	var from *compactState
	if age > 0 {
		if from = x.held.at(sequence - age); from == nil {
			return ErrMissingModel
		}
	}
	x.spare.copyFrom(from)
	x.spare.tick = tick
	x.walk.begin(from, tick)
	x.coder.Begin(&x.spare.model)
	for range maxCompact {
		origin, end, ok := x.getSlot(int(rc.mirrors.limit))
		if !ok || x.d.Err() != nil {
			return wire.ErrMalformed
		}
		if end {
			return x.finish()
		}
		if err := rc.compactEntry(origin, tick); err != nil {
			return err
		}
		if !rc.staged.fair() {
			return wire.ErrMalformed
		}
	}
	if _, end, ok := x.getSlot(int(rc.mirrors.limit)); !ok || !end {
		return wire.ErrMalformed
	}
	return x.finish()
}

// finish reports whether the packet ends where it should.
func (x *compactReader) finish() error {
	if x.d.Finish() != nil {
		return wire.ErrMalformed
	}
	return nil
}

// getSlot reads which slot the next entry is of, into x.walk.next less one, or that there is
// none.
func (x *compactReader) getSlot(limit int) (origin int, end, ok bool) {
	w, c, s := &x.walk, x.coder, x.spare
	if !w.begun {
		w.begun = true
		if len(w.before) > 0 && c.GetHead(&x.d, headJump) {
			slot := x.d.GetExpGolomb(jumpBits)
			if slot >= uint64(limit) {
				return 0, false, false
			}
			w.jump(int(slot))
			if w.room() == 0 {
				return w.pass(s, true), false, true
			}
			w.found(s, int(slot))
			return originNew, false, true
		}
	}
	for {
		room := w.room()
		if room >= 0 && !c.GetHead(&x.d, w.otherContext(room)) {
			again := c.GetHead(&x.d, w.againContext())
			if origin = w.pass(s, again); again {
				return origin, false, true
			}
			continue
		}
		if room == 0 || c.GetHead(&x.d, w.endContext(room)) {
			w.end(s)
			return 0, true, true
		}
		context, width := w.gapWidth(room)
		gap := int(c.GetHeadLength(&x.d, context, gapLengths, width))
		if room > 0 && gap >= room || gap >= limit-w.next {
			return 0, false, false
		}
		w.found(s, w.next+gap)
		return originNew, false, true
	}
}

// compactEntry reads what follows the slot of an entry into the staging area.
func (rc *receiver) compactEntry(origin int, tick delta.Tick) error {
	x := rc.compact
	slot := uint32(x.walk.next - 1)
	steps := 0
	for steps < kindSteps && x.coder.GetHead(&x.d, headKind+origin*kindSteps+steps) {
		steps++
	}
	kind := wire.EntryUpdate
	if steps > 0 {
		kind = wire.EntryKind(steps + 1)
	}
	switch kind {
	case wire.EntryUpdate, wire.EntrySetChange:
		return rc.compactUpdate(slot, origin, tick, kind == wire.EntrySetChange)
	case wire.EntryFull:
		return rc.compactWhole(slot, origin, tick)
	case wire.EntryDespawn:
		if x.d.Err() != nil {
			return wire.ErrMalformed
		}
		return rc.staged.despawn(slot, tick)
	default:
		return rc.compactPart(slot, tick)
	}
}

func (rc *receiver) compactWhole(slot uint32, origin int, tick delta.Tick) error {
	x := rc.compact
	generation := x.coder.GetHeadLength(&x.d, headLife, lifeLengths, 16)
	if !x.coder.GetHead(&x.d, headSet) {
		x.walk.set = x.getSet(&x.walk.set, len(rc.schema.Components))
	}
	if x.d.Err() != nil {
		return wire.ErrMalformed
	}
	sh := rc.shapes.of(x.walk.set)
	if sh == nil {
		return wire.ErrMalformed
	}
	e := rc.staged.stage(slot, tick, uint16(generation), sh)
	if e == nil {
		return wire.ErrMalformed
	}
	x.coder.Entity(origin == originAgain)
	rows := rc.staged.words[e.first:]
	for k := sh.set.Next(0); k >= 0; k = sh.set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := rc.staged.room(e, rows, k, comp.Words)
		x.coder.DecodeRow(&x.d, k, row, &delta.Past{})
		if x.d.Err() != nil || !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

func (rc *receiver) compactUpdate(slot uint32, origin int, tick delta.Tick, restructure bool) error {
	x := rc.compact
	m := rc.mirrors.at(slot)
	name := x.getName(origin)
	if x.d.Err() != nil || tick-name.a1-1 >= delta.MaxAge {
		return wire.ErrMalformed
	}
	x.walk.names[origin] = name
	x.spare.named(int(slot), &name)
	var base, base2, base3 *heldState
	if m != nil {
		base = m.held.find(name.a1)
	}
	if base == nil {
		return rc.lacks(m, slot, name.a1, tick)
	}
	ratio, ratio3 := name.ratios(tick)
	if name.span != 0 {
		if base2 = m.held.find(name.a1 - name.span); base2 == nil {
			return rc.lacks(m, slot, name.a1, tick)
		}
	}
	if name.third != 0 {
		if base3 = m.held.find(name.a1 - name.third); base3 == nil {
			return rc.lacks(m, slot, name.a1, tick)
		}
	}
	sh := base.shape
	if restructure {
		set := x.getSet(&sh.set, len(rc.schema.Components))
		if x.d.Err() != nil {
			return wire.ErrMalformed
		}
		if sh = rc.shapes.of(set); sh == nil {
			return wire.ErrMalformed
		}
	}
	e := rc.staged.stage(slot, tick, base.generation, sh)
	if e == nil {
		return wire.ErrMalformed
	}
	if ratio == 0 {
		base2 = nil
	}
	x.coder.Entity(origin == originAgain)
	rows := rc.staged.words[e.first:]
	for k := sh.set.Next(0); k >= 0; k = sh.set.Next(k + 1) {
		comp := &rc.schema.Components[k]
		if comp.Words == 0 {
			continue
		}
		row := rc.staged.room(e, rows, k, comp.Words)
		past := delta.Past{Base: base.row(k, comp.Words)}
		if base2 != nil && past.Base != nil {
			past.Base2, past.Ratio = base2.row(k, comp.Words), ratio
			if ratio3 != 0 && past.Base2 != nil {
				past.Near, past.NearRatio = base3.row(k, comp.Words), ratio3
			}
		}
		changed := x.coder.DecodeChange(&x.d, k, row, &past)
		if !changed {
			rc.staged.keepRow(e, k, row, past.Base, base, base2)
		}
		if x.d.Err() != nil || changed && !rc.staged.takeRow(comp, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// getName reads the name of an entry's baselines.
func (x *compactReader) getName(origin int) compactName {
	c, d := x.coder, &x.d
	name := x.walk.names[origin]
	if c.GetHead(d, x.walk.nameContext(origin)) {
		return name
	}
	if origin == originAgain && name != x.walk.own && c.GetHead(d, headOwn) {
		return x.walk.own
	}
	name = compactName{a1: x.walk.ref}
	if !c.GetHead(d, headFirst+origin) {
		newer := c.GetHead(d, headNewer)
		differ := delta.Tick(c.GetHeadLength(d, headTicks, tickLengths, tickBits)) + 1
		if newer {
			name.a1 += differ
		} else {
			name.a1 -= differ
		}
	}
	if c.GetHead(d, headTwo+origin) {
		name.span = delta.Tick(x.getTree(headSpan, delta.SpanBits)) + 1
		name.third = delta.Tick(x.getTree(headThird, thirdBits))
	}
	return name
}

// getTree reads what putTree wrote.
func (x *compactReader) getTree(tree int, n uint) uint {
	node := uint(1)
	for range n {
		bit := toInt(x.coder.GetHead(&x.d, tree+int(node)))
		node = node<<1 | uint(bit)
	}
	return node - 1<<n
}

// getSet reads what putSet wrote, for a schema of n components.
func (x *compactReader) getSet(ref *delta.Set, n int) delta.Set {
	s := *ref
	next := uint64(0)
	for count := x.d.GetExpGolomb(0); count > 0 && x.d.Err() == nil; count-- {
		gap := x.d.GetExpGolomb(0)
		if gap >= uint64(n) || next+gap >= uint64(n) {
			x.d.Fail()
			return s
		}
		s.Toggle(int(next + gap))
		next += gap + 1
	}
	return s
}

// compactPart reads a part of a state.
func (rc *receiver) compactPart(slot uint32, tick delta.Tick) error {
	d := &rc.compact.d
	age, total, size, index := d.GetExpGolomb(partOrder), d.GetExpGolomb(partOrder), d.GetExpGolomb(partOrder), d.GetExpGolomb(partOrder)
	if d.Err() != nil || !validPart(age, total, size, index) {
		return wire.ErrMalformed
	}
	bytes := make([]byte, min(size, total-index*size))
	for i := range bytes {
		bytes[i] = byte(d.GetBits(8))
	}
	if d.Err() != nil {
		return wire.ErrMalformed
	}
	return rc.staged.addPart(stagedPart{
		slot: slot, tick: tick - delta.Tick(age), total: int(total), size: int(size), index: int(index), bytes: bytes,
	})
}
