package interest

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/mlange-42/arche/ecs"
)

// Criteria are an Interest inside.
type Criteria struct {
	Filter  ecs.Filter
	Grid    *Grid
	Sets    []*EntitySet
	Visible func(e ecs.Entity) bool
	Keep    bool
}

// A View is what a peer may see, as slots.
type View struct {
	Criteria
	Limited      bool
	InView       bitset.Set // nil: all
	Next         bitset.Set // scratch memory
	VisibleCount int        // live slots that were visible when look was called last, if limited

	room     int  // slots that the client takes, from 0 on; 0: all
	crowded  bool // the server has more
	withheld int  // live slots that would be visible, were there room

	kept *keptSubEntities // with Keep, if there are conditions

	Released bool      // Keep ended: what was kept is gone
	picked   delta.Set // conditions, those of OnlyFor only if the peer is picked

	passes    map[*snapshot.Table]bool // what Filter says
	lastTable *snapshot.Table          // asked for last
	lastPass  bool
	Viewpoint Viewpoint
}

// Divide divides the live slots into those that are visible, and the others into those that are withheld and those that are hidden.
func (v *View) Divide(live int) (seen, withheld, hidden int) {
	if !v.Limited {
		return live, 0, 0
	}
	seen = min(v.VisibleCount, live) // some may have ended since look was called
	withheld = min(v.withheld, live-seen)
	return seen, withheld, live - seen - withheld
}

// Sees returns those of the slots of a block that the peer may see, if they are alive.
func (v *View) Sees(b int, mask uint64) uint64 {
	if v.InView == nil {
		return mask
	}
	if b >= len(v.InView) {
		return 0 // new, and not looked at yet
	}
	return mask & v.InView[b]
}

// Find sets next to the slots that the view shows. That of the resources, if there is one, is
// always among them, and nobody is asked.
func (v *View) Find(s *snapshot.SlotTable, resources bool) {
	if v.Grid == nil && len(v.Sets) == 0 {
		copy(v.Next, s.Alive)
	} else {
		clear(v.Next)
		if v.Grid != nil {
			v.Grid.find(&v.Viewpoint, v.Next)
		}
		for _, set := range v.Sets {
			set.find(v.Next)
		}
	}
	if resources {
		v.Next.Add(archeutil.ResourceSlot)
	}
	if v.Filter == nil && v.Visible == nil {
		return
	}
	for b, word := range v.Next {
		if s.HoldsSubEntities(b) {
			continue
		}
		if b == archeutil.ResourceSlot>>6 && resources {
			word &^= 1 << (archeutil.ResourceSlot & 63)
		}
		for slot := range bitset.Slots(b, word&s.Alive[b]) {
			if v.Filter != nil && !v.pass(s.Info[slot].Table) || v.Visible != nil && !v.Visible(s.Info[slot].Entity) {
				v.Next[b] &^= 1 << (slot & 63)
			}
		}
	}
}

// pass reports whether Filter lets the entities of a table through.
func (v *View) pass(t *snapshot.Table) bool {
	if v.lastTable == t {
		return v.lastPass
	}
	pass, known := v.passes[t]
	if !known {
		if v.passes == nil {
			v.passes = map[*snapshot.Table]bool{}
		}
		pass = v.Filter.Matches(&t.Mask)
		v.passes[t] = pass
	}
	v.lastTable, v.lastPass = t, pass
	return pass
}

// Ask has the filter judge all tables, on the caller's goroutine: it may be the user's own.
func (v *View) Ask(tables map[ecs.Mask]*snapshot.Table) {
	if v.Filter != nil && len(v.passes) < len(tables) {
		for _, t := range tables {
			v.pass(t)
		}
	}
}
