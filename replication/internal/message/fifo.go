package message

// fifo is a queue of slices of items, which leave in about the order in which they came. The place
// of an item is a number that keeps counting, and wraps.
type fifo[T any] struct {
	items []T
	base  uint32 // place of the first item
}

// add appends items and returns the place of the first.
func (f *fifo[T]) add(items ...T) (place uint32) {
	place = f.base + uint32(len(f.items))
	f.items = append(f.items, items...)
	return place
}

// at returns n items from a place on. They are valid until something is added or dropped.
func (f *fifo[T]) at(place uint32, n int) []T {
	first := int(place - f.base)
	return f.items[first : first+n : first+n]
}

// drop frees the items before a place. It moves the others only if they are no more than the freed ones.
func (f *fifo[T]) drop(place uint32) {
	if n := int(int32(place - f.base)); n > 0 && 2*n >= len(f.items) {
		f.items = f.items[:copy(f.items, f.items[n:])]
		f.base = place
	}
}
