package delta

// This file codes the residuals of a row in Compact.

import "math/bits"

// amount has what a number is coded with: a Linear or Wrap field, or a component of a quaternion.
type amount struct {
	column   []decision
	model    *numberModel
	context  uint
	at       int64 // the prediction, against which the residual is taken
	to, more int64 // the two distances that the prediction is blended from
	blended  bool
}

// aim prepares a number. base and to are its codes at the baseline and as extrapolated, and near is
// the distance that the third baseline predicts, if hasNear. m is the bits of the motion between
// the baselines.
func (c *Compact) aim(n *amount, field int, base, to, near int64, hasNear, moving, first bool, m uint) {
	col := &c.columns[field]
	n.column = c.model.decisions[col.decisions:][:numberDecisions]
	n.model = &c.model.numbers[col.number]
	n.at, n.blended = to, false
	n.context = numberContext(moving, first, m, c.largest)
	if !moving {
		return
	}
	n.blended = true
	n.to, n.more = to-base, 0
	n.at = base + (n.to*int64(*reachOf(&n.model.reach, n.to))+1<<15)>>16
	if hasNear {
		n.more = near - n.to
		n.at += (n.more*int64(*reachOf(&n.model.correction, n.more)) + 1<<15) >> 16
	}
}

// learn moves the shares of the two distances towards what remained of the number.
func (n *amount) learn(v int64) {
	if n.blended && v != 0 {
		follow(&n.model.reach, n.to, v, reachStep)
		follow(&n.model.correction, n.more, v, correctionStep)
	}
}

// numberContext returns the context of a number's length. The residuals before it in the entity,
// and the bits of its own motion, predict how large it may be.
func numberContext(moving, first bool, motion, largest uint) uint {
	switch {
	case !moving && first:
		return 0
	case !moving:
		return 1
	case first:
		return 2 + min(motion/3, 3)
	}
	return 6 + min((motion+largest)/2, 9)
}

// maxBlendBits is the largest width of a field whose prediction is blended: products must fit into
// 63 bits.
const maxBlendBits = 40

// encodeResiduals codes cur against ref, from which it differs. past is nil if ref is a baseline.
func (c *Compact) encodeResiduals(
	e *RangeEncoder, comp *Component, symbols []decision, cur []uint32, ref *reference, past *Past,
) {
	c.activity = shownResiduals
	x := progress{first: c.largest == 0, same: past == nil}
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			continue
		}
		field, implied := comp.first+i, i == comp.last && x.same
		plain := c.model.decisions[c.columns[field].decisions:][:plainDecisions]
		switch f.Kind {
		case Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			if !implied {
				e.put(&plain[plainChanged], v != 0)
			}
			if v != 0 && f.Bits > 1 {
				e.putLength(plain[plainLength:], plainLengths, v-1, f.Bits)
			}
			x.same = x.same && v == 0
		case Quat:
			x = c.encodeQuat(e, &n, comp, i, &symbols[symbolChart], cur, ref, past, x)
		case Linear, Wrap:
			c.aimField(&n, field, f, ref, past, x.first)
			v := f.signed(f.code(cur), uint64(n.at))
			n.learn(v)
			e.putNumber(&n, v, f.Bits, implied)
			c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
			x.first, x.same = false, x.same && v == 0
		default:
			changed := f.differs(cur, ref.row)
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
	for j := range r.to {
		c.aimQuat(n, comp.first+i, f, &r, j, past != nil, x.first)
		v := int64(q[j+1]) - n.at
		n.learn(v)
		e.putNumber(n, v, f.Bits, x.same && i == comp.last && j == 2)
		c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
		x.first, x.same = false, x.same && v == 0
	}
	return x
}

// decodeResiduals reads into dst what encodeResiduals wrote against ref.
func (c *Compact) decodeResiduals(
	d *RangeDecoder, comp *Component, symbols []decision, dst []uint32, ref *reference, past *Past,
) {
	c.activity = shownResiduals
	x := progress{first: c.largest == 0, same: past == nil}
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			f.setCode(dst, 0)
			continue
		}
		field, implied := comp.first+i, i == comp.last && x.same
		plain := c.model.decisions[c.columns[field].decisions:][:plainDecisions]
		switch f.Kind {
		case Plain:
			var v uint64
			if implied || d.get(&plain[plainChanged]) {
				v = 1
				if f.Bits > 1 {
					v += d.getLength(plain[plainLength:], plainLengths, f.Bits)
				}
			}
			f.setCode(dst, (f.code(ref.row)+uint64(unzigzag(v)))&lowBits(f.Bits))
			x.same = x.same && v == 0
		case Quat:
			x = c.decodeQuat(d, &n, comp, i, &symbols[symbolChart], dst, ref, past, x)
		case Linear, Wrap:
			c.aimField(&n, field, f, ref, past, x.first)
			v := d.getNumber(&n, f.Bits, implied)
			n.learn(v)
			code, ok := f.plus(uint64(n.at), v)
			if !ok {
				d.fail(ErrCode)
				return
			}
			f.setCode(dst, code)
			c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
			x.first, x.same = false, x.same && v == 0
		default:
			if implied || d.get(&plain[plainChanged]) {
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
	for j := range r.to {
		c.aimQuat(n, comp.first+i, f, &r, j, past != nil, x.first)
		v := d.getNumber(n, f.Bits, x.same && i == comp.last && j == 2)
		n.learn(v)
		q[j+1] = uint32(n.at + v) // DecodeRow checks whether it is valid
		c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
		x.first, x.same = false, x.same && v == 0
	}
	return x
}

// aimField is aim for a Linear or Wrap field.
func (c *Compact) aimField(n *amount, field int, f *Field, ref *reference, past *Past, first bool) {
	if past == nil {
		c.aim(n, field, 0, int64(f.code(ref.row)), 0, false, false, first, 0)
		return
	}
	base, base2, to := int64(f.code(ref.base)), int64(f.code(ref.base2)), int64(f.code(ref.row))
	m := uint(bits.Len64(uint64(abs(base - base2))))
	if f.Bits > maxBlendBits {
		c.aim(n, field, to, to, 0, false, true, first, m)
		return
	}
	ahead, near := to-base, int64(0)
	if f.Kind == Wrap {
		ahead = f.signed(uint64(to), uint64(base))
	}
	if past.third() {
		near = base - int64(f.code(past.Near))
		if f.Kind == Wrap {
			near = f.signed(uint64(base), f.code(past.Near))
		}
	}
	near = (near*past.NearRatio + 1<<15) >> 16
	c.aim(n, field, base, base+ahead, near, past.third(), true, first, m)
	if f.Kind == Wrap {
		n.at = f.around(n.at)
	} else {
		n.at = min(max(n.at, 0), int64(f.Max))
	}
}

// aimQuat is aim for number j of a Quat field.
func (c *Compact) aimQuat(n *amount, field int, f *Field, r *chartedRotation, j int, moving, first bool) {
	c.aim(n, field, r.from[j], r.to[j], r.near[j], r.hasNear, moving, first, r.moved[j])
	n.at = min(max(n.at, 0), int64(lowBits(f.Bits)))
}

// chartedRotation is a Quat field's baseline, prediction and third baseline in one chart.
type chartedRotation struct {
	from, to, near [3]int64
	moved          [3]uint // bits of the motion between the baselines
	hasNear        bool
}

// inChart expresses the reference of the n-th Quat field of a row in a chart.
func (c *Compact) inChart(f *Field, n int, ref *reference, past *Past, chart uint32) (x chartedRotation) {
	to, moved := ref.chart(f, n, chart)
	x.moved = moved
	for j := range to {
		x.to[j] = int64(to[j])
	}
	if past == nil {
		return x
	}
	base := &ref.quats[n].base
	if !ref.quats[n].rotated {
		base = nil
	}
	from := inChart(past.Base[f.word:f.word+4], base, chart, f.Bits)
	for j := range from {
		x.from[j] = int64(from[j])
	}
	if !past.third() {
		return x
	}
	x.hasNear = true
	if equal(past.Base[f.word:f.word+4], past.Near[f.word:f.word+4]) {
		return x
	}
	var q1, q2, next rotation
	if base == nil {
		q1.set(past.Base[f.word:f.word+4], f.Bits)
		base = &q1
	}
	q2.set(past.Near[f.word:f.word+4], f.Bits)
	next.extrapolate(base, &q2, past.NearRatio, f.Bits)
	near := next.chart(chart, f.Bits)
	for j := range near {
		x.near[j] = int64(near[j]) - x.from[j]
	}
	return x
}
