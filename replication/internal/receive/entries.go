package receive

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// How the entries of a state packet are read. Packed and Compact write numbers and rows in
// different ways, which an entryReader hides; what an entry means is here.

// An entryReader reads the entries of a packet in one coding. Its first error stays: failed returns
// true from then on, and what is read has no meaning.
type entryReader interface {
	// next reads the beginning of the next entry. It returns false after the last entry and after
	// an error.
	next(e *entryHead) bool
	// set reads a component set as a difference from another one.
	set(ref *wire.ComponentSet) wire.ComponentSet
	// beginFull starts the rows of an entry without baseline. They take at least minBits.
	beginFull(minBits int)
	// beginUpdate starts the rows of an entry with baselines. So many of them may differ from the
	// first baseline's. The ratios are those of its ticks, as in delta.Past. If it returns true, rows of
	// components that do not move are all those of the first baseline; row need not be called for them.
	beginUpdate(changeable int, ratio, ratio3, ratio4 int64) (onlyMoving bool)
	// row reads the row of component k, which has these rows at the baselines, or nil. If the row is
	// that of the first baseline, it returns false and leaves dst alone. It also returns whether the
	// reader has not failed.
	row(k int, dst, base, base2, base3, base4 []uint32) (changed, ok bool)
	// alike reads the rows at some places of an update in one go, for baselines as most are, see baselines.alike. The
	// places are in the words of states; rows has the rows of the first baseline. It returns the work that they took
	// and whether they are valid, if the reader has not failed.
	alike(places []Place, rows []uint32, b *baselines) (work int, ok bool)
	// number reads a number that describes a part, bytes the contents.
	number() uint64
	bytes(dst []byte)
	// spent returns the cost of what was read of the packet, in units of 1/delta.CostUnit bits.
	spent() uint64

	failed() bool
}

// An entryHead is what precedes the component set or the rows of an entry.
type entryHead struct {
	slot       uint32
	kind       wire.EntryKind
	generation uint16            // of an EntryFull
	full       wire.ComponentSet // its component set
	left       bool              // of an EntryDespawn
	baselines  compact.Name      // of an EntryUpdate, EntryNamed or EntrySetChange
}

// input is what a receiver needs to read packets in either coding.
type input struct {
	packed    packedEntries
	compact   compactEntries
	entry     entryHead // that is being read
	baselines baselines // of that
	former    slotHistory

	newest delta.Tick // of the ticks that were named as baselines in this session
	known  bool       // newest is valid
	acked  bool       // the latest packet named a newer one than all before: the server has a new ack
}

// noteNamed notes the baselines that the packet named.
func (in *input) noteNamed() {
	b := &in.baselines
	if in.acked = b.named && (!in.known || b.newest.After(in.newest)); in.acked {
		in.newest, in.known = b.newest, true
	}
}

// BaselineAge returns how many ticks the newest baseline that a packet of this session named is older than the newest
// packet. It is not known before the first one.
func (rc *Receiver) BaselineAge() (ticks uint32, known bool) {
	return rc.NearTick - uint32(rc.in.newest), rc.in.known
}

// newInput returns the input for components of a schema.
func newInput(s *schema.Schema) input {
	return input{
		packed:  packedEntries{coder: delta.NewPacked(s.Layout), components: len(s.Components)},
		compact: compactEntries{components: len(s.Components)},
	}
}

// DecodeBody reads the entries of a state packet and takes them over if all of them are valid. If a
// baseline is missing it takes over none, since some of them may belong together, and returns
// wire.ErrMissingBaseline.
func (rc *Receiver) DecodeBody(body []byte, pad int, h *wire.StateHeader) error {
	defer rc.staged.end()
	if rc.Watches.Trace != nil {
		rc.Watches.Trace.start(*h, body, rc.Compact != nil)
	}
	if rc.Compact != nil {
		return rc.decodeCompact(body, pad, h)
	}
	tick := delta.Tick(h.Tick)
	end := len(body)*8 - pad
	rc.staged.begin(end, rc.FreeWork)
	if pad > 0 && (len(body) == 0 || body[len(body)-1]>>(8-pad) != 0) {
		return wire.ErrMalformed
	}
	if err := rc.in.packed.begin(body, end, rc.Replicas.Limit, tick, &rc.in.former); err != nil {
		return err
	}
	if err := rc.readEntries(rc.traced(&rc.in.packed), tick); err != nil {
		return err
	}
	if rc.in.packed.r.Pos() != end {
		return wire.ErrMalformed
	}
	refers := !rc.in.packed.apart // later packets, to its slots
	if refers {
		rc.in.former.note(rc.staged.entries, tick)
	}
	err := rc.commit(h, rc.in.packed.base)
	if err == nil && refers {
		rc.in.former.keep(tick)
	}
	return err
}

// decodeCompact is DecodeBody for packets of Compact.
func (rc *Receiver) decodeCompact(body []byte, pad int, h *wire.StateHeader) error {
	tick := delta.Tick(h.Tick)
	rc.staged.begin(8*len(body), rc.FreeWork)
	if len(body) == 0 {
		if pad != 0 {
			return wire.ErrMalformed
		}
		return rc.commit(h, tick-1)
	}
	x := &rc.in.compact
	x.Reader = rc.Compact
	if err := x.begin(body, uint32(pad>>1), h.Sequence, rc.Replicas.Limit, tick); err != nil {
		return err
	}
	if err := rc.readEntries(rc.traced(x), tick); err != nil {
		return err
	}
	if err := x.Finish(); err != nil {
		return err
	}
	if err := rc.commit(h, x.base); err != nil {
		return err
	}
	if x.named {
		x.Held.Named(x.base)
	}
	if keep := pad&1 != 0; keep {
		x.Spare = x.Held.Keep(h.Sequence, x.Spare)
	}
	return nil
}

// traced returns what reads the entries of a packet: in, or the trace of it if there is one.
func (rc *Receiver) traced(in entryReader) entryReader {
	if rc.Watches.Trace == nil {
		return in
	}
	return rc.Watches.Trace.begin(rc, in)
}

// readEntries reads the entries of a packet into the staging area.
func (rc *Receiver) readEntries(in entryReader, tick delta.Tick) (err error) {
	e, b := &rc.in.entry, &rc.in.baselines
	*b = baselines{}
	for in.next(e) {
		switch e.kind {
		case wire.EntryUpdate, wire.EntryNamed, wire.EntrySetChange:
			err = rc.readUpdate(in, e, b, tick)
		case wire.EntryFull:
			err = rc.readFull(in, e, tick)
		case wire.EntryDespawn:
			err = rc.staged.despawn(e.slot, tick, e.left)
		default:
			err = rc.readPart(in, e.slot, tick)
		}
		if err != nil {
			return err
		}
		if !rc.staged.fair() {
			return wire.ErrMalformed
		}
	}
	if in.failed() {
		return wire.ErrMalformed
	}
	return nil
}

// readFull reads the rows of an entry without baseline.
func (rc *Receiver) readFull(in entryReader, e *entryHead, tick delta.Tick) error {
	layout := rc.Layouts.Of(e.full)
	if layout == nil {
		return wire.ErrMalformed
	}
	if in.beginFull(layout.minBits); in.failed() {
		return wire.ErrMalformed
	}
	staged := rc.staged.stage(e.slot, tick, e.generation, layout)
	if staged == nil {
		return wire.ErrMalformed
	}
	rc.staged.work += wire.SlotWork
	rows := rc.staged.words[staged.first:]
	for i := range layout.Coded {
		at := &layout.Coded[i]
		row := rc.staged.room(rows, at)
		if _, ok := in.row(at.Number, row, nil, nil, nil, nil); !ok || !rc.staged.takeRow(staged, at, row) {
			return wire.ErrMalformed
		}
	}
	return nil
}

// baselines are the states that an update is coded against.
type baselines struct {
	first                 *HeldState
	second, third, fourth *HeldState // nil: nothing is predicted from it

	// The name of the baselines and the ratios that follow from it. Most entries of a packet have
	// the same.
	name                  compact.Name
	ratio, ratio3, ratio4 int64

	newest delta.Tick // the newest first baseline so far
	named  bool       // newest is valid
}

// find finds the states that an entry names in a packet of tick now, and returns false if one is
// missing.
func (b *baselines) find(held *HeldStates, name *compact.Name, now delta.Tick) bool {
	if b.name != *name {
		b.name = *name
		b.ratio, b.ratio3, b.ratio4 = name.Ratios(now)
		if !b.named || name.A1.After(b.newest) {
			b.newest, b.named = name.A1, true
		}
	}
	b.first, b.second, b.third, b.fourth = held.Find(name.A1), nil, nil, nil
	if name.Span != 0 {
		b.second = held.Find(name.A1 - name.Span)
	}
	if name.Third != 0 {
		b.third = held.Find(name.A1 - name.Third)
	}
	if name.Fourth != 0 {
		b.fourth = held.Find(name.A1 - name.Fourth)
	}
	if b.first == nil || name.Span != 0 && b.second == nil ||
		name.Third != 0 && b.third == nil || name.Fourth != 0 && b.fourth == nil {
		return false
	}
	if b.ratio == 0 {
		b.second = nil
	}
	return true
}

// noteMissing notes for the next ack that the first baseline of an entry is missing. It ignores
// late updates, whose baselines were dropped for newer ones. It returns wire.ErrMissingBaseline.
func (rc *Receiver) noteMissing(m *Replica, e *entryHead, tick delta.Tick) error {
	late := m != nil && m.Any && !tick.After(m.Newest)
	if !late && len(rc.Missing) < wire.MaxMissing {
		low := uint32(e.baselines.A1) & delta.MaxAge
		rc.Missing = append(rc.Missing, wire.MissingBaseline{Slot: e.slot, Low: low})
	}
	return wire.ErrMissingBaseline
}

// readUpdate reads the component set, if it changed, and the rows of an entry with baselines.
func (rc *Receiver) readUpdate(in entryReader, e *entryHead, b *baselines, tick delta.Tick) error {
	m := rc.Replicas.At(e.slot)
	if m == nil || !b.find(&m.Held, &e.baselines, tick) {
		return rc.noteMissing(m, e, tick)
	}
	layout := b.first.Layout
	changeable := layout.symbols
	if e.kind == wire.EntrySetChange {
		set := in.set(&layout.Set)
		if in.failed() {
			return wire.ErrMalformed
		}
		if layout = rc.Layouts.Of(set); layout == nil {
			return wire.ErrMalformed
		}
		changeable = rc.Layouts.symbols(layout, b.first.Layout)
	}
	staged := rc.staged.stage(e.slot, tick, b.first.Generation, layout)
	if staged == nil {
		return wire.ErrMalformed
	}
	onlyMoving := in.beginUpdate(changeable, b.ratio, b.ratio3, b.ratio4)
	rows := rc.staged.words[staged.first:][:layout.words]
	if b.alike(layout) {
		return rc.readAlike(in, staged, rows, b, onlyMoving)
	}
	for i := range layout.Coded {
		if err := rc.readRow(in, staged, rows, &layout.Coded[i], b); err != nil {
			return err
		}
	}
	return nil
}

// readRow reads the row at a place of an update.
func (rc *Receiver) readRow(in entryReader, staged *stagedEntry, rows []uint32, at *Place, b *baselines) error {
	row := rc.staged.room(rows, at)
	var base2, base3, base4 []uint32
	base := b.first.Row(at.Number, at.words)
	if b.second != nil && base != nil {
		base2 = b.second.Row(at.Number, at.words)
	}
	if b.third != nil {
		base3 = b.third.Row(at.Number, at.words)
	}
	if b.fourth != nil {
		base4 = b.fourth.Row(at.Number, at.words)
	}
	switch changed, ok := in.row(at.Number, row, base, base2, base3, base4); {
	case !ok || changed && !rc.staged.takeRow(staged, at, row):
		return wire.ErrMalformed
	case !changed:
		rc.staged.keepRow(staged, at, row, b.first, b.second)
	}
	return nil
}

// alike reports whether the baselines have their rows where a layout has them.
func (b *baselines) alike(l *Layout) bool {
	return b.first.Layout == l && (b.second == nil || b.second.Layout == l) &&
		(b.third == nil || b.third.Layout == l) && (b.fourth == nil || b.fourth.Layout == l)
}

// readAlike reads the rows of an update with baselines as most are.
func (rc *Receiver) readAlike(in entryReader, e *stagedEntry, rows []uint32, b *baselines, onlyMoving bool) error {
	copy(rows, b.first.Words)
	places := e.layout.Coded
	if onlyMoving {
		places = e.layout.moving
		rc.staged.work += e.layout.symbols - len(places)
		for _, at := range e.layout.Shared {
			rc.staged.stageRow(rows[at])
		}
	}
	for len(places) > 0 {
		n := places[0].own
		if n == 0 {
			if err := rc.readRow(in, e, rows, &places[0], b); err != nil {
				return err
			}
			places = places[1:]
			continue
		}
		work, ok := in.alike(places[:n], rows, b)
		if rc.staged.work += work; !ok || in.failed() {
			return wire.ErrMalformed
		}
		places = places[n:]
	}
	return nil
}
