package delta

// This file has the coding Packed: the symbols of rows, and rows without a baseline.

import (
	"errors"
	"slices"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// ErrCode is the error of a decoder that met a code outside its field's range.
var ErrCode = errors.New("delta: a code outside its field's range")

// Packed codes rows in static codes: the bits of a row depend only on the row, its baselines, the layout and the shift,
// so they can be copied into many packets. It holds only scratch memory; use one per goroutine.
//
// A row without a baseline is its codes at fixed width, except for References and Bytes, field after field. A row with
// a baseline begins with a symbol. If the prediction from the two baselines differs from the first baseline, the
// component is moving:
//
//	moving   0    residuals against the prediction
//	         10   equal to the prediction
//	         110  equal to the baseline
//	         111  residuals against the baseline
//	still    0    equal to the baseline
//	         1    residuals against the baseline
//
// The charts of Quat fields precede residuals, which follow field by field in Golomb codes, in the shorter of the two
// ways. A row takes at most 2 bits more with a second baseline than without it, and at most 3 bits and three times its
// width in all.
//
// EncodeRow writes a single row. Between Begin and End, Add adds the rows of one entity, whose usual symbols and charts
// are left out.
type Packed struct {
	layout *Layout
	predictor
	// Costs lists the bits of the rows that were written since the user last emptied it.
	Costs []Cost

	words [2][]uint64 // of bitStrings, by the way to code a row: some rows are coded in both ways
	spare []Cost      // costs of the way that is not booked
	steps [][]step    // by component; nil for those that addFields codes
	shift Shift
	held  held
}

// Cost is the number of bits of one field, by its index in the layout. The symbols and charts of component c count as
// field [Layout.Fields]+c.
type Cost struct {
	Field, Bits uint32
}

// NewPacked returns the coding for a layout.
func NewPacked(l *Layout) *Packed {
	fields, width, total := 0, 0, 0
	for i := range l.Components {
		c := &l.Components[i]
		fields, width, total = max(fields, len(c.Fields)), max(width, c.width), total+c.width
	}
	p := &Packed{layout: l, spare: make([]Cost, fields)}
	for i := range l.Components {
		steps := stepsOf(l.Components[i].Fields)
		if steps == nil {
			steps = rotationSteps(l.Components[i].Fields)
		}
		p.steps = append(p.steps, steps)
	}
	for i := range p.words {
		p.words[i] = make([]uint64, (3+3*width)/64+1)
	}
	p.held.rows = make([]heldRow, max(1, len(l.Components)))
	p.held.words = make([]uint64, (42+3*len(l.Components)+3*total)/64+1)
	return p
}

// EncodeRow appends the row cur of component c, which must be valid, see [Component.Valid]. base is the row of the
// first baseline or nil, base2 that of the second or nil, ratio the [Ratio] of their ticks.
func (p *Packed) EncodeRow(w *bitbuf.Writer, c int, cur, base, base2 []uint32, ratio int64) {
	p.Begin()
	p.Add(c, cur, base, base2, ratio)
	p.End(w)
}

// Add adds a row to those of an entity, which has at most one of each component, with the arguments of EncodeRow.
func (p *Packed) Add(c int, cur, base, base2 []uint32, ratio int64) {
	comp := &p.layout.Components[c]
	if base == nil {
		p.addAbsolute(comp, cur)
		return
	}
	if comp.width == 0 {
		return
	}
	alone := changesAlone(comp, base2, ratio)
	if base2 == nil || ratio == 0 || !comp.moves || equal(base, base2) {
		if equal(cur, base) { // most rows of most games
			p.holdSymbol(c, 0b0, 1, !alone)
			return
		}
		base2 = nil
	}
	switch steps := p.steps[c]; {
	case steps == nil:
		p.addFields(c, alone, cur, base, base2, ratio)
	case comp.Fields[0].Kind == Quat:
		p.addRotation(c, alone, steps, cur, base, base2, ratio)
	default:
		p.addSteps(c, alone, steps, cur, base, base2, ratio)
	}
}

// addFields is Add for fields of all kinds, with a baseline. base2 differs from base, or is nil;
// then cur differs from base. alone is the result of changesAlone.
func (p *Packed) addFields(component int, alone bool, cur, base, base2 []uint32, ratio int64) {
	c := &p.layout.Components[component]
	moving := base2 != nil && p.predict(c, base, base2, ratio)
	switch {
	case !moving && equal(cur, base):
		p.holdSymbol(component, 0b0, 1, !alone)
		return
	case moving && equal(cur, p.row):
		p.holdSymbol(component, 0b01, 2, false)
		return
	case moving && equal(cur, base):
		p.holdSymbol(component, 0b011, 3, false)
		return
	}
	costs := p.book(len(c.Fields))
	words := p.words[byBaseline]
	if !moving {
		d, same := encodeCharts(bitString{0b1, 1}, words, c, cur, base)
		symbol := uint32(d.n)
		d = p.encodeResiduals(d, words, costs, c, cur, &reference{row: base}, same)
		p.hold(component, d, words, symbol, alone && same)
		return
	}
	plain, same := encodeCharts(bitString{0b111, 3}, words, c, cur, base)
	symbol := uint32(plain.n)
	plain = p.encodeResiduals(plain, words, p.spare, c, cur, &reference{row: base}, same)
	words = p.words[byPrediction]
	d, same := encodeCharts(bitString{0b0, 1}, words, c, cur, p.row)
	symbol2 := uint32(d.n)
	ref := reference{row: p.row, base: base, base2: base2, quats: p.quats}
	d = p.encodeResiduals(d, words, costs, c, cur, &ref, same)
	if d.n <= plain.n {
		p.hold(component, d, words, symbol2, same)
		return
	}
	p.hold(component, plain, p.words[byBaseline], symbol, false)
	copy(costs, p.spare)
}

// book returns n new entries of Costs.
func (p *Packed) book(n int) []Cost {
	from := len(p.Costs)
	if cap(p.Costs)-from < n {
		p.Costs = slices.Grow(p.Costs, n)
	}
	p.Costs = p.Costs[:from+n]
	return p.Costs[from:]
}

// DecodeRow reads into dst what EncodeRow wrote, with its arguments. dst must not overlap the baselines. An error is
// left in the Reader; dst is undefined then.
func (p *Packed) DecodeRow(r *bitbuf.Reader, c int, dst, base, base2 []uint32, ratio int64) {
	var symbols Symbols
	if !p.DecodeChange(r, c, &symbols, dst, base, base2, ratio) {
		copy(dst, base)
	}
}

// DecodeChange is DecodeRow for a row of an entity, of which [ReadSymbols] returned symbols; rows are decoded in the
// order in which they were added. If the row is that of the first baseline, and there is nothing to extrapolate, it
// returns false and leaves dst alone, which takes the same time for any number of fields. Rows of two baselines in the
// same memory are not compared.
func (p *Packed) DecodeChange(
	r *bitbuf.Reader, c int, symbols *Symbols, dst, base, base2 []uint32, ratio int64,
) (changed bool) {
	comp := &p.layout.Components[c]
	switch steps := p.steps[c]; {
	case base == nil:
		decodeAbsolute(r, comp, dst)
		return checked(r, comp, dst)
	case comp.width == 0:
		return false
	case steps == nil:
		return p.decodeFields(r, comp, symbols.next(comp), dst, base, base2, ratio)
	case comp.Fields[0].Kind == Quat:
		return decodeRotation(r, steps, comp.Fields[0].Bits, symbols.next(comp), dst, base, base2, ratio)
	default:
		return decodeSteps(r, steps, symbols.next(comp), dst, base, base2, ratio)
	}
}

// decodeFields is DecodeChange for fields of all kinds, with a baseline and a symbol of this form.
func (p *Packed) decodeFields(
	r *bitbuf.Reader, comp *Component, form int, dst, base, base2 []uint32, ratio int64,
) (changed bool) {
	charts := form != symbolUsual
	moves := !rests(comp, base, base2, ratio)
	switch {
	case !moves || !p.extrapolate(comp, base, base2, ratio):
		differs := differsFrom(r, form, changesAlone(comp, base2, ratio))
		if !differs && !moves {
			return false
		}
		if !differs {
			copy(dst, base)
			return true
		}
		p.decodeResiduals(r, comp, dst, reference{row: base}, charts)
	case form == symbolUsual || form == symbolWritten && !r.ReadBool():
		p.decodeResiduals(r, comp, dst, reference{row: p.row, base: base, base2: base2, quats: p.quats}, charts)
	case !r.ReadBool():
		copy(dst, p.row)
		return true
	case !r.ReadBool():
		copy(dst, base)
		return true
	default:
		p.decodeResiduals(r, comp, dst, reference{row: base}, true)
	}
	return checked(r, comp, dst)
}

// checked returns true, and lets the Reader fail if a code of the row is outside its field's range.
func checked(r *bitbuf.Reader, c *Component, dst []uint32) bool {
	if r.Err() == nil && !c.Valid(dst) {
		r.Fail(ErrCode)
	}
	return true
}

// addAbsolute is Add without a baseline.
func (p *Packed) addAbsolute(c *Component, cur []uint32) {
	var d bitString
	words, costs := p.words[0], p.book(len(c.Fields))
	for i := range costs {
		f := &c.Fields[i]
		from := d.n
		switch f.Kind {
		case Reference:
			d = d.reference(words, cur[f.word], cur[f.word+1])
		case Quat:
			q := cur[f.word : f.word+4]
			d = d.put(words, uint64(q[0])|uint64(q[1])<<2|uint64(q[2])<<(2+f.Bits), 2+2*f.Bits)
			d = d.put(words, uint64(q[3]), f.Bits)
		case Bytes:
			d = f.encodeText(d, words, cur)
		default:
			d = d.put(words, f.code(cur), f.Bits)
		}
		costs[i] = Cost{uint32(c.first + i), uint32(d.n - from)}
	}
	p.holdAbsolute(d, words)
}

// decodeAbsolute reads what addAbsolute wrote.
func decodeAbsolute(r *bitbuf.Reader, c *Component, dst []uint32) {
	for i := range c.Fields {
		f := &c.Fields[i]
		switch f.Kind {
		case Reference:
			readReference(r, dst[f.word:f.word+2])
		case Quat:
			q := dst[f.word : f.word+4]
			q[0] = uint32(r.ReadBits(2))
			for j := range q[1:] {
				q[j+1] = uint32(r.ReadBits(f.Bits))
			}
		case Bytes:
			f.decodeText(r, dst)
		default:
			f.setCode(dst, r.ReadBits(f.Bits))
		}
	}
}
