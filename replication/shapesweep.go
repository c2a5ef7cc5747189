package replication

import "github.com/arche-replicate/arche-replicate/delta"

// A client knows the shapes of maxShapes component sets at a time, so that a server can't make it remember ever more. A long game
// may have more than that, one after the other: those that no state has any more make room.

const (
	// manyShapes is how many shapes are worth to look for those that are not in use,
	manyShapes = maxShapes / 4 * 3
	// sweepEvery in so many calls of Apply.
	sweepEvery = 64
)

// crowded reports whether it is time to forget shapes, before there are too many.
func (rc *receiver) crowded() bool {
	n := len(rc.shapes.known)
	return len(rc.mirrors.pages) > 0 && rc.anyState && (n == maxShapes || n >= manyShapes && rc.refreshed%sweepEvery == 0)
}

// sweepShapes forgets the shapes that are not in use, and the states that need not be held any more. used has the shapes that
// others use.
func (rc *receiver) sweepShapes(used map[*shape]bool) {
	used[rc.bare] = true
	for _, page := range rc.mirrors.pages {
		for i := range page {
			m := &page[i]
			m.held.tidy(delta.Tick(rc.nearTick), rc.keep)
			for j := range m.held.ring {
				used[m.held.ring[j].shape] = true
			}
		}
	}
	for set, sh := range rc.shapes.known {
		if !used[sh] {
			delete(rc.shapes.known, set)
		}
	}
}
