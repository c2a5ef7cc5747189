package delta

// This file codes in Compact how fields changed that are not extrapolated. Whether they changed is
// a decision, as for Plain fields; their decisions are those of a plain column.
//
//	Reference  the reference, see putReference
//	Counter    the growth less one, on the circle of the field's width, as a length
//	Flags      a decision whether more than one bit changed; then the number of the only one,
//	           or a mask of all bits that changed, as raw bits; nothing if the field has one bit
//	Bytes      as in Packed, as raw bits, but for two decisions: whether the number of bytes
//	           between the equal ends changed, and whether a byte is above 127

import "math/bits"

// putPlain codes a Plain field against the row that residuals refer to: whether it goes on as
// between the baselines, if it counts steadily; else whether it differs, unless implied; and then
// the distance less one as a length. It returns whether the code is that of the row.
func (e *RangeEncoder) putPlain(f *Field, plain *plainModel, cur, ref []uint32, past *Past, implied bool) (same bool) {
	code := f.code(cur)
	if next, agree := f.steadily(past); next != f.code(ref) {
		e.put(&plain.steady[agree], code == next)
		if code == next {
			return false
		}
	}
	v := zigzag(signed(code-f.code(ref), f.Bits))
	if !implied {
		e.put(&plain.changed, v != 0)
	}
	if v != 0 && f.Bits > 1 {
		e.putLength(plain.lengths[:], v-1, f.Bits)
	}
	return v == 0
}

// getPlain reads into dst what putPlain wrote.
func (d *RangeDecoder) getPlain(f *Field, plain *plainModel, dst, ref []uint32, past *Past, implied bool) (same bool) {
	if next, agree := f.steadily(past); next != f.code(ref) && d.get(&plain.steady[agree]) {
		f.setCode(dst, next)
		return false
	}
	var v uint64
	if implied || d.get(&plain.changed) {
		v = 1
		if f.Bits > 1 {
			v += d.getLength(plain.lengths[:], f.Bits)
		}
	}
	f.setCode(dst, (f.code(ref)+uint64(unzigzag(v)))&lowBits(f.Bits))
	return v == 0
}

// putChange codes how a field changed.
func (f *Field) putChange(e *RangeEncoder, plain *plainModel, cur, ref []uint32) {
	switch f.Kind {
	case Reference:
		e.putReference(plain, cur[f.word:f.word+2])
		return
	case Bytes:
		f.putEdit(e, plain, cur, ref)
		return
	case Counter:
		if f.Bits > 1 {
			grown := (f.code(cur) - f.code(ref)) & lowBits(f.Bits)
			e.putLength(plain.lengths[:], grown-1, f.Bits)
		}
		return
	}
	if f.Bits == 1 {
		return
	}
	x := f.code(cur) ^ f.code(ref)
	several := x&(x-1) != 0
	e.put(&plain.lengths[0], several)
	if several {
		e.putBits(x, f.Bits)
	} else {
		e.putBits(uint64(bits.TrailingZeros64(x)), flagBits(f.Bits))
	}
}

// getChange reads into dst what putChange wrote.
func (f *Field) getChange(d *RangeDecoder, plain *plainModel, dst, ref []uint32) {
	switch f.Kind {
	case Reference:
		d.getReference(plain, dst[f.word:f.word+2])
		return
	case Bytes:
		f.getEdit(d, plain, dst, ref)
		return
	case Counter:
		grown := uint64(1)
		if f.Bits > 1 {
			grown += d.getLength(plain.lengths[:], f.Bits)
		}
		f.setCode(dst, (f.code(ref)+grown)&lowBits(f.Bits))
		return
	}
	x := uint64(1)
	if f.Bits > 1 {
		if d.get(&plain.lengths[0]) {
			x = d.getBits(f.Bits)
		} else if i := d.getBits(flagBits(f.Bits)); i < uint64(f.Bits) {
			x = 1 << i
		} else {
			d.fail(ErrCode)
		}
	}
	f.setCode(dst, f.code(ref)^x)
}

// putText codes a text without a baseline: its length and its bytes.
func (f *Field) putText(e *RangeEncoder, plain *plainModel, cur []uint32) {
	t := f.text(cur)
	e.putBits(uint64(t[0]), f.Bits)
	putTextBytes(e, plain, t, 0, int(t[0]))
}

// getText reads what putText wrote.
func (f *Field) getText(d *RangeDecoder, plain *plainModel, dst []uint32) {
	t := f.text(dst)
	clear(t)
	n := d.getBits(f.Bits)
	if n > f.Max {
		d.fail(ErrCode)
		return
	}
	t[0] = uint32(n)
	getTextBytes(d, plain, t, 0, int(n))
}

// putEdit codes a text against another one.
func (f *Field) putEdit(e *RangeEncoder, plain *plainModel, cur, ref []uint32) {
	cur, ref = f.text(cur), f.text(ref)
	begin, end := equalEnds(cur, ref)
	n, m := int(cur[0])-begin-end, int(ref[0])-begin-end
	room := int(f.Max) - begin - end
	e.putBits(uint64(begin), lenBits(int(ref[0])))
	e.putBits(uint64(end), lenBits(int(ref[0])-begin))
	if m == 0 {
		e.putBits(uint64(n-1), lenBits(room-1))
	} else {
		e.put(&plain.lengths[0], n != m)
		if n != m {
			e.putBits(uint64(n), lenBits(room))
		}
	}
	putTextBytes(e, plain, cur, begin, n)
}

// getEdit reads what putEdit wrote.
func (f *Field) getEdit(d *RangeDecoder, plain *plainModel, dst, ref []uint32) {
	t := f.text(dst)
	ref = f.text(ref)
	clear(t)
	was := int(ref[0])
	begin := int(d.getBits(lenBits(was)))
	if begin > was {
		d.fail(ErrCode)
		return
	}
	end := int(d.getBits(lenBits(was - begin)))
	room := int(f.Max) - begin - end
	m := was - begin - end
	n := m
	switch {
	case m < 0 || m == 0 && room == 0:
		d.fail(ErrCode)
		return
	case m == 0:
		n = 1 + int(d.getBits(lenBits(room-1)))
	case d.get(&plain.lengths[0]):
		n = int(d.getBits(lenBits(room)))
	}
	if n > room {
		d.fail(ErrCode)
		return
	}
	t[0] = uint32(begin + n + end)
	for i := range begin {
		setTextByte(t, i, textByte(ref, i))
	}
	getTextBytes(d, plain, t, begin, n)
	for i := range end {
		setTextByte(t, begin+n+i, textByte(ref, was-end+i))
	}
}

// putTextBytes codes n bytes of the text t, from byte from on.
func putTextBytes(e *RangeEncoder, plain *plainModel, t []uint32, from, n int) {
	if n == 0 {
		return
	}
	var all byte
	for i := from; i < from+n; i++ {
		all |= textByte(t, i)
	}
	wide := all>>7 != 0
	e.put(&plain.lengths[1], wide)
	width := uint(7 + all>>7)
	for i := from; i < from+n; i++ {
		e.encodeBits(uint64(textByte(t, i)), width)
	}
}

// getTextBytes reads what putTextBytes wrote.
func getTextBytes(d *RangeDecoder, plain *plainModel, t []uint32, from, n int) {
	if n == 0 {
		return
	}
	width := uint(7)
	if d.get(&plain.lengths[1]) {
		width = 8
	}
	for i := from; i < from+n && d.err == nil; i++ {
		setTextByte(t, i, byte(d.decodeBits(width)))
	}
}
