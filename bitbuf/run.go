package bitbuf

import "encoding/binary"

// WriteBytes appends p at the present bit position. p is not kept and must not overlap the Writer's buffer.
func (w *Writer) WriteBytes(p []byte) {
	if w.pos&7 != 0 {
		w.WriteRun(p, len(p)*8)
		return
	}
	if !w.reserve(uint(len(p)) * 8) {
		return
	}
	w.flush()
	copy(w.buf[w.pos>>3:], p)
	w.pos += uint(len(p)) * 8
	w.acc = littleEndian(w.buf[w.pos>>6<<3 : w.pos>>3])
}

// WriteRun appends the first n bits of src, in this package's layout such as another Writer's Bytes, at the present bit
// position. src is not kept and must not overlap the Writer's buffer.
//
// Panics when n is negative or src has fewer than n bits.
func (w *Writer) WriteRun(src []byte, n int) {
	if uint(n) > uint(len(src))*8 {
		panic("bitbuf: WriteRun beyond its source: pass 0 <= n <= 8*len(src)")
	}
	if !w.reserve(uint(n)) {
		return
	}
	var tail uint64 // the n&63 bits after the last full word, and others above
	full, size := n>>6<<3, (n+7)>>3
	if size >= 8 {
		tail = binary.LittleEndian.Uint64(src[size-8:]) >> (64 - 8*(size-full))
	} else {
		tail = littleEndian(src[:size])
	}
	if full > 0 {
		// Each word of src fills one word of the buffer and begins the next.
		shift, acc := w.pos&63, w.acc
		dst := w.buf[w.pos>>6<<3:]
		for i := 0; i+8 <= full && i+8 <= len(dst); i += 8 {
			v := binary.LittleEndian.Uint64(src[i : i+8])
			binary.LittleEndian.PutUint64(dst[i:i+8], acc|v<<shift)
			acc = v >> 1 >> (63 - shift)
		}
		w.acc = acc
		w.pos += uint(full) * 8
	}
	w.WriteBits(tail, uint(n)&63)
}

// WriteSpan is WriteRun of n bits from bit number from on.
//
// Panics when from or n is negative or src has fewer than from+n bits.
func (w *Writer) WriteSpan(src []byte, from, n int) {
	if from < 0 || n < 0 || uint(from)+uint(n) > uint(len(src))*8 {
		panic("bitbuf: WriteSpan beyond its source: pass from, n >= 0 with from+n <= 8*len(src)")
	}
	at, shift := from>>3, from&7
	switch {
	case shift+n <= 64 && at+8 <= len(src): // a single load has all of them
		w.WriteBits(binary.LittleEndian.Uint64(src[at:at+8])>>shift, uint(n))
		return
	case !w.reserve(uint(n)):
		return
	case n <= 120 && at+16 <= len(src): // two loads have
		w.WriteBits(binary.LittleEndian.Uint64(src[at:at+8])>>shift, uint(64-shift))
		w.WriteBits(binary.LittleEndian.Uint64(src[at+8:at+16]), uint(n+shift-64))
		return
	}
	if head := min(-from&7, n); head > 0 { // up to the next byte
		w.WriteBits(uint64(src[from>>3])>>(from&7), uint(head))
		from += head
		n -= head
	}
	if n > 0 {
		w.WriteRun(src[from>>3:], n)
	}
}

// littleEndian returns the number that b, of at most 8 bytes, holds.
func littleEndian(b []byte) uint64 {
	switch n := len(b); {
	case n >= 8:
		return binary.LittleEndian.Uint64(b)
	case n >= 4: // the two halves may overlap, in bits that agree
		return uint64(binary.LittleEndian.Uint32(b)) |
			uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(8*(n-4))
	case n > 0: // the first, middle and last byte, some of them the same
		return uint64(b[0]) | uint64(b[n/2])<<(8*(n/2)) | uint64(b[n-1])<<(8*(n-1))
	}
	return 0
}
