package wire

import "github.com/arche-replicate/arche-replicate/bitbuf"

// Fragment marks a message of a channel as complete or as a fragment.
type Fragment uint8

// Write appends the mark that messages of long types have.
func (f Fragment) Write(w *bitbuf.Writer) {
	w.WriteBool(f != Unfragmented)
	if f != Unfragmented {
		w.WriteBool(f == MoreFragments)
	}
}

// Read reads what Write wrote.
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
	LastFragment           // the others precede it
	MoreFragments          // others follow
)
