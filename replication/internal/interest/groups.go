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

// A groupMember is an entity of a group.
type groupMember struct {
	entity ecs.Entity
	Slot   int32      // -1: it has none yet
	Since  delta.Tick // from that tick on the slot is sent with the group
}

// A FormerMember is a slot whose entity has left its group, or ended. It goes on being sent
// with the group to peers that may show the group as it was before.
type FormerMember struct {
	Slot  int32
	Ended delta.Tick // the first tick without it
}

// groups knows which slots are in groups.
//
// Why nothing is ever torn: whatever is sent of a group to a peer is one packet a tick,
// with the present state, or end, of every slot whose present state or end the peer is not
// known to hold. Let T be the newest tick of which a client has got such a packet, in
// whatever order and with whatever losses. A slot that was in that packet shows the state
// of T, as no state is newer. One that was not in it did not change between a tick that
// the client had acknowledged then and T; the client shows that state or a later one, and
// none is later than T. So it shows the whole group as of T, and T only grows.
//
// A slot that leaves stays bound to the group at a peer until T is known to have passed
// the tick at which it left; one that joins was not in the group before. Slots in groups
// are never in streams, so what serves those knows nothing of groups,
// and worlds without any pay nothing for them.
type groups struct {
	Made   uint32
	List   []*Group              // that have or had members
	Of     map[ecs.Entity]*Group // by member
	BySlot [][]*Group            // with which a slot is sent
	fresh  []int32               // slots that joined in this tick
	Blocks []int32               // with such slots, in order
	moved  bool                  // blocks is out of date
}

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

func (g *Group) Remove(e ecs.Entity) {
	i := slices.IndexFunc(g.Members, func(m groupMember) bool { return m.entity == e })
	if i < 0 {
		return
	}
	g.Part(&g.Members[i], g.Snap.Tick+1)
	g.Members = slices.Delete(g.Members, i, i+1)
	delete(g.Sets.Groups.Of, e)
}

// Part notes that the slot of a member, if it has one, is without it from a tick on.
func (g *Group) Part(m *groupMember, from delta.Tick) {
	if m.Slot >= 0 {
		g.Former = append(g.Former, FormerMember{m.Slot, from})
		g.Snap.Phase(int(m.Slot), uint32(m.Slot))
		m.Slot = -1
	}
}

// join binds the slot of a member to the group.
func (g *Group) join(m *groupMember, slot int32) {
	s := g.Snap
	of := &g.Sets.Groups
	m.Slot, m.Since = slot, s.Tick
	for int(slot) >= len(of.BySlot) {
		of.BySlot = append(of.BySlot, nil)
	}
	g.Former = slices.DeleteFunc(g.Former, func(f FormerMember) bool { return f.Slot == slot })
	if !slices.Contains(of.BySlot[slot], g) {
		of.BySlot[slot] = append(of.BySlot[slot], g)
	}
	s.Slots.Bound = s.Slots.Bound.Grown(s.Slots.Len())
	s.Slots.Bound.Add(int(slot))
	of.fresh = append(of.fresh, slot)
	s.Phases.Grow(slot)
	s.Phase(int(slot), g.Phase)
}

// tidyEvery is how many ticks lie between two attempts to forget former members.
const tidyEvery = 8

// Update brings the groups up to date with the world, once per tick.
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
			g.Part(&m, s.Tick) // it may only have lost its marker
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

// Tidy forgets former members that mean nothing to any peer any more, as released says. It is called between two ticks.
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

func (g *Group) tidy(released func(g *Group, f FormerMember) bool) {
	s := g.Snap
	limit := s.Tick - wire.Ancient
	for i := range g.Members {
		if m := &g.Members[i]; m.Since.Before(limit) {
			m.Since = limit
		}
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

// unbind ends that a slot is sent with the group.
func (g *Group) unbind(slot int32) {
	of := &g.Sets.Groups
	list := &of.BySlot[slot]
	*list = slices.DeleteFunc(*list, func(o *Group) bool { return o == g })
	if len(*list) == 0 {
		g.Snap.Slots.Bound.Remove(int(slot))
		of.moved = true
	}
}

// Show adds to a set of slots those that are in a group with one of them.
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
