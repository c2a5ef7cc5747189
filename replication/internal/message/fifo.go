package message

// A fifo keeps runs of items that come and go in about the same order, side by side. Places are numbers that go on
// counting.
type fifo[T any] struct {
	items []T
	base  uint32 // the place of the first of them
}

// add appends items and returns the place of the first.
func (f *fifo[T]) add(items ...T) (place uint32) {
	place = f.base + uint32(len(f.items))
	f.items = append(f.items, items...)
	return place
}

// at returns n items from a place on, valid until something is added or dropped.
func (f *fifo[T]) at(place uint32, n int) []T {
	first := int(place - f.base)
	return f.items[first : first+n : first+n]
}

// drop frees what stands before a place. It moves the rest only when that is less than what is freed.
func (f *fifo[T]) drop(place uint32) {
	if n := int(int32(place - f.base)); n > 0 && 2*n >= len(f.items) {
		f.items = f.items[:copy(f.items, f.items[n:])]
		f.base = place
	}
}
