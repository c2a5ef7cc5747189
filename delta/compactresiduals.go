package delta

// This file codes the residuals of a row in Compact.

// encodeResiduals codes cur against the prediction, or the first baseline if that is all there is, from which it
// differs.
func (c *Compact) encodeResiduals(
	e *RangeEncoder, comp *Component, symbols *symbolModel, cur []uint32, past *Past, moving bool,
) {
	x := c.beginResiduals(past, moving)
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			continue
		}
		field, implied := comp.first+i, i == comp.last && x.same
		switch f.Kind {
		case Plain:
			x.same = e.putPlain(f, c.plain(&c.columns[field]), cur, x.ref, past, implied) && x.same
		case Quat:
			c.encodeQuat(e, &n, comp, i, &symbols.chart, cur, past, &x)
		case Linear, Wrap:
			col := &c.columns[field]
			m := c.number(col)
			c.aimField(&n, m, col, f, past, &x)
			if f.beside && moving {
				c.aimTogether(&n, f, &comp.Fields[i-1], cur, past)
			}
			v := f.signed(f.code(cur), uint64(n.at))
			n.learn(m, v)
			e.putNumber(&n, m, v, f.Bits, implied)
			c.showNumber(&n, v, &x)
		default:
			plain, changed := c.plain(&c.columns[field]), f.differs(cur, x.ref)
			if !implied {
				e.put(&plain.changed, changed)
			}
			if changed {
				f.putChange(e, plain, cur, x.ref)
			}
			x.same = x.same && !changed
		}
		c.book(e, field)
	}
}

// plain returns the decisions of a field that is neither Linear, Wrap nor Quat.
func (c *Compact) plain(col *compactColumn) *plainModel { return &c.model.plains[col.of] }

// number returns what the model has learnt of a Linear, Wrap or Quat field.
func (c *Compact) number(col *compactColumn) *numberModel { return &c.model.numbers[col.of] }

// progress is the state of the residuals of one row.
type progress struct {
	ref    []uint32 // the row that residuals refer to: the prediction, or the first baseline
	moving bool     // it is the prediction
	first  bool     // the entity has shown no number yet
	same   bool     // no residual so far shows the difference, and one must
	quats  int      // Quat fields so far
}

// beginResiduals begins the residuals of a row.
func (c *Compact) beginResiduals(past *Past, moving bool) progress {
	c.activity = shownResiduals
	ref := past.Base
	if moving {
		ref = c.row
	}
	return progress{ref: ref, moving: moving, first: c.shown == 0, same: !moving}
}

// encodeQuat codes Quat field i of a row: whether the chart is that of the reference, else the
// chart; and three numbers.
func (c *Compact) encodeQuat(
	e *RangeEncoder, n *amount, comp *Component, i int, chart *decision, row []uint32, past *Past, x *progress,
) {
	f := &comp.Fields[i]
	q := row[f.word:][:4]
	same := q[0] == x.ref[f.word]
	e.put(chart, same)
	if !same {
		e.encodeBits(uint64(q[0]), 2)
		x.same = false
	}
	r := c.inChart(f, past, q[0], x)
	m := c.number(&c.columns[comp.first+i])
	for j := range r.base {
		c.aimQuat(n, m, f, &r, j, x.first)
		v := int64(q[j+1]) - n.at
		n.learn(m, v)
		e.putNumber(n, m, v, f.Bits, x.same && i == comp.last && j == 2)
		c.showNumber(n, v, x)
	}
}

// decodeResiduals reads into dst what encodeResiduals wrote.
func (c *Compact) decodeResiduals(
	d *RangeDecoder, comp *Component, symbols *symbolModel, dst []uint32, past *Past, moving bool,
) {
	x := c.beginResiduals(past, moving)
	columns := c.columns[comp.first:][:len(comp.Fields)]
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			f.setCode(dst, 0)
			continue
		}
		col, implied := &columns[i], i == comp.last && x.same
		switch f.Kind {
		case Plain:
			x.same = d.getPlain(f, c.plain(col), dst, x.ref, past, implied) && x.same
			d.check(f, dst)
		case Quat:
			c.decodeQuat(d, &n, comp, i, &symbols.chart, dst, past, &x)
		case Linear, Wrap:
			m := c.number(col)
			c.aimField(&n, m, col, f, past, &x)
			if f.beside && moving {
				c.aimTogether(&n, f, &comp.Fields[i-1], dst, past)
			}
			v := d.getNumber(&n, m, f.Bits, implied)
			n.learn(m, v)
			code, ok := f.plus(uint64(n.at), v)
			if !ok || code > f.Max {
				d.fail(ErrCode)
				return
			}
			f.setCode(dst, code)
			c.showNumber(&n, v, &x)
		default:
			if plain := c.plain(col); implied || d.get(&plain.changed) {
				f.getChange(d, plain, dst, x.ref)
				d.check(f, dst)
				x.same = false
			} else {
				copy(dst[f.word:][:f.Words()], x.ref[f.word:])
			}
		}
	}
}

// decodeQuat reads what encodeQuat wrote.
func (c *Compact) decodeQuat(
	d *RangeDecoder, n *amount, comp *Component, i int, chart *decision, row []uint32, past *Past, x *progress,
) {
	f := &comp.Fields[i]
	q := row[f.word:][:4]
	q[0] = x.ref[f.word]
	if !d.get(chart) {
		q[0] = uint32(d.decodeBits(2))
		x.same = false
	}
	r := c.inChart(f, past, q[0], x)
	m := c.number(&c.columns[comp.first+i])
	for j := range r.base {
		c.aimQuat(n, m, f, &r, j, x.first)
		v := d.getNumber(n, m, f.Bits, x.same && i == comp.last && j == 2)
		n.learn(m, v)
		q[j+1] = uint32(n.at + v)
		c.showNumber(n, v, x)
	}
	d.check(f, row)
}

// check fails if a field that was read is not valid.
func (d *RangeDecoder) check(f *Field, row []uint32) {
	if d.err == nil && !f.valid(row) {
		d.fail(ErrCode)
	}
}

// showNumber notes the residual of a number, which predicts those after it in the entity.
func (c *Compact) showNumber(n *amount, v int64, x *progress) {
	x.first, x.same = false, x.same && v == 0
	c.shown |= uint64(abs(v))
	if distance := n.parts[0].distance; v != 0 && distance != 0 {
		c.trend = trendOn + uint(uint64(v^distance)>>63) // trendBack if the signs differ
	}
}

// aimField is aim for a Linear or Wrap field.
func (c *Compact) aimField(n *amount, m *numberModel, col *compactColumn, f *Field, past *Past, x *progress) {
	if !x.moving || f.Bits > maxAimBits {
		c.expect(n, int64(f.code(x.ref)), x.moving, x.first)
		return
	}
	if col.halfCircle == 0 {
		c.aimRound(n, m, f, past, x.first)
		return
	}
	base := int64(past.Base[f.word])
	far := col.ahead(base, int64(past.Base2[f.word]), past.Ratio)
	var near, middle int64
	if n.nearer = 0; past.third() {
		n.nearer, near = 1, col.ahead(base, int64(past.Near[f.word]), past.NearRatio)
		if past.fourth() {
			n.nearer, middle = 2, col.ahead(base, int64(past.Mid[f.word]), past.MidRatio)
		}
	}
	c.aim(n, m, base, far, near, middle, x.first)
	n.at = min(max(n.at&col.mask, 0), col.max)
}

// aimTogether aims at f again if it turns together with the field before it, which is in row already.
func (c *Compact) aimTogether(n *amount, f, before *Field, row []uint32, past *Past) {
	ref := reference{row: c.row, base: past.Base, base2: past.Base2}
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
func (c *Compact) aimRound(n *amount, m *numberModel, f *Field, past *Past, first bool) {
	base := f.code(past.Base)
	far := f.ahead(base, past.Base2, past.Ratio)
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
func (c *Compact) aimQuat(n *amount, m *numberModel, f *Field, r *chartedRotation, j int, first bool) {
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

// inChart expresses what the next Quat field of a row refers to in a chart.
func (c *Compact) inChart(f *Field, past *Past, chart uint32, p *progress) (x chartedRotation) {
	words := past.Base[f.word:][:4]
	var base *rotation
	if x.moving = p.moving; x.moving && c.quats[p.quats].rotated {
		base = &c.quats[p.quats].base
	}
	for j, code := range inChart(words, base, chart, f.Bits) {
		x.base[j] = int64(code)
	}
	if base != nil {
		x.ahead[0] = c.quats[p.quats].next.ahead(chart, f.Bits, &x.base)
	}
	p.quats++
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
