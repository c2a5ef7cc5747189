package snapshot

import "unsafe"

// A MemberBlock remembers the values of one component in a block of rows. If it keeps their bytes,
// a block that rests costs only a comparison. In a block that never rests keeping them is a waste,
// so that is tried less and less often.
type MemberBlock struct {
	rows    int // whose bytes are kept; 0: none, or ofOthers
	clamped int // values that were out of range when they were last quantised
	Rested  int // captures that found the kept bytes unchanged
	wait    uint8
	level   uint8
}

// ofOthers stands for rows whose bytes are of other entities than are in them now.
const ofOthers = -1

// maxKeepLevel limits the wait before bytes are kept again, to 15 captures.
const maxKeepLevel = 4

// rest notes that the bytes are those that are kept. It reports whether every row has been captured
// with them, if each is captured in one of every ticks.
func (b *MemberBlock) rest(every int) bool {
	b.level = 0
	b.Rested++
	return b.Rested >= every
}

// keep notes that the block was quantised, and decides whether to keep the bytes of its n rows.
// Bytes that were kept before were of no use.
func (b *MemberBlock) keep(n int) bool {
	if b.rows != 0 {
		b.wait = 1<<b.level - 1
		b.level = min(b.level+1, maxKeepLevel)
	}
	b.rows = 0
	if b.wait > 0 {
		b.wait--
		return false
	}
	b.rows, b.Rested = n, 0
	return true
}

// keep notes that n rows from row first on were quantised. Their values begin at p; it keeps their
// bytes if that is likely to pay off.
func (m *member) keep(first int, p unsafe.Pointer, n int) {
	if block := &m.Blocks[first/CaptureRows]; m.values.Once {
		block.rows = n
	} else if block.keep(n) {
		m.keepBytes(first, p, n)
	}
}

// keepBytes keeps the bytes of n rows from row first on, whose values begin at p. The same bytes
// later mean the same values. For strings that holds only while the old ones live, since freed
// memory may be reused for other characters. So the strings are held as well.
func (m *member) keepBytes(first int, p unsafe.Pointer, n int) {
	m.values.KeepBytes(m.bytes[uintptr(first)*m.values.Bytes():], p, n)
	if k := len(m.values.Strings); k > 0 && m.values.Bytes() > 0 {
		m.values.HoldStrings(m.strings[first*k:], p, n)
	}
}

// grow makes room for n rows.
func (m *member) grow(n int) {
	if more := (n+CaptureRows-1)/CaptureRows - len(m.Blocks); more > 0 {
		m.Blocks = append(m.Blocks, make([]MemberBlock, more)...)
	}
	if more := len(m.Blocks)*CaptureRows*int(m.values.Bytes()) - len(m.bytes); more > 0 {
		m.bytes = append(m.bytes, make([]byte, more)...)
	}
	if more := len(m.Blocks)*CaptureRows*len(m.values.Strings) - len(m.strings); more > 0 {
		m.strings = append(m.strings, make([]string, more)...)
	}
}
