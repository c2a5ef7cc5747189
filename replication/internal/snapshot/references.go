package snapshot

import (
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// An ecs.Entity means something in its own world only. On the wire it is the [NetID] of
// the entity that it refers to, and nothing if that is not replicated or does not exist
// any more; in a row, slot+1 and generation. This file is the server's half: entities to
// NetIDs. The client's is package apply.
//
// The bytes of a component don't tell what becomes of the entities it refers to: one may
// die, or enter replication in the same tick, in a table that is captured later. So
// components with references are captured when it is known who is who, after all others,
// and bytes that are as before prove nothing where they refer to somebody who came or
// went.

// captureReferences captures the components of a table that refer to entities. The targets
// of relations are in the table already.
func (s *Snapshot) captureReferences(t *Table) {
	n := len(t.slots)
	if !t.refers || n == 0 {
		return
	}
	// Most relations are nothing but their target, and need no visit.
	visits := slices.ContainsFunc(t.Members, func(m member) bool { return m.values.Refers() && m.values.Size > 0 })
	q := s.World.Query(&t.Filter)
	for first := 0; first < n; first += CaptureRows {
		rows := min(CaptureRows, n-first)
		switch {
		case t.relation && visits:
			s.gatherReferences(t, rows, &q)
		case t.relation:
		case first == 0:
			q.Next()
		default:
			q.Step(CaptureRows)
		}
		for i := range t.Members {
			m := &t.Members[i]
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
func (s *Snapshot) captureReferrer(t *Table, m *member, p unsafe.Pointer, first, n int) {
	slots := t.slotsOf(m, first, n)
	born := func(slot int) delta.Tick { return s.Slots.Info[slot].Born }
	block, bytes := &m.Blocks[first/CaptureRows], m.bytes[uintptr(first)*m.values.Bytes():]
	same := block.rows == n && (m.values.Once || m.values.SameBytes(bytes, p, n)) &&
		(m.values.Once || s.names.Changed != s.Tick || !s.refersToChurned(t, m, p, first, n))
	if !same || !block.Rest(m.values.Every) {
		codes := s.Capture.codes[:n*m.values.Words]
		block.clamped = m.values.ReadColumn(codes, p, n)
		if m.values.Targeted() {
			archeutil.PutTargets(codes, m.values.Words, t.targets[first:][:n])
		}
		s.names.Name(m.values, codes)
		var changed [1]uint64
		s.setRows(m, slots, born, changed[:])
		s.Slots.touchAll(slots, changed[0], s.Tick)
	}
	if !same && m.values.Once {
		block.rows = n
	} else if !same && block.Keep(n) {
		m.keepBytes(first, p, n)
	}
	s.Clamped += uint64(block.clamped)
}

// refersToChurned reports whether n values of a component, from row first on, refer to an
// entity that got a NetID or lost it in this tick.
func (s *Snapshot) refersToChurned(t *Table, m *member, p unsafe.Pointer, first, n int) bool {
	if m.values.Targeted() {
		for _, e := range t.targets[first:][:n] {
			if s.names.Churned.Holds(e.ID()) {
				return true
			}
		}
	}
	return m.values.RefersToAny(p, n, s.names.Churned)
}

// EntityIn returns the entity in a slot, if it is the one of the given generation.
func (s *Snapshot) EntityIn(slot uint32, generation uint16) (ecs.Entity, bool) {
	if !s.Mark.Intact() || int64(slot) >= int64(s.Slots.Len()) || s.Slots.HoldsSubEntities(int(slot>>6)) || !s.Slots.Alive.Has(int(slot)) ||
		s.Slots.Info[slot].Generation != generation || s.Resources.In(int(slot)) {
		return ecs.Entity{}, false
	}
	return s.Slots.Info[slot].Entity, true
}

// A relation of Arche is a component whose first field is an embedded [ecs.Relation]. Its
// target is no part of the component's memory: Arche keeps the entities with the same
// components and the same target together, in a table (an archetype) of their own. Here
// the target is the first column of the component's row, a reference like others.

// findTarget notes the target of the row that the query is at.
func (t *Table) findTarget(row int, m *member, q *ecs.Query) {
	// Who gets another target leaves its archetype, but may have the same row in the next.
	if target := q.Relation(m.id); t.targets[row] != target {
		t.targets[row] = target
		m.Blocks[row/CaptureRows].rows = 0
	}
}

// gatherReferences brings the next n values together of components that refer to entities.
func (s *Snapshot) gatherReferences(t *Table, n int, q *ecs.Query) {
	for i := range n {
		q.Next()
		for j := range t.Members {
			if m := &t.Members[j]; m.values.Refers() {
				m.values.CopyTo(m.gathered, i, q.Get(m.id))
			}
		}
	}
}

func (s *Snapshot) NameEntities(c *schema.Component, rows []uint32) { s.names.Name(c, rows) }

// EntityOf returns what a client may have meant. The latest Replicate found it, but the game may have removed it since.
func (s *Snapshot) EntityOf(id wire.NetID) ecs.Entity {
	e, ok := s.EntityIn(id.Slot, id.Generation)
	if !ok {
		return ecs.Entity{}
	}
	if slot, ok := s.SlotOf(e); !ok || slot != int(id.Slot) {
		return ecs.Entity{}
	}
	return e
}
