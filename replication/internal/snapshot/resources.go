package snapshot

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// findResources looks which resources are there, and gives them their slot in the first
// tick.
func (s *Snapshot) findResources() {
	r := &s.Resources
	for i := range r.members {
		k := r.members[i].Component
		r.at[k] = r.Find(k)
	}
	if !r.Any || s.Slots.Len() > 0 {
		return
	}
	slot := s.Slots.Add(ecs.Entity{}, s.Tick)
	for _, h := range s.Histories {
		h.Begin(slot)
	}
	s.Slots.Info[slot].Table = &r.table
}

// captureResources captures the resources like rows of a table with one row. They may refer
// to entities, so it is known who is who.
func (s *Snapshot) captureResources() {
	r := &s.Resources
	if !r.Any {
		return
	}
	var set delta.Set
	for i := range r.members {
		if k := r.members[i].Component; r.at[k] != nil {
			set.Add(k)
		}
	}
	if set != s.Slots.Info[archeutil.ResourceSlot].Set {
		s.changeResources(set)
	}
	for i := range r.table.Members {
		m := &r.table.Members[i]
		s.captureReferrer(&r.table, m, r.at[m.Component], 0, 1)
		r.at[m.Component] = nil // it is not kept from being freed
	}
}

// changeResources notes which resources are there from now on.
func (s *Snapshot) changeResources(set delta.Set) {
	r, info := &s.Resources, &s.Slots.Info[archeutil.ResourceSlot]
	t := &r.table
	t.Members, t.Set, t.width, t.Weight = t.Members[:0], set, 0, 1
	for i := range r.members {
		m := &r.members[i]
		switch was, is := info.Set.Has(m.Component), set.Has(m.Component); {
		case was && !is:
			m.history.Remove(archeutil.ResourceSlot, s.Tick)
		case is && !was:
			m.Blocks[0].rows = 0 // the bytes are of a row that is no more
			fallthrough
		case is:
			t.Members = append(t.Members, *m)
			t.width += m.values.Layout.Width()
			t.Weight = max(t.Weight, m.values.Priority)
		}
	}
	s.RawBits += t.width - info.Width
	info.Set, info.Restructured = set, s.Tick
	s.Slots.setWidth(archeutil.ResourceSlot, t.width)
	s.Slots.Touch(archeutil.ResourceSlot, s.Tick)
}

// serverResources is what a server knows of the resources of its world.
type serverResources struct {
	archeutil.ResourceTypes
	members []member         // of all resources
	at      []unsafe.Pointer // by component: where they are in the present tick; nil: not there
	table   Table            // with those members that are there; it is no table of entities
}

func (r *serverResources) Init(s *Snapshot) {
	r.ResourceTypes.Init(s.World, s.Schema)
	r.at = make([]unsafe.Pointer, len(s.Schema.Components))
	r.table = Table{slots: []uint32{archeutil.ResourceSlot}, Weight: 1}
	width := 0
	for k := r.Set.Next(0); k >= 0; k = r.Set.Next(k + 1) {
		c := &s.Schema.Components[k]
		width += c.Layout.Width()
		r.members = append(r.members, member{
			Component: k, values: c, history: s.Histories[k],
			Blocks: make([]MemberBlock, 1), bytes: make([]byte, c.Bytes()), strings: make([]string, len(c.Strings)),
		})
	}
	if width > wire.MaxEntityBits {
		panic("replication: the resources of the schema take more than 32 KiB: replicate some as components of an entity that is there for them")
	}
}
