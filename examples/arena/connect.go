package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// runClients plays with clients of a server in another process.
func runClients(ctx context.Context, c *config, s *screen) (*report, error) {
	w := &waiting{c: c, screen: s, until: time.Now().Add(c.wait)}
	conn, err := w.dial(ctx)
	if err != nil {
		return nil, err
	}
	ctl := newControl(conn)
	defer ctl.close()

	sockets, err := openSockets(conn, c.clients)
	defer func() {
		for _, each := range sockets {
			each.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	h := hello{Magic: controlMagic}
	for _, each := range sockets {
		h.Ports = append(h.Ports, each.address().Port())
	}
	if err := ctl.send(h); err != nil {
		return nil, fmt.Errorf("the server has gone: %w", err)
	}
	var answer welcome
	if err := ctl.greeting(&answer); err != nil {
		return nil, fmt.Errorf("the server does not answer as one should: %w", err)
	}
	if answer.Refused != "" {
		return nil, fmt.Errorf("the server does not want these clients: %s", answer.Refused)
	}
	c.tickRate, c.sendRate = answer.TickRate, answer.SendRate
	if c.ticks > 0 && !c.byTicks {
		c.setTicks() // with the server's tick rate
	}

	v := &visit{c: c, control: ctl, truth: newTruth(), screen: s}
	server := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	for i, each := range sockets {
		seed := c.seed + 2*uint64(i) + 1
		v.mirrors = append(v.mirrors, newMirror(pilotName(i), newLine(each.port(server, localPatience), seed,
			c.weather())))
	}
	s.printLine(fmt.Sprintf("arena: connected to %s with %s", c.connect, count(c.clients, "client")))
	s.printLine("link: " + c.link())

	// Wakes up blocked reads.
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	if err := w.begin(ctx, ctl, answer.Expected); err != nil {
		v.sendLeaving()
		return nil, err
	}
	return v.run(ctx)
}

// openSockets opens a UDP socket for each client, on the interface to the server.
func openSockets(conn net.Conn, n int) ([]*socket, error) {
	local := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr()
	var sockets []*socket
	for range n {
		s, err := listenUDP(netip.AddrPortFrom(local, 0).String())
		if err != nil {
			return sockets, err
		}
		sockets = append(sockets, s)
	}
	return sockets, nil
}

// visit is a process of clients connected to a server.
type visit struct {
	*control
	c       *config
	truth   *truth
	mirrors []*mirror
	screen  *screen
	result  *report // of the server
	first   int     // number of the first frame
	frames  int     // number of the latest frame
	cost    cost
	traffic traffic
	meter   meter
}

// run follows the server until the server ends the fight, these clients have played long enough, or
// ctx is done.
func (v *visit) run(ctx context.Context) (*report, error) {
	began := time.Now()
	for v.result == nil {
		var f frame
		patience := v.patience(time.Since(began))
		err := v.conn.SetReadDeadline(time.Now().Add(patience))
		if err == nil && ctx.Err() == nil {
			err = v.receive(&f)
		}
		switch {
		case ctx.Err() != nil:
			return v.leave(true), nil
		case errors.Is(err, os.ErrDeadlineExceeded) && patience < maxSilence:
			return v.leave(false), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("the server has been silent for %v", maxSilence)
		case err != nil:
			return nil, fmt.Errorf("the server has gone: %w", err)
		case v.enough(&f):
			return v.leave(false), nil
		}
		if err := v.show(&f); err != nil {
			return nil, err
		}
	}
	v.screen.leave()
	return v.report(v.result), nil
}

// patience returns how long to wait for a frame, given the time since the first one.
func (v *visit) patience(passed time.Duration) time.Duration {
	if v.c.ticks == 0 || v.c.headless {
		return maxSilence
	}
	// A server that ends at the same time still has to compare the worlds.
	const grace = 5 * time.Second
	length := time.Duration(v.c.ticks) * time.Second / time.Duration(v.c.tickRate)
	return max(min(length+grace-passed, maxSilence), time.Millisecond)
}

// enough reports whether these clients have played for their duration while the fight goes on.
func (v *visit) enough(f *frame) bool {
	return v.c.ticks > 0 && v.first > 0 && f.Number-v.first >= v.c.ticks && !f.Quiet && f.Result == nil
}

// leave leaves before the end of the fight.
func (v *visit) leave(interrupted bool) *report {
	v.screen.leave()
	v.sendLeaving()
	return v.departure(interrupted)
}

// sendLeaving notifies the server, and waits until the server closes the connection: closing it
// with unread data might discard the message.
func (v *visit) sendLeaving() {
	if v.send(reply{Number: v.frames, Leaving: true}) == nil {
		v.drain(time.Second)
	}
}

// show plays a tick of all clients.
func (v *visit) show(f *frame) error {
	if f.Result != nil {
		v.result = f.Result
		return nil
	}
	v.frames, v.cost, v.traffic = f.Number, f.Cost, f.Traffic
	if v.first == 0 {
		v.first = f.Number
	}
	if f.Recorded {
		v.truth.add(f.Tick, f.Changes)
	}
	r := reply{Number: f.Number}
	for i, m := range v.mirrors {
		if f.Quiet {
			m.line.heal()
		}
		if i < len(f.Sent) {
			m.line.port.expect(f.Sent[i])
		}
		if err := m.step(v.truth); err != nil {
			return err
		}
		r.Views = append(r.Views, m.outlook())
		r.Sent = append(r.Sent, m.line.port.written())
		r.Checks = append(r.Checks, m.checks)
		r.Mismatches = append(r.Mismatches, m.mismatches)
		if f.Quiet {
			r.Equal = append(r.Equal, m.equal(v.truth))
		}
	}
	if !f.Quiet {
		v.screen.show(f.Number, v.c.tickRate, v.picture)
	}
	if v.send(r) != nil {
		return errors.New("the server has gone")
	}
	return nil
}

// played returns the number of ticks of the fight that these clients have seen.
func (v *visit) played() int {
	if v.first == 0 {
		return 0
	}
	return v.frames - v.first + 1
}

// picture returns everything that this process can show.
func (v *visit) picture() *picture {
	p := &picture{c: v.c, ticks: v.played(), limit: v.c.ticks, views: []view{v.mirrors[0].view(1, v.truth)}}
	var roundTrip mean
	for _, m := range v.mirrors {
		roundTrip.add(m.outlook().RoundTrip)
	}
	p.figures = v.meter.figures(v.frames, v.c, &v.cost, v.traffic)
	p.figures.roundTrip = roundTrip.value()
	p.figures.checks, p.figures.wrong = tally(v.mirrors)
	return p
}

// report combines the server's report with the clients' own results.
func (v *visit) report(r *report) *report {
	r.Role = "clients"
	if len(r.Rows) != len(v.mirrors) { // from a server of another program
		r.Rows = make([]row, len(v.mirrors))
	}
	r.Clients = len(v.mirrors)
	r.Converged = r.compare(v.mirrors, v.truth)
	r.judge(v.mirrors)
	return r
}

// departure is the report of clients that leave before the end. It lacks what only the server
// knows, and whether the worlds would have become equal.
func (v *visit) departure(interrupted bool) *report {
	r := &report{
		Role: "clients", Transport: "udp", Seed: v.c.seed, TickRate: v.c.tickRate, SendRate: v.c.sendRate,
		Ticks: v.played(), Clients: len(v.mirrors), Interrupted: interrupted, Left: true,
	}
	seconds := float64(v.played()) / float64(v.c.tickRate)
	var roundTrip, inputDelay mean
	for i, m := range v.mirrors {
		stats, view := m.client.Stats(), m.outlook()
		r.Entities = max(r.Entities, m.entities())
		r.Bytes += m.bytes
		r.Packets += stats.Packets
		roundTrip.add(view.RoundTrip)
		inputDelay.add(view.InputDelay)
		r.Rows = append(r.Rows, row{
			Client: i + 1, Packets: stats.Packets, Bytes: per(float64(m.bytes), seconds),
			Messages: stats.MessagesReceived, MessagesUp: stats.Messages,
			RoundTrip: tenth(view.RoundTrip), InputDelay: tenth(view.InputDelay),
		})
		if m.checks > 0 && (r.Checked == 0 || newer(m.checked, r.Checked)) {
			r.Checked = m.checked
		}
	}
	r.BytesPerClientPerSecond = per(float64(r.Bytes), seconds*float64(len(v.mirrors)))
	r.setRoundTrip(roundTrip.value())
	r.InputDelayTicks = tenth(inputDelay.value())
	r.judge(v.mirrors)
	return r
}
