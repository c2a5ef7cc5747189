package soak

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/mlange-42/arche/ecs"
)

// pointerIn returns what a resource points to.
func pointerIn(resource any) unsafe.Pointer { return reflect.ValueOf(resource).UnsafePointer() }

func describe(name string, want, got []cell) string {
	return fmt.Sprintf("%s is %x, and should be of %x", name, got, want)
}

// always reports whether holds is true for all ticks from the given one to the current one.
func (c *conn) always(from uint32, holds func(tick uint32) bool) bool {
	for t := from; !after(t, c.host.truth.now); t++ {
		if !holds(t) {
			return false
		}
	}
	return true
}

// structure fails unless the client's world has the entities and components that the client may
// have seen in a tick and in all ticks since, and none that it may not have seen in any of them.
func (c *conn) structure(tick uint32, why string) {
	for id, l := range c.host.truth.lives {
		if l.over && after(tick, l.ended) && c.shown[id] == nil {
			continue
		}
		s := c.shown[id]
		e, here := c.client.Entity(id)
		if s != nil && s.removed {
			continue
		}
		if !here {
			if c.always(tick, func(t uint32) bool { return l.lives(t) && c.showable(id, t, everyone) == yes }) {
				c.ep.fail("%s of tick %d: %v is not here", why, tick, id)
			}
			continue
		}
		if !c.rejoined && !c.kept && c.always(tick, func(t uint32) bool { return !l.lives(t) || c.showable(id, t, everyone) == no }) {
			c.ep.fail("%s of tick %d: %v is still here", why, tick, id)
		}
		for _, p := range c.host.plan.components {
			if p.resource || s != nil && s.lost>>p.index&1 != 0 || !c.world.Alive(e) {
				continue
			}
			has := c.world.Has(e, c.ids[p.index])
			if !has && c.always(tick, func(t uint32) bool {
				return l.lives(t) && l.at(p.index, t) != nil && c.showable(id, t, p.condition) == yes
			}) {
				c.ep.fail("%s of tick %d: %v has no %s", why, tick, id, p.name)
			}
			if has && !c.rejoined && !c.kept && c.always(tick, func(t uint32) bool {
				return !l.lives(t) || l.at(p.index, t) == nil || c.showable(id, t, p.condition) == no
			}) {
				c.ep.fail("%s of tick %d: %v still has a %s", why, tick, id, p.name)
			}
		}
	}
}

// complete checks the promise of Client.Complete.
func (c *conn) complete() {
	if c.rejoined {
		c.rejoined = false
		c.structure(c.session, "Complete")
	} else if c.applies%16 == 0 {
		c.structure(c.session, "Complete")
	}
}

// checkGroup looks for a tick at which all shown members of a group can be.
func (c *conn) checkGroup(number int) {
	var shown []*showing
	var lives []*life
	newest := c.since
	for _, l := range c.host.grouped[number] {
		if s := c.shown[l.id]; s != nil && s.listed == c.applies && l.group.at(s.tick) == number {
			if len(shown) == 0 || after(s.tick, newest) {
				newest = s.tick
			}
			shown, lives = append(shown, s), append(lives, l)
		}
	}
	if len(shown) == 0 {
		return
	}
	wrong := ""
	for t := newest; !after(t, c.host.truth.now); t++ {
		at := c.groupDiffers(number, lives, t)
		if at == "" {
			return
		}
		if wrong == "" {
			wrong = at
		}
	}
	c.ep.fail("group %d, of which tick %d is newest: no tick explains it: %s", number, newest, wrong)
}

// groupDiffers describes how a group differs from its state at a tick. shown are the members that
// are shown.
func (c *conn) groupDiffers(number int, shown []*life, tick uint32) string {
	for _, l := range shown {
		if l.lives(tick) && l.group.at(tick) == number {
			if !c.kept && c.showable(l.id, tick, everyone) == no {
				return fmt.Sprintf("%v was hidden", l.id)
			}
			continue
		}
		// It has left: its shown state must be of that tick or later.
		left := c.shown[l.id].tick
		for l.group.at(left) == number && l.lives(left) {
			left++
		}
		wrong := ""
		for ; !after(left, c.host.truth.now); left++ {
			if wrong = "has ended"; l.lives(left) && (c.kept || c.showable(l.id, left, everyone) != no) {
				wrong = c.memberDiffers(l, left)
			}
			if wrong == "" {
				break
			}
		}
		if wrong != "" {
			return fmt.Sprintf("%v, which left, %s", l.id, wrong)
		}
	}
	for _, l := range c.host.grouped[number] {
		if !l.lives(tick) || l.group.at(tick) != number {
			continue
		}
		s, seen := c.shown[l.id], c.showable(l.id, tick, everyone)
		if s == nil || s.listed != c.applies {
			if seen != yes {
				continue
			}
			return fmt.Sprintf("%v is not here", l.id)
		}
		if wrong := c.memberDiffers(l, tick); wrong != "" {
			return wrong
		}
	}
	return ""
}

// memberDiffers describes how the shown state of an entity differs from its state at a tick.
func (c *conn) memberDiffers(l *life, tick uint32) string {
	s := c.shown[l.id]
	c.read(s.e)
	for _, p := range c.host.plan.components {
		if !p.resource && p.condition == everyone && s.lost>>p.index&1 == 0 {
			if wrong := c.differs(l, p, tick, c.world.Has(s.e, c.ids[p.index])); wrong != "" {
				return fmt.Sprintf("%v, shown as of tick %d: %s", l.id, s.tick, wrong)
			}
		}
	}
	return ""
}

// comes checks an entity that was spawned in this Apply: it may be an expected one.
func (c *conn) comes(l *life, e ecs.Entity, tick uint32) {
	sig := c.host.plan.signature
	if sig == nil {
		return
	}
	v := l.at(sig.index, tick)
	if v == nil || v.cells[1].u == 0 {
		return
	}
	x := c.expected[uint16(v.cells[1].u)]
	if x == nil {
		return
	}
	if x.e != e && x.open(c.applies) && !x.anyOwner && c.world.Alive(x.e) {
		c.ep.fail("%v was expected as %v, and is %v", l.id, x.e, e)
	}
	if x.e == e {
		if !x.open(c.applies) {
			c.ep.fail("%v was adopted though it was not expected any more", l.id)
		}
		delete(c.expected, x.number)
		if s := c.shown[l.id]; s != nil {
			s.local = uint64(x.number) << 8
		}
	}
}

// checkExpected: exactly the expected entities that have not arrived are waiting.
func (c *conn) checkExpected() {
	for number, x := range c.expected {
		if !c.world.Alive(x.e) {
			c.ep.fail("%v, which was expected, is gone", x.e)
		}
		if waits := c.client.Expects(x.e); waits != x.open(c.applies+1) && c.applies != x.until { // it ends with the next Apply
			c.ep.fail("%v waits: %v; applies %d of %d", x.e, waits, c.applies, x.until)
		}
		if (*localThing)(c.world.Get(x.e, c.locals)).Value != uint64(number)<<8 {
			c.ep.fail("what the user put on %v has changed", x.e)
		}
		if !x.open(c.applies + 1) {
			delete(c.expected, number)
			c.world.RemoveEntity(x.e)
		}
	}
}
