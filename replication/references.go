package replication

import (
	"slices"
	"unsafe" // for the name of the type that Arche hands out; no pointer is computed or converted here

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/mlange-42/arche/ecs"
)

// An ecs.Entity means something in its own world only. On the wire it is the [NetID] of
// the entity that it refers to, and nothing if that is not replicated or does not exist
// any more; in a row, slot+1 and generation. This file is the server's half: entities to
// NetIDs. The client's is in referrers.go.
//
// The bytes of a component don't tell what becomes of the entities it refers to: one may
// die, or enter replication in the same tick, in a table that is captured later. So
// components with references are captured when it is known who is who, after all others,
// and bytes that are as before prove nothing where they refer to somebody who came or
// went.

// entityNames tells by which NetID the entities of a world go.
type entityNames struct {
	byID    []entityName // by the entity's ID in Arche
	changed delta.Tick   // when an entity got a NetID or lost it
	turned  bitset.Set   // those that did so then, by ID
}

type entityName struct {
	entity     uint32 // generation of the entity
	slot       uint32 // slot+1, or 0 if the entity is not replicated
	generation uint16 // of the slot
}

// add notes that the entity has got a NetID.
func (n *entityNames) add(e ecs.Entity, id netID, now delta.Tick) {
	n.set(e, id)
	n.turn(e.ID(), now)
}

// set notes the NetID of an entity.
func (n *entityNames) set(e ecs.Entity, id netID) {
	if more := int(e.ID()) + 1 - len(n.byID); more > 0 {
		n.byID = append(n.byID, make([]entityName, more)...)
	}
	n.byID[e.ID()] = entityName{e.Generation(), id.Slot + 1, id.Generation}
}

// remove notes that the entity with the given ID in Arche has lost the slot. It may be
// another entity already, with another slot.
func (n *entityNames) remove(id uint32, slot int, now delta.Tick) {
	if n.byID[id].slot == uint32(slot)+1 {
		n.byID[id] = entityName{}
	}
	n.turn(id, now)
}

// turn notes that in tick now an entity got a NetID or lost it.
func (n *entityNames) turn(id uint32, now delta.Tick) {
	if n.changed != now {
		n.changed = now
		clear(n.turned)
	}
	n.turned = n.turned.Grown(len(n.byID))
	n.turned.Add(int(id))
}

// of returns the words of a reference to an entity, given its ID and generation in Arche.
// Any numbers may be given: what is not an entity of this world has no name.
func (n *entityNames) of(id, generation uint32) (slot, counter uint32) {
	if uint64(id) < uint64(len(n.byID)) {
		if name := &n.byID[id]; name.slot != 0 && name.entity == generation {
			return name.slot, uint32(name.generation)
		}
	}
	return 0, 0
}

// name puts NetIDs in the place of entities, in rows as readColumn leaves them.
func (n *entityNames) name(c *schema.Component, rows []uint32) {
	for _, i := range c.References {
		for w := c.Columns[i].Word; w < len(rows); w += c.Words {
			rows[w], rows[w+1] = n.of(rows[w], rows[w+1])
		}
	}
}

// captureReferences captures the components of a table that refer to entities. The targets
// of relations are in the table already.
func (s *snapshot) captureReferences(t *table) {
	n := len(t.slots)
	if !t.refers || n == 0 {
		return
	}
	// Most relations are nothing but their target, and need no visit.
	visits := slices.ContainsFunc(t.members, func(m member) bool { return m.values.Refers() && m.values.Size > 0 })
	q := s.world.Query(&t.filter)
	for first := 0; first < n; first += captureRows {
		rows := min(captureRows, n-first)
		switch {
		case t.relation && visits:
			s.gatherReferences(t, rows, &q)
		case t.relation:
		case first == 0:
			q.Next()
		default:
			q.Step(captureRows)
		}
		for i := range t.members {
			m := &t.members[i]
			if m.values.Refers() {
				p := m.gathered
				if !t.relation {
					p = q.Get(m.id)
				}
				s.captureReferrer(t, m, p, first, rows)
			}
		}
	}
	q.Close()
}

// captureReferrer captures n rows, from row first on, of a component that refers to
// entities. p is the address of their values.
func (s *snapshot) captureReferrer(t *table, m *member, p unsafe.Pointer, first, n int) {
	slots := t.slotsOf(m, first, n)
	born := func(slot int) delta.Tick { return s.slots.info[slot].born }
	block, bytes := &m.blocks[first/captureRows], m.bytes[uintptr(first)*m.values.Bytes():]
	same := block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n)) &&
		(m.values.Once || s.names.changed != s.tick || !s.refersToTurned(t, m, p, first, n))
	if !same || !block.rest(m.values.Every) {
		codes := s.capture.codes[:n*m.values.Words]
		block.clamped = m.values.ReadColumn(codes, p, n)
		if m.values.Targeted() {
			putTargets(codes, m.values.Words, t.targets[first:][:n])
		}
		s.names.name(m.values, codes)
		var news [1]uint64
		s.setRows(m, slots, born, news[:])
		s.slots.touchAll(slots, news[0], s.tick)
	}
	if !same && m.values.Once {
		block.rows = n
	} else if !same && block.keep(n) {
		m.keepBytes(first, p, n)
	}
	s.clamped += uint64(block.clamped)
}

// refersToTurned reports whether n values of a component, from row first on, refer to an
// entity that got a NetID or lost it in this tick.
func (s *snapshot) refersToTurned(t *table, m *member, p unsafe.Pointer, first, n int) bool {
	if m.values.Targeted() {
		for _, e := range t.targets[first:][:n] {
			if s.names.turned.Holds(e.ID()) {
				return true
			}
		}
	}
	return m.values.RefersToAny(p, n, s.names.turned)
}

// Entity returns the entity of the server's world that has the given network ID, if the
// latest Replicate found it. It may have been removed since, but not by a reset of the world.
func (s *Server) Entity(id NetID) (ecs.Entity, bool) {
	s.mustExist()
	return s.snap.entityIn(id.Slot, id.Generation)
}

// entityIn returns the entity in a slot, if it is the one of the given generation.
func (s *snapshot) entityIn(slot uint32, generation uint16) (ecs.Entity, bool) {
	if !s.mark.intact() || int64(slot) >= int64(s.slots.len()) || s.slots.facets(int(slot>>6)) || !s.slots.alive.Has(int(slot)) ||
		s.slots.info[slot].generation != generation || s.resources.in(int(slot)) {
		return ecs.Entity{}, false
	}
	return s.slots.info[slot].entity, true
}
