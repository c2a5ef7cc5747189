package delta

// This file codes texts. Most texts are set once and are ASCII. Of those that change often, some
// change in the middle ("12 kills", a bitmap) and some at the end (a line being typed). So a change
// is coded as the bytes between the equal bytes at the beginning and the equal bytes at the end.
//
// Without a baseline:
//
//	length | bytes
//
// Against a text of length m, where Max is the field's:
//
//	begin  in len(m) bits          number of equal bytes at the beginning
//	end    in len(m-begin) bits    number of equal bytes at the end, of the others
//	other                          0: as many bytes as before are between them, or
//	                               1 and their number, in len(Max-begin-end) bits
//	bytes                          the bytes between them
//
// If there was no byte between them, there is one now: other is then their number less one, in
// len(Max-begin-end-1) bits. begin is as large as possible, and then end is.
//
// Bytes, if there are any, are a 0 and 7 bits each if all are below 128, or a 1 and 8 bits each.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// textByte returns byte i of the text whose length is row[0].
func textByte(row []uint32, i int) byte { return byte(row[1+i>>2] >> (i & 3 * 8)) }

// setTextByte stores byte i, which must be zero before.
func setTextByte(row []uint32, i int, b byte) { row[1+i>>2] |= uint32(b) << (i & 3 * 8) }

// text returns the words of the field in the row.
func (f *Field) text(row []uint32) []uint32 { return row[f.word:][:f.Words()] }

// validBytes reports whether the length is at most Max and only zeros follow the last byte.
func (f *Field) validBytes(row []uint32) bool {
	t := f.text(row)
	n := t[0]
	if uint64(n) > f.Max {
		return false
	}
	rest := t[1+n>>2:]
	for i, x := range rest {
		if i == 0 {
			x >>= n & 3 * 8
		}
		if x != 0 {
			return false
		}
	}
	return true
}

// equalEnds returns the number of equal bytes at the beginning of two texts, and of equal bytes
// among the others at the end.
func equalEnds(a, b []uint32) (begin, end int) {
	n, m := int(a[0]), int(b[0])
	most := min(n, m)
	for begin < most {
		x := a[1+begin>>2] ^ b[1+begin>>2]
		if x != 0 {
			begin += bits.TrailingZeros32(x) >> 3
			break
		}
		begin += 4
	}
	begin = min(begin, most)
	for end < most-begin && textByte(a, n-1-end) == textByte(b, m-1-end) {
		end++
	}
	return begin, end
}

// lenBits returns the width of a number up to n.
func lenBits(n int) uint { return uint(bits.Len(uint(n))) }

// encodeText appends the field without a baseline.
func (f *Field) encodeText(d bitString, words []uint64, cur []uint32) bitString {
	t := f.text(cur)
	d = d.put(words, uint64(t[0]), f.Bits)
	return putBytes(d, words, t, 0, int(t[0]))
}

// encodeBytes appends the field against another text.
func (f *Field) encodeBytes(d bitString, words []uint64, cur, ref []uint32) bitString {
	cur, ref = f.text(cur), f.text(ref)
	begin, end := equalEnds(cur, ref)
	n, m := int(cur[0])-begin-end, int(ref[0])-begin-end
	room := int(f.Max) - begin - end
	d = d.put(words, uint64(begin), lenBits(int(ref[0])))
	d = d.put(words, uint64(end), lenBits(int(ref[0])-begin))
	switch {
	case m == 0:
		d = d.put(words, uint64(n-1), lenBits(room-1))
	case n == m:
		d = d.put(words, 0, 1)
	default:
		d = d.put(words, 1|uint64(n)<<1, 1+lenBits(room))
	}
	return putBytes(d, words, cur, begin, n)
}

// putBytes appends n bytes of the text t, from byte from on.
func putBytes(d bitString, words []uint64, t []uint32, from, n int) bitString {
	if n == 0 {
		return d
	}
	var all byte
	for i := from; i < from+n; i++ {
		all |= textByte(t, i)
	}
	width := uint(7 + all>>7)
	d = d.put(words, uint64(all>>7), 1)
	for i := from; i < from+n; i++ {
		d = d.put(words, uint64(textByte(t, i)), width)
	}
	return d
}

// decodeText reads what encodeText wrote.
func (f *Field) decodeText(r *bitbuf.Reader, dst []uint32) {
	t := f.text(dst)
	clear(t)
	n := r.ReadBits(f.Bits)
	if n > f.Max {
		r.Fail(ErrCode)
		return
	}
	t[0] = uint32(n)
	readBytes(r, t, 0, int(n))
}

// decodeBytes reads what encodeBytes wrote.
func (f *Field) decodeBytes(r *bitbuf.Reader, dst, ref []uint32) {
	t := f.text(dst)
	ref = f.text(ref)
	clear(t)
	was := int(ref[0])
	begin := int(r.ReadBits(lenBits(was)))
	if begin > was {
		r.Fail(ErrCode)
		return
	}
	end := int(r.ReadBits(lenBits(was - begin)))
	room := int(f.Max) - begin - end
	m := was - begin - end
	n := m
	switch {
	case m < 0 || m == 0 && room == 0:
		r.Fail(ErrCode)
		return
	case m == 0:
		n = 1 + int(r.ReadBits(lenBits(room-1)))
	case r.ReadBool():
		n = int(r.ReadBits(lenBits(room)))
	}
	if n > room {
		r.Fail(ErrCode)
		return
	}
	t[0] = uint32(begin + n + end)
	for i := range begin {
		setTextByte(t, i, textByte(ref, i))
	}
	readBytes(r, t, begin, n)
	for i := range end {
		setTextByte(t, begin+n+i, textByte(ref, was-end+i))
	}
}

// readBytes reads what putBytes wrote.
func readBytes(r *bitbuf.Reader, t []uint32, from, n int) {
	if n == 0 {
		return
	}
	width := uint(7)
	if r.ReadBool() {
		width = 8
	}
	for i := from; i < from+n && r.Err() == nil; i++ {
		setTextByte(t, i, byte(r.ReadBits(width)))
	}
}
