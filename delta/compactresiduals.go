package delta

// This file codes the residuals of a row in Compact.

import "math/bits"

// encodeResiduals codes cur against ref, from which it differs. ref has no baselines if it is one.
func (c *Compact) encodeResiduals(
	e *RangeEncoder, comp *Component, symbols []decision, cur []uint32, ref *reference, past *Past,
) {
	c.activity = shownResiduals
	x := progress{first: c.largest == 0, same: ref.base == nil}
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			continue
		}
		field, implied := comp.first+i, i == comp.last && x.same
		switch f.Kind {
		case Plain:
			x.same = e.putPlain(f, c.plain(field), cur, ref.row, past, implied) && x.same
		case Quat:
			x = c.encodeQuat(e, &n, comp, i, &symbols[symbolChart], cur, ref, past, x)
		case Linear, Wrap:
			col := &c.columns[field]
			m := c.number(col)
			c.aimField(&n, m, col, f, ref, past, x.first)
			if f.beside && ref.base != nil {
				c.aimTogether(&n, f, &comp.Fields[i-1], cur, ref)
			}
			v := f.signed(f.code(cur), uint64(n.at))
			n.learn(m, v)
			e.putNumber(&n, m, v, f.Bits, implied)
			c.showNumber(&n, v)
			x.first, x.same = false, x.same && v == 0
		default:
			plain, changed := c.plain(field), f.differs(cur, ref.row)
			if !implied {
				e.put(&plain[plainChanged], changed)
			}
			if changed {
				f.putChange(e, plain, cur, ref.row)
			}
			x.same = x.same && !changed
		}
		c.book(e, field)
	}
}

// plain returns the decisions of a field that is neither Linear, Wrap nor Quat.
func (c *Compact) plain(field int) []decision {
	return c.model.decisions[c.columns[field].decisions:][:plainDecisions]
}

// progress is the state of the residuals of one row.
type progress struct {
	first bool // the entity has shown no number yet
	same  bool // no residual so far shows the difference, and one must
	quats int  // Quat fields so far
}

// encodeQuat codes Quat field i of a row: whether the chart is that of the reference, else the
// chart; and three numbers.
func (c *Compact) encodeQuat(
	e *RangeEncoder, n *amount, comp *Component, i int, chart *decision, row []uint32,
	ref *reference, past *Past, x progress,
) progress {
	f := &comp.Fields[i]
	q := row[f.word:][:4]
	same := q[0] == ref.row[f.word]
	e.put(chart, same)
	if !same {
		e.encodeBits(uint64(q[0]), 2)
		x.same = false
	}
	r := c.inChart(f, x.quats, ref, past, q[0])
	x.quats++
	m := c.number(&c.columns[comp.first+i])
	for j := range r.base {
		c.aimQuat(n, m, f, &r, j, x.first)
		v := int64(q[j+1]) - n.at
		n.learn(m, v)
		e.putNumber(n, m, v, f.Bits, x.same && i == comp.last && j == 2)
		c.showNumber(n, v)
		x.first, x.same = false, x.same && v == 0
	}
	return x
}

// decodeResiduals reads into dst what encodeResiduals wrote against ref.
func (c *Compact) decodeResiduals(
	d *RangeDecoder, comp *Component, symbols []decision, dst []uint32, ref *reference, past *Past,
) {
	c.activity = shownResiduals
	x := progress{first: c.largest == 0, same: ref.base == nil}
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			f.setCode(dst, 0)
			continue
		}
		field, implied := comp.first+i, i == comp.last && x.same
		switch f.Kind {
		case Plain:
			x.same = d.getPlain(f, c.plain(field), dst, ref.row, past, implied) && x.same
		case Quat:
			x = c.decodeQuat(d, &n, comp, i, &symbols[symbolChart], dst, ref, past, x)
		case Linear, Wrap:
			col := &c.columns[field]
			m := c.number(col)
			c.aimField(&n, m, col, f, ref, past, x.first)
			if f.beside && ref.base != nil {
				c.aimTogether(&n, f, &comp.Fields[i-1], dst, ref)
			}
			v := d.getNumber(&n, m, f.Bits, implied)
			n.learn(m, v)
			code, ok := f.plus(uint64(n.at), v)
			if !ok {
				d.fail(ErrCode)
				return
			}
			f.setCode(dst, code)
			c.showNumber(&n, v)
			x.first, x.same = false, x.same && v == 0
		default:
			if plain := c.plain(field); implied || d.get(&plain[plainChanged]) {
				f.getChange(d, plain, dst, ref.row)
				x.same = false
			} else {
				copy(dst[f.word:][:f.Words()], ref.row[f.word:])
			}
		}
	}
}

// decodeQuat reads what encodeQuat wrote.
func (c *Compact) decodeQuat(
	d *RangeDecoder, n *amount, comp *Component, i int, chart *decision, row []uint32,
	ref *reference, past *Past, x progress,
) progress {
	f := &comp.Fields[i]
	q := row[f.word:][:4]
	q[0] = ref.row[f.word]
	if !d.get(chart) {
		q[0] = uint32(d.decodeBits(2))
		x.same = false
	}
	r := c.inChart(f, x.quats, ref, past, q[0])
	x.quats++
	m := c.number(&c.columns[comp.first+i])
	for j := range r.base {
		c.aimQuat(n, m, f, &r, j, x.first)
		v := d.getNumber(n, m, f.Bits, x.same && i == comp.last && j == 2)
		n.learn(m, v)
		q[j+1] = uint32(n.at + v) // DecodeRow checks whether it is valid
		c.showNumber(n, v)
		x.first, x.same = false, x.same && v == 0
	}
	return x
}

// showNumber notes the residual of a number, which predicts those after it in the entity.
func (c *Compact) showNumber(n *amount, v int64) {
	c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
	if distance := n.parts[0].distance; n.aimed && v != 0 && distance != 0 {
		if c.trend = trendOn; v^distance < 0 {
			c.trend = trendBack
		}
	}
}

// aimField is aim for a Linear or Wrap field.
func (c *Compact) aimField(
	n *amount, m numberModel, col *compactColumn, f *Field, ref *reference, past *Past, first bool,
) {
	moving := ref.base != nil
	if !moving || f.Bits > maxAimBits {
		c.expect(n, int64(f.code(ref.row)), moving, first)
		return
	}
	if col.halfCircle == 0 {
		c.aimRound(n, m, f, ref, past, first)
		return
	}
	base := int64(ref.base[f.word])
	far := col.ahead(base, int64(ref.base2[f.word]), past.Ratio)
	var near, middle int64
	if n.nearer = 0; past.third() {
		n.nearer, near = 1, col.ahead(base, int64(past.Near[f.word]), past.NearRatio)
		if past.fourth() {
			n.nearer, middle = 2, col.ahead(base, int64(past.Mid[f.word]), past.MidRatio)
		}
	}
	c.aim(n, m, base, far, near, middle, first)
	n.at = min(max(n.at&col.mask, 0), col.max)
}

// aimTogether aims at f again if it turns together with the field before it, which is in row already.
func (c *Compact) aimTogether(n *amount, f, before *Field, row []uint32, ref *reference) {
	if at, _, together := ref.together(f, before, row); together {
		c.expect(n, int64(at), false, false)
	}
}

// ahead returns the distance to where an earlier code predicts a Linear or Wrap field, as in aim.
func (col *compactColumn) ahead(base, earlier, ratio int64) int64 {
	d := (base-earlier+col.halfCircle)&(2*col.halfCircle-1) - col.halfCircle
	return (d*ratio + 1<<(15-fineBits)) >> (16 - fineBits)
}

// aimRound is aimField for a moving field of any kind, with a circle of any number of codes.
func (c *Compact) aimRound(n *amount, m numberModel, f *Field, ref *reference, past *Past, first bool) {
	base := f.code(ref.base)
	far := f.ahead(base, ref.base2, past.Ratio)
	var near, middle int64
	if n.nearer = 0; past.third() {
		n.nearer, near = 1, f.ahead(base, past.Near, past.NearRatio)
		if past.fourth() {
			n.nearer, middle = 2, f.ahead(base, past.Mid, past.MidRatio)
		}
	}
	c.aim(n, m, int64(base), far, near, middle, first)
	if f.Kind == Wrap {
		n.at = f.around(n.at)
	} else {
		n.at = min(max(n.at, 0), int64(f.Max))
	}
}

// ahead returns the distance to where an earlier row predicts a Linear or Wrap field, as in aim.
func (f *Field) ahead(base uint64, earlier []uint32, ratio int64) int64 {
	code := f.code(earlier)
	d := int64(base - code)
	if f.Kind == Wrap {
		d = f.signed(base, code)
	}
	return (d*ratio + 1<<(15-fineBits)) >> (16 - fineBits)
}

// aimQuat is aim for number j of a Quat field.
func (c *Compact) aimQuat(n *amount, m numberModel, f *Field, r *chartedRotation, j int, first bool) {
	if !r.moving {
		c.expect(n, r.base[j], false, first)
	} else {
		n.nearer = r.nearer
		c.aim(n, m, r.base[j], r.ahead[0][j], r.ahead[1][j], 0, first)
	}
	n.at = min(max(n.at, 0), int64(lowBits(f.Bits)))
}

// chartedRotation is what the baselines show of a Quat field, in one chart: see aim. The fourth
// baseline would not be worth the time that another rotation takes.
type chartedRotation struct {
	base   [3]int64
	ahead  [2][3]int64 // of the second and the third baseline
	nearer int
	moving bool
}

// inChart expresses the reference of the n-th Quat field of a row in a chart.
func (c *Compact) inChart(f *Field, n int, ref *reference, past *Past, chart uint32) (x chartedRotation) {
	words := past.Base[f.word:][:4]
	var base *rotation
	if x.moving = ref.base != nil; x.moving && ref.quats[n].rotated {
		base = &ref.quats[n].base
	}
	for j, code := range inChart(words, base, chart, f.Bits) {
		x.base[j] = int64(code)
	}
	if base != nil {
		x.ahead[0] = ref.quats[n].next.ahead(chart, f.Bits, &x.base)
	}
	if !x.moving || !past.third() {
		return x
	}
	x.nearer = 1
	near := past.Near[f.word:][:4]
	if equal(words, near) {
		return x
	}
	var base1, earlier, next rotation
	if base == nil {
		base = &base1
		base.set(words, f.Bits)
	}
	earlier.set(near, f.Bits)
	next.extrapolate(base, &earlier, past.NearRatio, f.Bits)
	x.ahead[1] = next.ahead(chart, f.Bits, &x.base)
	return x
}

// ahead returns the distances of the components of a rotation from codes in a chart, as in aim.
func (q *rotation) ahead(chart uint32, b uint, from *[3]int64) (x [3]int64) {
	g := &quatGrids[b]
	others := &others[chart&3]
	sign := q[chart&3] >> 63 // -1 or 0
	for j := range x {
		x[j] = g.fine((q[others[j]&3]^sign)-sign) - from[j]<<fineBits
	}
	return x
}

// steadily returns the code of a Plain field if it goes on as between the baselines, and whether two
// of these agree on it. If it equals the first baseline's, the field does not count steadily.
func (f *Field) steadily(past *Past) (next uint64, agree uint) {
	base := f.code(past.Base)
	if past.Base2 == nil || past.Ratio == 0 || f.Bits < 2 || f.Bits > maxAimBits {
		return base, 0
	}
	next = f.continued(base, past.Base2, past.Ratio)
	if past.third() {
		switch near := f.continued(base, past.Near, past.NearRatio); near {
		case next:
			return next, 1
		case base:
		default:
			return near, 0
		}
	}
	return next, 0
}

// continued extrapolates a Plain field from an earlier row.
func (f *Field) continued(base uint64, earlier []uint32, ratio int64) uint64 {
	d := signed(base-f.code(earlier), f.Bits)
	return (base + uint64((d*ratio+1<<15)>>16)) & lowBits(f.Bits)
}
