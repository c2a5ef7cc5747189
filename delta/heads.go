package delta

// This file lets the user code more than rows: a Model has decisions for what the user writes
// before them.

import (
	"math"
	"math/bits"
)

// HeadDecisions is the number of decisions of a [Model] that its user may give a meaning.
const HeadDecisions = 256

// PutHead codes a bit by decision i of the user's.
func (c *Compact) PutHead(e *RangeEncoder, i int, bit bool) { e.put(&c.model.heads[i], bit) }

// GetHead reads what PutHead wrote.
func (c *Compact) GetHead(d *RangeDecoder, i int) bool { return d.get(&c.model.heads[i]) }

// PutHeadLength codes v < 2^width: its length in unary by the user's n decisions from i on, the last of which serves
// all further steps, and the bits below its highest one as raw bits.
func (c *Compact) PutHeadLength(e *RangeEncoder, i, n int, v uint64, width uint) {
	e.putLength(c.model.heads[i:i+n], v, width)
}

// GetHeadLength reads what PutHeadLength wrote.
func (c *Compact) GetHeadLength(d *RangeDecoder, i, n int, width uint) uint64 {
	return d.getLength(c.model.heads[i:i+n], width)
}

// PutBits codes the n low bits of v as raw bits, n <= 64.
func (e *RangeEncoder) PutBits(v uint64, n uint) { e.putBits(v, n) }

// GetBits reads what PutBits wrote.
func (d *RangeDecoder) GetBits(n uint) uint64 { return d.getBits(n) }

// PutExpGolomb codes v < 2^32 in the exp-Golomb code of an order below 32, as raw bits.
func (e *RangeEncoder) PutExpGolomb(v uint64, order uint) {
	v += 1 << order
	n := uint(bits.Len64(v)) - 1
	for range n - order { // one by one, as the decoder reads them
		e.encodeBits(0, 1)
	}
	e.encodeBits(1, 1)
	e.putBits(v, n)
}

// GetExpGolomb reads what PutExpGolomb wrote. A number of 2^32 or more leaves [ErrCode].
func (d *RangeDecoder) GetExpGolomb(order uint) uint64 {
	n := order
	for d.decodeBits(1) == 0 {
		if n++; n > 32 {
			d.fail(ErrCode)
			return 0
		}
	}
	v := 1<<n + d.getBits(n) - 1<<order
	if v>>32 != 0 {
		d.fail(ErrCode)
		return 0
	}
	return v
}

// CostUnit is the number of units of [Compact.Costs] in a bit.
const CostUnit = 256

// logs are the logarithms of 1 to 2 in steps of 1/256, in units of costs.
var logs = func() (t [256]uint16) {
	for i := range t {
		t[i] = uint16(math.Round(math.Log2(1+float64(i)/256) * CostUnit))
	}
	return t
}()

// spent returns the size of what has been written, in units of 1/[CostUnit] bits. It is rounded,
// for statistics.
func (e *RangeEncoder) spent() uint64 {
	words := uint64(e.n/4 + e.ones)
	if e.begun {
		words++
	}
	return costOf(words, e.width)
}

// Spent returns the size of what has been read, in units of 1/[CostUnit] bits. It is rounded, for statistics.
func (d *RangeDecoder) Spent() uint64 { return costOf(uint64(d.n/4-2), d.width) }

// costOf returns the cost of what has narrowed an interval to a width since so many words left it.
func costOf(words, width uint64) uint64 {
	n := uint(bits.Len64(width)) // 33..64
	log := uint64(n-1)*CostUnit + uint64(logs[width<<(64-n)>>55&255])
	return (words*32+64)*CostUnit - log
}

// CompactWidth returns the largest number of bits that Compact takes for a row.
func (c *Component) CompactWidth() int {
	const most = 12 // of a decision, and a little more
	n := 2 * most
	for i := range c.Fields {
		f := &c.Fields[i]
		switch f.Kind {
		case Quat:
			n += most + 2 + 3*((most+1)*int(f.Bits)+3*most)
		case Reference:
			n += most + (most+1)*(indexBits+1+counterBits) + 2*most
		case Bytes:
			n += 3*most + 3*int(f.Bits) + 8*int(f.Max)
		default:
			n += (most+1)*int(f.Bits) + 3*most
		}
	}
	return n
}
