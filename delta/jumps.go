package delta

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Fields that are not extrapolated say in a bit whether they changed, and then how:
//
//	Counter  by how much it grew less one, on the circle of its width, in the residual
//	         code of order 0
//	Flags    0 and the number of the only bit that changed, or 1 and all bits, those that
//	         changed being 1; nothing if there is one bit
//	Bytes    see bytes.go
//
// The code of Plain is with those of the others in residuals.go, as it is the most frequent.

// differs reports whether the field is another one than in ref.
func (f *Field) differs(row, ref []uint32) bool {
	if f.Kind == Bytes {
		n := f.Words()
		return !equal(row[f.word:][:n], ref[f.word:])
	}
	return f.code(row) != f.code(ref)
}

// encodeJump appends how a field changed.
func (f *Field) encodeJump(d draft, words []uint64, cur, ref []uint32) draft {
	switch f.Kind {
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

// decodeJump reads into dst how a field changed.
func (f *Field) decodeJump(r *bitbuf.Reader, dst, ref []uint32) {
	switch f.Kind {
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
