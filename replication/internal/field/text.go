package field

// This file has texts: strings, and arrays of bytes, of bounded length. In a row, a text has a word
// for its length and as many words as its longest value needs, in the format of delta.Bytes. Zeros
// at the end of an array don't count.

import (
	"strings"
	"unicode/utf8"
)

// CutString returns the longest beginning of s that has at most limit bytes and ends between two
// characters, and whether that is all of s. Where s is not UTF-8, it may end at limit.
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

// CutBytes returns the first limit bytes of b without the zeros at the end, and whether only zeros
// were cut.
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

// PutText stores s in the words of a text that has room for it.
func PutText[T string | []byte](words []uint32, s T) {
	words[0] = uint32(len(s))
	packed, i := words[1:], 0
	for ; i+4 <= len(s); i += 4 {
		packed[i>>2] = uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
	}
	clear(packed[i>>2:])
	for ; i < len(s); i++ {
		packed[i>>2] |= uint32(s[i]) << (i & 3 * 8)
	}
}

// textByte returns byte i of a text.
func textByte(words []uint32, i int) byte { return byte(words[1+i>>2] >> (i & 3 * 8)) }

// validText reports whether PutText can have stored the words: the length is at most limit, a
// trimmed text ends in no zero, and everything behind the text is zero.
func validText(words []uint32, limit uint64, trimmed bool) bool {
	n := int(words[0])
	if uint64(words[0]) > limit || trimmed && n > 0 && textByte(words, n-1) == 0 {
		return false
	}
	for i := n; i&3 != 0; i++ {
		if textByte(words, i) != 0 {
			return false
		}
	}
	for _, x := range words[1+(n+3)/4:] {
		if x != 0 {
			return false
		}
	}
	return true
}

// textLen returns the length of a text, bounded so that invalid words can't point outside the row.
func textLen(words []uint32, limit uint64) int { return int(min(words[0], uint32(limit))) }

// SetString sets s to the text in the words, which has at most limit bytes. It allocates only if s
// is another text, and then memory of its own: components may keep strings for as long as they
// like.
func SetString(s *string, words []uint32, limit uint64) {
	n := textLen(words, limit)
	if len(*s) == n {
		i := 0
		for i < n && (*s)[i] == textByte(words, i) {
			i++
		}
		if i == n {
			return
		}
	}
	var b strings.Builder
	b.Grow(n)
	for i := range n {
		b.WriteByte(textByte(words, i))
	}
	*s = b.String() // of the type string: the garbage collector's write barrier sees it
}

// SetBytes sets b to the text in the words, which has at most limit bytes, and to zeros behind it.
func SetBytes(b []byte, words []uint32, limit uint64) {
	n := textLen(words, limit)
	for i := range n {
		b[i] = textByte(words, i)
	}
	clear(b[n:])
}
