package delta

import "math/bits"

// An amount is what a Linear or Wrap field, or a component of a quaternion, is coded by.
type amount struct {
	column   []decision
	model    *numberModel
	context  uint
	at       int64 // what the residual is taken against
	to, more int64 // the two distances that make up at
	blended  bool
}

// aim prepares a number: base and to are its codes at the baseline and as predicted, near
// the distance that the third baseline predicts, if hasNear. m is the bits of the motion
// between the baselines.
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
		n.at += (n.more*int64(*reachOf(&n.model.turn, n.more)) + 1<<15) >> 16
	}
}

// learn takes note of what was left of a number.
func (n *amount) learn(v int64) {
	if n.blended && v != 0 {
		follow(&n.model.reach, n.to, v, reachStep)
		follow(&n.model.turn, n.more, v, turnStep)
	}
}

// numberContext returns the context of a number's length: how large a residual may be is
// seen by those before it in the entity, and by the bits of its own motion.
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

// maxBlendBits is the largest width of a field whose prediction is blended: products must
// fit into 63 bits.
const maxBlendBits = 40

func (c *Compact) encodeResiduals(e *RangeEncoder, comp *Component, symbols []decision, cur []uint32, ref *reference, past *Past) {
	c.news = 2
	first, same, quat := c.largest == 0, past == nil, 0
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			continue
		}
		implied := i == comp.last && same
		plain := c.model.decisions[c.columns[comp.first+i].decisions:][:plainDecisions]
		switch f.Kind {
		case Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			if !implied {
				e.put(&plain[plainChanged], v != 0)
			}
			if v != 0 && f.Bits > 1 {
				e.putLength(plain[plainLength:], plainLengths, v-1, f.Bits)
			}
			same = same && v == 0
		case Reference:
			now, was := cur[f.word:f.word+2], ref.row[f.word:f.word+2]
			changed := !equal(now, was)
			if !implied {
				e.put(&plain[plainChanged], changed)
			}
			if changed {
				e.putReference(plain, now)
			}
			same = same && !changed
		case Quat:
			q := cur[f.word : f.word+4]
			chart := q[0] == ref.row[f.word]
			e.put(&symbols[symbolChart], chart)
			if !chart {
				e.encodeBits(uint64(q[0]), 2)
				same = false
			}
			x := c.turning(f, quat, ref, past, q[0])
			quat++
			for j := range x.to {
				c.aim(&n, comp.first+i, x.from[j], x.to[j], x.near[j], x.hasNear, past != nil, first, x.moved[j])
				n.at = min(max(n.at, 0), int64(lowBits(f.Bits)))
				v := int64(q[j+1]) - n.at
				n.learn(v)
				e.putNumber(&n, v, f.Bits, same && i == comp.last && j == 2)
				c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
				first, same = false, same && v == 0
			}
		case Counter, Flags, Bytes:
			changed := f.differs(cur, ref.row)
			if !implied {
				e.put(&plain[plainChanged], changed)
			}
			if changed {
				f.putJump(e, plain, cur, ref.row)
			}
			same = same && !changed
		default:
			c.aimField(&n, comp.first+i, f, ref, past, first)
			v := f.signed(f.code(cur), uint64(n.at))
			n.learn(v)
			e.putNumber(&n, v, f.Bits, implied)
			c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
			first, same = false, same && v == 0
		}
		c.book(e, comp.first+i)
	}
}

func (c *Compact) decodeResiduals(d *RangeDecoder, comp *Component, symbols []decision, dst []uint32, ref *reference, past *Past) {
	c.news = 2
	first, same, quat := c.largest == 0, past == nil, 0
	var n amount
	for i := range comp.Fields {
		f := &comp.Fields[i]
		if f.Bits == 0 {
			f.setCode(dst, 0)
			continue
		}
		implied := i == comp.last && same
		plain := c.model.decisions[c.columns[comp.first+i].decisions:][:plainDecisions]
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
			same = same && v == 0
		case Reference:
			now, was := dst[f.word:f.word+2], ref.row[f.word:f.word+2]
			if implied || d.get(&plain[plainChanged]) {
				d.getReference(plain, now)
				same = false
			} else {
				copy(now, was)
			}
		case Quat:
			q := dst[f.word : f.word+4]
			q[0] = ref.row[f.word]
			if !d.get(&symbols[symbolChart]) {
				q[0] = uint32(d.decodeBits(2))
				same = false
			}
			x := c.turning(f, quat, ref, past, q[0])
			quat++
			for j := range x.to {
				c.aim(&n, comp.first+i, x.from[j], x.to[j], x.near[j], x.hasNear, past != nil, first, x.moved[j])
				n.at = min(max(n.at, 0), int64(lowBits(f.Bits)))
				v := d.getNumber(&n, f.Bits, same && i == comp.last && j == 2)
				n.learn(v)
				q[j+1] = uint32(n.at + v) // DecodeRow looks if it is valid
				c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
				first, same = false, same && v == 0
			}
		case Counter, Flags, Bytes:
			if implied || d.get(&plain[plainChanged]) {
				f.getJump(d, plain, dst, ref.row)
				same = false
			} else {
				copy(dst[f.word:][:f.Words()], ref.row[f.word:])
			}
		default:
			c.aimField(&n, comp.first+i, f, ref, past, first)
			v := d.getNumber(&n, f.Bits, implied)
			n.learn(v)
			code, ok := f.plus(uint64(n.at), v)
			if !ok {
				d.fail(ErrCode)
				return
			}
			f.setCode(dst, code)
			c.largest = max(c.largest, uint(bits.Len64(uint64(abs(v)))))
			first, same = false, same && v == 0
		}
	}
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

// A turning is a rotation and its past in one chart.
type turning struct {
	from, to, near [3]int64
	moved          [3]uint
	hasNear        bool
}

// turning expresses the n-th Quat field of a row in a chart.
func (c *Compact) turning(f *Field, n int, ref *reference, past *Past, chart uint32) (x turning) {
	to, moved := ref.chart(f, n, chart)
	x.moved = moved
	for j := range to {
		x.to[j] = int64(to[j])
	}
	if past == nil {
		return x
	}
	base := &ref.quats[n].base
	if !ref.quats[n].turned {
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
