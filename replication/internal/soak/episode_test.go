package soak

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// An episode is a random plan's world with its servers and clients, all from one seed.
type episode struct {
	t    *testing.T
	seed uint64
	g    *chance
	tick int

	packets uint64
	checks  uint64
	quiet   bool

	game    *game
	hosts   []*host
	conns   []*conn
	sent    []*sent
	unique  uint32
	numbers uint16 // of signatures
	fired   map[uint16]bool
	gone    map[*replication.Peer]bool
	replays [][]byte
}

type otherMarker replication.Replicated

func newEpisode(t *testing.T, seed uint64) *episode {
	ep := &episode{
		t: t, seed: seed, g: newChance(seed, 0), fired: map[uint16]bool{}, gone: map[*replication.Peer]bool{},
	}
	world := ecs.NewWorld()
	p := newPlan(ep.g)
	h := newHost(ep, "server", &world, p, ecs.ComponentID[replication.Replicated](&world), nil)
	ep.game = newGame(ep, &world, p)
	ep.game.markers = []ecs.ID{h.truth.marker}
	if ep.g.one(3) { // a second server of the same world, with another schema
		other := ecs.ComponentID[otherMarker](&world)
		newHost(ep, "other server", &world, p.part(ep.g), other, replication.WithMarker[otherMarker]())
		ep.game.markers = append(ep.game.markers, other)
	}
	for _, h := range ep.hosts {
		for range 1 + ep.g.IntN(3) {
			ep.join(h, false)
		}
	}
	if p.same() && ep.g.one(2) { // a client's world that is the source of another server
		var world *ecs.World
		c := ep.join(ep.hosts[0], true)
		world = c.world
		c.relay(world)
	}
	return ep
}

// relay makes the client's world the source of another server.
func (c *conn) relay(world *ecs.World) {
	h := newHost(c.ep, "relay", world, c.host.plan.unonce(), ecs.ComponentID[replication.Replicated](world), nil)
	h.truth.exact = true
	for range 1 + c.g.IntN(2) {
		c.ep.join(h, false)
	}
}

func (ep *episode) fail(format string, args ...any) {
	ep.t.Helper()
	ep.t.Fatalf("-soak.seed=%d fails in tick %d after %d packets: %s", ep.seed, ep.tick, ep.packets, fmt.Sprintf(format, args...))
}

// run plays the episode to its end.
func (ep *episode) run() {
	defer func() {
		if r := recover(); r != nil {
			fmt.Printf("-soak.seed=%d panics in tick %d\n", ep.seed, ep.tick)
			panic(r)
		}
	}()
	for range 100 + ep.g.IntN(300) {
		ep.step()
		if len(ep.conns) < 8 && ep.g.one(150) {
			ep.join(ep.hosts[ep.g.IntN(len(ep.hosts))], false)
		}
	}
	ep.settleDown()
	for range 70 { // until the last delayed packet has arrived
		ep.step()
	}
	reason := ""
	for range 1500 {
		ep.step()
		if reason = ep.open(); reason == "" {
			break
		}
	}
	if reason != "" {
		ep.fail("the worlds stay different: %s", reason)
	}
	for range 3 { // and stay equal
		ep.step()
		if reason = ep.open(); reason != "" {
			ep.fail("the worlds were equal, and then: %s", reason)
		}
	}
}

// step plays a tick of all hosts and clients.
func (ep *episode) step() {
	ep.tick++
	for _, h := range ep.hosts {
		for _, c := range h.conns {
			c.receiveAll()
			if ep.quiet && c.peer.Err() != nil { // it was silent, and a new peer needs a connection of its own
				c.again()
			}
		}
	}
	if !ep.quiet {
		ep.game.step()
		ep.game.fire(ep.hosts[0])
	}
	for _, h := range ep.hosts { // relays are last: their worlds' changes are passed on in the same tick
		if !ep.quiet {
			for _, c := range h.conns {
				c.retune()
			}
			h.shuffle()
			h.sendDown()
		}
		h.replicate()
		for _, c := range h.conns {
			c.step()
		}
	}
}

// settleDown ends all changes and makes all links good.
func (ep *episode) settleDown() {
	ep.quiet = true
	for _, c := range ep.conns {
		if c.returning > 0 || c.peer.Err() != nil || c.ended != nil {
			c.returning = 0
			c.ended = new(replication.Reason)
			c.again()
		}
		c.spoil = false
		c.bad = netsim.Config{Latency: 2}
		c.link.SetConfig(c.bad)
		if c.budget = 0; c.g.one(3) {
			c.budget = 20000
		}
		c.throttle()
		if c.view.keep && c.g.one(2) { // kept entities are released, even if the view is set twice
			c.view.keep = false
			c.sendView()
			c.sendView()
		}
		c.inTime = 0
	}
}

// open describes what still differs or is in flight.
func (ep *episode) open() string {
	for i, c := range ep.conns {
		if wrong := c.open1(); wrong != "" {
			return fmt.Sprintf("client %d, of the %s: %s", i, c.host.name, wrong)
		}
	}
	return ""
}

// open1 describes how what the client shows differs from what it should show.
func (c *conn) open1() string {
	h := c.host
	switch {
	case c.client.Status() != replication.StatusConnected || !c.peer.Connected():
		return "not connected: " + c.client.Status().String()
	case !c.client.Complete():
		return "not complete"
	case c.rejoined:
		return "what is left of the session before is there"
	case c.down.open() > 0:
		return fmt.Sprintf("%d messages to the client are on their way", c.down.open())
	case c.upMail(c.client.Stats().Sessions).open() > 0:
		return "messages to the server are on their way"
	case h.plan.input && c.every == 1 && c.inTime < 20: // the clocks of others are slow: see Client.Apply
		return "no inputs come in time"
	}
	for _, l := range h.truth.here {
		if wrong := c.settled(l); wrong != "" {
			return wrong
		}
	}
	wrong := ""
	for id := range c.client.Entities() {
		if h.truth.lives[id].over {
			wrong = fmt.Sprintf("%v has ended", id)
		}
	}
	for i, p := range h.plan.components {
		if p.resource && wrong == "" {
			has := c.world.Resources().Has(c.resIDs[i])
			if has {
				clear(c.scratch[i])
				readAll(&p.client, pointerIn(c.world.Resources().Get(c.resIDs[i])), c.scratch[i])
			}
			wrong = c.differsNow(h.truth.resources, p, has)
		}
	}
	return wrong
}

// differsNow is differs without the latitude of Every.
func (c *conn) differsNow(l *life, p *component, has bool) string {
	v := l.at(p.index, c.host.truth.now)
	if has != (v != nil) {
		return fmt.Sprintf("%v: whether there is a %s", l.id, p.name)
	}
	if v == nil {
		return ""
	}
	return c.unlike(p, v.cells)
}

// settled describes how one entity differs.
func (c *conn) settled(l *life) string {
	now := c.host.truth.now
	e, here := c.client.Entity(l.id)
	s := c.shown[l.id]
	if s != nil && s.removed {
		return ""
	}
	switch seen := c.showable(l.id, now, everyone); {
	case seen == no && c.view.keep && here:
		return c.lapsed(l.id, e)
	case seen == maybe || seen == no && c.view.keep:
		return ""
	case here != (seen == yes):
		return fmt.Sprintf("%v is here: %v", l.id, here)
	case !here:
		return ""
	}
	c.read(e)
	for _, p := range c.host.plan.components {
		if p.resource || s.lost>>p.index&1 != 0 {
			continue
		}
		has := c.world.Has(e, c.ids[p.index])
		if c.showable(l.id, now, p.condition) == no {
			if has {
				return fmt.Sprintf("%v still has %s", l.id, p.name)
			}
			continue
		}
		if wrong := c.differsNow(l, p, has); wrong != "" {
			return wrong
		}
	}
	return ""
}

// lapsed names a component that is kept though its condition no longer holds.
func (c *conn) lapsed(id replication.NetID, e ecs.Entity) string {
	holds := c.sightOf(id).last().conditions
	for i, p := range c.host.plan.components {
		if !p.resource && holds>>p.condition&1 == 0 && c.world.Has(e, c.ids[i]) {
			return fmt.Sprintf("%v, which is kept, still has %s", id, p.name)
		}
	}
	return ""
}

// unonce returns the plan for a relay, which captures everything: what the server captures once may come late.
func (p *plan) unonce() *plan {
	q := *p
	q.components = nil
	for _, c := range p.components {
		d := *c
		d.once = false
		q.components = append(q.components, &d)
		if c == p.spot {
			q.spot = &d
		}
		if c == p.signature {
			q.signature = &d
		}
	}
	return &q
}
