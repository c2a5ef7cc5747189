package predict

import (
	"reflect"
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/archeutil"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/spring"
	"github.com/arche-replicate/arche-replicate/replication/internal/tolerance"
	"github.com/mlange-42/arche/ecs"
)

// numberOf returns the number of a component of a schema, or -1.
func numberOf(s *schema.Schema, t reflect.Type) int {
	return slices.IndexFunc(s.Components, func(c schema.Component) bool { return c.Typ == t })
}

// newSimulation returns a simulation. controls is a state for the inputs' own component.
func newSimulation(p *Predictor, m *model, controls *state, in inputs) *simulation {
	inside := p.inside
	w := inside.Apply.View.World
	s := &simulation{inside: inside, world: w, model: m, inputs: in, names: map[name]uint32{}}
	s.slides = slides{sim: s, left: map[ecs.Entity]struct{}{}}
	s.ids = identifiers{
		replica: inside.Apply.View.Marker, mine: ecs.ComponentID[Mine](w), born: ecs.ComponentID[Born](w),
		predicted: ecs.ComponentID[Predicted](w), parked: ecs.ComponentID[Parked](w), input: ecs.TypeID(w, m.input),
		bornNumber: numberOf(inside.Schema, reflect.TypeFor[Born]()),
	}
	mine, born := ecs.All(s.ids.mine, s.ids.replica), ecs.All(s.ids.born, s.ids.replica)
	s.filters.mine = filterOf(w, mine.Without(s.ids.predicted, s.ids.parked))
	s.filters.born = filterOf(w, born.Without(s.ids.predicted, s.ids.parked))
	s.tables = archeutil.NewTables(w)
	s.run = Tick{World: w, end: p}
	withheld := &inside.Apply.View.Withheld
	withheld.On, withheld.Marker = true, s.ids.predicted
	for _, st := range m.states {
		addColumn(s, &p.drawing, st, st.typ == m.input)
	}
	isInput := func(st *state) bool { return st.typ == m.input }
	if numberOf(inside.Schema, m.input) >= 0 && !slices.ContainsFunc(m.states, isInput) {
		addColumn(s, &p.drawing, controls, true)
	}
	if len(s.columns) > 64 {
		panic("predict: a model of more than 64 States: put fields that belong together into one component")
	}
	for _, c := range s.columns {
		withheld.Components.Add(c.inside().number)
	}
	for i := range s.columns {
		class := s.columns[i].inside().comp.Class
		g := slices.IndexFunc(s.groups, func(g group) bool { return g.class == class })
		if g < 0 {
			g = len(s.groups)
			s.groups = append(s.groups, group{class: class})
		}
		s.groups[g].columns = append(s.groups[g].columns, i)
	}
	return s
}

func filterOf(w *ecs.World, f ecs.MaskFilter) ecs.CachedFilter { return w.Cache().Register(&f) }

// addColumn adds the column of a state.
func addColumn(s *simulation, d *drawing, st *state, input bool) {
	c := st.column()
	h := c.inside()
	h.number = numberOf(s.inside.Schema, st.typ)
	h.comp = &s.inside.Schema.Components[h.number]
	h.id = ecs.TypeID(s.world, st.typ)
	h.mask = ecs.All(s.ids.predicted, h.id)
	h.kernel = blend.New(h.comp)
	h.exact, h.input = st.exact, input
	h.tolerance, h.codes = tolerance.New(h.comp, st.tolerance), make([]uint32, h.comp.Words)
	if h.exact {
		h.rounding = newRounding(s.world, s.ids.predicted, h.comp)
	}
	s.columns = append(s.columns, c)
	d.fades = append(d.fades, spring.New(h.kernel.Fades(), st.half))
}
