package interest

import (
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Group is replication.Group inside.
type Group struct {
	Snap *snapshot.Snapshot
	Sets *Shared

	Members        []groupMember
	Former         []FormerMember
	Phase          uint32 // selects the ticks in which components with an interval are captured
	listed         bool   // in groups.List
	MembersChanged bool   // members may have joined, ended or left
}

// A groupMember is an entity of a group.
type groupMember struct {
	entity ecs.Entity
	Slot   int32      // -1: none yet
	Since  delta.Tick // the tick from which on the slot is sent with the group
	first  delta.Tick // that of the first entity, if the slot was with the group before without a break
}

// A FormerMember is a slot whose entity left its group, or ended. It is still sent with the group
// to peers that may show the group as it was before.
type FormerMember struct {
	Slot  int32
	first delta.Tick // see groupMember
	Ended delta.Tick // the first tick without it
}

// groups knows which slots are in groups.
//
// A client never shows a group split between ticks. Whatever a peer is sent of a group in a tick is
// one packet, with the present state, or end, of every slot that the peer is not known to hold as
// it is. Let T be the newest tick of which the client received such a packet, in whatever order and
// with whatever losses. A slot in that packet shows its state of T, since no state is newer. A slot
// that was not in it did not change between some tick that the client had acknowledged and T; the
// client shows that state or a later one, and none is later than T. So the client shows the
// complete group as of T, and T never decreases.
//
// A slot that leaves stays bound to the group for a peer until T is known to be past the tick in
// which it left. A slot that joins was not in the group before. Slots in groups are never in shared
// packets. So the code for those knows nothing of groups, and worlds without groups pay nothing for
// them.
type groups struct {
	Made   uint32
	List   []*Group              // groups with members or former members
	Of     map[ecs.Entity]*Group // by member
	BySlot [][]*Group            // the groups that a slot is sent with
	fresh  []int32               // slots that joined in this tick
	Blocks []int32               // blocks with slots in groups, in order
	moved  bool                  // Blocks is out of date
}

// Add adds an entity, if it is alive.
func (g *Group) Add(e ecs.Entity) {
	if !archeutil.Alive(g.Snap.World, e) {
		return
	}
	of := &g.Sets.Groups
	switch old := of.Of[e]; {
	case old == g:
		return
	case old != nil:
		panic(fmt.Sprintf("replication: entity %v is in another group: call that one's Remove first", e))
	}
	if of.Of == nil {
		of.Of = map[ecs.Entity]*Group{}
	}
	of.Of[e] = g
	g.Members = append(g.Members, groupMember{entity: e, Slot: -1})
	g.MembersChanged = true
	if !g.listed {
		g.listed = true
		of.List = append(of.List, g)
	}
}

// Remove removes an entity from the group.
func (g *Group) Remove(e ecs.Entity) {
	i := slices.IndexFunc(g.Members, func(m groupMember) bool { return m.entity == e })
	if i < 0 {
		return
	}
	g.Part(&g.Members[i], g.Snap.Tick+1)
	g.Members = slices.Delete(g.Members, i, i+1)
	delete(g.Sets.Groups.Of, e)
}

// Part notes that the group is without a member's slot, if it has one, from a tick on.
func (g *Group) Part(m *groupMember, from delta.Tick) {
	if m.Slot >= 0 {
		g.Former = append(g.Former, FormerMember{m.Slot, m.first, from})
		g.Snap.Phase(int(m.Slot), uint32(m.Slot))
		m.Slot = -1
	}
}

// join binds the slot of a member to the group.
func (g *Group) join(m *groupMember, slot int32) {
	s := g.Snap
	of := &g.Sets.Groups
	m.Slot, m.Since, m.first = slot, s.Tick, s.Tick
	for int(slot) >= len(of.BySlot) {
		of.BySlot = append(of.BySlot, nil)
	}
	if i := slices.IndexFunc(g.Former, func(f FormerMember) bool { return f.Slot == slot }); i >= 0 {
		m.first = g.Former[i].first
		g.Former = slices.Delete(g.Former, i, i+1)
	}
	if !slices.Contains(of.BySlot[slot], g) {
		of.BySlot[slot] = append(of.BySlot[slot], g)
	}
	s.Slots.Bound = s.Slots.Bound.Grown(s.Slots.Len())
	s.Slots.Bound.Add(int(slot))
	of.fresh = append(of.fresh, slot)
	s.Phases.Grow(slot)
	s.Phase(int(slot), g.Phase)
}

// tidyEvery is the number of ticks between two attempts to forget former members.
const tidyEvery = 8

// Update finds the slots of all members, once per tick.
func (of *groups) Update(s *snapshot.Snapshot) {
	of.fresh = of.fresh[:0]
	if len(of.List) == 0 {
		return
	}
	for _, b := range of.Blocks {
		for slot := range bitset.Slots(int(b), s.Slots.Bound[b]&s.Slots.Churned[b]) {
			for _, g := range of.BySlot[slot] {
				g.MembersChanged = true
			}
		}
	}
	empty := false
	for _, g := range of.List {
		if g.MembersChanged {
			g.update()
		}
		empty = empty || len(g.Members)+len(g.Former) == 0
	}
	if empty {
		of.List = slices.DeleteFunc(of.List, func(g *Group) bool {
			g.listed = len(g.Members)+len(g.Former) > 0
			return !g.listed
		})
	}
	s.Slots.Bound = s.Slots.Bound.Grown(s.Slots.Len())
	if of.moved || len(of.fresh) > 0 {
		of.moved = false
		of.Blocks = of.Blocks[:0]
		for b, word := range s.Slots.Bound {
			if word != 0 {
				of.Blocks = append(of.Blocks, int32(b))
			}
		}
	}
}

// update finds the slots of the members.
func (g *Group) update() {
	s := g.Snap
	g.MembersChanged = false
	n := 0
	for i := range g.Members {
		m := g.Members[i]
		if m.Slot >= 0 && s.Slots.Info[m.Slot].Entity != m.entity {
			g.Part(&m, s.Tick) // the entity may live and have lost only its marker
		}
		if m.Slot < 0 {
			if !archeutil.Alive(s.World, m.entity) {
				delete(g.Sets.Groups.Of, m.entity)
				continue
			}
			if slot, ok := s.SlotOf(m.entity); ok {
				g.join(&m, int32(slot))
			} else {
				g.MembersChanged = true
			}
		}
		g.Members[n] = m
		n++
	}
	clear(g.Members[n:])
	g.Members = g.Members[:n]
}

// Tidy forgets the former members that no peer may still show in the group, which released reports.
// It is called between two ticks.
func (of *groups) Tidy(now delta.Tick, released func(g *Group, f FormerMember) bool) {
	if now%tidyEvery != 0 {
		return
	}
	for _, g := range of.List {
		if len(g.Former) > 0 {
			g.tidy(released)
		}
	}
}

// tidy is groups.Tidy for one group.
func (g *Group) tidy(released func(g *Group, f FormerMember) bool) {
	s := g.Snap
	limit := s.Tick - wire.Ancient
	for i := range g.Members {
		m := &g.Members[i]
		m.Since, m.first = later(m.Since, limit), later(m.first, limit)
	}
	for i := range g.Former {
		f := &g.Former[i]
		f.first = later(f.first, limit)
	}
	g.Former = slices.DeleteFunc(g.Former, func(f FormerMember) bool {
		if f.Ended.After(s.Tick) {
			return false
		}
		if !released(g, f) {
			return false
		}
		g.unbind(f.Slot)
		return true
	})
}

// later returns the later one of two ticks.
func later(a, b delta.Tick) delta.Tick {
	if a.Before(b) {
		return b
	}
	return a
}

// Since returns the tick from which on a slot has been with the group, as a member or a former one.
func (g *Group) Since(slot int32) delta.Tick {
	for i := range g.Members {
		if m := &g.Members[i]; m.Slot == slot {
			return m.first
		}
	}
	for _, f := range g.Former {
		if f.Slot == slot {
			return f.first
		}
	}
	return g.Snap.Tick
}

// unbind stops sending a slot with the group.
func (g *Group) unbind(slot int32) {
	of := &g.Sets.Groups
	list := &of.BySlot[slot]
	*list = slices.DeleteFunc(*list, func(o *Group) bool { return o == g })
	if len(*list) == 0 {
		g.Snap.Slots.Bound.Remove(int(slot))
		of.moved = true
	}
}

// Show adds to a set of slots all members of the groups that have a member in the set.
func (of *groups) Show(set bitset.Set) {
	for _, g := range of.List {
		if slices.ContainsFunc(g.Members, func(m groupMember) bool { return m.Slot >= 0 && set.Has(int(m.Slot)) }) {
			for _, m := range g.Members {
				if m.Slot >= 0 {
					set.Add(int(m.Slot))
				}
			}
		}
	}
}
