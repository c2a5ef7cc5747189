package bitbuf

import "math/bits"

// uvarintMaxLen is the length in bits of the longest Uvarint.
const uvarintMaxLen = 80

const (
	everyMore = 0x8080808080808080 // the "another group follows" bit of every group
	everyData = everyMore ^ (1<<64 - 1)
)

// WriteUvarint appends v in 8 to 80 bits: groups of 7 bits of v, the lowest first, each below a bit that is 1 if
// another group follows. At a byte boundary this is the unsigned varint of encoding/binary (LEB128).
func (w *Writer) WriteUvarint(v uint64) {
	n := uvarintLen(v)
	if n <= 64 {
		more := everyMore & lowBits[n-1] // in all groups but the last
		w.WriteBits(spread7(v)|more, n)
		return
	}
	if !w.reserve(n) {
		return
	}
	w.WriteBits(spread7(v)|everyMore, 64)
	rest := v >> 56
	if n == 72 {
		w.WriteBits(rest, 8)
	} else {
		w.WriteBits(rest&0x7f|0x80|rest>>7<<8, 16)
	}
}

// ReadUvarint returns the next value of WriteUvarint. Superfluous groups and more than 64 bits fail with [ErrCode].
func (r *Reader) ReadUvarint() uint64 {
	p := r.Peek()
	n := uint(bits.TrailingZeros64(^p&everyMore)) + 1
	if n > 64 {
		return r.readLongUvarint(p)
	}
	r.pos += uint64(n)
	v := gather7(p & everyData & lowBits[n])
	switch {
	case r.pos > r.end:
		return 0
	case p>>(n-8)&0x7f == 0 && n > 8: // the last group is superfluous
		r.Fail(ErrCode)
		return 0
	}
	return v
}

// readLongUvarint is ReadUvarint for more than the 8 groups in p.
func (r *Reader) readLongUvarint(p uint64) uint64 {
	r.pos += 64
	g := r.ReadBits(8)
	top, canonical := g, g != 0
	if g >= 0x80 {
		g = r.ReadBits(8)
		top, canonical = top&0x7f|g<<7, g == 1
	}
	switch {
	case r.pos > r.end:
		return 0
	case !canonical:
		r.Fail(ErrCode)
		return 0
	}
	return gather7(p&everyData) | top<<56
}

// uvarintLen returns the number of bits that WriteUvarint appends for v.
func uvarintLen(v uint64) uint {
	return uint(bits.Len64(v|1)+6) / 7 * 8
}

// spread7 puts 8 groups of 7 bits into the low 7 bits of 8 bytes.
func spread7(v uint64) uint64 {
	v = v&0x000000000fffffff | v&0x00fffffff0000000<<4
	v = v&0x00003fff00003fff | v&0x0fffc0000fffc000<<2
	return v&0x007f007f007f007f | v&0x3f803f803f803f80<<1
}

// gather7 undoes spread7.
func gather7(v uint64) uint64 {
	v = v&0x007f007f007f007f | v&0x7f007f007f007f00>>1
	v = v&0x00003fff00003fff | v&0x3fff00003fff0000>>2
	return v&0x000000000fffffff | v&0x0fffffff00000000>>4
}
