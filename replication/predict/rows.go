package predict

import (
	"maps"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/mlange-42/arche/ecs"
)

// adopt begins to predict what the client owns, and what that has spawned at the server. It notes the ticks from which
// on they have to be simulated.
func (s *simulation) adopt(to replication.Tick, from *earliest) {
	for q := s.world.Query(&s.filters.mine); q.Next(); {
		if _, left := s.slides.left[q.Entity()]; !left {
			s.scratch.list = append(s.scratch.list, q.Entity())
		}
	}
	for q := s.world.Query(&s.filters.born); q.Next(); {
		by := (*Born)(q.Get(s.ids.born)).By
		if _, left := s.slides.left[q.Entity()]; !left && archeutil.LookUp(s.world, by, s.ids.predicted) != nil {
			s.scratch.list = append(s.scratch.list, q.Entity())
		}
	}
	for _, e := range s.scratch.list {
		if _, twice := s.rowOf(e); !twice { // one's own that was spawned by one's own
			s.begin(e, to, from)
		}
	}
	s.scratch.list = s.scratch.list[:0]
}

// begin begins to predict a replica, from its newest state.
func (s *simulation) begin(e ecs.Entity, to replication.Tick, from *earliest) (i uint32, ok bool) {
	first, some := replication.Tick(0), false
	for g := range s.groups {
		if tick, known := s.knownUntil(e, g); known && (!some || s.groups[g].class == 0) {
			first, some = tick, true
		}
	}
	if !some || first.After(to) {
		return 0, false // nothing has come of it in this session, or it is ahead of what is simulated
	}
	if first.Before(s.oldest()) {
		first = s.oldest()
	}
	i = s.add(e)
	r := &s.rows[i]
	r.first, r.held = first, true
	r.unowned = !s.world.Has(e, s.ids.mine)
	if b := (*Born)(s.world.GetUnchecked(e, s.ids.born)); b != nil {
		s.call(i, name{b.By, first - replication.Tick(uint16(first)-b.Tick), b.Key})
	}
	if !r.unowned {
		s.addComponent(e, s.ids.input)
	}
	for g := range s.groups {
		state := s.state(e, g)
		for _, n := range s.groups[g].columns {
			c := s.columns[n]
			h := c.inside()
			p := s.world.GetUnchecked(e, h.id)
			if p == nil {
				continue
			}
			dst := c.at(first, i)
			c.set(dst, p)
			if state != nil {
				if row := state.Row(h.number, h.comp.Words); row != nil {
					s.write(h.comp, dst, row)
				}
			}
			c.set(p, dst)
		}
	}
	from.note(first)
	if first.After(s.newest) {
		s.park(i, true)
	}
	return i, true
}

// add gives an entity a row and marks it.
func (s *simulation) add(e ecs.Entity) (i uint32) {
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = uint32(len(s.rows))
		s.rows = append(s.rows, row{})
		s.known = append(s.known, make([]known, len(s.groups))...)
		if s.room < cap(s.rows) {
			s.room = cap(s.rows)
			for _, c := range s.columns {
				c.grow(s.room)
			}
		}
	}
	s.rows[i] = row{entity: e}
	for g := range s.groups {
		s.known[int(i)*len(s.groups)+g] = known{}
	}
	s.addComponent(e, s.ids.predicted)
	(*Predicted)(s.world.Get(e, s.ids.predicted)).row = i
	return i
}

// addComponent adds a component to an entity that lacks it.
func (s *simulation) addComponent(e ecs.Entity, id ecs.ID) {
	if !s.world.Has(e, id) {
		s.scratch.one[0] = id
		s.world.Add(e, s.scratch.one[:]...)
	}
}

func (s *simulation) removeComponent(e ecs.Entity, id ecs.ID) {
	if s.world.Has(e, id) {
		s.scratch.one[0] = id
		s.world.Remove(e, s.scratch.one[:]...)
	}
}

// call gives a row its name. If another entity has it, that was a guess which the server's has not matched, unless it
// is the server's too.
func (s *simulation) call(i uint32, n name) {
	other, ok := s.names[n]
	if ok && other != i && archeutil.LookUp(s.world, s.rows[other].entity, s.ids.replica) == nil {
		s.remove(other)
	}
	s.rows[i].name, s.rows[i].named = n, true
	s.names[n] = i
}

// rowOf returns the row of an entity.
func (s *simulation) rowOf(e ecs.Entity) (i uint32, ok bool) {
	if m := (*Predicted)(s.world.GetUnchecked(e, s.ids.predicted)); m != nil {
		return m.row, true
	}
	if m := (*Parked)(s.world.GetUnchecked(e, s.ids.parked)); m != nil {
		return m.row, true
	}
	return 0, false
}

// park takes an entity out of the simulation, without its States, so that nobody draws it, or brings it back.
func (s *simulation) park(i uint32, parked bool) {
	r := &s.rows[i]
	r.parked = parked
	marker, other := s.ids.predicted, s.ids.parked
	if parked {
		marker, other, r.states = other, marker, 0
	}
	x := &s.scratch.exchanged
	x.added, x.removed = append(x.added[:0], marker), x.removed[:0]
	if s.world.Has(r.entity, other) {
		x.removed = append(x.removed, other)
	}
	for n, c := range s.columns {
		bit, id := uint64(1)<<n, c.inside().id
		switch has := s.world.Has(r.entity, id); {
		case parked && has:
			r.states |= bit
			x.removed = append(x.removed, id)
		case !parked && !has && r.states&bit != 0:
			x.added = append(x.added, id)
		}
	}
	s.world.Exchange(r.entity, x.added, x.removed)
	if p := s.world.Get(r.entity, marker); parked {
		(*Parked)(p).row = i
	} else {
		(*Predicted)(p).row = i
	}
}

// spawn is for Tick.Spawn.
func (s *simulation) spawn(n name, ids []ecs.ID) ecs.Entity {
	if i, ok := s.names[n]; ok && archeutil.Alive(s.world, s.rows[i].entity) {
		r := &s.rows[i]
		r.first, r.ends, r.held = n.tick, false, false
		if r.parked {
			s.park(i, false)
		}
		for _, id := range ids {
			s.addComponent(r.entity, id)
		}
		for _, c := range s.columns {
			if p := s.world.GetUnchecked(r.entity, c.inside().id); p != nil {
				c.clear(p)
			}
		}
		return r.entity
	}
	list := append(append(s.run.ids[:0], ids...), s.ids.born)
	s.run.ids = list
	e := s.world.NewEntity(list...)
	*(*Born)(s.world.Get(e, s.ids.born)) = Born{By: n.by, Tick: uint16(n.tick), Key: n.key}
	i := s.add(e)
	r := &s.rows[i]
	r.first, r.unowned = n.tick, true
	s.call(i, n)
	s.inside.Apply.Expected.Expect(s.ids.bornNumber, e, 0)
	s.stats.Spawns++
	return e
}

// despawn is for Tick.Despawn.
func (s *simulation) despawn(e ecs.Entity) {
	i := (*Predicted)(s.world.Get(e, s.ids.predicted)).row
	s.rows[i].ends, s.rows[i].gone = true, s.run.Number
	s.park(i, true)
}

// letGo ends the prediction of an entity, whose components stay as they are.
func (s *simulation) letGo(i uint32) {
	r := &s.rows[i]
	e := r.entity
	if r.parked {
		s.park(i, false)
		if last := r.gone - 1; r.ends && !last.Before(r.first) && !last.Before(s.oldest()) {
			s.loadRow(last, i)
		}
	}
	s.removeComponent(e, s.ids.predicted)
	s.forget(i)
	s.inside.Apply.Renew(e)
}

// release ends the prediction of an entity. Its components show the server's newest state then.
func (s *simulation) release(i uint32) {
	e := s.rows[i].entity
	s.letGo(i)
	for g := range s.groups {
		state := s.state(e, g)
		if state == nil {
			continue
		}
		for _, n := range s.groups[g].columns {
			h := s.columns[n].inside()
			if p, row := s.world.GetUnchecked(e, h.id), state.Row(h.number, h.comp.Words); p != nil && row != nil {
				s.write(h.comp, p, row)
			}
		}
	}
}

// remove removes an entity that the server does not have.
func (s *simulation) remove(i uint32) {
	e := s.rows[i].entity
	s.forget(i)
	if archeutil.Alive(s.world, e) {
		s.world.RemoveEntity(e)
	}
}

// forget frees a row.
func (s *simulation) forget(i uint32) {
	if r := &s.rows[i]; r.named && s.names[r.name] == i {
		delete(s.names, r.name)
	}
	s.rows[i] = row{}
	s.free = append(s.free, i)
}

// prune forgets what has gone, and takes the States away again that the server's state has brought what is parked.
func (s *simulation) prune() {
	for i := range s.rows {
		switch r := &s.rows[i]; {
		case r.entity.IsZero():
		case !archeutil.Alive(s.world, r.entity):
			s.forget(uint32(i))
		case r.parked:
			for n, c := range s.columns {
				if id := c.inside().id; s.world.Has(r.entity, id) {
					r.states |= 1 << n
					s.removeComponent(r.entity, id)
				}
			}
		}
	}
}

// tidy ends the prediction of what is no longer to be predicted, and removes what a settled tick shows that the server
// has not spawned, or what has been parked for long while so much is left unsent that none is settled.
func (s *simulation) tidy() {
	settled := &s.inside.Recv.Settled
	maps.DeleteFunc(s.slides.left, func(e ecs.Entity, _ struct{}) bool { return !archeutil.Alive(s.world, e) })
	for i := range s.rows {
		r := &s.rows[i]
		switch {
		case r.entity.IsZero() || !archeutil.Alive(s.world, r.entity):
		case s.world.Has(r.entity, s.ids.replica):
			if r.unowned = !s.world.Has(r.entity, s.ids.mine); !r.unowned && !r.parked {
				s.addComponent(r.entity, s.ids.input)
			} else if r.unowned && !r.named && !r.chosen {
				s.release(uint32(i))
			}
		case settled.Known && !r.name.tick.After(settled.Tick), r.parked && s.newest-r.name.tick > 8*depth:
			s.stats.Refused++
			s.remove(uint32(i))
		}
	}
}

// drop ends the prediction of everything. reset reports that the world was reset, so that handles mean nothing.
func (s *simulation) drop(reset bool) {
	for i := range s.rows {
		r := &s.rows[i]
		asked := func(q request) bool { return q.entity == r.entity }
		if r.chosen && !r.slide.releasing && !reset && !slices.ContainsFunc(s.slides.asked, asked) {
			s.slides.asked = append(s.slides.asked, request{entity: r.entity, predict: true})
		}
		switch {
		case r.entity.IsZero() || reset || !archeutil.Alive(s.world, r.entity):
		case s.world.Has(r.entity, s.ids.replica):
			s.release(uint32(i))
		default:
			s.remove(uint32(i))
		}
	}
	s.rows, s.known, s.free = s.rows[:0], s.known[:0], s.free[:0]
	clear(s.names)
	if reset {
		clear(s.slides.left)
		s.slides.asked = s.slides.asked[:0]
	}
	s.running, s.verdicts = false, 0
	s.inputs.reset()
	s.effects.drop()
}

// slot returns what was received of an entity under the condition of a group, or nil.
func (s *simulation) slot(e ecs.Entity, g int) *receive.Replica {
	id, ok := s.inside.Apply.View.NetID(e)
	if !ok {
		return nil
	}
	for _, n := range s.groups[g].columns { // it may have only some of them
		if r := s.inside.Apply.RowsOf(id.Slot, s.columns[n].inside().number); r != nil && r.Any && !r.Empty {
			return r
		}
	}
	return nil
}

// state returns the newest state of a group of an entity, or nil.
func (s *simulation) state(e ecs.Entity, g int) *receive.HeldState {
	if r := s.slot(e, g); r != nil {
		return r.Held.At(r.Newest)
	}
	return nil
}

// knownUntil returns up to which tick the newest state of a group of an entity is known to hold.
func (s *simulation) knownUntil(e ecs.Entity, g int) (tick replication.Tick, ok bool) {
	r := s.slot(e, g)
	if r == nil {
		return 0, false
	}
	if settled := &s.inside.Recv.Settled; settled.Known && settled.Tick.After(r.Newest) {
		return settled.Tick, true
	}
	return r.Newest, true
}
