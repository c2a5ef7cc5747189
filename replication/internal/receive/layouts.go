package receive

import "github.com/arche-replicate/arche-replicate/delta"

// A client knows the shapes of MaxLayouts component sets at a time, so that a server can't make it remember ever more. A long game
// may have more than that, one after the other: those that no state has any more make room.

const (
	// manyLayouts is how many shapes are worth to look for those that are not in use,
	manyLayouts = MaxLayouts / 4 * 3
	// sweepEvery in so many calls of Apply.
	sweepEvery = 64
)

// Crowded reports whether it is time to forget shapes, before there are too many.
func (rc *Receiver) Crowded() bool {
	n := len(rc.Layouts.Known)
	return len(rc.Replicas.Pages) > 0 && rc.AnyState && (n == MaxLayouts || n >= manyLayouts && rc.refreshed%sweepEvery == 0)
}

// SweepLayouts forgets the shapes that are not in use, and the states that need not be held any more. used has the shapes that
// others use.
func (rc *Receiver) SweepLayouts(used map[*Layout]bool) {
	used[rc.Bare] = true
	for _, page := range rc.Replicas.Pages {
		for i := range page {
			m := &page[i]
			m.Held.Tidy(delta.Tick(rc.NearTick), rc.Keep)
			for j := range m.Held.Ring {
				used[m.Held.Ring[j].Layout] = true
			}
		}
	}
	for set, sh := range rc.Layouts.Known {
		if !used[sh] {
			delete(rc.Layouts.Known, set)
		}
	}
}
