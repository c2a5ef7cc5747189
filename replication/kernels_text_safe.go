//go:build nounsafe

package replication

import (
	"reflect"
	"unsafe" // for the name of the type that Arche hands out
)

// readText stores the text of a value and reports whether all of it.
func (q *codec) readText(v reflect.Value, dst []uint32) (ok bool) {
	dst = dst[:q.words()]
	if q.op == opString {
		var s string
		s, ok = cutString(v.String(), int(q.max))
		putText(dst, s)
		return ok
	}
	b, ok := cutBytes(v.Bytes(), int(q.max))
	putText(dst, b)
	return ok
}

func (q *codec) writeText(v reflect.Value, row []uint32) {
	if q.op == opString {
		s := v.String()
		q.setString(&s, row)
		v.SetString(s)
	} else {
		q.setBytes(v.Bytes(), row)
	}
}

// fits returns an error if a text of the component value at p is longer than it may be.
func (c *component) fits(p unsafe.Pointer) error {
	whole := reflect.NewAt(c.typ, p).Elem()
	for i := range c.columns {
		col := &c.columns[i]
		if col.standIn != nil {
			continue
		}
		n := 0
		switch v := leaf(whole, col.steps); col.codec.op {
		case opString:
			n = v.Len()
		case opBytes:
			n = len(trimZeros(v.Bytes()))
		default:
			continue
		}
		if n > int(col.codec.max) {
			return c.textTooLong(col, n)
		}
	}
	for _, in := range c.standIns {
		if err := in.conversion.fits(&in.values, leaf(whole, in.steps).Addr().UnsafePointer()); err != nil {
			return err
		}
	}
	return nil
}

// holdStrings copies the strings of n consecutive component values starting at p.
func (c *component) holdStrings(held []string, p unsafe.Pointer, n int) {
	if len(c.strings) == 0 {
		return
	}
	values := reflect.SliceAt(c.typ, p, n)
	for row := range n {
		for k, i := range c.strings {
			held[row*len(c.strings)+k] = leaf(values.Index(row), c.columns[i].steps).String()
		}
	}
}
