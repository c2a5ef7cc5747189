package message

// This file has the memory of channels.

// ring holds the items of successive ids, which wrap, in places by the id's low bits. It doubles
// when an id has no place. It gives back the memory of a rare burst: each time that it has been
// emptied shrinkAfter times, it is halved if it never had more than a quarter of its places in use
// meanwhile. Bursts that recur sooner allocate nothing.
type ring[T any] struct {
	places    []T    // as many as a power of two, or none
	most      uint32 // the most places in use at a time since the size was last considered
	emptyings uint8  // how often it was emptied since then
}

const (
	minPlaces = 16
	// shrinkAfter is how many times a ring is emptied before its size is considered.
	shrinkAfter = 64
)

// at returns the place of an id.
func (r *ring[T]) at(id uint32) *T { return &r.places[id&uint32(len(r.places)-1)] }

// fit makes room for n ids, of which first is the oldest in use.
func (r *ring[T]) fit(first, n uint32) {
	r.most = max(r.most, n)
	size := uint32(max(minPlaces, len(r.places)))
	for size < n {
		size *= 2
	}
	if size == uint32(len(r.places)) {
		return
	}
	old := *r
	r.places = make([]T, size)
	for i := range uint32(len(old.places)) {
		*r.at(first + i) = *old.at(first + i)
	}
}

// emptied notes that no id is in use.
func (r *ring[T]) emptied() {
	if r.emptyings++; r.emptyings < shrinkAfter {
		return
	}
	if n := uint32(len(r.places)); n > minPlaces && r.most <= n/4 {
		r.places = make([]T, n/2)
	}
	r.most, r.emptyings = 0, 0
}
