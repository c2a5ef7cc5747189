package replication

import (
	"fmt"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/mlange-42/arche/ecs"
)

// A Group is entities that appear, change and end together at every client: a ship and its
// turrets, a rider and the horse. After each [Client.Apply] a client shows all of them as
// they were in one tick of the server, or none. Entities outside of groups go each their
// own way.
//
// An entity can be in one group at a time. Joining and leaving are part of what the group
// does together: a client never sees that a turret has left before it sees the ship as it
// was then. An entity that is removed from the world leaves the group by itself; one that
// only loses its marker is a member again when it gets another.
//
// What of a group is news to a client travels in one packet. So everything in a group must
// fit into one, at the latest when a client sees it for the first time and gets it whole:
// with the default MTU that is about 1100 bytes at the widths of the schema. The fields of a
// packet's entries are bounded as well, to some 32,000 words of 32 bits, however few bits they
// take: a text counts with its max. If it does not fit, the entities are sent one by one, and may show different ticks until all have come;
// [PeerStats.TornGroups] counts that.
//
// A group is visible to a peer if any of its entities is: see [Interest].
type Group struct {
	server *Server
	in     group
}

// A groupMember is an entity of a group.
type groupMember struct {
	entity ecs.Entity
	slot   int32      // -1: it has none yet
	since  delta.Tick // from that tick on the slot is sent with the group
}

// A formerMember is a slot whose entity has left its group, or ended. It goes on being sent
// with the group to peers that may show the group as it was before.
type formerMember struct {
	slot  int32
	ended delta.Tick // the first tick without it
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
	made   uint32
	list   []*group              // that have or had members
	of     map[ecs.Entity]*group // by member
	bySlot [][]*group            // with which a slot is sent
	fresh  []int32               // slots that joined in this tick
	blocks []int32               // with such slots, in order
	moved  bool                  // blocks is out of date
}

// NewGroup returns an empty group.
func (s *Server) NewGroup() *Group {
	s.mustExist()
	s.interest.groups.made++
	g := &Group{server: s}
	g.in.snap, g.in.sets, g.in.phase = &s.snap, &s.interest, s.interest.groups.made
	return g
}

// mustExist panics if the group is nil, or zero.
func (g *Group) mustExist() {
	if g == nil || g.server == nil {
		panic("replication: there is no group: Server.NewGroup makes one")
	}
}

// Add puts an entity into the group, from the next Replicate on. Adding one that is in it
// does nothing. It may get its [Replicated] component later. Entities that ought to appear
// together must be in the group when the first of them is replicated. A dead one is not
// taken.
//
// Panics if the entity is in another group.
func (g *Group) Add(e ecs.Entity) {
	g.mustExist()
	g.server.noticeReset()
	g.in.add(e)
}

func (g *group) add(e ecs.Entity) {
	if !alive(g.snap.world, e) {
		return
	}
	of := &g.sets.groups
	switch old := of.of[e]; {
	case old == g:
		return
	case old != nil:
		panic(fmt.Sprintf("replication: entity %v is in another group: call that one's Remove first", e))
	}
	if of.of == nil {
		of.of = map[ecs.Entity]*group{}
	}
	of.of[e] = g
	g.members = append(g.members, groupMember{entity: e, slot: -1})
	g.stirred = true
	if !g.listed {
		g.listed = true
		of.list = append(of.list, g)
	}
}

// Remove takes an entity out of the group, if it is in it, from the next Replicate on.
func (g *Group) Remove(e ecs.Entity) {
	g.mustExist()
	g.server.noticeReset()
	g.in.remove(e)
}

func (g *group) remove(e ecs.Entity) {
	i := slices.IndexFunc(g.members, func(m groupMember) bool { return m.entity == e })
	if i < 0 {
		return
	}
	g.part(&g.members[i], g.snap.tick+1)
	g.members = slices.Delete(g.members, i, i+1)
	delete(g.sets.groups.of, e)
}

// Len returns the number of entities in the group. Those that ended count until the next
// Replicate.
func (g *Group) Len() int {
	g.mustExist()
	return len(g.in.members)
}

// part notes that the slot of a member, if it has one, is without it from a tick on.
func (g *group) part(m *groupMember, from delta.Tick) {
	if m.slot >= 0 {
		g.former = append(g.former, formerMember{m.slot, from})
		g.snap.phase(int(m.slot), uint32(m.slot))
		m.slot = -1
	}
}

// join binds the slot of a member to the group.
func (g *group) join(m *groupMember, slot int32) {
	s := g.snap
	of := &g.sets.groups
	m.slot, m.since = slot, s.tick
	for int(slot) >= len(of.bySlot) {
		of.bySlot = append(of.bySlot, nil)
	}
	g.former = slices.DeleteFunc(g.former, func(f formerMember) bool { return f.slot == slot })
	if !slices.Contains(of.bySlot[slot], g) {
		of.bySlot[slot] = append(of.bySlot[slot], g)
	}
	s.slots.bound = s.slots.bound.Grown(s.slots.len())
	s.slots.bound.Add(int(slot))
	of.fresh = append(of.fresh, slot)
	s.phases.grow(slot)
	s.phase(int(slot), g.phase)
}

// tidyEvery is how many ticks lie between two attempts to forget former members.
const tidyEvery = 8

// update brings the groups up to date with the world, once per tick.
func (of *groups) update(s *snapshot) {
	of.fresh = of.fresh[:0]
	if len(of.list) == 0 {
		return
	}
	for _, b := range of.blocks {
		for slot := range bitset.Slots(int(b), s.slots.bound[b]&s.slots.turned[b]) {
			for _, g := range of.bySlot[slot] {
				g.stirred = true
			}
		}
	}
	empty := false
	for _, g := range of.list {
		if g.stirred {
			g.update()
		}
		empty = empty || len(g.members)+len(g.former) == 0
	}
	if empty {
		of.list = slices.DeleteFunc(of.list, func(g *group) bool {
			g.listed = len(g.members)+len(g.former) > 0
			return !g.listed
		})
	}
	s.slots.bound = s.slots.bound.Grown(s.slots.len())
	if of.moved || len(of.fresh) > 0 {
		of.moved = false
		of.blocks = of.blocks[:0]
		for b, word := range s.slots.bound {
			if word != 0 {
				of.blocks = append(of.blocks, int32(b))
			}
		}
	}
}

// update finds the slots of the members.
func (g *group) update() {
	s := g.snap
	g.stirred = false
	n := 0
	for i := range g.members {
		m := g.members[i]
		if m.slot >= 0 && s.slots.info[m.slot].entity != m.entity {
			g.part(&m, s.tick) // it may only have lost its marker
		}
		if m.slot < 0 {
			if !alive(s.world, m.entity) {
				delete(g.sets.groups.of, m.entity)
				continue
			}
			if slot, ok := s.slotOf(m.entity); ok {
				g.join(&m, int32(slot))
			} else {
				g.stirred = true
			}
		}
		g.members[n] = m
		n++
	}
	clear(g.members[n:])
	g.members = g.members[:n]
}

// tidy forgets former members that mean nothing to any peer any more, as released says. It is called between two ticks.
func (of *groups) tidy(now delta.Tick, released func(g *group, f formerMember) bool) {
	if now%tidyEvery != 0 {
		return
	}
	for _, g := range of.list {
		if len(g.former) > 0 {
			g.tidy(released)
		}
	}
}

func (g *group) tidy(released func(g *group, f formerMember) bool) {
	s := g.snap
	limit := s.tick - ancient
	for i := range g.members {
		if m := &g.members[i]; m.since.Before(limit) {
			m.since = limit
		}
	}
	g.former = slices.DeleteFunc(g.former, func(f formerMember) bool {
		if f.ended.After(s.tick) {
			return false
		}
		if !released(g, f) {
			return false
		}
		g.unbind(f.slot)
		return true
	})
}

// unbind ends that a slot is sent with the group.
func (g *group) unbind(slot int32) {
	of := &g.sets.groups
	list := &of.bySlot[slot]
	*list = slices.DeleteFunc(*list, func(o *group) bool { return o == g })
	if len(*list) == 0 {
		g.snap.slots.bound.Remove(int(slot))
		of.moved = true
	}
}

// show adds to a set of slots those that are in a group with one of them.
func (of *groups) show(set bitset.Set) {
	for _, g := range of.list {
		if slices.ContainsFunc(g.members, func(m groupMember) bool { return m.slot >= 0 && set.Has(int(m.slot)) }) {
			for _, m := range g.members {
				if m.slot >= 0 {
					set.Add(int(m.slot))
				}
			}
		}
	}
}
