package bitbuf

// Mark is a position in a Writer to which Rollback can return.
type Mark struct {
	acc        uint64
	pos        uint
	overflowed bool
}

// Mark notes the present position and whether the Writer has overflowed.
func (w *Writer) Mark() Mark {
	return Mark{acc: w.acc, pos: w.pos, overflowed: w.limit == 0}
}

// Rollback undoes everything since m was taken from this Writer, an overflow included. It voids later marks; Reset
// voids all.
//
// Panics when m lies ahead of the present position.
func (w *Writer) Rollback(m Mark) {
	if m.pos > w.pos {
		panic("bitbuf: Rollback to a mark ahead of the writer: " +
			"take a new mark after a Reset or an earlier Rollback")
	}
	w.acc, w.pos = m.acc, m.pos
	w.limit = uint(len(w.buf)) * 8
	if m.overflowed {
		w.limit = 0
	}
}
