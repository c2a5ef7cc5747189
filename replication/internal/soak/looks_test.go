package soak

import (
	"math"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
)

// A verdict is whether something is seen. At the edge of a grid's radius rounding decides, so the
// answer is maybe.
type verdict uint8

const (
	no verdict = iota
	maybe
	yes
)

// A sight is what a client may see of an entity.
type sight struct {
	seen       verdict
	conditions uint8 // bits of the conditions that hold
}

// viewSettings are the arguments of SetInterest and LookFrom.
type viewSettings struct {
	with, without []ecs.ID
	grid          *replication.Grid
	sets          []*set
	veil          int // bit of the host's veils, -1 for none
	keep          bool
	margin        float64
	looks         bool
	radius        float64
	place         []float64
}

// open picks what a peer may see.
func (c *conn) open() {
	g, h := c.g, c.host
	y := viewSettings{veil: -1, looks: c.view.looks, radius: c.view.radius, place: c.view.place}
	if !g.one(3) {
		for _, t := range h.plan.components {
			if !t.resource && g.one(12) {
				y.with = append(y.with, h.truth.ids[t.index])
			} else if !t.resource && g.one(10) {
				y.without = append(y.without, h.truth.ids[t.index])
			}
		}
		if len(h.grids) > 0 && g.one(2) {
			y.grid, y.margin = pick(g, h.grids...), pick(g, 0, 3, 20, 60, 1e6)
		}
		for _, s := range h.sets {
			if g.one(3) {
				y.sets = append(y.sets, s)
			}
		}
		if g.one(3) {
			y.veil = g.IntN(3)
		}
		y.keep = g.one(4)
	}
	c.view = y
	c.kept = c.kept || y.keep
	if c.peer != nil {
		c.sendView()
	}
}

// twitch opens a limited view, or restores it: entities that come into view were sent before, not
// long ago.
func (c *conn) twitch() {
	y := c.view
	c.view, c.blinked = c.blinked, y
	c.view.looks, c.view.radius, c.view.place = y.looks, y.radius, y.place
	c.kept = c.kept || c.view.keep
	c.sendView()
	if c.g.one(4) { // a change and back within one tick
		c.peer.SetInterest(replication.Interest{})
		c.sendView()
	}
}

// blink is twitch for a tick or two now and then, for a view of everything with Keep.
func (c *conn) blink() {
	switch c.blinks--; {
	case c.blinks > 0:
	case !c.shut:
		c.shut, c.blinks = true, 1+c.g.IntN(2)
		c.blinked.keep = c.view.keep
		c.twitch()
	default:
		c.shut, c.blinks = false, 8+c.g.IntN(30)
		c.twitch()
	}
}

// sendView gives the settings to the server.
func (c *conn) sendView() {
	y := &c.view
	in := replication.Interest{Grid: y.grid, Keep: y.keep, Margin: y.margin}
	if len(y.with)+len(y.without) > 0 {
		filter := ecs.All(y.with...).Without(y.without...)
		in.Filter = &filter
	}
	for _, s := range y.sets {
		in.Sets = append(in.Sets, s.set)
	}
	if y.veil >= 0 {
		veil, h := y.veil, c.host
		in.Visible = func(e ecs.Entity) bool { return h.veiled[e]>>veil&1 == 0 }
	}
	c.peer.SetInterest(in)
	if y.looks {
		c.peer.LookFrom(y.radius, y.place...)
	}
}

// glance moves the viewpoint.
func (c *conn) glance() {
	y := &c.view
	if !y.looks || c.g.one(20) {
		y.looks, y.radius, y.place = true, c.g.between(0, 120), nil
		if c.g.one(30) {
			y.radius = math.Inf(1)
		}
		for range c.host.plan.spotFields() {
			y.place = append(y.place, c.g.between(-110, 110))
		}
	}
	y.place[0] += c.g.between(-3, 3)
	c.peer.LookFrom(y.radius, y.place...)
}

// sees is the rule of Interest for one entity.
func (c *conn) sees(l *life) verdict {
	y, h := &c.view, c.host
	for _, id := range y.with {
		if !h.world.Has(l.e, id) {
			return no
		}
	}
	for _, id := range y.without {
		if h.world.Has(l.e, id) {
			return no
		}
	}
	if y.veil >= 0 && h.veiled[l.e]>>y.veil&1 != 0 {
		return no
	}
	if y.grid == nil && len(y.sets) == 0 {
		return yes
	}
	for _, s := range y.sets {
		if _, in := s.members[l.e]; in {
			return yes
		}
	}
	if y.grid == nil {
		return no
	}
	place, off, ok := h.position(l)
	if !ok {
		return yes
	}
	if !y.looks {
		return no
	}
	sum := 0.0
	for i := range place {
		sum += (place[i] - y.place[i]) * (place[i] - y.place[i])
	}
	switch away := math.Sqrt(sum); {
	case away <= y.radius-off:
		return yes
	case away <= y.radius+y.margin+off:
		return maybe
	}
	return no
}

// look records, after a Replicate, what the client may see of every entity.
func (c *conn) look() {
	h := c.host
	if !c.started {
		c.started, c.since, c.resources = true, h.truth.now, h.truth.now
	}
	connected := c.peer.Connected()
	c.online.set(h.truth.now, connected)
	groups := make([]verdict, len(h.groups)+1)
	seen := make([]verdict, len(h.truth.here))
	for i, l := range h.truth.here {
		if connected {
			seen[i] = c.sees(l)
		}
		if n := l.group.last(); n > 0 {
			groups[n] = max(groups[n], seen[i])
		}
	}
	for i, l := range h.truth.here {
		s := sight{seen: seen[i]}
		if n := l.group.last(); n > 0 {
			s.seen = groups[n]
		}
		if connected {
			s.conditions = c.conditions(l.e)
		}
		c.sightOf(l.id).set(h.truth.now, s)
	}
}

// conditions returns the conditions that hold for the client and one entity.
func (c *conn) conditions(e ecs.Entity) uint8 {
	holds := uint8(1) << everyone
	if c.host.owners[e] == c.peer {
		holds |= 1 << ownerOnly
	} else {
		holds |= 1 << exceptOwner
	}
	for i, of := range c.host.picked {
		if of[c] {
			holds |= 1 << (picked0 + condition(i))
		}
	}
	return holds
}

func (c *conn) sightOf(id replication.NetID) *timeline[sight] {
	t := c.sights[id]
	if t == nil {
		t = &timeline[sight]{}
		c.sights[id] = t
	}
	return t
}

// showable reports whether a component under a condition may have been shown at a tick.
func (c *conn) showable(id replication.NetID, tick uint32, of condition) verdict {
	s := c.sightOf(id).at(tick)
	if s.conditions>>of&1 == 0 {
		return no
	}
	return s.seen
}
