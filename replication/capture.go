package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

// capture is the once-per-tick pass over the world: table by table, it quantises the
// registered components column by column, and hands rows to the histories.
type capture struct {
	marker     ecs.ID
	components []ecs.ID // by component
	probe      maskProbe
	tables     map[ecs.Mask]*table
	codes      []uint32 // of one component of a table
	slots      []int    // of the rows of a table
}

// A table is what the entities with one set of components share.
type table struct {
	filter   ecs.CachedFilter
	members  []member
	mask     ecs.Mask
	set      delta.Set
	width    int
	weight   float32 // of the components
	relation bool    // one mask, but a run of rows in memory for every relation target
}

type member struct {
	component int
	id        ecs.ID
}

// maskProbe is a filter that matches nothing and notes the masks that it is asked about.
type maskProbe struct {
	marker ecs.ID
	masks  []ecs.Mask
}

// Matches implements [ecs.Filter].
func (p *maskProbe) Matches(mask *ecs.Mask) bool {
	if mask.Get(p.marker) {
		p.masks = append(p.masks, *mask)
	}
	return false
}

func (c *capture) init(w *ecs.World, s *Schema) {
	c.marker = ReplicatedID(w)
	c.probe.marker = c.marker
	for i := range s.components {
		c.components = append(c.components, ecs.TypeID(w, s.components[i].typ))
	}
	c.tables = map[ecs.Mask]*table{}
}

// captureWorld brings the slots and histories up to date with the world.
func (s *Server) captureWorld() {
	c := &s.capture
	c.probe.masks = c.probe.masks[:0]
	q := s.world.Query(&c.probe)
	q.Count()
	q.Close()
	for i := range c.probe.masks {
		s.captureTable(s.table(&c.probe.masks[i]))
	}
	s.removeUnseen()
	s.refresh()
}

// table returns what is known of the archetypes with the given mask.
func (s *Server) table(mask *ecs.Mask) *table {
	c := &s.capture
	if t := c.tables[*mask]; t != nil {
		return t
	}
	exclusive := mask.Exclusive()
	t := &table{filter: s.world.Cache().Register(&exclusive), mask: *mask, weight: 1}
	for i, id := range c.components {
		if mask.Get(id) {
			t.members = append(t.members, member{i, id})
			t.set.Add(i)
			t.width += s.schema.components[i].layout.Width()
			t.weight = max(t.weight, s.schema.components[i].priority)
		}
	}
	for _, id := range ecs.ComponentIDs(s.world) {
		if info, ok := ecs.ComponentInfo(s.world, id); ok && info.IsRelation && mask.Get(id) {
			t.relation = true
		}
	}
	if t.width > maxEntityBits {
		panic("replication: an entity's components take more than 32 KiB: spread them over several entities")
	}
	c.tables[*mask] = t
	return t
}

func (s *Server) captureTable(t *table) {
	q := s.world.Query(&t.filter)
	n := q.Count()
	if t.relation {
		// The rows of different targets are not neighbours: go one by one.
		for q.Next() {
			s.captureRows(t, &q, 1)
		}
		return
	}
	if n == 0 || !q.Next() {
		q.Close()
		return
	}
	s.captureRows(t, &q, n)
	q.Close()
}

// captureRows captures the n rows that follow one another in memory from the query's
// present one on, and leaves the query at the last of them.
func (s *Server) captureRows(t *table, q *ecs.Query, n int) {
	c := &s.capture
	c.slots = c.slots[:0]
	first := *q
	for i := range n {
		if i > 0 {
			q.Next()
		}
		c.slots = append(c.slots, s.identify(q.Entity(), (*Replicated)(q.Get(c.marker)), t))
	}
	for _, m := range t.members {
		comp, h := &s.schema.components[m.component], s.histories[m.component]
		if size := n * comp.words; len(c.codes) < size {
			c.codes = make([]uint32, size)
		}
		s.stats.Clamped += uint64(comp.readColumn(c.codes, first.Get(m.id), n))
		for i, slot := range c.slots {
			if comp.every > 1 && (uint32(slot)+uint32(s.tick))%uint32(comp.every) != 0 && h.Has(slot) {
				continue // not its turn
			}
			row := c.codes[i*comp.words:][:comp.words]
			if h.Set(slot, s.tick, s.slots.info[slot].born, row) {
				s.slots.touch(slot, s.tick)
			}
		}
	}
}

// identify returns the slot of an entity with the given marker, and gives it one if it
// has none.
func (s *Server) identify(e ecs.Entity, m *Replicated, t *table) int {
	slot := int(m.slot) - 1
	if slot < 0 || slot >= s.slots.len() || s.slots.info[slot].entity != e {
		if slot >= 0 {
			s.stats.CopiedMarkers++
		}
		slot = s.slots.add(e, s.tick)
		for _, h := range s.histories {
			h.Begin(slot)
		}
		m.slot, m.gen = uint32(slot)+1, s.slots.info[slot].generation
		s.slots.info[slot].set, s.slots.info[slot].width, s.slots.info[slot].table = t.set, t.width, t
		s.stats.Spawns++
		s.stats.RawBits += t.width
		return slot
	}
	info := &s.slots.info[slot]
	info.seen, info.table = s.tick, t
	if info.set != t.set {
		for i, h := range s.histories {
			if info.set.Has(i) && !t.set.Has(i) {
				h.Remove(slot, s.tick)
			}
		}
		s.stats.RawBits += t.width - info.width
		info.set, info.width, info.restructured = t.set, t.width, s.tick
		s.slots.touch(slot, s.tick)
	}
	return slot
}

const (
	// ancient is the age at which ticks are brought forward so that serial arithmetic
	// keeps telling before from after.
	ancient = 1 << 30
	// refreshShare is the share of slots that is looked after each tick.
	refreshShare = 1024
)

// refresh looks after ticks that would become too old to be compared, a few slots each
// time it is called.
func (s *Server) refresh() {
	n := s.slots.len()
	first := int(uint32(s.tick)%refreshShare) * n / refreshShare
	last := int(uint32(s.tick)%refreshShare+1) * n / refreshShare
	for slot := first; slot < last; slot++ {
		s.refreshSlot(slot)
	}
}

func (s *Server) refreshSlot(slot int) {
	limit := s.tick - ancient
	for _, p := range s.peers {
		p.refresh(slot, limit) // first: their baselines are ticks of these changes
	}
	info := &s.slots.info[slot]
	for _, t := range []*delta.Tick{&s.slots.changed[slot], &info.born, &info.previous, &info.restructured} {
		if t.Before(limit) {
			*t = limit
		}
	}
	for _, h := range s.histories {
		h.Refresh(slot, limit)
	}
}
