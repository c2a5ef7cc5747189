package delta

import "github.com/arche-replicate/arche-replicate/bitbuf"

// A draft is a row's bits before they are written: another way to code the row may turn
// out to be shorter. Most rows take less than 64 bits, so they stay in registers and are
// written at once. What is more goes to words that the user of the draft has ready, as
// many as the longest row takes.
type draft struct {
	acc uint64 // the bits of the present word
	n   uint   // bits in all
}

// put appends v, which has n bits, n <= 64, and no others.
func (d draft) put(words []uint64, v uint64, n uint) draft {
	acc, end := d.acc|v<<(d.n&63), d.n+n
	if (d.n^end)&^63 != 0 {
		words[d.n>>6] = acc
		acc = v >> (64 - d.n&63)
	}
	return draft{acc, end}
}

// putLong appends a draft of 64 bits or more, whose words are from, without its first n
// bits.
func (d draft) putLong(words, from []uint64, x draft, n uint) draft {
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

// write appends the draft to w.
func (d draft) write(w *bitbuf.Writer, words []uint64) {
	if d.n >= 64 {
		for _, x := range words[:d.n>>6] {
			w.WriteBits(x, 64)
		}
	}
	w.WriteBits(d.acc, d.n&63)
}
