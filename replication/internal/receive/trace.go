package receive

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A tracer is a *Trace. The interface makes the linker leave that out of programs that explain nothing.
type tracer interface {
	start(h wire.StateHeader, body []byte, isCompact bool)
	begin(rc *Receiver, in entryReader) entryReader
	noteAssembled(rc *Receiver, slot uint32, bytes int)
}

// A Trace records how a receiver reads a state packet, for those who explain packets to people. It stands between the
// receiver and the reader of the packet's coding, notes where entries begin and end, and copies their rows before they
// become held states. Costs are in units of 1/delta.CostUnit bits.
//
// Neither coding reads a row field by field in a way that could be watched without slowing it down. So the costs of
// fields are those of writing the rows once more, against the same baselines and model.
type Trace struct {
	Begun   bool // the packet's checksum is right
	Read    bool // its entries were read, to their end unless there was an error
	Header  wire.StateHeader
	Compact bool
	Total   uint64 // all behind the header
	Front   uint64 // what precedes the slots: in Packed, the baselines and the shift; in Compact, which model it is
	Slots   uint64 // the list of slots of Packed; in Compact each entry has its own
	Base    delta.Tick
	Named   bool // a packet of Compact continues the model of another one, of the base tick
	Entries []TracedEntry
	End     int64 // the rest, with unused bits and rounding; less than nothing where Compact leaves out zeros
	Entry   TracedEntry
	Open    bool // Entry could not be read to its end

	entryReader
	rc   *Receiver
	body []byte
	from uint64 // where the entry began

	packed  *delta.Packed
	compact *delta.Compact
	model   delta.Model
	buf     []byte
}

// A TracedEntry is an entry of a state packet.
type TracedEntry struct {
	Slot       uint32
	Kind       wire.EntryKind
	Generation uint16               // of the entity
	Left       bool                 // of a wire.EntryDespawn: the entity lives on out of view
	Name       compact.Name         // of the baselines of an update
	Part       [4]int               // of a wire.EntryPart: bytes of the state, of each part; index; bytes of this one
	Tick       delta.Tick           // of its state
	Assembled  bool                 // it was in this part and former ones, and costs nothing more
	New        bool                 // the client holds no state of the entity
	Sets       [2]wire.ComponentSet // of the first baseline, and of the entry

	Head  uint64 // kind, baselines or generation; of Compact also the slot
	Set   uint64 // the change of the component set
	Body  uint64 // all behind those
	Rows  []TracedRow
	Costs []delta.Cost // of the body: fields, and symbols of components; nil if they are not known
}

// A TracedRow is the row of a component.
type TracedRow struct {
	Component int
	Row, Base []uint32 // Base is that of the first baseline, or nil
}

// NewTrace returns a trace for packets with components of a schema.
func NewTrace(s *schema.Schema) *Trace {
	return &Trace{
		packed: delta.NewPacked(s.Layout), compact: delta.NewCompact(s.Layout), buf: make([]byte, wire.MaxEntityBits),
	}
}

// Reset forgets the last packet.
func (t *Trace) Reset() {
	t.Begun, t.Read, t.Open = false, false, false
	t.Front, t.Slots, t.End, t.Entries = 0, 0, 0, nil
}

// start begins a packet with the bytes behind its header.
func (t *Trace) start(h wire.StateHeader, body []byte, isCompact bool) {
	t.Reset()
	t.Begun, t.Header, t.Compact, t.body = true, h, isCompact, body
	t.Total, t.Base = 8*uint64(len(body))*delta.CostUnit, delta.Tick(h.Tick)-1
	t.End = int64(t.Total)
}

// begin begins the entries of a packet, and returns what is to read them. What precedes them has been read.
func (t *Trace) begin(rc *Receiver, in entryReader) entryReader {
	t.rc, t.entryReader, t.Read = rc, in, true
	t.Front = in.spent()
	switch {
	case t.Compact:
		x := &rc.in.compact
		t.Base, t.Named = x.base, x.named
		t.model.CopyFrom(&x.Spare.Model)
		t.compact.Begin(&t.model)
	case len(t.body) > 0:
		r, names := bitbuf.NewReader(t.body), delta.NewNames(delta.Tick(t.Header.Tick))
		front := wire.ReadFront(&r, &names)
		t.Base = front.A1
		t.packed.SetShift(front.Shift)
		t.Slots = t.Front
		t.Front = uint64(r.Pos()) * delta.CostUnit
		t.Slots -= t.Front
	}
	t.from = in.spent()
	t.End = int64(t.Total - t.from)
	return t
}

// next ends the entry before, and notes the head of the next one.
func (t *Trace) next(e *entryHead) bool {
	t.finish()
	if !t.entryReader.next(e) {
		return false
	}
	t.Open, t.Entry = true, TracedEntry{
		Slot: e.slot, Kind: e.kind, Generation: e.generation, Left: e.left, Tick: delta.Tick(t.Header.Tick),
		Head: t.spent() - t.from,
	}
	switch e.kind {
	case wire.EntryUpdate, wire.EntryNamed, wire.EntrySetChange:
		t.Entry.Name = e.baselines
	}
	return true
}

func (t *Trace) set(ref *wire.ComponentSet) wire.ComponentSet {
	from := t.spent()
	set := t.entryReader.set(ref)
	t.Entry.Set = t.spent() - from
	return set
}

// finish ends the entry that was read last.
func (t *Trace) finish() {
	if !t.Open {
		return
	}
	t.Open = false
	now := t.spent()
	e, s := &t.Entry, &t.rc.staged
	e.Body = now - t.from - e.Head - e.Set
	t.from = now
	switch e.Kind {
	case wire.EntryDespawn:
		if m := t.rc.Replicas.At(e.Slot); m != nil && m.Held.N > 0 {
			e.Generation = m.Held.Newest().Generation
		}
	case wire.EntryPart:
		p := &s.parts[len(s.parts)-1]
		e.Tick, e.Part = p.tick, [4]int{p.total, p.size, p.index, len(p.bytes)}
	default:
		t.rows(e, &s.entries[len(s.entries)-1], &t.rc.in.baselines)
	}
	t.End -= int64(e.Head + e.Set + e.Body)
	t.Entries = append(t.Entries, *e)
}

// rows copies the rows of an entry, and finds their costs.
func (t *Trace) rows(e *TracedEntry, staged *stagedEntry, b *baselines) {
	if e.Kind == wire.EntryFull {
		b = &baselines{}
	}
	e.Generation, e.New = staged.generation, true
	if m := t.rc.Replicas.At(e.Slot); m != nil && m.Any && !m.Empty {
		e.New = m.Held.N == 0 || m.Held.Newest().Generation != e.Generation
	}
	e.Sets[1] = staged.layout.Set
	if b.first != nil {
		e.Sets[0] = b.first.Layout.Set
	}
	isCompact := t.Compact && !e.Assembled
	w, d := bitbuf.NewWriter(t.buf), delta.NewRangeEncoder(t.buf)
	t.packed.Costs, t.compact.Costs = t.packed.Costs[:0], t.compact.Costs[:0]
	t.packed.Begin()
	if isCompact {
		t.compact.Entity(t.rc.in.compact.chain == compact.ChainRepeated)
	}
	for i := range staged.layout.Coded {
		at := &staged.layout.Coded[i]
		cur := t.rc.staged.rowAt(staged, at)
		past := b.past(at)
		if isCompact {
			t.compact.EncodeRow(&d, at.Number, cur, &past)
		} else {
			t.packed.Add(at.Number, cur, past.Base, past.Base2, past.Ratio)
		}
		row := TracedRow{Component: at.Number, Row: append([]uint32(nil), cur...)}
		if past.Base != nil {
			row.Base = append([]uint32{}, past.Base...)
		}
		e.Rows = append(e.Rows, row)
	}
	costs, unit := t.compact.Costs, uint32(1)
	if !isCompact {
		t.packed.End(&w)
		costs, unit = t.packed.Costs, delta.CostUnit
	}
	sum := uint64(0)
	e.Costs = make([]delta.Cost, 0, len(costs))
	for _, c := range costs {
		c.Bits *= unit
		sum += uint64(c.Bits)
		e.Costs = append(e.Costs, c)
	}
	// The costs of Compact are rounded. What is off by more is of a server that codes rows in another way.
	switch off := int64(e.Body - sum); {
	case isCompact && off >= -delta.CostUnit/4 && off <= delta.CostUnit/4:
		e.Body = sum
	case off != 0:
		e.Costs = nil
	}
}

// rowAt returns an entry's row at a place.
func (s *staging) rowAt(e *stagedEntry, at *Place) []uint32 {
	if at.offset >= 0 {
		return s.words[e.first+at.offset:][:at.words]
	}
	return s.pool.Rows[s.words[e.first+sharedAt-at.offset]].Words
}

// past returns the rows at a place of the baselines, which may be none.
func (b *baselines) past(at *Place) (p delta.Past) {
	if b.first == nil {
		return p
	}
	if p.Base = b.first.Row(at.Number, at.words); p.Base == nil {
		return p
	}
	if b.second != nil {
		p.Base2, p.Ratio = b.second.Row(at.Number, at.words), b.ratio
	}
	if b.third != nil {
		p.Near, p.NearRatio = b.third.Row(at.Number, at.words), b.ratio3
	}
	if b.fourth != nil {
		p.Mid, p.MidRatio = b.fourth.Row(at.Number, at.words), b.ratio4
	}
	return p
}

// noteAssembled notes a state of so many bytes whose last part has arrived.
func (t *Trace) noteAssembled(rc *Receiver, slot uint32, bytes int) {
	t.rc = rc
	staged := &rc.staged.entries[0]
	t.Entry = TracedEntry{
		Slot: slot, Kind: wire.EntryFull, Tick: staged.tick, Assembled: true,
		Body: uint64(bytes) * 8 * delta.CostUnit,
	}
	t.rows(&t.Entry, staged, nil)
	t.Entries = append(t.Entries, t.Entry)
}
