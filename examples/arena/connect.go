package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// runClients plays with clients whose server is a process of its own.
func runClients(ctx context.Context, c *config, s *screen) (*report, error) {
	conn, err := dial(ctx, c)
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
	var w welcome
	if err := ctl.greeting(&w); err != nil {
		return nil, fmt.Errorf("the server does not answer as one should: %w", err)
	}
	if w.Refused != "" {
		return nil, fmt.Errorf("the server does not want these clients: %s", w.Refused)
	}
	c.tickRate, c.sendRate = w.TickRate, w.SendRate
	s.say("arena mirrors %s for %d clients", c.connect, c.clients)

	v := &visit{c: c, control: ctl, truth: newTruth(), screen: s}
	server := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	for i, each := range sockets {
		seed := c.seed + 2*uint64(i) + 1
		v.mirrors = append(v.mirrors, newMirror(pilotName(i), newLine(each.port(server, localPatience), seed, c.weather())))
	}
	return v.run(ctx)
}

// dial connects to the server, as soon as there is one.
func dial(ctx context.Context, c *config) (net.Conn, error) {
	start := time.Now()
	for {
		dialer := net.Dialer{Timeout: maxPatience}
		conn, err := dialer.DialContext(ctx, "tcp", c.connect)
		if err == nil {
			return conn, nil
		}
		var address *net.AddrError
		if errors.As(err, &address) || ctx.Err() != nil || (c.wait > 0 && time.Since(start) > c.wait) {
			return nil, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// openSockets opens a UDP socket for each client, on the interface that leads
// to the server.
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

// visit is a process of clients at a server.
type visit struct {
	*control
	c       *config
	truth   *truth
	mirrors []*mirror
	screen  *screen
	result  *report
	frames  int
}

// run mirrors until the server has enough, or ctx is done.
func (v *visit) run(ctx context.Context) (*report, error) {
	// Wakes up receive.
	defer context.AfterFunc(ctx, func() { _ = v.conn.SetReadDeadline(time.Now()) })()

	for v.result == nil {
		var f frame
		err := v.receive(&f)
		if ctx.Err() != nil {
			v.bye()
			r := v.report(&report{Interrupted: true, Ticks: v.frames, TickRate: v.c.tickRate, SendRate: v.c.sendRate})
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the server has gone: %w", err)
		}
		if err := v.show(&f); err != nil {
			return nil, err
		}
	}
	return v.report(v.result), nil
}

// bye leaves before the end, and waits until the server knows: to close on what
// it has sent meanwhile might take the message away from it.
func (v *visit) bye() {
	_ = v.conn.SetReadDeadline(time.Now().Add(time.Second))
	for err := v.send(reply{Number: v.frames, Bye: true}); err == nil; {
		err = v.receive(&frame{})
	}
}

// show is a tick of all clients.
func (v *visit) show(f *frame) error {
	if f.Result != nil {
		v.result = f.Result
		return nil
	}
	v.frames = f.Number
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
		r.Delays = append(r.Delays, m.line.delay())
		r.Views = append(r.Views, m.outlook())
		r.Sent = append(r.Sent, m.line.port.written())
		r.Checks = append(r.Checks, m.checks)
		r.Mismatches = append(r.Mismatches, m.mismatches)
		if f.Quiet {
			r.Equal = append(r.Equal, m.equal(v.truth))
		}
	}
	v.screen.status(func() string {
		return fmt.Sprintf("%5.1f s  %d clients mirror %d entities  %d wrong",
			float64(f.Number)/float64(v.c.tickRate), len(v.mirrors), v.truth.alive(), mismatches(v.mirrors))
	})
	if v.send(r) != nil {
		return errors.New("the server has gone")
	}
	return nil
}

// report is what the server found with what these clients know better.
func (v *visit) report(r *report) *report {
	r.Role, r.Transport = "clients", "udp"
	r.Clients = len(v.mirrors)
	if len(r.Rows) != len(v.mirrors) {
		r.Rows = make([]row, len(v.mirrors))
	}
	r.Converged = r.compare(v.mirrors, v.truth) && v.result != nil // else it was not the end
	r.judge(v.mirrors)
	return r
}
