package bitbuf

import (
	"math/bits"
	"slices"
)

// The oracle: a bit string as a slice of bits, and every operation written bit by
// bit from its documentation.

type oracleWriter struct {
	bits     []bool
	room     int // in bits
	overflow bool
}

// write appends what one operation writes, or nothing of it.
func (o *oracleWriter) write(bs []bool) {
	o.overflow = o.overflow || len(o.bits)+len(bs) > o.room
	if !o.overflow {
		o.bits = append(o.bits, bs...)
	}
}

func newOracleWriter(room int) *oracleWriter {
	return &oracleWriter{room: room, overflow: room == 0}
}

func (o *oracleWriter) bytes() []byte {
	out := make([]byte, (len(o.bits)+7)/8)
	for i, b := range o.bits {
		if b {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func oracleBits(v uint64, n uint) []bool {
	bs := make([]bool, n)
	for i := range bs {
		bs[i] = v>>i&1 != 0
	}
	return bs
}

func oracleBytes(p []byte) []bool {
	var bs []bool
	for _, b := range p {
		bs = append(bs, oracleBits(uint64(b), 8)...)
	}
	return bs
}

func oracleUvarint(v uint64) []bool {
	bs := oracleBits(v, 7)
	for v >>= 7; v > 0; v >>= 7 {
		bs = append(append(bs, true), oracleBits(v, 7)...)
	}
	return append(bs, false)
}

func oracleExpGolomb(v uint64, k uint) []bool {
	// Classes of 2^k, 2^(k+1), ... values; the first value of each is kept.
	var prefix []bool
	for k < 64 && v >= 1<<k {
		v -= 1 << k
		k++
		prefix = append(prefix, false)
	}
	return append(append(prefix, true), oracleBits(v, k)...)
}

func oracleRice(v uint64, k uint) []bool {
	var bs []bool
	q := v >> k
	for range min(q, RiceEscape) {
		bs = append(bs, false)
	}
	if q < RiceEscape {
		return append(append(bs, true), oracleBits(v, k)...)
	}
	return append(bs, oracleExpGolomb(v-RiceEscape<<k, k+5)...)
}

func oracleUnary(n uint64, limit uint) []bool {
	bs := make([]bool, n)
	if n < uint64(limit) {
		bs = append(bs, true)
	}
	return bs
}

// truncatedCodes has all codes among so many numbers, as far as programs use them.
var truncatedCodes = func() (codes [maxProgramNumbers + 1][][]bool) {
	for n := 1; n < len(codes); n++ {
		codes[n] = listTruncated(n)
	}
	return codes
}()

// listTruncated lists the codes among n numbers: as many of width bits as leave a longer pair in place of each
// other one.
func listTruncated(n int) (codes [][]bool) {
	width := bits.Len(uint(n)) - 1
	for short := 1 << width; len(codes) != n; short-- {
		codes = codes[:0]
		for i := range 1 << width {
			code := make([]bool, width)
			for j := range code {
				code[j] = i>>j&1 != 0
			}
			if i < short {
				codes = append(codes, code)
				continue
			}
			codes = append(codes, append(slices.Clone(code), false), append(code, true))
		}
	}
	return codes
}

type oracleReader struct {
	bits []bool
	pos  int
	err  error
}

func newOracleReader(buf []byte) *oracleReader {
	return &oracleReader{bits: oracleBytes(buf)}
}

func (o *oracleReader) fail(err error) uint64 {
	if o.err == nil {
		o.err = err
	}
	return 0
}

func (o *oracleReader) bit() bool {
	if o.err != nil {
		return false
	}
	if o.pos == len(o.bits) {
		o.err = ErrOverrun
		return false
	}
	o.pos++
	return o.bits[o.pos-1]
}

// read returns n bits, with zeros for those after the end.
func (o *oracleReader) read(n uint) (v uint64) {
	for i := range n {
		if o.bit() {
			v |= 1 << i
		}
	}
	return v
}

func (o *oracleReader) align() {
	if o.read(uint(-o.pos&7)) != 0 {
		o.fail(ErrPadding)
	}
}

func (o *oracleReader) bytes(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(o.read(8))
	}
	if o.err != nil {
		clear(out)
	}
	return out
}

// code returns v unless the reader has failed.
func (o *oracleReader) code(v uint64) uint64 {
	if o.err != nil {
		return 0
	}
	return v
}

func (o *oracleReader) uvarint() (v uint64) {
	for i := range 10 {
		g := o.read(8)
		if o.err != nil {
			return 0
		}
		if i == 9 && g > 1 || i > 0 && g == 0 {
			return o.fail(ErrCode)
		}
		v |= g & 0x7f << (7 * i)
		if g < 0x80 {
			break
		}
	}
	return v
}

func (o *oracleReader) expGolomb(k uint) uint64 {
	var first uint64 // of the class
	class := k
	for !o.bit() {
		if o.err != nil {
			return 0
		}
		if class == 64 {
			return o.fail(ErrCode)
		}
		first += 1 << class // wraps to 2^64 - 2^k in the last class
		class++
	}
	v, carry := bits.Add64(first, o.read(class), 0)
	if o.err == nil && carry != 0 {
		return o.fail(ErrCode)
	}
	return o.code(v)
}

func (o *oracleReader) rice(k uint) uint64 {
	for q := uint64(0); q < RiceEscape; q++ {
		if !o.bit() {
			continue
		}
		low := o.read(k)
		if o.err == nil && bits.Len64(q)+int(k) > 64 && q != 0 {
			return o.fail(ErrCode)
		}
		return o.code(q<<k | low)
	}
	if o.err == nil && k > 58 {
		return o.fail(ErrCode)
	}
	if o.err != nil {
		return 0
	}
	rest := o.expGolomb(k + 5)
	v, carry := bits.Add64(rest, RiceEscape<<k, 0)
	if o.err == nil && carry != 0 {
		return o.fail(ErrCode)
	}
	return o.code(v)
}

func (o *oracleReader) unary(limit uint) uint64 {
	for n := range limit {
		if o.bit() {
			return uint64(n)
		}
	}
	return o.code(uint64(limit))
}

func (o *oracleReader) truncated(n uint) uint64 {
	for length := 0; o.err == nil; length++ {
		read := o.bits[o.pos-length : o.pos]
		for v, code := range truncatedCodes[n] {
			if slices.Equal(read, code) {
				return uint64(v)
			}
		}
		o.bit()
	}
	return 0
}
