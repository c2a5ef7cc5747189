package delta

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A compactTest encodes and decodes packets of rows with Compact beside Packed.
type compactTest struct {
	t              testing.TB
	layout         *Layout
	packed         *Packed
	sender         *Compact
	receiver       *Compact
	ours, theirs   *Model
	buf, packedBuf []byte
}

func newCompactTest(t testing.TB, components ...Component) *compactTest {
	l := NewLayout(components...)
	sender, receiver := NewCompact(l), NewCompact(l)
	return &compactTest{
		t: t, layout: l, packed: NewPacked(l), sender: sender, receiver: receiver,
		ours: sender.newModel(), theirs: receiver.newModel(), buf: make([]byte, 1<<16), packedBuf: make([]byte, 1<<16),
	}
}

// compactRow is a row to be coded; begins is set if it is the first one of an entity.
type compactRow struct {
	component int
	begins    bool
	cur       []uint32
	past      Past
}

// check codes rows as a packet, in both codings, and compares what is decoded. It returns
// the bytes of the packet.
func (x *compactTest) check(rows []compactRow) []byte {
	x.t.Helper()
	w := bitbuf.NewWriter(x.packedBuf)
	e := NewRangeEncoder(x.buf)
	x.sender.Begin(x.ours)
	for i := range rows {
		r := &rows[i]
		if r.begins {
			x.sender.Entity(true)
		}
		cur := slices.Clone(r.cur)
		x.sender.EncodeRow(&e, r.component, r.cur, &r.past)
		require.Equal(x.t, cur, r.cur)
		x.packed.Costs = x.packed.Costs[:0]
		x.packed.EncodeRow(&w, r.component, r.cur, r.past.Base, r.past.Base2, r.past.Ratio)
	}
	spent := e.spent()
	data, err := e.Finish()
	require.NoError(x.t, err)
	require.NoError(x.t, w.Err())

	p := bitbuf.NewReader(w.Bytes())
	d := NewRangeDecoder(data)
	x.receiver.Begin(x.theirs)
	for i := range rows {
		r := &rows[i]
		if r.begins {
			x.receiver.Entity(true)
		}
		packed, compact := make([]uint32, len(r.cur)), slices.Repeat([]uint32{0xdeadbeef}, len(r.cur))
		x.packed.DecodeRow(&p, r.component, packed, r.past.Base, r.past.Base2, r.past.Ratio)
		x.receiver.decodeRow(&d, r.component, compact, &r.past)
		if !equal(packed, compact) || !equal(r.cur, compact) || d.Err() != nil || p.Err() != nil {
			x.t.Fatalf("row %d, %v: packed gave %v, %v, compact %v, %v; past %+v of %+v",
				i, r.cur, packed, p.Err(), compact, d.Err(), r.past, x.layout.Components[r.component].Fields)
		}
	}
	require.Equal(x.t, spent, d.Spent())
	if !assert.ObjectsAreEqual(x.ours, x.theirs) {
		x.t.Fatal("the models differ")
	}
	return data
}

// checkHistories codes random histories of a few entities, as packets with ever older
// baselines of which some are lost: the models are those of the packets that came.
func checkHistories(t testing.TB, s *script) {
	var components []Component
	for range 1 + s.below(4) {
		if components = append(components, s.componentWithReferences()); s.below(4) == 0 {
			components[len(components)-1] = s.componentOfWheels()
		}
	}
	x := newCompactTest(t, components...)
	const entities, ticks = 3, 12
	var rows [ticks][entities][][]uint32
	var sent [ticks]Model // the model behind each packet
	acked := 0            // 0: nothing
	for now := range ticks {
		var packet []compactRow
		for i := range entities {
			for k := range x.layout.Components {
				c := &x.layout.Components[k]
				var last []uint32
				if now > 0 {
					last = rows[now-1][i][k]
				}
				row := last
				if now == 0 || s.below(3) > 0 {
					row = s.row(c, last)
				}
				rows[now][i] = append(rows[now][i], row)
				r := compactRow{component: k, begins: k == 0, cur: row}
				if acked > 0 {
					r.past.Base = rows[acked][i][k]
					if second := acked - 1 - s.below(4); second >= 0 {
						r.past.Base2, r.past.Ratio = rows[second][i][k], Ratio(Tick(now), Tick(acked), Tick(second))
					}
					if near := acked - 1; s.below(2) == 0 {
						r.past.Near, r.past.NearRatio = rows[near][i][k], Ratio(Tick(now), Tick(acked), Tick(near))
						if mid := acked - 1 - s.below(3); mid >= 0 && s.below(2) == 0 {
							r.past.Mid, r.past.MidRatio = rows[mid][i][k], Ratio(Tick(now), Tick(acked), Tick(mid))
						}
					}
				}
				packet = append(packet, r)
			}
		}
		if acked > 0 {
			x.ours.CopyFrom(&sent[acked])
			x.theirs.CopyFrom(&sent[acked])
		} else {
			x.sender.Reset(x.ours)
			x.receiver.Reset(x.theirs)
		}
		x.check(packet)
		sent[now] = *x.ours.clone()
		if now > 1 && s.below(3) > 0 {
			acked = now - 1
		}
	}
}

func TestCompactRowsAreThoseOfPacked(t *testing.T) {
	rng := randomOf(t)
	for range roundsOf(300, 100) {
		checkHistories(t, &script{randomBytes(rng, 4000)})
	}
}

// FuzzCodings codes random histories in both codings and compares the rows.
func FuzzCodings(f *testing.F) {
	addScripts(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		checkHistories(t, &script{choices})
	})
}

// checkCompactDecode decodes any bytes as rows of any layout: each is valid, or there is an
// error.
func checkCompactDecode(t testing.TB, data []byte, s *script) {
	x := newCompactTest(t, Component{Fields: make([]Field, 3)}, s.componentWithReferences())
	c := &x.layout.Components[1]
	base2 := s.row(c, nil)
	base := s.row(c, base2)
	near := s.row(c, base)
	ratio := int64(s.number() % (MaxExtrapolation<<16 + 1))
	for _, past := range []Past{{}, {Base: base}, {Base: base, Base2: base2, Ratio: ratio}, {base, base2, ratio, near, 1 << 16, nil, 0}, {base, base2, ratio, near, 1 << 16, base2, ratio / 2}} {
		x.sender.Reset(x.ours)
		x.receiver.Begin(x.ours)
		d := NewRangeDecoder(data)
		for range 20 {
			x.receiver.Entity(true)
			dst := slices.Repeat([]uint32{0xdeadbeef}, c.Words())
			x.receiver.decodeRow(&d, 1, dst, &past)
			if d.Err() != nil {
				break
			}
			if !c.Valid(dst) {
				t.Fatalf("%x gave the row %v of %+v", data, dst, c.Fields)
			}
		}
	}
}

func TestCompactRowsOfAnyBytes(t *testing.T) {
	decodeRandomBytes(t, roundsOf(3000, 1000), checkCompactDecode)
}

// FuzzDecodeCompact reads any bytes as rows, with any layout and baselines.
func FuzzDecodeCompact(f *testing.F) {
	fuzzDecode(f, checkCompactDecode)
}

// crowdPast returns the past of a row of a crowd, with a third baseline if it has two.
func crowdPast(r *crowdRow) Past { return Past{Base: r.base, Base2: r.base2, Ratio: r.ratio} }

func crowdPacket(x *crowd) (rows []compactRow) {
	for i := range x.rows {
		r := &x.rows[i]
		rows = append(rows, compactRow{r.component, r.component == 0, r.cur, crowdPast(r)})
	}
	return rows
}

func TestCompactIsSmallerThanPacked(t *testing.T) {
	crowd := newCrowd(t)
	x := newCompactTest(t, crowd.layout.Components...)
	w := bitbuf.NewWriter(make([]byte, 1<<20))
	for i := range crowd.rows {
		r := &crowd.rows[i]
		x.packed.EncodeRow(&w, r.component, r.cur, r.base, r.base2, r.ratio)
	}
	x.buf, x.packedBuf = make([]byte, 1<<20), make([]byte, 1<<20)
	rows := crowdPacket(crowd)
	first := len(x.check(rows))
	again := len(x.check(rows))
	require.Less(t, float64(first), 0.95*float64(len(w.Bytes())))
	require.Less(t, again, first) // what was learnt is of use
}

func TestModelsAreCopiedAndReset(t *testing.T) {
	crowd := newCrowd(t)
	x := newCompactTest(t, crowd.layout.Components...)
	x.buf, x.packedBuf = make([]byte, 1<<20), make([]byte, 1<<20)
	rows := crowdPacket(crowd)[:500]
	first := slices.Clone(x.check(rows))
	kept := x.ours.clone()
	second := slices.Clone(x.check(rows))
	require.NotEqual(t, first, second)

	x.ours.CopyFrom(kept) // the packet before was lost
	x.theirs.CopyFrom(kept)
	require.Equal(t, second, x.check(rows))

	x.sender.Reset(x.ours)
	x.receiver.Reset(x.theirs)
	require.Equal(t, x.sender.newModel(), x.ours)
	require.Equal(t, first, x.check(rows))
}

func TestEntitiesCanBeTakenBack(t *testing.T) {
	crowd := newCrowd(t)
	x := newCompactTest(t, crowd.layout.Components...)
	rows := crowdPacket(crowd)
	perEntity := len(x.layout.Components)
	e := NewRangeEncoder(x.buf)
	x.sender.Begin(x.ours)
	for i := range 100 * perEntity {
		r := &rows[i]
		if r.begins {
			x.sender.Entity(true)
		}
		if r.begins && i%3 == 0 { // another entity comes first, and goes again
			mark, model := e, x.ours.clone()
			for j := range perEntity {
				x.sender.EncodeRow(&e, rows[1000+j].component, rows[1000+j].cur, &rows[1000+j].past)
			}
			e = mark
			x.ours.CopyFrom(model)
			x.sender.Entity(true)
		}
		x.sender.EncodeRow(&e, r.component, r.cur, &r.past)
	}
	data, err := e.Finish()
	require.NoError(t, err)

	data, learnt := slices.Clone(data), x.ours.clone()
	x.sender.Reset(x.ours)
	require.Equal(t, x.check(rows[:100*perEntity]), data)
	require.Equal(t, learnt, x.ours)
}

// TestModelSize: a model is as large as its layout, but for layouts of many fields.
// modelBytes returns the size of a model, without some 200 bytes for the Model itself.
func (c *Compact) modelBytes() int {
	m := c.fresh
	number, plain := reflect.TypeFor[numberModel](), reflect.TypeFor[plainModel]()
	symbol := reflect.TypeFor[symbolModel]()
	return 4*(len(m.heads)+len(m.same)+len(m.latest)) +
		len(m.numbers)*int(number.Size()) + len(m.plains)*int(plain.Size()) + len(m.symbols)*int(symbol.Size())
}

// newModel returns a model that has learnt nothing.
func (c *Compact) newModel() *Model {
	m := new(Model)
	c.Reset(m)
	return m
}

func (m *Model) clone() *Model {
	x := new(Model)
	x.CopyFrom(m)
	return x
}

// decodeRow is DecodeRow for a row that may equal its baseline.
func (c *Compact) decodeRow(d *RangeDecoder, k int, dst []uint32, past *Past) {
	if !c.DecodeRow(d, k, dst, past) {
		copy(dst, past.Base)
	}
}

func TestModelSize(t *testing.T) {
	size := func(numbers, plains, components int) int {
		all := make([]Component, components)
		for i := range all {
			for range numbers {
				all[i].Fields = append(all[i].Fields, Field{Kind: Linear, Bits: 10})
			}
			for range plains {
				all[i].Fields = append(all[i].Fields, Field{Kind: Plain, Bits: 10})
			}
		}
		return NewCompact(NewLayout(all...)).modelBytes()
	}
	const heads = 4 * HeadDecisions
	require.Equal(t, heads, size(0, 0, 0))
	require.Equal(t, heads+172, size(0, 0, 1))
	require.Equal(t, heads+172+96, size(0, 1, 1))
	require.Equal(t, heads+172+1640, size(1, 0, 1))
	require.Less(t, size(7, 5, 1), 13<<10)
	require.Equal(t, size(32, 48, 32), size(40, 60, 40))
	require.Less(t, size(100, 100, 64), 64<<10)
}

func TestCompactDoesNotAllocate(t *testing.T) {
	crowd := newCrowd(t)
	x := newCompactTest(t, crowd.layout.Components...)
	rows := crowdPacket(crowd)[:200]
	for i := range rows { // something of everything
		switch r := &rows[i]; i % 5 {
		case 1:
			r.past.Near, r.past.NearRatio = r.past.Base2, r.past.Ratio
		case 2:
			r.past = Past{}
		}
	}
	dst := make([]uint32, 16)
	var before Model
	require.Zero(t, testing.AllocsPerRun(20, func() {
		before.CopyFrom(x.ours)
		e := NewRangeEncoder(x.buf)
		x.sender.Begin(x.ours)
		for i := range rows {
			if rows[i].begins {
				x.sender.Entity(true)
			}
			x.sender.EncodeRow(&e, rows[i].component, rows[i].cur, &rows[i].past)
		}
		data, _ := e.Finish()
		d := NewRangeDecoder(data)
		x.receiver.Begin(&before)
		for i := range rows {
			if rows[i].begins {
				x.receiver.Entity(true)
			}
			x.receiver.decodeRow(&d, rows[i].component, dst[:len(rows[i].cur)], &rows[i].past)
		}
		if d.Err() != nil {
			panic(d.Err())
		}
	}))
}

// Any layout fits into a model: columns are shared.
func TestManyColumnsShareAModel(t *testing.T) {
	rng := randomOf(t)
	var components []Component
	for range 60 {
		components = append(components, (&script{randomBytes(rng, 60)}).componentWithReferences())
	}
	x := newCompactTest(t, components...)
	var rows []compactRow
	for k := range x.layout.Components {
		s := &script{randomBytes(rng, 600)}
		base2 := s.row(&x.layout.Components[k], nil)
		base := s.row(&x.layout.Components[k], base2)
		rows = append(rows, compactRow{k, k == 0, s.row(&x.layout.Components[k], base), Past{Base: base, Base2: base2, Ratio: 1 << 16}})
	}
	x.check(rows)
}
