package bitbuf

import "math/bits"

// maxTruncated is the largest number of numbers in truncated binary.
const maxTruncated = 1 << 63

// TruncatedCode returns the code of v among n numbers from 0 in truncated binary and its length in bits, as
// [Writer.WriteBits] takes them. If n is no power of two, the first numbers take a bit less than the others, whose
// additional bit comes last. One number takes no bits.
//
// Panics when v is not below n, or n is above 1<<63.
func TruncatedCode(v, n uint64) (code uint64, length uint) {
	if v >= n || n > maxTruncated {
		panic("bitbuf: a number outside the range of its truncated binary code: pass v < n <= 1<<63")
	}
	width, short := truncated(n)
	if v < short {
		return v, width
	}
	v += short
	return v>>1 | v&1<<width, width + 1
}

// truncated returns the bits of the first of n numbers, and how many of them there are.
func truncated(n uint64) (width uint, short uint64) {
	width = uint(bits.Len64(n)) - 1
	return width, 2<<width - n
}

// WriteTruncated appends v, one of n numbers from 0, in truncated binary, see [TruncatedCode].
func (w *Writer) WriteTruncated(v, n uint64) { w.WriteBits(TruncatedCode(v, n)) }

// ReadTruncated returns the next one of n numbers from 0 in truncated binary.
//
// Panics when n is 0 or above 1<<63.
func (r *Reader) ReadTruncated(n uint64) uint64 {
	if n == 0 || n > maxTruncated {
		panic("bitbuf: ReadTruncated outside its limit: pass 1 <= n <= 1<<63")
	}
	width, short := truncated(n)
	v := r.ReadBits(width)
	if v >= short {
		v = v<<1 + r.ReadBits(1) - short
	}
	if r.Err() != nil {
		return 0
	}
	return v
}
