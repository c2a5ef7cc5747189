package schema

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A text is a string, or an array of bytes, of a bounded length: one value, of one field. In a row it is a word for its
// length and words for the most bytes it may have, as delta.Bytes says. Of an array the zeros at its end don't count.

// isText reports whether the tag makes one value of the bytes in t.
func isText(t reflect.Type, tag *Tag) bool {
	return tag.Mode == ModeMax && (t.Kind() == reflect.String || t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8)
}

// initText is for a type that passed isText.
func (q *Codec) initText(t reflect.Type, tag *Tag) error {
	n := tag.Count
	if n < 1 || n > delta.MaxBytes {
		return fmt.Errorf("max=%d: use 1 to %d bytes", n, delta.MaxBytes)
	}
	q.Op, q.Bits, q.Max = OpString, uint(bits.Len32(n)), uint64(n)
	q.Text = fmt.Sprintf("string max=%d", n)
	if t.Kind() == reflect.Array {
		if int(n) > t.Len() {
			return fmt.Errorf("max=%d is more than the %d bytes of %v", n, t.Len(), t)
		}
		q.Op, q.size = OpBytes, t.Len()
		q.Text = fmt.Sprintf("bytes max=%d", n)
	}
	return nil
}

func (q *Codec) IsText() bool { return q.Op == OpString || q.Op == OpBytes }

// CutString returns what of a string may be sent: all, or as many whole characters as take no more than limit bytes. Of what is
// no UTF-8 it may return up to limit bytes.
func CutString(s string, limit int) (cut string, ok bool) {
	if len(s) <= limit {
		return s, true
	}
	n := limit
	for n > 0 && n > limit-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	if !utf8.RuneStart(s[n]) {
		n = limit
	}
	return s[:n], false
}

// CutBytes returns what of an array may be sent: all up to the last byte that is not zero, or what of that are the first limit
// bytes.
func CutBytes(b []byte, limit int) (cut []byte, ok bool) {
	cut = TrimZeros(b)
	if len(cut) <= limit {
		return cut, true
	}
	return TrimZeros(cut[:limit]), false
}

// TrimZeros returns b without the zeros at its end.
func TrimZeros(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// PutText stores a text that fits.
func PutText[T string | []byte](row []uint32, s T) {
	row[0] = uint32(len(s))
	words, i := row[1:], 0
	for ; i+4 <= len(s); i += 4 {
		words[i>>2] = uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
	}
	clear(words[i>>2:])
	for ; i < len(s); i++ {
		words[i>>2] |= uint32(s[i]) << (i & 3 * 8)
	}
}

// textByte returns byte i of a text.
func textByte(row []uint32, i int) byte { return byte(row[1+i>>2] >> (i & 3 * 8)) }

// validText reports whether the row is one that putText makes of a text that was cut.
func (q *Codec) validText(row []uint32) bool {
	n := int(row[0])
	if uint64(row[0]) > q.Max || q.Op == OpBytes && n > 0 && textByte(row, n-1) == 0 {
		return false
	}
	for i := n; i&3 != 0; i++ {
		if textByte(row, i) != 0 {
			return false
		}
	}
	for _, x := range row[1+(n+3)/4:] {
		if x != 0 {
			return false
		}
	}
	return true
}

// textLen returns the length of a text, which is never more than what there is room for.
func (q *Codec) textLen(row []uint32) int { return int(min(row[0], uint32(q.Max))) }

// SetString makes s the text in the row. It allocates if it is another one, and memory of its own then: components may keep
// strings for as long as they like.
func (q *Codec) SetString(s *string, row []uint32) {
	n := q.textLen(row)
	if len(*s) == n {
		i := 0
		for i < n && (*s)[i] == textByte(row, i) {
			i++
		}
		if i == n {
			return
		}
	}
	var b strings.Builder
	b.Grow(n)
	for i := range n {
		b.WriteByte(textByte(row, i))
	}
	*s = b.String() // of the type string: the garbage collector's write barrier sees it
}

// SetBytes makes b the text in the row, with zeros behind it.
func (q *Codec) SetBytes(b []byte, row []uint32) {
	n := q.textLen(row)
	for i := range n {
		b[i] = textByte(row, i)
	}
	clear(b[n:])
}

// TextTooLong is the error about a text that does not fit.
func (c *Component) TextTooLong(col *Column, n int) error {
	what := "string"
	if col.Codec.Op == OpBytes {
		what = "array"
	}
	return fmt.Errorf("replication: %s: the %s has %d bytes, and max is %d: shorten it, or raise max in the tag",
		fullPath(c.Name, col.Path), what, n, col.Codec.Max)
}
