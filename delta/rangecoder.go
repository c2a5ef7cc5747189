package delta

// This file has the binary range coder of Compact. Each bit narrows an interval of numbers between 0
// and 1; an unlikely bit narrows it more than a likely one (G. N. N. Martin, "Range encoding", 1979).
// The interval has 64 bits, of which 32 leave it at a time.
//
// The result is a byte stream, most significant byte first. It ends as soon as the number, followed
// by zeros, is inside the interval, so the last bytes of the interval cost about one.

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// errEnd is the error of a decoder that needed more bytes than there are, or far fewer.
var errEnd = errors.New("delta: compact rows do not end where they should")

// errFull is the error of an encoder whose buffer has no more room.
var errFull = errors.New("delta: compact rows need a larger buffer")

const (
	chanceBits = 16
	leastRange = 1 << 32 // a narrower interval is widened by 32 bits
)

// RangeEncoder writes bits to the user's buffer. Assigning an earlier copy of it takes back what was written since.
type RangeEncoder struct {
	low, width uint64
	buf        []byte
	n          int    // bytes in buf
	last       uint32 // the newest word that is not all ones: a carry may still be added to it
	ones       int    // words of all ones behind it, which pass a carry on
	begun      bool   // last is valid
	full       bool
}

// NewRangeEncoder returns an encoder that writes to buf, up to its length.
func NewRangeEncoder(buf []byte) RangeEncoder {
	return RangeEncoder{buf: buf, width: math.MaxUint64}
}

// encode adds a bit that is set with a probability of chance / 2^16, 0 < chance < 2^16. set is a mask, all ones for a
// bit that is set. It does not branch on the bit: many bits are as likely as not.
func (e *RangeEncoder) encode(set uint64, chance uint32) {
	part := e.width >> chanceBits * uint64(chance)
	rest := e.width - part
	e.width = rest ^ (rest^part)&set
	e.lift(part &^ set)
}

// lift moves the low end of the interval, whose width is set already, and widens it.
func (e *RangeEncoder) lift(by uint64) {
	e.low += by
	if e.low < by || e.width < leastRange {
		e.leave(e.low < by)
	}
}

// leave lets words leave the interval: a carry, and 32 bits if it is narrow.
func (e *RangeEncoder) leave(carry bool) {
	if carry {
		e.carry()
	}
	if e.width < leastRange {
		e.shift()
	}
}

// encodeBits adds the n low bits of v, n <= 16. All values are equally likely.
func (e *RangeEncoder) encodeBits(v uint64, n uint) {
	e.width >>= n & 63
	e.lift(e.width * v)
}

// carry adds 1 to the words that have left the interval.
func (e *RangeEncoder) carry() {
	e.last++
	if e.ones > 0 { // they become zeros
		e.word(e.last)
		for ; e.ones > 1; e.ones-- {
			e.word(0)
		}
		e.ones, e.last = 0, 0
	}
}

// shift moves 32 bits out of the interval.
func (e *RangeEncoder) shift() {
	next := uint32(e.low >> 32)
	e.low <<= 32
	e.width <<= 32
	switch {
	case !e.begun:
		e.begun, e.last = true, next
	case next == math.MaxUint32:
		e.ones++
	default:
		e.settle()
		e.last = next
	}
}

// settle writes the words that have left the interval.
func (e *RangeEncoder) settle() {
	if e.begun {
		e.word(e.last)
	}
	for ; e.ones > 0; e.ones-- {
		e.word(math.MaxUint32)
	}
}

// word writes 4 bytes, if they fit.
func (e *RangeEncoder) word(w uint32) {
	if len(e.buf)-e.n < 4 {
		e.full = true
		return
	}
	binary.BigEndian.PutUint32(e.buf[e.n:], w)
	e.n += 4
}

// Len returns the largest number of bytes that [RangeEncoder.Finish] could return now.
func (e *RangeEncoder) Len() int {
	n := e.n + (72-bits.Len64(e.width))/8
	if e.begun {
		n += 4 * (1 + e.ones)
	}
	return n
}

// Finish returns the part of the buffer that was written, or an error if the buffer is too small. Nothing may be
// written afterwards.
func (e *RangeEncoder) Finish() ([]byte, error) {
	for n := 0; ; n++ { // 8 bytes always suffice
		mask := uint64(math.MaxUint64) >> (8 * n)
		end := (e.low + mask) &^ mask
		if end-e.low >= e.width {
			continue
		}
		if end < e.low {
			e.carry()
		}
		e.settle()
		if e.full || len(e.buf)-e.n < n {
			return nil, errFull
		}
		for range n {
			e.buf[e.n] = byte(end >> 56)
			end <<= 8
			e.n++
		}
		return e.buf[:e.n], nil
	}
}

// RangeDecoder reads what a [RangeEncoder] wrote. From other bytes it reads arbitrary bits.
type RangeDecoder struct {
	interval
	buf []byte
	n   int // bytes read, including zeros behind buf
	err error
}

// interval is how far a decoder is: the position in the interval, and the width of that.
type interval struct{ at, width uint64 } // at < width

// NewRangeDecoder returns a decoder of buf, which must not change while it is read.
func NewRangeDecoder(buf []byte) RangeDecoder {
	d := RangeDecoder{buf: buf, interval: interval{width: math.MaxUint64}}
	d.at = uint64(d.word())<<32 | uint64(d.word())
	if d.at == d.width { // not in the interval
		d.fail(ErrCode)
	}
	return d
}

// decode reads a bit that is set with a probability of chance / 2^16.
func (d *RangeDecoder) decode(chance uint32) bool {
	set := d.narrow(chance)
	if d.width < leastRange {
		d.shift()
	}
	return set != 0
}

// narrow is decode for a caller that widens the interval itself. It returns a mask, all ones for a bit that is set,
// and does not branch on the bit: many bits are as likely as not.
func (i *interval) narrow(chance uint32) (set uint64) {
	part := i.width >> chanceBits * uint64(chance)
	rest := i.width - part
	above, below := bits.Sub64(i.at, part, 0)
	set = -below
	i.at, i.width = above+part&set, rest^(rest^part)&set
	return set
}

// decodeBits reads n bits whose values are equally likely, n <= 16.
func (d *RangeDecoder) decodeBits(n uint) uint64 {
	d.width >>= n & 63
	v := d.at / d.width
	d.at -= v * d.width
	if v>>n != 0 { // in the remainder of the division, where no encoder writes
		d.fail(ErrCode)
		v = 0
	}
	if d.width < leastRange {
		d.shift()
	}
	return v
}

// shift moves 32 bits out of the interval.
func (d *RangeDecoder) shift() { d.interval = d.shifted(d.interval) }

// shifted is shift for an interval that its caller has in hand.
func (d *RangeDecoder) shifted(i interval) interval {
	return interval{i.at<<32 | uint64(d.word()), i.width << 32}
}

// word reads 4 bytes; behind the end they are zeros.
func (d *RangeDecoder) word() (w uint32) {
	if len(d.buf)-d.n >= 4 {
		w = binary.BigEndian.Uint32(d.buf[d.n:])
	} else {
		for i := range 4 {
			w <<= 8
			if d.n+i < len(d.buf) {
				w |= uint32(d.buf[d.n+i])
			}
		}
		if d.n+4 > len(d.buf)+8 {
			d.fail(errEnd)
		}
	}
	d.n += 4
	return w
}

// Fail notes [ErrCode]: the user has read something invalid.
func (d *RangeDecoder) Fail() { d.fail(ErrCode) }

// Finish returns the first error. Bytes that are left are one, too.
func (d *RangeDecoder) Finish() error {
	if len(d.buf) > d.n {
		d.fail(errEnd)
	}
	return d.err
}

// fail notes an error if it is the first one. Bits that are read afterwards have no meaning.
func (d *RangeDecoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Err returns the first error: that there were too few bytes, or [ErrCode].
func (d *RangeDecoder) Err() error { return d.err }
