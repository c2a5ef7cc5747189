package soak

import (
	"errors"
	"time"

	"github.com/mlange-42/arche/ecs"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// localThing is the client's local component.
type localThing struct{ Value uint64 }

// An expectation is a local entity that waits for the server's.
type expectation struct {
	e        ecs.Entity
	until    int // number of the last Apply that may adopt it; 0 for any
	anyOwner bool
	number   uint16
}

func (x *expectation) open(apply int) bool { return x.until == 0 || apply <= x.until }

// retune changes a peer as the server's user may.
func (c *conn) retune() {
	g := c.g
	if c.blinks == 0 && g.one(40) {
		c.open()
		if g.one(3) { // the last call counts
			c.open()
		}
	}
	if c.view.grid != nil {
		c.glance()
	}
	if c.blinks == 0 && c.twitchy && g.one(6) {
		c.twitch()
	}
	if c.blinks > 0 {
		c.blink()
	}
	if !c.twitchy && g.one(60) {
		c.budget = pick(g, 0, 0, 1500, 6000, 40000)
		c.throttle()
	}
	if !c.twitchy && g.one(60) {
		c.interval = pick(g, 1, 1, 2, 3, 7)
		c.throttle()
	}
	if g.one(100) {
		pick(g, c.link.SetConfig, c.link.Up.SetConfig, c.link.Down.SetConfig)(pick(g, c.bad, c.bad, netsim.Config{Loss: 1}))
	}
	if gone := c.peer.Err(); gone != nil && c.returning == 0 && !c.sums {
		c.returning = 10 // it was silent; a new peer needs a connection of its own
	}
	if c.peer.Connected() && c.client.Status() == replication.StatusConnected && c.returning == 0 && g.one(400) {
		reason := replication.Reason{Code: replication.ReasonGame + replication.ReasonCode(g.IntN(9)), Text: "away with you"}
		c.ended, c.endedBy = &reason, "server"
		c.peer.Disconnect(reason)
		c.returning = 20 + g.IntN(30)
	}
}

// play acts as the client's user.
func (c *conn) play() {
	g := c.g
	if c.returning > 0 {
		if c.returning--; c.returning == 0 {
			c.again()
		}
		return
	}
	switch {
	case g.one(400) && c.client.Status() == replication.StatusConnected:
		reason := replication.Reason{Code: replication.ReasonCode(g.IntN(2) * 2), Text: "leaving"}
		c.ended, c.endedBy = &reason, "client"
		c.client.Disconnect(reason)
		c.returning = 10 + g.IntN(30)
		return
	case g.one(400) && c.client.Status() == replication.StatusConnected:
		c.again()
	}
	if c.host.plan.signature != nil && c.host.plan.notes && g.one(4) && c.client.Status() == replication.StatusConnected && c.host == c.ep.hosts[0] {
		c.expect()
	}
	c.sendUp()
	if c.messy {
		c.mess()
	}
}

// again begins a new session, with a new peer if the old one has ended.
func (c *conn) again() {
	if c.peer.Err() != nil || c.ended != nil {
		c.peer.Disconnect(replication.Reason{})
		c.attach()
	}
	c.ended = nil
	c.rejoined = true
	c.client.Reconnect()
}

// ended1 checks the error of Apply.
func (c *conn) ended1(err error) {
	var gone *replication.DisconnectError
	switch {
	case err == nil:
		if c.ended != nil && c.endedBy == "client" {
			c.ep.fail("Apply returns nil after Disconnect")
		}
	case !errors.As(err, &gone):
		c.ep.fail("Apply returns %v", err)
	case c.ended == nil:
		if gone.Reason.Code != replication.ReasonTimeout {
			c.ep.fail("Apply returns %v, and nobody has ended the connection", err)
		}
	case gone.Remote != (c.endedBy == "server") || gone.Reason != *c.ended:
		c.ep.fail("Apply returns %v, not %v of the %s", err, c.ended, c.endedBy)
	}
}

// expect makes a local entity wait for the one that a message asks the server for.
func (c *conn) expect() {
	g, sig := c.g, c.ids[c.host.plan.signature.index]
	c.ep.numbers++
	x := &expectation{number: c.ep.numbers}
	x.e = c.world.NewEntity(sig, c.locals)
	s := (*signature)(c.world.Get(x.e, sig))
	s.Number = x.number
	if g.one(3) {
		s.Owner, x.anyOwner = c.someone(), true
	}
	(*localThing)(c.world.Get(x.e, c.locals)).Value = uint64(x.number) << 8
	n := pick(g, 0, 1+g.IntN(20), 1+2*int(c.bad.Latency)+g.IntN(6), 60)
	if n > 0 {
		x.until = c.applies + n
	}
	owner := s.Owner
	replication.Expect[signature](c.client, x.e, time.Duration(n)*tickLength(c.client))
	_ = replication.SendToServer(c.client, fire{x.number, !g.one(4), owner}) // if it is not sent, no entity arrives
	c.expected[x.number] = x
}

// someone returns an entity of the client's world, or the zero entity.
func (c *conn) someone() ecs.Entity {
	var found ecs.Entity
	n := 0
	for _, e := range c.client.Entities() {
		if n++; c.g.one(n) {
			found = e
		}
	}
	return found
}

// mess changes the client's world as a careless user might.
func (c *conn) mess() {
	g := c.g
	if g.one(300) {
		c.world.Reset()
		clear(c.hooked)
		clear(c.expected)
		c.had = c.had && !c.rejoined // resources of an earlier session are not restored
		for _, s := range c.shown {
			*s = showing{tick: s.tick, low: s.low}
		}
		return
	}
	e := c.someone()
	if !c.world.Alive(e) {
		return
	}
	id, ok := c.client.NetID(e)
	if !ok {
		c.ep.fail("Each names an entity that mirrors nothing")
	}
	s := c.shown[id]
	switch {
	case s == nil || s.e != e:
	case g.one(40):
		c.world.RemoveEntity(e)
		delete(c.hooked, e)
		s.removed, c.split = true, true
	case g.one(40):
		i := g.IntN(len(c.ids))
		if p := c.host.plan.components[i]; !p.resource && c.world.Has(e, c.ids[i]) {
			c.world.Remove(e, c.ids[i])
			s.lost |= 1 << i
		}
	case g.one(10) && !c.world.Has(e, c.locals):
		c.world.Add(e, c.locals)
		(*localThing)(c.world.Get(e, c.locals)).Value = 7
		s.local = 7
	}
}
