package main

import (
	"context"
	"fmt"
	"time"
)

// localPatience is how long to wait for a datagram that was written to a
// loopback socket before it is believed lost. It usually is there already.
const localPatience = 50 * time.Millisecond

// runLocal plays with the server and all clients in this process.
func runLocal(ctx context.Context, c *config, s *screen) (*report, error) {
	s.say(fmt.Sprintf("arena: %s and %s in one process for %.4g s\nlink: %s",
		count(c.bots, "bot"), count(c.clients, "client"), float64(c.ticks)/float64(c.tickRate), c.link()))
	h := newHost(c)
	weather := c.weather()
	var mirrors []*mirror
	defer func() {
		for i, m := range mirrors {
			m.line.port.close()
			h.dismiss(h.guests[i])
		}
	}()

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
	for i := range uint64(c.clients) {
		atServer, atClient, err := connect()
		if err != nil {
			return nil, err
		}
		h.welcome(newLine(atServer, c.seed+2*i, weather))
		mirrors = append(mirrors, newMirror(pilotName(int(i)), newLine(atClient, c.seed+2*i+1, weather)))
	}

	step := func(fight bool) error {
		h.step(fight)
		for i, m := range mirrors {
			// The ends may know of each other how much is under way. Nothing
			// else passes between them but datagrams.
			m.line.port.expect(h.guests[i].line.port.written())
			if err := m.step(h.truth); err != nil {
				return err
			}
			h.guests[i].line.port.expect(m.line.port.written())
			h.guests[i].view = m.outlook()
		}
		return nil
	}

	picture := func() *picture {
		checks, wrong := tally(mirrors)
		return &picture{
			c: c, ticks: h.ticks, limit: c.ticks, figures: h.figures(c, checks, wrong),
			views: []view{h.view(), mirrors[0].view(1, h.truth)},
		}
	}

	pace := newPace(c)
	s.show(h.ticks, c.tickRate, picture)
	for h.ticks < c.ticks && ctx.Err() == nil {
		pace.wait(ctx)
		if err := step(true); err != nil {
			return nil, err
		}
		s.show(h.ticks, c.tickRate, picture)
	}
	s.leave()
	result := h.report(c, h.guests)
	result.Interrupted = ctx.Err() != nil

	h.heal()
	for _, m := range mirrors {
		m.line.heal()
	}
	for !result.Converged && result.QuietTicks < c.quietTicks() {
		if err := step(false); err != nil {
			return nil, err
		}
		result.QuietTicks++
		// What the last step of the fight did may not have been sent before.
		result.Converged = result.QuietTicks >= c.sendStep() && result.compare(mirrors, h.truth)
	}
	result.judge(mirrors)
	return result, nil
}

// loopback connects a new socket with the server's.
func loopback(hub *socket) (atServer, atClient port, err error) {
	own, err := listenUDP("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	own.owned = true
	return hub.port(own.address(), localPatience), own.port(hub.address(), localPatience), nil
}
