package delta

// This file has the coding Compact: the decisions of rows, and rows without a baseline.
//
// The predicted row is that of Packed. A row without a baseline has, for each field, a decision whether its code is
// that of the latest row without a baseline, and the code if it is not; rotations have only the code. A row with a
// baseline begins with decisions:
//
//	moving   equal to the prediction; else equal to the baseline; else residuals
//	still    equal to the baseline; else residuals
//
// The numbers of a moving row are not coded against the prediction itself, but against as much of the predicted
// distance as such motions reach according to the model, corrected by nearer baselines; see aim.go. A residual is its
// length in bits, in unary, in a context of what the entity has shown so far, of the number's own motion, and of how
// far the baselines disagree; the bit below its highest one; its sign; and the remaining bits, which are raw. The sign
// of a small residual depends on the fraction that was rounded away from the prediction, that of a large one on whether
// the number before it went on or back.
//
// Plain fields that count steadily have a decision whether they go on as between the baselines.

import "math/bits"

// Compact codes rows in few bits: the more likely a decision was, given what a [Model] has learnt in its context, the
// fewer bits it costs. The bits depend on the model and on everything before them in the packet, so they are for one
// peer only. A Compact holds scratch memory and the state of the present packet; use one per goroutine and direction.
//
// Layouts and baselines are those of [Packed].
type Compact struct {
	layout *Layout
	predictor
	columns []compactColumn // by field of the layout
	fresh   *Model
	model   *Model

	// Costs lists the costs of the rows that were written since the user last emptied it,
	// in units of 1/[CostUnit] bits.
	Costs []Cost

	spent uint64 // up to where costs are booked

	// What the rows of the present entity have shown so far.
	activity int    // shownNothing, shownRows or shownResiduals
	steady   int    // activityStates if the entity changes steadily, else 0
	shown    uint64 // the magnitudes of the residuals, all bits of them together
	trend    uint   // of its numbers
}

// compactColumn locates what a model has for a field.
type compactColumn struct {
	of     int // index in Model.numbers, or in Model.plains for a field of another kind
	latest int // index in Model.latest and Model.same

	// Of a Linear or Wrap field of up to maxAimBits, as a step has them. halfCircle is 0 for all other fields, and for
	// circles that are not a power of two.
	halfCircle, mask, max int64
}

// setCircle sets what the column has of the circle of a field.
func (col *compactColumn) setCircle(f *Field) {
	switch {
	case f.circle != 0 || f.Bits == 0 || f.Bits > maxAimBits:
	case f.Kind == Linear:
		col.halfCircle, col.mask, col.max = 1<<62, -1, int64(f.Max)
	case f.Kind == Wrap:
		col.halfCircle, col.mask, col.max = 1<<(f.Bits-1), int64(lowBits(f.Bits)), int64(f.Max)
	}
}

// NewCompact returns the coding for a layout.
func NewCompact(l *Layout) *Compact {
	c := &Compact{layout: l}
	numbers, plains := 0, 0
	for i := range l.Components {
		for j := range l.Components[i].Fields {
			if l.Components[i].Fields[j].number() {
				numbers++
			} else {
				plains++
			}
		}
	}
	c.fresh = newModel(numbers, plains, len(l.Components))
	numbers, plains = 0, 0
	for i := range l.Components {
		for j := range l.Components[i].Fields {
			f := &l.Components[i].Fields[j]
			col := compactColumn{latest: (numbers + plains) % len(c.fresh.latest)}
			col.setCircle(f)
			if f.number() {
				col.of = numbers % len(c.fresh.numbers)
				numbers++
			} else {
				col.of = plains % len(c.fresh.plains)
				plains++
			}
			c.columns = append(c.columns, col)
		}
	}
	return c
}

// Past has the rows against which a row is coded: rows of the component, or nil.
type Past struct {
	// As in [Packed.EncodeRow].
	Base, Base2 []uint32
	Ratio       int64
	// The row at a third baseline between these two, and the Ratio of Base and that. Without Base2, or
	// with a ratio of 0, it is not used.
	Near      []uint32
	NearRatio int64
	// The row at a fourth baseline, between Near and Base2. Without Near it is not used.
	Mid      []uint32
	MidRatio int64
}

// third reports whether there is a third baseline to use.
func (p *Past) third() bool { return p.Near != nil && p.NearRatio != 0 }

// fourth reports whether there is a fourth one, if there is a third.
func (p *Past) fourth() bool { return p.Mid != nil && p.MidRatio != 0 }

// Begin begins a packet with a model, which learns from then on. To take back an entity that does not fit, assign
// copies of the RangeEncoder and of the model that were made before its call of Entity.
func (c *Compact) Begin(m *Model) { c.model = m }

// Entity begins an entity. steady reports whether it changes steadily, which predicts its rows, as its former rows do.
func (c *Compact) Entity(steady bool) {
	c.activity, c.shown, c.trend, c.steady = shownNothing, 0, trendNone, 0
	if steady {
		c.steady = activityStates
	}
}

// EncodeRow appends the row cur of component k, which must be valid, see [Component.Valid].
func (c *Compact) EncodeRow(e *RangeEncoder, k int, cur []uint32, past *Past) {
	comp := &c.layout.Components[k]
	base := past.Base
	if comp.width == 0 {
		return
	}
	c.spent = e.spent()
	if base == nil {
		c.encodeFull(e, comp, cur)
		return
	}
	symbols, symbol := c.symbols(k), c.layout.fields+k
	if !c.predict(comp, base, past.Base2, past.Ratio) {
		same := equal(cur, base)
		e.put(&symbols.same[c.same(past)], same)
		c.book(e, symbol)
		if same {
			c.activity = max(c.activity, shownRows)
			return
		}
		c.encodeResiduals(e, comp, symbols, cur, past, false)
		return
	}
	hit := equal(cur, c.row)
	e.put(&symbols.predicted[c.steady+c.activity][c.motion()], hit)
	if hit {
		c.book(e, symbol)
		c.activity = max(c.activity, shownRows)
		return
	}
	stopped := equal(cur, base)
	e.put(&symbols.stopped[c.steady+c.activity], stopped)
	c.book(e, symbol)
	if stopped {
		c.activity = max(c.activity, shownRows)
		return
	}
	c.encodeResiduals(e, comp, symbols, cur, past, true)
}

// DecodeRow reads a row of component k into dst, which must not overlap the others. If the row is that of the first
// baseline, and there is nothing to extrapolate, it returns false and leaves dst alone. An error is left in the
// RangeDecoder; dst is undefined then.
func (c *Compact) DecodeRow(d *RangeDecoder, k int, dst []uint32, past *Past) (changed bool) {
	comp := &c.layout.Components[k]
	switch {
	case past.Base == nil:
		c.decodeFull(d, comp, dst)
		return true
	case comp.width == 0:
		return false
	case rests(comp, past.Base, past.Base2, past.Ratio):
		return c.decodeStill(d, comp, c.symbols(k), dst, past)
	}
	c.decodeMoving(d, comp, c.symbols(k), dst, past)
	return true
}

// decodeStill reads a row that is not extrapolated, unless it is that of the first baseline.
func (c *Compact) decodeStill(
	d *RangeDecoder, comp *Component, symbols *symbolModel, dst []uint32, past *Past,
) (changed bool) {
	if d.get(&symbols.same[c.same(past)]) {
		c.activity = max(c.activity, shownRows)
		return false
	}
	c.decodeResiduals(d, comp, symbols, dst, past, false)
	return true
}

// decodeMoving reads a row whose baselines differ.
func (c *Compact) decodeMoving(d *RangeDecoder, comp *Component, symbols *symbolModel, dst []uint32, past *Past) {
	switch {
	case !c.extrapolate(comp, past.Base, past.Base2, past.Ratio):
		if !c.decodeStill(d, comp, symbols, dst, past) {
			copy(dst, past.Base)
		}
	case d.get(&symbols.predicted[c.steady+c.activity][c.motion()]):
		c.activity = max(c.activity, shownRows)
		copy(dst, c.row)
	case d.get(&symbols.stopped[c.steady+c.activity]):
		c.activity = max(c.activity, shownRows)
		copy(dst, past.Base)
	default:
		c.decodeResiduals(d, comp, symbols, dst, past, true)
	}
}

// book notes the cost of a field: everything since the last call.
func (c *Compact) book(e *RangeEncoder, field int) {
	now := e.spent()
	c.Costs = append(c.Costs, Cost{uint32(field), uint32(now - c.spent)})
	c.spent = now
}

// symbols returns the decisions of a component.
func (c *Compact) symbols(k int) *symbolModel {
	return &c.model.symbols[uint(k)%symbolModels]
}

// same returns the decision whether a component that is not extrapolated equals its baseline.
func (c *Compact) same(past *Past) int {
	i := c.steady + c.activity
	if past.Base2 != nil && past.Ratio != 0 && !alike(past.Base, past.Base2) {
		i += shownStates
	}
	return i
}

// motion returns how far the component went between its baselines: 0 if hardly, to 3.
func (c *Compact) motion() uint8 { return motions[bits.Len64(c.moved)] }

// motions has the result of Compact.motion by the bits of the distance.
var motions = func() (m [65]uint8) {
	for n := range m {
		m[n] = []uint8{0, 0, 1, 2, 2, motionStates - 1}[min(n, 5)]
	}
	return m
}()

// encodeFull codes a row without a baseline.
func (c *Compact) encodeFull(e *RangeEncoder, comp *Component, cur []uint32) {
	for i := range comp.Fields {
		f := &comp.Fields[i]
		col := &c.columns[comp.first+i]
		switch {
		case f.Bits == 0:
		case f.Kind == Reference:
			e.putReference(c.plain(col), cur[f.word:f.word+2])
		case f.Kind == Bytes:
			f.putText(e, c.plain(col), cur)
		case f.Kind == Quat:
			e.encodeBits(uint64(cur[f.word]), 2)
			for _, x := range cur[f.word+1 : f.word+4] {
				e.putBits(uint64(x), f.Bits)
			}
		default:
			last := &c.model.latest[col.latest]
			v := f.code(cur)
			same := v == uint64(*last)
			e.put(&c.model.same[col.latest], same)
			if !same {
				e.putBits(v, f.Bits)
				*last = uint32(v)
			}
		}
		c.book(e, comp.first+i)
	}
}

// decodeFull reads what encodeFull wrote.
func (c *Compact) decodeFull(d *RangeDecoder, comp *Component, dst []uint32) {
	for i := range comp.Fields {
		f := &comp.Fields[i]
		col := &c.columns[comp.first+i]
		switch {
		case f.Bits == 0:
			f.setCode(dst, 0)
		case f.Kind == Reference:
			d.getReference(c.plain(col), dst[f.word:f.word+2])
		case f.Kind == Bytes:
			f.getText(d, c.plain(col), dst)
		case f.Kind == Quat:
			dst[f.word] = uint32(d.decodeBits(2))
			for j := range 3 {
				dst[f.word+1+j] = uint32(d.getBits(f.Bits))
			}
		default:
			last := &c.model.latest[col.latest]
			if d.get(&c.model.same[col.latest]) {
				f.setCode(dst, uint64(*last))
				continue
			}
			v := d.getBits(f.Bits)
			f.setCode(dst, v)
			*last = uint32(v)
		}
	}
	if d.err == nil && !comp.Valid(dst) {
		d.fail(ErrCode)
	}
}
