package predict

import (
	"unsafe"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/mlange-42/arche/ecs"
)

// Predicted is the component that marks what a client predicts. Leave it to the Predictor.
type Predicted struct{ row uint32 }

// Parked is the component that marks what is not there at the moment, as far as a client predicts: it was despawned, or
// the tick that spawned it was simulated again without doing so. It may come back. In the meantime, it lacks the
// components that are a [State], so that queries for them don't find it.
type Parked struct{ row uint32 }

// A simulation is what a client predicts: the entities, and their States by tick.
type simulation struct {
	inside  *seam.Client
	world   *ecs.World
	model   *model
	ids     identifiers
	filters filters
	tables  archeutil.Tables
	columns []column
	groups  []group
	inputs  inputs
	run     Tick

	rows    []row
	free    []uint32
	room    int     // for rows in the columns
	known   []known // by row and group
	names   map[name]uint32
	newest  replication.Tick // that was simulated
	running bool             // there is one

	slides   slides
	verdicts uint32 // the reports of inputs that were looked at
	effects  effects
	stats    Stats
	scratch  scratch
}

// scratch is memory that is used again.
type scratch struct {
	list        []ecs.Entity
	comparisons []comparison
	layout      *receive.Layout // of the places
	layoutGroup int
	places      []place
	one         [1]ecs.ID
	exchanged   struct{ added, removed []ecs.ID }
}

// identifiers are those of components in the world.
type identifiers struct {
	replica, mine, born, predicted, parked, input ecs.ID

	bornNumber int // of the component in the schema
}

// filters find the entities that are to be predicted and are not.
type filters struct{ mine, born ecs.CachedFilter }

// A row is the place of an entity in the columns.
type row struct {
	entity  ecs.Entity       // zero: the row is free
	first   replication.Tick // the first tick of which it has values
	gone    replication.Tick // the tick that despawned it, if ends
	name    name
	named   bool // it has a name: a step has spawned it, at this end or at the server
	ends    bool
	parked  bool
	states  uint64 // while it is parked: the columns whose components it lacks for that
	held    bool   // its first values are a state of the server's
	drawn   bool   // its values were drawn in the last frame
	kept    uint64 // the columns that drawing.keep has kept values of
	chosen  bool   // Predict was called for it
	unowned bool   // it has no inputs of this client's
	slide   slide
	last    replication.Time // at which it was drawn
}

// A group is the columns whose components are in the same slots of the server.
type group struct {
	class   int
	columns []int
}

// known is up to which tick the server's state of a group of an entity is known.
type known struct {
	slot *receive.Replica // what was received of it, or nil
	tick replication.Tick
	any  bool
}

// proceed brings everything up to a tick, if need be by going back to where something was wrong. arrived reports that
// something has come from the server.
func (s *simulation) proceed(to replication.Tick, at replication.Time, arrived bool, d *drawing) {
	if !s.running {
		s.newest, s.running = to, true
		s.inputs.advance(to)
	}
	if to.Before(s.newest) {
		to = s.newest
	}
	s.prune()
	sliding := s.slides.sliding() || len(s.slides.asked) > 0
	if sliding {
		d.keep()
	}
	var from earliest
	s.adopt(to, &from)
	s.slides.answer(to, at, &from)
	var wrong earliest
	s.receiveVerdicts(&wrong)
	if arrived {
		s.judge(to, &wrong)
	}
	if wrong.any {
		from.note(wrong.tick)
	}
	now := s.newest
	switch {
	case from.any && !from.tick.After(now):
		if from.tick.Before(s.oldest()) {
			from.tick = s.oldest()
		}
		if wrong.any {
			s.stats.Rollbacks++
			s.stats.Deepest = max(s.stats.Deepest, int(now-from.tick))
		}
		if !sliding {
			d.keep()
		}
		s.effects.suspect(from.tick)
		s.rewind(from.tick)
		s.simulate(now)
		s.stats.Again += uint64(now - from.tick)
		d.correct()
	case to != now:
		s.load(now)
	}
	if to-s.newest > depth {
		s.skip(to - depth/2)
	}
	s.stats.Ticks += uint64(to - s.newest)
	s.simulate(to)
	if arrived {
		s.tidy()
	}
}

// receiveVerdicts notes which inputs the server did not have.
func (s *simulation) receiveVerdicts(from *earliest) {
	v := &s.inside.Messages.Verdicts
	if v.Count == s.verdicts {
		return
	}
	s.verdicts = v.Count
	var first earliest
	for i := range replication.Tick(64) { // bits
		if tick := v.Tick - i; v.Missed>>i&1 != 0 && s.inputs.miss(tick) {
			s.stats.Missed++
			first.note(tick)
		}
	}
	if !first.any || s.newest-first.tick >= inputTicks {
		return // it is not simulated yet, or too long ago
	}
	if tick, changed := s.inputs.settle(first.tick, s.newest); changed {
		s.stats.Causes.Inputs++
		from.note(tick - 1)
	}
}

// each calls fn for the entities that are simulated and have the component of a column, by the addresses of their
// markers and values.
func (s *simulation) each(c column, fn func(n int, markers, values unsafe.Pointer)) {
	id := c.inside().id
	s.tables.Each(c.inside().mask, func(t *archeutil.Table, n int, q *ecs.Query) {
		switch {
		case n == 0:
			q.Close()
		case t.Related:
			for q.Next() {
				fn(1, q.Get(s.ids.predicted), q.Get(id))
			}
		default:
			q.Next()
			fn(n, q.Get(s.ids.predicted), q.Get(id))
			q.Close()
		}
	})
}

func (s *simulation) save(tick replication.Tick) {
	for _, c := range s.columns {
		h := c.inside()
		h.rows = 0
		s.each(c, func(n int, markers, values unsafe.Pointer) {
			h.rows += n
			c.save(tick, n, markers, values)
		})
	}
	if s.model.save != nil {
		s.model.save(tick)
	}
}

// load makes the world as it was simulated for a tick.
func (s *simulation) load(tick replication.Tick) {
	for _, c := range s.columns {
		s.each(c, func(n int, markers, values unsafe.Pointer) { c.restore(tick, n, markers, values) })
	}
}

// oldest returns the oldest tick that the columns have.
func (s *simulation) oldest() replication.Tick { return s.newest - (depth - 1) }

// rewind goes back to the end of a tick, which the columns have.
func (s *simulation) rewind(to replication.Tick) {
	for i := range s.rows {
		r := &s.rows[i]
		if r.entity.IsZero() || !archeutil.Alive(s.world, r.entity) {
			continue
		}
		if r.ends && r.gone.After(to) {
			r.ends = false
		}
		if there := !r.first.After(to) && !r.ends; there == r.parked {
			s.park(uint32(i), !there)
		}
	}
	s.load(to)
	s.newest = to
	s.hold(to)
	if s.model.restore != nil {
		s.model.restore(to)
	}
	s.save(to)
}

// simulate goes on to the end of a tick.
func (s *simulation) simulate(to replication.Tick) {
	for s.newest != to {
		tick := s.newest + 1
		s.inputs.advance(tick)
		s.control(tick)
		s.run.simulate(s.model, tick)
		s.newest = tick
		for _, c := range s.columns {
			if h := c.inside(); h.exact {
				h.rounding.round(s.world)
			}
		}
		s.wake(tick)
		s.hold(tick)
		s.save(tick)
	}
}

// control writes the inputs of a tick into the entities that have them.
func (s *simulation) control(tick replication.Tick) {
	for i := range s.rows {
		r := &s.rows[i]
		if r.entity.IsZero() || r.parked || r.unowned {
			continue
		}
		if p := archeutil.LookUp(s.world, r.entity, s.ids.input); p != nil {
			s.inputs.write(tick, p)
		}
	}
}

// wake brings back what is there from the end of a tick on, as the server's states show.
func (s *simulation) wake(tick replication.Tick) {
	for i := range s.rows {
		r := &s.rows[i]
		waits := !r.entity.IsZero() && r.parked && !r.ends && r.held && r.first == tick
		if waits && archeutil.Alive(s.world, r.entity) {
			s.park(uint32(i), false)
			s.loadRow(tick, uint32(i))
		}
	}
}

// loadRow makes an entity as it was simulated for a tick.
func (s *simulation) loadRow(tick replication.Tick, i uint32) {
	for _, c := range s.columns {
		if p := s.world.GetUnchecked(s.rows[i].entity, c.inside().id); p != nil {
			c.set(p, c.at(tick, i))
		}
	}
}

// skip goes on to a tick without simulating those before it, as if nothing happened meanwhile.
func (s *simulation) skip(to replication.Tick) {
	s.load(s.newest)
	tick := s.newest + 1
	if to-tick >= inputTicks {
		tick = to - inputTicks + 1
	}
	for ; tick != to+1; tick++ {
		s.inputs.advance(tick)
	}
	for i := range s.rows {
		if r := &s.rows[i]; r.first.Before(to) {
			r.first = to
		}
	}
	s.newest = to
	s.save(to)
	s.stats.Skips++
}

// hold compares what was simulated for a tick with the states that are known as of exactly that tick, and goes on with
// those where they differ.
func (s *simulation) hold(tick replication.Tick) {
	for i := range s.rows {
		r := &s.rows[i]
		if r.entity.IsZero() {
			continue
		}
		for g := range s.groups {
			if k := s.known[i*len(s.groups)+g]; k.any && k.tick == tick {
				s.holdGroup(uint32(i), g)
			}
		}
	}
}

func (s *simulation) holdGroup(i uint32, g int) {
	r := &s.rows[i]
	if !archeutil.Alive(s.world, r.entity) || r.first.After(s.newest) && r.held {
		return
	}
	state := s.state(r.entity, g)
	if state == nil {
		return
	}
	if r.parked {
		if r.ends = false; r.first.After(s.newest) {
			r.first = s.newest
		}
		s.park(i, false)
	}
	for _, n := range s.groups[g].columns {
		c := s.columns[n]
		h := c.inside()
		row := state.Row(h.number, h.comp.Words)
		p := s.world.GetUnchecked(r.entity, h.id)
		if row == nil || p == nil || h.input && !r.unowned || s.agrees(h, p, row) {
			continue
		}
		s.write(h.comp, p, row)
	}
}

// write writes a state's row into a component.
func (s *simulation) write(comp *schema.Component, p unsafe.Pointer, row []uint32) {
	comp.Write(p, row)
	for _, i := range comp.References {
		comp.WriteEntity(p, i, s.inside.Apply.View.Named(row[comp.Columns[i].Word:][:2]))
	}
}
