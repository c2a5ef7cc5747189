package exclusive

import (
	"iter"
	"slices"
)

// Hooks are functions of the user's, in the order in which they were added.
type Hooks[F any] []*hook[F]

type hook[F any] struct {
	fn    F
	taken bool // back
}

// Add appends a function and returns one that takes it back, as the same call of the server.
func (h *Hooks[F]) Add(calls *Guard, call Call, fn F) (remove func()) {
	added := &hook[F]{fn: fn}
	*h = append(slices.Clip(*h), added)
	return func() {
		defer calls.Leave(calls.Enter(call))
		added.taken = true
		*h = slices.DeleteFunc(slices.Clone(*h), func(other *hook[F]) bool { return other == added })
	}
}

// Each yields the functions that there were at its call, but for those that are taken back meanwhile.
func (h Hooks[F]) Each() iter.Seq[F] {
	return func(yield func(F) bool) {
		for _, each := range h {
			if !each.taken && !yield(each.fn) {
				return
			}
		}
	}
}
