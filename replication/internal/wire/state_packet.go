package wire

import "github.com/arche-replicate/arche-replicate/delta"

// Context is what entries of a packet share with those before them.
type Context struct {
	Next  int // the slot after the last one
	Set   delta.Set
	Names delta.Names
}
