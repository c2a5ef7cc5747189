package bitbuf

import "encoding/binary"

// Reader takes bits from a buffer in the order in which a [Writer] put them. The zero value reads an empty buffer; a
// copy continues independently from the same position.
type Reader struct {
	buf  []byte
	pos  uint64 // bits read; above end after an overrun
	end  uint64 // bits in total, or up to the failure if there was one
	tail uint64 // the last 8 bytes of buf, or all of a shorter one
	base uint64 // the position of the first bit of tail
	err  error
}

// NewReader returns a Reader at the first bit of buf, which must not change while
// it is read.
func NewReader(buf []byte) Reader {
	n := max(len(buf), 8) - 8
	return Reader{
		buf:  buf,
		end:  uint64(len(buf)) * 8,
		tail: littleEndian(buf[n:]),
		base: uint64(n) * 8,
	}
}

// Reset starts anew at the first bit of buf, as NewReader does.
func (r *Reader) Reset(buf []byte) {
	*r = NewReader(buf)
}

// ReadBits returns the next n bits. If fewer are left, the missing high ones are zeros and the Reader has overrun.
//
// Panics when n is above 64, as an index out of range.
func (r *Reader) ReadBits(n uint) (v uint64) {
	i, s := r.pos>>3, r.pos&7
	if i+9 <= uint64(len(r.buf)) {
		v = binary.LittleEndian.Uint64(r.buf[i:i+8]) >> s
		if n > 57 { // rare enough for a branch: the value may reach into a ninth byte
			v |= uint64(r.buf[i+8]) << 1 << (63 - s)
		}
	} else {
		v = r.tail >> (r.pos - r.base)
	}
	v &= lowBits[n]
	r.pos += uint64(n)
	return v
}

// Peek returns the next 64 bits, with zeros after the end, and stays where it is.
func (r *Reader) Peek() uint64 {
	i, s := r.pos>>3, r.pos&7
	if i+9 > uint64(len(r.buf)) {
		return r.tail >> (r.pos - r.base)
	}
	return binary.LittleEndian.Uint64(r.buf[i:i+8])>>s | uint64(r.buf[i+8])<<1<<(63-s)
}

// ReadBool returns the next bit, true for 1.
func (r *Reader) ReadBool() bool {
	var b byte
	if i := r.pos >> 3; i < uint64(len(r.buf)) {
		b = r.buf[i] >> (r.pos & 7)
	}
	r.pos++
	return b&1 != 0
}

// Align skips the bits up to the next byte boundary. Unless they are zero, it fails with [ErrPadding].
func (r *Reader) Align() {
	if r.ReadBits(uint(-r.pos&7)) != 0 {
		r.Fail(ErrPadding)
	}
}

// ReadBytes fills dst from the present bit position. If fewer bytes are left, dst becomes all zeros and the Reader has
// overrun.
func (r *Reader) ReadBytes(dst []byte) {
	switch {
	case len(dst) == 0:
		return
	case len(dst) > r.Remaining()>>3:
		clear(dst)
		r.pos = r.end + 1
		return
	case r.pos&7 == 0:
		copy(dst, r.buf[r.pos>>3:])
		r.pos += uint64(len(dst)) * 8
		return
	}
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, r.ReadBits(64))
	}
	v := r.ReadBits(uint(len(dst)) * 8)
	for i := range dst {
		dst[i] = byte(v)
		v >>= 8
	}
}

// Skip passes over the next n bits. If fewer are left, the Reader has overrun.
func (r *Reader) Skip(n uint) {
	r.pos += uint64(n)
}

// Pos returns the number of bits read. After an error it stays where reading stopped: after an overrun, at the end.
func (r *Reader) Pos() int {
	return int(min(r.pos, r.end))
}

// Remaining returns the number of bits left to read, 0 after an error.
func (r *Reader) Remaining() int {
	return int(r.end - min(r.pos, r.end))
}

// Fail ends the input here, with err unless the Reader has an error already. It is for decoders that find a value to be
// wrong.
//
// Panics when err is nil.
func (r *Reader) Fail(err error) {
	if err == nil {
		panic("bitbuf: Fail without an error: pass the reason why the input is refused")
	}
	if r.Err() != nil {
		return
	}
	*r = Reader{pos: r.pos, end: r.pos, err: err}
}

// Err returns the first error met, or nil.
func (r *Reader) Err() error {
	if r.err == nil && r.pos > r.end {
		return ErrOverrun
	}
	return r.err
}

// Finish returns Err, or [ErrTrailing] if anything but the zero padding of the last byte is unread.
func (r *Reader) Finish() error {
	if err := r.Err(); err != nil {
		return err
	}
	if r.end-r.pos >= 8 || r.Peek() != 0 {
		return ErrTrailing
	}
	return nil
}
