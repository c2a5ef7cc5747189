package schema

import "unsafe"

func readStrings(l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	limit, own := int(l.codec.Max), l.codec.Words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		s, ok := CutString(*(*string)(unsafe.Add(p, at)), limit)
		PutText(dst[w:][:own], s)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readBytes(l channel) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	limit, size, own := int(l.codec.Max), l.codec.size, l.codec.Words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		b, ok := CutBytes(unsafe.Slice((*byte)(unsafe.Add(p, at)), size), limit)
		PutText(dst[w:][:own], b)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func (col *Column) writeText(p unsafe.Pointer, row []uint32) {
	q, row := col.Codec, row[col.Word:]
	if q.Op == OpString {
		q.SetString((*string)(p), row)
	} else {
		q.SetBytes(unsafe.Slice((*byte)(p), q.size), row)
	}
}

// Fits returns an error if a text of the component value at p is longer than it may be.
func (c *Component) Fits(p unsafe.Pointer) error {
	for i := range c.Columns {
		col := &c.Columns[i]
		if col.StandIn != nil {
			continue
		}
		n := 0
		switch at := unsafe.Add(p, col.offset); col.Codec.Op {
		case OpString:
			n = len(*(*string)(at))
		case OpBytes:
			n = len(TrimZeros(unsafe.Slice((*byte)(at), col.Codec.size)))
		default:
			continue
		}
		if n > int(col.Codec.Max) {
			return c.TextTooLong(col, n)
		}
	}
	for _, in := range c.StandIns {
		if err := in.Conversion.Fits(&in.Values, unsafe.Add(p, in.Offset)); err != nil {
			return err
		}
	}
	return nil
}

// HoldStrings copies the strings of n consecutive component values starting at p.
func (c *Component) HoldStrings(held []string, p unsafe.Pointer, n int) {
	for at := uintptr(0); n > 0; n, at = n-1, at+c.Size {
		for k, i := range c.Strings {
			held[k] = *(*string)(unsafe.Add(p, at+c.Columns[i].offset))
		}
		held = held[len(c.Strings):]
	}
}
