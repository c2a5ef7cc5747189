package soak

import (
	"reflect"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// A style is how an entity's values change.
type style int

const (
	rests  style = iota
	steady       // all fields drift in every tick
	seldom       // one field jumps now and then
	wild         // one field jumps in every tick
	styles
)

// A game changes the world of one or two hosts.
type game struct {
	ep      *episode
	g       *chance
	world   *ecs.World
	plan    *plan
	ids     []ecs.ID
	resIDs  []ecs.ResID
	markers []ecs.ID
	all     []ecs.Entity
	dead    []ecs.Entity
	styles  map[ecs.Entity]style
	marked  map[ecs.Entity]bool // entities whose markers changed in this tick
	limit   int
	rarity  int // structural changes happen in one tick of so many
	pause   int // mean number of ticks between changes of fields with the style seldom
	churn   int // entities replaced in every tick, so that slots are reused
}

func newGame(ep *episode, world *ecs.World, p *plan) *game {
	g := newChance(ep.seed, 7)
	w := &game{
		ep: ep, g: g, world: world, plan: p, styles: map[ecs.Entity]style{}, marked: map[ecs.Entity]bool{},
		limit: pick(g, 3, 10, 25, 25, 70), rarity: pick(g, 1, 2, 5, 20), pause: pick(g, 5, 10, 40),
	}
	if g.one(6) {
		w.churn = 1 + g.IntN(3)
	}
	w.ids, w.resIDs = idsOf(world, p, false)
	g.someone = func() ecs.Entity {
		switch n := g.IntN(10); {
		case n == 0 || len(w.all) == 0:
			return ecs.Entity{}
		case n == 1 && len(w.dead) > 0:
			return pick(g, w.dead...)
		}
		return pick(g, w.all...)
	}
	return w
}

// components returns random components for an entity, with at most one relation.
func (w *game) components() []ecs.ID {
	var ids []ecs.ID
	for _, c := range w.plan.components {
		if !c.resource && c != w.plan.signature && !w.g.one(3) {
			ids = append(ids, w.ids[c.index])
		}
	}
	return ids
}

func (w *game) spawn(extra ...ecs.ID) ecs.Entity {
	ids := append(w.components(), extra...)
	if len(w.all) == 0 && len(ids) == 0 {
		ids = append(ids, w.ids[w.plan.spot.index])
	}
	for _, m := range w.markers {
		if !w.g.one(6) {
			ids = append(ids, m)
		}
	}
	e := w.world.NewEntity(ids...)
	w.marked[e] = true
	w.all = append(w.all, e)
	w.styles[e] = style(w.g.IntN(int(styles)))
	for _, c := range w.plan.components {
		if !c.resource && w.world.Has(e, w.ids[c.index]) {
			w.scatter(c, w.world.Get(e, w.ids[c.index]))
			w.aim(e, c)
		}
	}
	for _, h := range w.ep.hosts {
		if h.world == w.world {
			h.newest = e
		}
	}
	return e
}

// scatter sets all fields of a component.
func (w *game) scatter(c *component, p unsafe.Pointer) {
	for i := range c.server.leaves {
		if c != w.plan.signature {
			c.server.leaves[i].jump(w.g, p)
		}
	}
}

// aim gives a relation another target.
func (w *game) aim(e ecs.Entity, c *component) {
	if !c.relation {
		return
	}
	to := w.g.someone()
	if to == e || !to.IsZero() && !w.world.Alive(to) { // Arche supports neither
		to = ecs.Entity{}
	}
	w.world.Relations().Set(e, w.ids[c.index], to)
}

// step is a tick of the game.
func (w *game) step() {
	g := w.g
	clear(w.marked)
	if g.one(400) {
		w.reset()
	}
	for _, e := range w.all {
		w.move(e)
	}
	if g.one(w.rarity) {
		for range g.IntN(4) {
			w.change()
		}
	}
	for range min(w.churn, len(w.all)) {
		w.remove(g.IntN(len(w.all)))
		w.spawn()
	}
	if g.one(100) { // many at once
		for range g.IntN(w.limit) {
			w.change()
		}
	}
	for len(w.all) < w.limit/4+1 {
		w.spawn()
	}
	for i, c := range w.plan.components {
		if c.resource {
			w.resource(c, i)
		}
	}
}

// move changes values, not structure.
func (w *game) move(e ecs.Entity) {
	g, one := w.g, false
	switch s := w.styles[e]; {
	case g.one(200):
		w.styles[e] = style(g.IntN(int(styles)))
		return
	case s == rests, s == seldom && !g.one(w.pause):
		return
	case s == steady:
	default:
		one = true
	}
	for _, c := range w.plan.components {
		if c.resource || c == w.plan.signature || !w.world.Has(e, w.ids[c.index]) || one && !g.one(3) {
			continue
		}
		p := w.world.Get(e, w.ids[c.index])
		if len(c.server.leaves) == 0 {
			continue
		}
		if one {
			pick(g, c.server.leaves...).jump(g, p)
			if g.one(4) {
				w.aim(e, c)
			}
			continue
		}
		for i := range c.server.leaves {
			c.server.leaves[i].drift(p)
		}
	}
}

// change spawns or despawns an entity, or changes its component set.
func (w *game) change() {
	g := w.g
	if len(w.all) == 0 || g.one(5) && len(w.all) < w.limit {
		w.spawn()
		return
	}
	i := g.IntN(len(w.all))
	e := w.all[i]
	switch g.IntN(6) {
	case 0:
		w.remove(i)
		if len(w.all) < w.limit/2 || g.one(2) { // another entity may get the handle and the slot
			w.spawn()
		}
	case 1:
		if !w.marked[e] {
			w.marked[e] = true
			w.toggle(e, pick(g, w.markers...))
		}
	default:
		c := pick(g, w.plan.components...)
		if c.resource || c == w.plan.signature && !w.world.Has(e, w.ids[c.index]) {
			return
		}
		other := pick(g, w.plan.components...)
		has, had := w.world.Has(e, w.ids[c.index]), !other.resource && w.world.Has(e, w.ids[other.index])
		if !has && had && other != w.plan.signature { // both at once
			w.world.Exchange(e, []ecs.ID{w.ids[c.index]}, []ecs.ID{w.ids[other.index]})
		} else {
			w.toggle(e, w.ids[c.index])
		}
		if !has {
			w.scatter(c, w.world.Get(e, w.ids[c.index]))
			w.aim(e, c)
		}
	}
}

func (w *game) remove(i int) {
	e := w.all[i]
	w.world.RemoveEntity(e)
	w.all = append(w.all[:i], w.all[i+1:]...)
	delete(w.styles, e)
	if w.dead = append(w.dead, e); len(w.dead) > 20 {
		w.dead = w.dead[1:]
	}
}

func (w *game) toggle(e ecs.Entity, id ecs.ID) {
	if w.world.Has(e, id) {
		w.world.Remove(e, id)
	} else {
		w.world.Add(e, id)
	}
}

// reset begins a new match. Earlier entities are not used any more, because handles are reused.
func (w *game) reset() {
	w.world.Reset()
	w.all, w.dead = w.all[:0], w.dead[:0]
	clear(w.styles)
	for _, h := range w.ep.hosts {
		if h.world == w.world {
			h.forget()
			h.newest = ecs.Entity{}
			h.fires = nil
		}
	}
}

// resource adds, changes or removes a resource.
func (w *game) resource(c *component, i int) {
	g, all := w.g, w.world.Resources()
	switch {
	case !all.Has(w.resIDs[i]):
		if g.one(20) {
			v := reflect.New(c.server.typ)
			w.scatter(c, v.UnsafePointer())
			all.Add(w.resIDs[i], v.Interface())
		}
	case g.one(100):
		all.Remove(w.resIDs[i])
	case g.one(4) && len(c.server.leaves) > 0:
		pick(g, c.server.leaves...).jump(g, pointerIn(all.Get(w.resIDs[i])))
	}
}

// fire spawns the entities that clients asked for.
func (w *game) fire(h *host) {
	for _, f := range h.fires {
		if !f.Wanted {
			continue
		}
		id := w.ids[w.plan.signature.index]
		e := w.spawn(id)
		*(*signature)(w.world.Get(e, id)) = signature{f.Owner, f.Number}
	}
	h.fires = h.fires[:0]
}
