package predict

import (
	"slices"
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// earliest is the earliest of the ticks that were noted.
type earliest struct {
	tick replication.Tick
	any  bool
}

func (e *earliest) note(tick replication.Tick) {
	if !e.any || tick.Before(e.tick) {
		e.tick, e.any = tick, true
	}
}

// A comparison is a group of an entity that is to be compared with the server's state as of a tick.
type comparison struct {
	row   uint32
	group int
	tick  replication.Tick
}

// judge compares what was simulated with the states that came, and notes the ticks in which they differ. to is the tick
// that will be simulated up to.
func (s *simulation) judge(to replication.Tick, from *earliest) {
	list := s.scratch.comparisons[:0]
	for i := range s.rows {
		for g := range s.groups {
			if tick, ok := s.newlyKnown(i, g, to); ok {
				list = append(list, comparison{uint32(i), g, tick})
			}
		}
	}
	s.scratch.comparisons = list
	s.readCodes(list)
	for _, d := range list {
		r := &s.rows[d.row]
		if d.tick.After(s.newest) {
			continue // simulate looks at it
		}
		if d.tick.Before(s.oldest()) {
			d.tick = s.oldest()
			s.known[int(d.row)*len(s.groups)+d.group].tick = d.tick
			s.stats.TooOld++
		}
		if !d.tick.Before(r.first) && s.contradicts(d) {
			from.note(d.tick)
		}
	}
	s.scratch.layout = nil
	for _, c := range s.columns {
		c.inside().read = false
	}
}

// newlyKnown returns the tick as of which a group of an entity is known, if that is later than it was.
func (s *simulation) newlyKnown(i, g int, to replication.Tick) (tick replication.Tick, ok bool) {
	k := &s.known[i*len(s.groups)+g]
	if s.rows[i].entity.IsZero() {
		return 0, false
	}
	if k.slot == nil || s.groups[g].class > 0 {
		k.slot = s.slot(s.rows[i].entity, g)
	}
	if k.slot == nil || !k.slot.Any || k.slot.Empty {
		return 0, false
	}
	tick = k.slot.Newest
	if settled := &s.inside.Recv.Settled; settled.Known && settled.Tick.After(tick) {
		tick = settled.Tick
	}
	if k.any && !tick.After(k.tick) || tick.After(to) {
		return 0, false
	}
	k.tick, k.any = tick, true
	return tick, true
}

// readCodes reads the codes of all rows at once, if many are to be compared, all as of the same tick.
func (s *simulation) readCodes(list []comparison) {
	if len(list) < fewRows {
		return
	}
	tick := list[0].tick
	other := slices.ContainsFunc(list, func(d comparison) bool { return d.tick != tick })
	if other || tick.After(s.newest) || tick.Before(s.oldest()) {
		return
	}
	for _, c := range s.columns {
		h := c.inside()
		if h.read = 2*h.rows >= len(s.rows); !h.read {
			continue
		}
		if more := len(s.rows)*h.comp.Words - len(h.codes); more > 0 {
			h.codes = append(h.codes, make([]uint32, more)...)
		}
		h.comp.ReadColumn(h.codes, c.at(tick, 0), len(s.rows))
	}
}

// fewRows are read one by one.
const fewRows = 8

// contradicts reports whether the state of a group that is known as of a tick differs from what was simulated.
func (s *simulation) contradicts(d comparison) bool {
	r := &s.rows[d.row]
	state := s.known[int(d.row)*len(s.groups)+d.group].slot.Held.Newest()
	if state == nil || state.Layout == nil {
		return false
	}
	if r.parked && (!r.ends || !r.gone.After(d.tick)) {
		s.stats.Causes.Lifetimes++
		return true
	}
	for _, at := range s.placesOf(state.Layout, d.group) {
		h := at.column
		if h.input && !r.unowned {
			continue
		}
		var own []uint32
		if n := h.comp.Words; h.read {
			own = h.codes[int(d.row)*n : int(d.row+1)*n]
		} else {
			own = h.codes[:n]
			h.comp.ReadColumn(own, s.columns[at.number].at(d.tick, d.row), 1)
		}
		agree := h.tolerance.Agrees(own, state.RowAt(at.place))
		if agree && h.comp.Refers() {
			agree = s.sameReferences(h, s.columns[at.number].at(d.tick, d.row), state.RowAt(at.place))
		}
		if !agree && archeutil.LookUp(s.world, r.entity, h.id) != nil {
			h.causes++
			return true
		}
	}
	return false
}

// A place is where the states of a layout have the component of a column.
type place struct {
	column *columnHead
	number int // of the column
	place  *receive.Place
}

// placesOf returns the places of a group's columns in a layout. Entities that follow each other often have the same.
func (s *simulation) placesOf(layout *receive.Layout, group int) []place {
	if s.scratch.layout == layout && s.scratch.layoutGroup == group {
		return s.scratch.places
	}
	s.scratch.layout, s.scratch.layoutGroup, s.scratch.places = layout, group, s.scratch.places[:0]
	for i := range layout.Coded {
		at := &layout.Coded[i]
		for _, n := range s.groups[group].columns {
			if h := s.columns[n].inside(); h.number == at.Number {
				s.scratch.places = append(s.scratch.places, place{h, n, at})
			}
		}
	}
	return s.scratch.places
}

// agrees reports whether a value agrees with a state's row within the tolerance.
func (s *simulation) agrees(h *columnHead, p unsafe.Pointer, row []uint32) bool {
	own := h.codes[:h.comp.Words]
	h.comp.ReadColumn(own, p, 1)
	return h.tolerance.Agrees(own, row) && s.sameReferences(h, p, row)
}

// sameReferences reports whether a value refers to the same entities as a state's row.
func (s *simulation) sameReferences(h *columnHead, p unsafe.Pointer, row []uint32) bool {
	for _, i := range h.comp.References {
		e := h.comp.ReadEntity(p, i)
		if !archeutil.Alive(s.world, e) {
			e = ecs.Entity{}
		}
		if e != s.inside.Apply.View.Named(row[h.comp.Columns[i].Word:][:2]) {
			return false
		}
	}
	return true
}
