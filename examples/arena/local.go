package main

import (
	"context"
	"fmt"
	"time"
)

// localPatience is how long to wait for a datagram that was written to a loopback socket before it
// counts as lost. Usually it has already arrived.
const localPatience = 500 * time.Millisecond

// localGame is a server and its clients in one process.
type localGame struct {
	host    *host
	mirrors []*mirror
}

// runLocal plays with the server and all clients in this process.
func runLocal(ctx context.Context, c *config, s *screen) (*report, error) {
	s.printLine(fmt.Sprintf("arena: %s and %s in one process for %.4g s\nlink: %s",
		count(c.bots, "bot"), count(c.clients, "client"), float64(c.ticks)/float64(c.tickRate), c.link()))
	g := localGame{host: newHost(c)}
	defer g.close()
	connect := func() (atServer, atClient port, err error) {
		a, b := memoryPorts()
		return a, b, nil
	}
	if c.transport == "udp" {
		hub, err := listenUDP("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer hub.close()
		connect = func() (atServer, atClient port, err error) { return loopback(hub) }
	}
	if err := g.join(c, connect); err != nil {
		return nil, err
	}

	h := g.host
	picture := func() *picture { return g.picture(c) }
	s.show(h.ticks, c.tickRate, picture)
	for range c.pace(ctx) {
		if h.ticks >= c.ticks {
			break
		}
		if err := g.step(true); err != nil {
			return nil, err
		}
		s.show(h.ticks, c.tickRate, picture)
	}
	s.leave()
	result := h.report(c, h.guests)
	result.Interrupted = ctx.Err() != nil
	if err := g.settle(c, result); err != nil {
		return nil, err
	}
	result.judge(g.mirrors)
	return result, nil
}

// join connects the clients.
func (g *localGame) join(c *config, connect func() (atServer, atClient port, err error)) error {
	weather := c.weather()
	for i := range uint64(c.clients) {
		atServer, atClient, err := connect()
		if err != nil {
			return err
		}
		g.host.welcome(newLine(atServer, c.seed+2*i, weather))
		g.mirrors = append(g.mirrors, newMirror(pilotName(int(i)), newLine(atClient, c.seed+2*i+1, weather)))
	}
	return nil
}

func (g *localGame) close() {
	for i, m := range g.mirrors {
		m.line.port.close()
		g.host.dismiss(g.host.guests[i])
	}
}

// step plays one tick at both ends.
func (g *localGame) step(fight bool) error {
	h := g.host
	h.step(fight)
	for i, m := range g.mirrors {
		// Both ends know how many datagrams are in flight. Apart from that only datagrams pass
		// between them.
		m.line.port.expect(h.guests[i].line.port.written())
		if err := m.step(h.truth); err != nil {
			return err
		}
		h.guests[i].line.port.expect(m.line.port.written())
		h.guests[i].view = m.outlook()
	}
	return nil
}

func (g *localGame) picture(c *config) *picture {
	h := g.host
	checks, wrong := tally(g.mirrors)
	return &picture{
		c: c, ticks: h.ticks, limit: c.ticks, figures: h.figures(c, checks, wrong),
		views: []view{h.view(), g.mirrors[0].view(1, h.truth)},
	}
}

// settle plays on without changes and with a perfect network until all worlds are equal.
func (g *localGame) settle(c *config, result *report) error {
	g.host.heal()
	for _, m := range g.mirrors {
		m.line.heal()
	}
	for !result.Converged && result.QuietTicks < c.quietTicks() {
		if err := g.step(false); err != nil {
			return err
		}
		result.QuietTicks++
		// The changes of the last step may not have been sent yet.
		result.Converged = result.QuietTicks >= c.sendStep() && result.compare(g.mirrors, g.host.truth)
	}
	return nil
}

// loopback connects a new socket to the server's.
func loopback(hub *socket) (atServer, atClient port, err error) {
	own, err := listenUDP("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	own.owned = true
	return hub.port(own.address(), localPatience), own.port(hub.address(), localPatience), nil
}
