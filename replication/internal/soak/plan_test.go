package soak

import (
	"fmt"
	"reflect"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A condition restricts which peers get a component.
type condition int

const (
	everyone condition = iota
	ownerOnly
	exceptOwner
	picked0
	picked1
	conditions
)

// A component is a component or resource type of a plan.
type component struct {
	index    int
	name     string
	resource bool
	relation bool // its last cell is the target

	server, client view // the same unless the client has registered the twin of a mood
	cells          int

	condition condition
	once      bool
	every     int // 1: in every tick
	priority  float32
}

// A view is the layout of a component's type at one end.
type view struct {
	typ    reflect.Type
	opts   []replication.ComponentOption
	leaves []leaf
	locals []local
	skips  int
}

func viewOf(s fieldSpec) view {
	var c cells
	s.leaves("", 0, &c)
	v := view{typ: s.typ, leaves: c.leaves, locals: c.locals, skips: c.skips}
	for _, key := range sortedKeys(s.opts) {
		v.opts = append(v.opts, s.opts[key])
	}
	return v
}

func (v *view) count() int {
	n := 0
	for _, l := range v.leaves {
		n += l.n
	}
	return n
}

// A plan is everything that both ends of an episode agree on.
type plan struct {
	components  []*component
	signature   *component // for Expect, or nil
	spot        *component // read by grids, or nil
	notes       bool
	noteOpts    [noteKinds][]replication.MessageOption
	input       bool
	subEntities bool
}

// signature is the component that Expect matches.
type signature struct {
	Owner  ecs.Entity
	Number uint16
}

func newPlan(g *chance) *plan {
	p := &plan{notes: !g.one(5), input: g.one(2)}
	conditions := g.one(2) // without conditions, peers share packets
	p.spot = p.add(g, stepsOf("Spot", 1+g.IntN(3)), false)
	for range 1 + g.IntN(7) {
		c := p.add(g, componentFields(g, fmt.Sprintf("C%d", len(p.components))), false)
		p.options(g, c, conditions)
	}
	if g.one(2) {
		p.addRelation(g)
	}
	if g.one(3) {
		p.addMood(g)
	}
	if !g.one(3) {
		s := fieldSpec{typ: reflect.TypeFor[signature](), leaves: func(path string, offset uintptr, c *cells) {
			entityField(g).leaves(path+".Owner", offset, c)
			c.add(lift(path+".Number", offset+reflect.TypeFor[signature]().Field(1).Offset, 1,
				func(v *uint16, out []cell) { out[0] = cell{u: uint64(*v)} }, func(*uint16) {}, func(*chance, *uint16) {}, sameCells))
		}}
		p.signature = p.add(g, s, false)
		p.signature.once = g.one(4)
	}
	if g.one(2) {
		for range 1 + g.IntN(3) {
			c := p.add(g, componentFields(g, fmt.Sprintf("R%d", len(p.components))), true)
			if g.one(4) {
				c.every = 2 + g.IntN(8)
			}
		}
	}
	for i := range p.noteOpts {
		if i == int(noteUnreliable) || i == int(noteSpark) {
			p.noteOpts[i] = append(p.noteOpts[i], replication.Unreliable())
		}
		if i == int(noteImmediate) || i == int(noteSpark) {
			p.noteOpts[i] = append(p.noteOpts[i], replication.Immediate())
		}
	}
	return p
}

// stepsOf is a struct of floats in steps, for grids.
func stepsOf(name string, n int) fieldSpec {
	var fields []fieldSpec
	for range n {
		drift, jump := wander[float32](newChance(uint64(n), 3), -100, 100, 0.5)
		fields = append(fields, simple("range=-100:100,step=0.5", 1, readFloat[float32], drift, jump,
			stepRule[float32](-100, 100, 0.5)))
	}
	return fieldsOf(name, fields, false)
}

func componentFields(g *chance, name string) fieldSpec {
	switch g.IntN(10) {
	case 0: // a tag, with a skipped field to make its type unique
		return fieldSpec{typ: reflect.StructOf([]reflect.StructField{{Name: name, Type: reflect.TypeFor[struct{}]()}}), leaves: func(string, uintptr, *cells) {}}
	case 1: // larger than a packet, at times
		return fieldsOf(name, []fieldSpec{textField(650), plain(g)}, false)
	}
	return structOf(g, name, 1+g.IntN(5), 2, true)
}

func (p *plan) add(_ *chance, s fieldSpec, resource bool) *component {
	v := viewOf(s)
	c := &component{
		index: len(p.components), name: fmt.Sprintf("T%d", len(p.components)), resource: resource, server: v, client: v,
		cells: v.count(), every: 1, priority: 1,
	}
	if len(v.leaves) == 0 && v.skips > 0 { // none of it is replicated, which is refused unless it is a tag
		return p.add(nil, fieldsOf(c.name+"Z", []fieldSpec{boolField(nil)}, false), resource)
	}
	p.components = append(p.components, c)
	return c
}

// options gives a component random options.
func (p *plan) options(g *chance, c *component, conditions bool) {
	if conditions && g.one(2) {
		c.condition = condition(1 + g.IntN(int(picked1)))
		p.subEntities = true
	}
	switch g.IntN(5) {
	case 0:
		c.once = true
	case 1:
		c.every = 2 + g.IntN(10)
	}
	if g.one(4) {
		c.priority = 4
	}
}

func (p *plan) addRelation(g *chance) {
	inner := structOf(g, fmt.Sprintf("C%d", len(p.components)), 1+g.IntN(2), 1, false)
	fields := []reflect.StructField{{Name: "Relation", Type: reflect.TypeFor[ecs.Relation](), Anonymous: true}}
	for i := range inner.typ.NumField() {
		fields = append(fields, inner.typ.Field(i))
	}
	s := fieldSpec{typ: reflect.StructOf(fields), opts: inner.opts}
	s.leaves = func(path string, offset uintptr, c *cells) { // the relation has size 0, so all offsets stay
		inner.leaves(path, offset, c)
	}
	v := viewOf(s)
	c := &component{
		index: len(p.components), name: fmt.Sprintf("T%d", len(p.components)), server: v, client: v, cells: v.count() + 1, every: 1,
		priority: 1, relation: true,
	}
	p.components = append(p.components, c)
}

// addMood adds a component that is sent as another type, which the client may have registered
// itself.
func (p *plan) addMood(g *chance) {
	c := p.add(nil, fieldSpec{
		typ: reflect.TypeFor[mood](), opts: map[string]replication.ComponentOption{"as": moodOption()}, leaves: asField(g).leaves,
	}, false)
	if g.one(2) {
		c.client = viewOf(fieldSpec{typ: reflect.TypeFor[moodSeen](), leaves: twinField().leaves})
	}
}

// schema registers the plan. who implements OnlyFor, on the server only.
func (p *plan) schema(client bool, who func(i int, peer *replication.Peer) bool) *replication.Schema {
	s := replication.NewSchema()
	var picks [2]replication.ComponentOption
	for i := range picks {
		picks[i] = replication.OnlyFor(func(peer *replication.Peer) bool { return who(i, peer) })
	}
	for _, c := range p.components {
		v := &c.server
		if client {
			v = &c.client
		}
		opts := append([]replication.ComponentOption{replication.Name(c.name)}, v.opts...)
		switch c.condition {
		case ownerOnly:
			opts = append(opts, replication.OwnerOnly())
		case exceptOwner:
			opts = append(opts, replication.ExceptOwner())
		case picked0, picked1:
			opts = append(opts, picks[c.condition-picked0])
		}
		if c.once {
			opts = append(opts, replication.Once())
		}
		if c.every > 1 {
			opts = append(opts, replication.Every(c.every))
		}
		if c.priority > 1 {
			opts = append(opts, replication.Priority(c.priority))
		}
		if c.resource {
			replication.RegisterResourceType(s, v.typ, opts...)
		} else {
			replication.RegisterType(s, v.typ, opts...)
		}
	}
	if p.notes {
		registerNotes(s, p)
	}
	if p.input {
		replication.RegisterInput[command](s)
	}
	return s
}

// part is the plan of another server of the same world: some of the types, with other options.
func (p *plan) part(g *chance) *plan {
	of := &plan{notes: p.notes, noteOpts: p.noteOpts, input: p.input}
	conditions := g.one(2)
	for _, c := range p.components {
		if c != p.spot && g.one(3) {
			continue
		}
		one := *c
		one.index = len(of.components)
		if c == p.spot {
			of.spot = &one
		} else if !c.resource {
			one.condition, one.once, one.every, one.priority = everyone, false, 1, 1
			of.options(g, &one, conditions && !c.relation)
		}
		of.components = append(of.components, &one)
	}
	return of
}

// same reports whether both ends register the same types.
func (p *plan) same() bool {
	for _, c := range p.components {
		if c.server.typ != c.client.typ {
			return false
		}
	}
	return true
}

// spotFields returns the names of the grid's fields.
func (p *plan) spotFields() []string {
	var names []string
	for i := range p.spot.server.typ.NumField() {
		names = append(names, p.spot.name+"."+p.spot.server.typ.Field(i).Name)
	}
	return names
}
