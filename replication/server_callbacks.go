package replication

import (
	"iter"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/exclusive"
)

// hooks are functions of the user's, in the order in which they were added.
type hooks[F any] []*hook[F]

type hook[F any] struct {
	fn    F
	taken bool // back
}

// add appends a function and returns one that takes it back, as the same call of the server.
func (h *hooks[F]) add(s *Server, call exclusive.Call, fn F) (remove func()) {
	added := &hook[F]{fn: fn}
	*h = append(slices.Clip(*h), added)
	return func() {
		defer s.guard().Leave(s.guard().Enter(call))
		added.taken = true
		*h = slices.DeleteFunc(slices.Clone(*h), func(other *hook[F]) bool { return other == added })
	}
}

// each yields the functions that there were at its call, but for those that are taken back meanwhile.
func (h hooks[F]) each() iter.Seq[F] {
	return func(yield func(F) bool) {
		for _, each := range h {
			if !each.taken && !yield(each.fn) {
				return
			}
		}
	}
}
