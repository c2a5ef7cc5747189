package bitbuf

import (
	"encoding/binary"
	"math/bits"
)

// Writer appends bits to the caller's buffer, which has a fixed length. The zero value has overflowed from the start. A
// copy writes to the same bytes, so continue with only one of the two.
type Writer struct {
	buf []byte
	// acc holds the bits of the present 64-bit word that lie below pos, under
	// zeros. The words before it are in buf; this one may not be yet.
	acc   uint64
	pos   uint // bits written
	limit uint // bits that fit, or 0 after an overflow: then no write fits
	full  uint // limit rounded down to full words, which are stored at once
}

// NewWriter returns a Writer that fills buf[:len(buf)] from the start. The buffer belongs to the Writer until the next
// Reset; meanwhile the bytes after the last written one are undefined.
func NewWriter(buf []byte) Writer {
	n := uint(len(buf)) * 8
	return Writer{buf: buf, limit: n, full: n &^ 63}
}

// Reset starts anew on buf, as NewWriter does. Marks taken before are void.
func (w *Writer) Reset(buf []byte) {
	*w = NewWriter(buf)
}

// WriteBits appends the low n bits of v and ignores the others.
//
// Panics when n is above 64, as an index out of range: with that check alone it can be inlined.
func (w *Writer) WriteBits(v uint64, n uint) {
	v &= lowBits[n]
	n += w.pos // from here on the position after the write
	if n > w.limit {
		w.limit = 0
		return
	}
	// One product shifts v into both the present word and the next.
	next, v := bits.Mul64(v, 1<<(w.pos&63))
	v |= w.acc
	if w.pos < w.full {
		i := w.pos >> 6 << 3
		binary.LittleEndian.PutUint64(w.buf[i:i+8], v)
	}
	if n <= w.pos|63 {
		next = v // the word is not full: go on with it
	}
	w.pos, w.acc = n, next
}

// WriteBool appends one bit, 1 for true.
func (w *Writer) WriteBool(b bool) {
	if w.pos >= w.limit {
		w.limit = 0
		return
	}
	var v uint64
	if b {
		v = 1
	}
	v = w.acc | v<<(w.pos&63)
	if w.pos < w.full {
		i := w.pos >> 6 << 3
		binary.LittleEndian.PutUint64(w.buf[i:i+8], v)
	}
	w.pos++
	if w.pos&63 == 0 {
		v = 0
	}
	w.acc = v
}

// Align appends zeros up to the next byte boundary, or nothing at one.
func (w *Writer) Align() {
	w.WriteBits(0, -w.pos&7)
}

// Len returns the number of bits written.
func (w *Writer) Len() int {
	return int(w.pos)
}

// Remaining returns the number of bits that still fit, 0 after an overflow.
func (w *Writer) Remaining() int {
	return int(max(w.limit, w.pos) - w.pos)
}

// Err returns ErrOverflow if a write did not fit or none can, else nil.
func (w *Writer) Err() error {
	if w.limit == 0 {
		return ErrOverflow
	}
	return nil
}

// Bytes returns the first (Len()+7)/8 bytes of the buffer, the last of them padded with zeros; after an overflow, what
// was written before it. It is the buffer itself: valid until the next write, Rollback or Reset.
func (w *Writer) Bytes() []byte {
	w.flush()
	n := (w.pos + 7) >> 3
	return w.buf[:n:n]
}

// flush brings the buffer up to date with acc.
func (w *Writer) flush() {
	if w.pos < w.full {
		binary.LittleEndian.PutUint64(w.buf[w.pos>>6<<3:], w.acc)
		return
	}
	b, acc := w.buf[w.pos>>6<<3:(w.pos+7)>>3], w.acc
	for i := range b {
		b[i] = byte(acc)
		acc >>= 8
	}
}

// reserve reports whether n more bits fit; if not, the Writer has overflowed.
func (w *Writer) reserve(n uint) bool {
	if n > w.limit-min(w.pos, w.limit) {
		w.limit = 0
		return false
	}
	return true
}

// lowBits[n] is the number whose low n bits are set.
var lowBits = func() (m [65]uint64) {
	for n := range m {
		m[n] = 1<<n - 1
	}
	return m
}()
