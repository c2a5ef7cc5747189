package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// Fragment says what a message of a channel is.
type Fragment uint8

// Write appends the mark of a message of a long type.
func (f Fragment) Write(w *bitbuf.Writer) {
	w.WriteBool(f != Unfragmented)
	if f != Unfragmented {
		w.WriteBool(f == MoreFragments)
	}
}

// Read is the inverse of write.
func (f *Fragment) Read(r *bitbuf.Reader) {
	switch {
	case !r.ReadBool():
		*f = Unfragmented
	case r.ReadBool():
		*f = MoreFragments
	default:
		*f = LastFragment
	}
}

const (
	Unfragmented  Fragment = iota
	LastFragment           // the others stand before it
	MoreFragments          // others follow
)
