package delta

// This file splits numbers into the decisions that Compact codes.

import (
	"math"
	"math/bits"
)

// put codes a bit by a decision of a model, and the decision learns from it.
func (e *RangeEncoder) put(d *decision, bit bool) {
	set, chance := -one(bit), d.chance()
	d.learn(set)
	e.encode(set, chance)
}

// one returns 1 for true, without a branch.
func one(b bool) (x uint64) {
	if b {
		x = 1
	}
	return x
}

func (d *RangeDecoder) get(x *decision) bool { return d.getMask(x) != 0 }

// getMask is get for a bit on which nobody branches. It returns all ones for a bit that is set.
func (d *RangeDecoder) getMask(x *decision) (set uint64) {
	set, d.interval = d.mask(d.interval, x)
	return set
}

// mask is getMask for a caller that has the interval in hand: several decisions in a row are faster so.
func (d *RangeDecoder) mask(i interval, x *decision) (set uint64, next interval) {
	before := *x
	set = i.narrow(before.chance())
	*x = before.after(set)
	if i.width < leastRange {
		i = d.shifted(i)
	}
	return set, i
}

// putBits codes the n low bits of v as raw bits, n <= 64.
func (e *RangeEncoder) putBits(v uint64, n uint) {
	for ; n > 16; n -= 16 {
		e.encodeBits(v>>(n-16)&0xffff, 16)
	}
	e.encodeBits(v&lowBits(n), n)
}

func (d *RangeDecoder) getBits(n uint) uint64 {
	if n <= 16 {
		return d.decodeBits(n)
	}
	return d.getManyBits(n)
}

// getManyBits is getBits for more than 16 bits.
func (d *RangeDecoder) getManyBits(n uint) (v uint64) {
	for ; n > 16; n -= 16 {
		v = v<<16 | d.decodeBits(16)
	}
	return v<<n | d.decodeBits(n)
}

// putLength codes v < 2^width: its length in unary, one of the decisions for each step and the last
// one for all further steps, and then the bits below its highest one.
func (e *RangeEncoder) putLength(decisions []decision, v uint64, width uint) {
	n := uint(bits.Len64(v))
	last := uint(len(decisions) - 1)
	for i := range n {
		e.put(&decisions[min(i, last)], true)
	}
	if n < width {
		e.put(&decisions[min(n, last)], false)
	}
	if n > 1 {
		e.putBits(v, n-1)
	}
}

func (d *RangeDecoder) getLength(decisions []decision, width uint) uint64 {
	n := uint(0)
	for last := uint(len(decisions) - 1); n < width && d.get(&decisions[min(n, last)]); {
		n++
	}
	if n < 2 {
		return uint64(n)
	}
	return 1<<(n-1) | d.getBits(n-1)
}

// putNumber codes a residual of up to width bits: its length in unary, the bit below its highest
// one, its sign, and the remaining bits. An implied residual is not zero.
func (e *RangeEncoder) putNumber(x *amount, m *numberModel, v int64, width uint, implied bool) {
	a := uint64(abs(v))
	n := uint(bits.Len64(a))
	e.putSteps(uint(one(implied)), n, width, x, m)
	if n == 0 {
		return
	}
	rest := n - 1
	if rest > 0 {
		rest--
		e.put(&m.top[min(rest, topDecisions-1)], a>>rest&1 != 0)
	}
	if side, sign := x.side(m, n); side != nil {
		e.put(side, v>>63 == sign)
		if rest > 0 {
			e.putBits(a&lowBits(rest), rest)
		}
	} else {
		e.putBits(a&lowBits(rest)<<1|uint64(v)>>63, rest+1)
	}
}

func (d *RangeDecoder) getNumber(x *amount, m *numberModel, width uint, implied bool) int64 {
	n, i := d.getSteps(d.interval, uint(one(implied)), width, x, m)
	if n == 0 {
		d.interval = i
		return 0
	}
	a, rest := uint64(1), n-1
	if rest > 0 {
		rest--
		a, i = d.mask(i, &m.top[min(rest, topDecisions-1)])
		a = 2 - a
	}
	var negative uint64 // all ones or 0
	side, sign := x.side(m, n)
	if side != nil {
		negative, i = d.mask(i, side)
		negative = ^(negative ^ uint64(sign))
	}
	d.interval = i
	switch {
	case side == nil:
		low := d.getBits(rest + 1)
		a, negative = a<<rest|low>>1, -(low & 1)
	case rest > 0:
		a = a<<rest | d.getBits(rest)
	}
	return int64((a ^ negative) - negative)
}

// putSteps codes a length of up to width bits, of which the first known are. It is like a loop around put, but these
// bits are the most, and only the last one moves the low end of the interval.
func (e *RangeEncoder) putSteps(known, n, width uint, x *amount, m *numberModel) {
	wide := e.width
	for i := known; i < width; i++ {
		p := x.length(m, i)
		part := wide >> chanceBits * uint64(p.chance())
		if i == n {
			p.learn(0)
			e.width = wide - part
			e.lift(part)
			return
		}
		p.learn(math.MaxUint64)
		if wide = part; wide < leastRange {
			e.width = wide
			e.shift()
			wide = e.width
		}
	}
	e.width = wide
}

// getSteps reads a length of up to width bits, of which n are known. It is like a loop around get, but these bits are
// the most, and each depends on the one before it. The caller has the interval in hand.
func (d *RangeDecoder) getSteps(
	i interval, n, width uint, x *amount, m *numberModel,
) (length uint, next interval) {
	first, lengths := &m.first[x.first], &m.lengths[x.context]
	for ; n < width; n++ {
		p := &lengths[min(n-2, lengthDecisions-1)]
		if n < 2 {
			p = &first[n]
		}
		part := i.width >> chanceBits * uint64(p.chance())
		if i.at >= part {
			p.learn(0)
			if i.at, i.width = i.at-part, i.width-part; i.width < leastRange {
				i = d.shifted(i)
			}
			break
		}
		p.learn(math.MaxUint64)
		if i.width = part; part < leastRange {
			i = d.shifted(i)
		}
	}
	return n, i
}

// putReference codes the words of a reference as lengths, the second one only if the first one is
// not zero.
func (e *RangeEncoder) putReference(plain *plainModel, words []uint32) {
	e.putLength(plain.lengths[:], uint64(words[0]), indexBits+1)
	if words[0] != 0 {
		e.putLength(plain.counter[:], uint64(words[1]), counterBits)
	}
}

func (d *RangeDecoder) getReference(plain *plainModel, words []uint32) {
	words[0], words[1] = uint32(d.getLength(plain.lengths[:], indexBits+1)), 0
	if words[0] != 0 {
		words[1] = uint32(d.getLength(plain.counter[:], counterBits))
	}
}
