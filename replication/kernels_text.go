package replication

import "unsafe"

func readStrings(l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	limit, own := int(l.codec.max), l.codec.words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		s, ok := cutString(*(*string)(unsafe.Add(p, at)), limit)
		putText(dst[w:][:own], s)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func readBytes(l lane) (clamped int) {
	dst, words, p, stride, at := l.dst, l.words, l.p, l.stride, uintptr(0)
	limit, size, own := int(l.codec.max), l.codec.size, l.codec.words()
	for w := 0; w < len(dst); w, at = w+words, at+stride {
		b, ok := cutBytes(unsafe.Slice((*byte)(unsafe.Add(p, at)), size), limit)
		putText(dst[w:][:own], b)
		if !ok {
			clamped++
		}
	}
	return clamped
}

func (col *column) writeText(p unsafe.Pointer, row []uint32) {
	q, row := col.codec, row[col.word:]
	if q.op == opString {
		q.setString((*string)(p), row)
	} else {
		q.setBytes(unsafe.Slice((*byte)(p), q.size), row)
	}
}

// fits returns an error if a text of the component value at p is longer than it may be.
func (c *component) fits(p unsafe.Pointer) error {
	for i := range c.columns {
		col := &c.columns[i]
		if col.standIn != nil {
			continue
		}
		n := 0
		switch at := unsafe.Add(p, col.offset); col.codec.op {
		case opString:
			n = len(*(*string)(at))
		case opBytes:
			n = len(trimZeros(unsafe.Slice((*byte)(at), col.codec.size)))
		default:
			continue
		}
		if n > int(col.codec.max) {
			return c.textTooLong(col, n)
		}
	}
	for _, in := range c.standIns {
		if err := in.conversion.fits(&in.values, unsafe.Add(p, in.offset)); err != nil {
			return err
		}
	}
	return nil
}

// holdStrings copies the strings of n consecutive component values starting at p.
func (c *component) holdStrings(held []string, p unsafe.Pointer, n int) {
	for at := uintptr(0); n > 0; n, at = n-1, at+c.size {
		for k, i := range c.strings {
			held[k] = *(*string)(unsafe.Add(p, at+c.columns[i].offset))
		}
		held = held[len(c.strings):]
	}
}
