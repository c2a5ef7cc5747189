package interest

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// What a peer sees, as a set of slots, and the criteria for it.

// Criteria is replication.Interest inside.
type Criteria struct {
	Filter  ecs.Filter
	Grid    *Grid
	Sets    []*EntitySet
	Visible func(e ecs.Entity) bool
	Keep    bool
	Margin  float32 // of the grid, beyond the radius
}

// A View is the set of slots that a peer may see.
type View struct {
	Criteria
	Limited      bool       // the peer may not see all slots
	crowded      bool       // the server has more slots than the client takes
	InView       bitset.Set // nil: all slots
	Next         bitset.Set // scratch memory: the slots that are in view from this tick on
	VisibleCount int        // live slots in view as of the last tick, if the view is limited

	room     int // how many slots the client takes, from 0 on; 0: all
	withheld int // live slots that would be in view if the client had room

	kept     *keptSubEntities  // with Keep, if the schema has conditions
	Released bool              // Keep ended, so what was kept is gone
	picked   wire.ComponentSet // conditions that hold for the peer; only those of OnlyFor may be missing

	passes    map[*snapshot.Table]bool // results of Filter
	lastTable *snapshot.Table          // and the last one of them
	lastPass  bool
	Viewpoint Viewpoint
	bands     *[MaxAxes][]band // scratch memory, for a grid
}

// Blind reports whether the peer sees nothing through its grid, for lack of a place to look from.
func (v *View) Blind() bool { return v.Grid != nil && v.Viewpoint.Axes == 0 }

// Divide divides the live slots into visible, withheld and hidden ones.
func (v *View) Divide(live int) (seen, withheld, hidden int) {
	if !v.Limited {
		return live, 0, 0
	}
	seen = min(v.VisibleCount, live) // some may have ended since
	withheld = min(v.withheld, live-seen)
	return seen, withheld, live - seen - withheld
}

// Sees returns those of some live slots of a block that the peer may see.
func (v *View) Sees(b int, mask uint64) uint64 {
	if v.InView == nil {
		return mask
	}
	if b >= len(v.InView) {
		return 0 // new slots, which Find has not seen yet
	}
	return mask & v.InView[b]
}

// Find sets Next to the slots that match the criteria. The slot of the resources is always among
// them; the criteria don't apply to it. stays reports that InView has what was in view, and nothing else: it stays in
// view within the margin.
func (v *View) Find(s *snapshot.SlotTable, resources, stays bool) {
	if v.Grid == nil && len(v.Sets) == 0 {
		copy(v.Next, s.Alive)
	} else {
		clear(v.Next)
		if v.Grid != nil {
			v.Grid.find(v, stays)
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

// pass reports whether Filter matches the entities of a table.
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

// Ask applies the filter to all tables on the caller's goroutine, since it may be the user's code.
func (v *View) Ask(tables map[ecs.Mask]*snapshot.Table) {
	if v.Filter != nil && len(v.passes) < len(tables) {
		for _, t := range tables {
			v.pass(t)
		}
	}
}
