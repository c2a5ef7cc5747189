package delta

// This file collects the bits of a row before they are written.

import "github.com/arche-replicate/arche-replicate/bitbuf"

// bitString holds the bits of a row until it is known whether another way to code the row is
// shorter. Most rows take less than 64 bits, so they stay in registers and are written at once.
// Complete words go to memory that the caller provides, as many as the longest row takes.
type bitString struct {
	acc uint64 // bits of the last, incomplete word
	n   uint   // bits in total
}

// put appends the n low bits of v, n <= 64. The other bits of v must be zero.
func (d bitString) put(words []uint64, v uint64, n uint) bitString {
	acc, end := d.acc|v<<(d.n&63), d.n+n
	if (d.n^end)&^63 != 0 {
		words[d.n>>6] = acc
		acc = v >> (64 - d.n&63)
	}
	return bitString{acc, end}
}

// putFlag appends one bit.
func (d bitString) putFlag(words []uint64, set bool) bitString {
	var bit uint64
	if set { // compiled without a branch
		bit = 1
	}
	return d.put(words, bit, 1)
}

// putLong appends x, which has 64 bits or more with its words in from, without its first n bits.
func (d bitString) putLong(words, from []uint64, x bitString, n uint) bitString {
	from, n = from[n>>6:x.n>>6], n&63
	if len(from) == 0 {
		return d.put(words, x.acc>>n, x.n&63-n)
	}
	d = d.put(words, from[0]>>n, 64-n)
	for _, v := range from[1:] {
		d = d.put(words, v, 64)
	}
	return d.put(words, x.acc, x.n&63)
}

// write appends the bits to w.
func (d bitString) write(w *bitbuf.Writer, words []uint64) {
	if d.n >= 64 {
		for _, x := range words[:d.n>>6] {
			w.WriteBits(x, 64)
		}
	}
	w.WriteBits(d.acc, d.n&63)
}
