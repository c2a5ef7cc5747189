package soak

import (
	"unsafe"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A showing is what a client's world shows of an entity, and what it must not go back to.
type showing struct {
	e       ecs.Entity
	tick    uint32
	listed  int                // the latest Apply after which it was listed
	low     [conditions]uint32 // by condition: the earliest tick that the shown state can be of
	removed bool               // by the client's user
	lost    uint64             // components that the user removed
	local   uint64             // value of the user's own component
	own     map[int]uint64     // by component: values of its local fields
}

// check compares the client's world, after an Apply, with the full record of the server's.
func (c *conn) check() {
	count := 0
	c.split = c.split || c.peer.Stats().SplitGroups > 0
	for id, e := range c.client.Entities() {
		tick, _ := c.client.StateTick(e)
		count++
		l := c.host.truth.lives[id]
		switch {
		case l == nil:
			c.ep.fail("%v never was", id)
		case !c.world.Alive(e):
			c.ep.fail("%v is dead here", id)
		case !l.lives(uint32(tick)):
			c.ep.fail("%v is shown as of tick %d, and was from %d to %d", id, tick, l.born, l.ended)
		case c.showable(id, uint32(tick), everyone) == no:
			c.ep.fail("%v was hidden in tick %d, and is shown", id, tick)
		}
		if found, ok := c.client.Entity(id); !ok || found != e {
			c.ep.fail("Client.Entity of %v is %v, not %v", id, found, e)
		}
		if found, ok := c.client.NetID(e); !ok || found != id {
			c.ep.fail("Client.NetID of %v is %v", id, found)
		}
		if m := (*replication.Replica)(c.world.Get(e, ecs.ComponentID[replication.Replica](c.world))); m == nil || m.NetID() != id {
			c.ep.fail("%v has a wrong Replica", id)
		}
		s := c.shown[id]
		if s == nil {
			s = &showing{}
			c.shown[id] = s
		} else if after(s.tick, uint32(tick)) {
			c.ep.fail("%v was shown as of tick %d, and now of %d", id, s.tick, tick)
		}
		if s.e != e {
			*s = showing{low: s.low}
		}
		if s.listed != c.applies-1 || s.e != e {
			c.comes(l, e, uint32(tick))
		}
		s.e, s.tick, s.listed, s.removed = e, uint32(tick), c.applies, false
		c.read(e)
		for _, p := range c.host.plan.components {
			if !p.resource && p.condition == everyone && s.lost>>p.index&1 == 0 {
				if wrong := c.differs(l, p, uint32(tick), c.world.Has(e, c.ids[p.index])); wrong != "" {
					c.ep.fail("%v as of tick %d: %s", id, tick, wrong)
				}
			}
		}
		for of := ownerOnly; of < conditions; of++ {
			c.checkSubEntity(l, s, of)
		}
		c.ownFields(s)
	}
	c.ep.checks += uint64(count)
	if len(c.hooked) != count {
		c.ep.fail("hooks reported %d entities, and there are %d", len(c.hooked), count)
	}
	c.checkResources()
	if !c.split && !c.rejoined {
		for n := 1; n < len(c.host.grouped); n++ {
			c.checkGroup(n)
		}
	}
	c.checkExpected()
}

// read reads all components of an entity in the client's world into c.scratch.
func (c *conn) read(e ecs.Entity) {
	for i, p := range c.host.plan.components {
		if p.resource || !c.world.Has(e, c.ids[i]) {
			continue
		}
		clear(c.scratch[i])
		readAll(&p.client, c.world.Get(e, c.ids[i]), c.scratch[i])
		if p.relation {
			c.scratch[i][p.cells-1] = cell{e: c.world.Relations().Get(e, c.ids[i])}
		}
	}
}

// differs describes how a component in c.scratch differs from the server's at a tick. With Every,
// it may be of any tick since the previous reading.
func (c *conn) differs(l *life, p *component, tick uint32, has bool) string {
	v := l.at(p.index, tick)
	if has != (v != nil) {
		return "whether there is a " + p.name + " differs"
	}
	if v == nil {
		return ""
	}
	wrong := c.unlike(p, v.cells)
	if wrong == "" || p.every == 1 {
		return wrong
	}
	oldest := tick - uint32(p.every-1)
	for t := tick - 1; !after(oldest, t); t-- {
		v := l.at(p.index, t)
		if v == nil || !l.lives(t) {
			break
		}
		if c.unlike(p, v.cells) == "" {
			return ""
		}
	}
	return wrong
}

// unlike names a field of a component in c.scratch that differs from what the documented rules make
// of the server's cells.
func (c *conn) unlike(p *component, want []cell) string {
	got := c.scratch[p.index]
	for i := range p.client.leaves {
		l := &p.client.leaves[i]
		a, b := want[l.at:l.at+l.n], got[l.at:l.at+l.n]
		fits := false
		switch {
		case l.ref:
			fits = c.refers(a[0].u, b[0].e)
		case c.host.truth.exact:
			fits = sameCells(a, b)
		default:
			fits = l.fits(a, b)
		}
		if !fits {
			return describe(p.name+l.path, a, b)
		}
	}
	if p.relation && !c.refers(want[p.cells-1].u, got[p.cells-1].e) {
		return describe(p.name+", the target", want[p.cells-1:], got[p.cells-1:])
	}
	return ""
}

// mirror returns the client's entity for a packed NetID.
func (c *conn) mirror(packed uint64) ecs.Entity {
	if packed == 0 {
		return ecs.Entity{}
	}
	e, _ := c.client.Entity(unpack(packed))
	return e
}

// isRemoved reports whether the client's user has removed the entity: references to it are then not
// checked.
func (c *conn) isRemoved(packed uint64) bool {
	s := c.shown[unpack(packed)]
	return packed != 0 && s != nil && s.removed
}

func (c *conn) refers(packed uint64, got ecs.Entity) bool {
	return got == c.mirror(packed) || c.isRemoved(packed)
}

// checkSubEntity looks for a tick at which all of an entity's components under a condition can be.
func (c *conn) checkSubEntity(l *life, s *showing, of condition) {
	some := false
	for _, p := range c.host.plan.components {
		some = some || p.condition == of && !p.resource && c.world.Has(s.e, c.ids[p.index])
	}
	if !some {
		return
	}
	wrong := "none could be shown"
	if s.low[of] == 0 {
		s.low[of] = l.born
	}
search:
	for t := s.low[of]; !after(t, c.host.truth.now); t++ {
		if !l.lives(t) || c.showable(l.id, t, of) == no {
			continue
		}
		for _, p := range c.host.plan.components {
			if p.condition != of || p.resource || s.lost>>p.index&1 != 0 {
				continue
			}
			if w := c.differs(l, p, t, c.world.Has(s.e, c.ids[p.index])); w != "" {
				wrong = w
				continue search
			}
		}
		s.low[of] = t
		return
	}
	c.ep.fail("%v under condition %d: no tick since %d explains it: %s", l.id, of, s.low[of], wrong)
}

// checkResources looks for a tick at which all resources can be.
func (c *conn) checkResources() {
	some, wrong := false, ""
	for i, p := range c.host.plan.components {
		if p.resource && c.world.Resources().Has(c.resIDs[i]) {
			some = true
			clear(c.scratch[i])
			readAll(&p.client, pointerIn(c.world.Resources().Get(c.resIDs[i])), c.scratch[i])
		}
	}
	if !some && !c.had {
		return
	}
	c.had = true
search:
	for t := c.resources; !after(t, c.host.truth.now); t++ {
		for i, p := range c.host.plan.components {
			if p.resource {
				if wrong = c.differs(c.host.truth.resources, p, t, c.world.Resources().Has(c.resIDs[i])); wrong != "" {
					continue search
				}
			}
		}
		c.resources = t
		return
	}
	c.ep.fail("resources: no tick since %d explains them: %s", c.resources, wrong)
}

// ownFields checks that local fields keep the client's values.
func (c *conn) ownFields(s *showing) {
	for i, p := range c.host.plan.components {
		if len(p.client.locals) == 0 || p.resource {
			continue
		}
		if !c.world.Has(s.e, c.ids[i]) {
			delete(s.own, i)
			continue
		}
		if s.own == nil {
			s.own = map[int]uint64{}
		}
		at := c.world.Get(s.e, c.ids[i])
		for _, f := range p.client.locals {
			v := (*uint64)(unsafe.Add(at, f.at))
			if *v != s.own[i] && *v != 0 {
				c.ep.fail("%s%s is %d, not %d", p.name, f.path, *v, s.own[i])
			}
			*v = uint64(c.applies)
		}
		s.own[i] = uint64(c.applies)
	}
	if s.local != 0 && (!c.world.Has(s.e, c.locals) || (*localThing)(c.world.Get(s.e, c.locals)).Value != s.local) {
		c.ep.fail("the user's own component of %v is gone or changed", s.e)
	}
}
