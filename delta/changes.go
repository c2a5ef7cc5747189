package delta

// This file codes how fields changed that are not extrapolated. A bit shows whether the field
// changed at all; then follow
//
//	Reference  the reference, see reference.go
//	Counter    the growth less one, on the circle of the field's width, in the residual code of order 0
//	Flags      0 and the number of the only bit that changed, or 1 and a mask of all bits that changed; nothing if the
//	           field has one bit
//	Bytes      see bytes.go
//
// Plain fields, the most frequent ones, are coded in residuals.go.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// differs reports whether the field differs from that in ref.
func (f *Field) differs(row, ref []uint32) bool {
	if f.Kind == Bytes {
		n := f.Words()
		return !equal(row[f.word:][:n], ref[f.word:])
	}
	return f.code(row) != f.code(ref)
}

// encodeChange appends how a field changed.
func (f *Field) encodeChange(d bitString, words []uint64, cur, ref []uint32) bitString {
	switch f.Kind {
	case Reference:
		return d.changedReference(words, cur[f.word:f.word+2], ref[f.word:f.word+2])
	case Bytes:
		return f.encodeBytes(d, words, cur, ref)
	case Counter:
		if f.Bits > 1 {
			grown := (f.code(cur) - f.code(ref)) & lowBits(f.Bits)
			d = d.residual(words, grown-1, 0, f.Bits)
		}
		return d
	}
	x := f.code(cur) ^ f.code(ref)
	switch {
	case f.Bits == 1:
		return d
	case x&(x-1) == 0:
		return d.put(words, 0b0, 1).put(words, uint64(bits.TrailingZeros64(x)), flagBits(f.Bits))
	}
	return d.put(words, 0b1, 1).put(words, x, f.Bits)
}

// decodeChange reads into dst what encodeChange wrote.
func (f *Field) decodeChange(r *bitbuf.Reader, dst, ref []uint32) {
	switch f.Kind {
	case Reference:
		readChangedReference(r, dst[f.word:f.word+2], ref[f.word:f.word+2])
		return
	case Bytes:
		f.decodeBytes(r, dst, ref)
		return
	case Counter:
		grown := uint64(1)
		if f.Bits > 1 {
			grown += readResidual(r, 0, f.Bits)
		}
		f.setCode(dst, (f.code(ref)+grown)&lowBits(f.Bits))
		return
	}
	x := uint64(1)
	if f.Bits > 1 {
		if r.ReadBool() {
			x = r.ReadBits(f.Bits)
		} else if i := r.ReadBits(flagBits(f.Bits)); i < uint64(f.Bits) {
			x = 1 << i
		} else {
			r.Fail(ErrCode)
		}
	}
	f.setCode(dst, f.code(ref)^x)
}

// flagBits returns the width of the number of one of n bits, n > 0.
func flagBits(n uint) uint { return uint(bits.Len(n - 1)) }

// equal reports whether two rows are equal. Most rows are short, and where they differ is hard to predict for a branch.
func equal(a, b []uint32) bool {
	b = b[:len(a)]
	differ := uint32(0)
	for i, x := range a {
		differ |= b[i] ^ x
	}
	return differ == 0
}
