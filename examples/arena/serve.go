package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// party is a server with processes of clients.
type party struct {
	*host
	c        *config
	lobby    *lobby
	visitors []*visitor
	lockstep bool // every tick waits for all clients instead of the clock
}

// runServer plays with clients in other processes.
func runServer(ctx context.Context, c *config, s *screen) (*report, error) {
	lobby, err := openLobby(c.serve)
	if err != nil {
		return nil, err
	}
	defer lobby.close()
	lobbyCtx, closeDoors := context.WithCancel(context.Background())
	defer closeDoors()
	go lobby.open(lobbyCtx, c)

	p := &party{host: newHost(c), c: c, lobby: lobby}
	defer func() {
		for _, v := range p.visitors {
			p.dismissAll(v)
		}
	}()
	s.printLine(fmt.Sprintf("arena: serving at %s and waiting for %s; start them with:\n"+
		"  go run ./examples/arena -connect %s -clients %d",
		lobby.tcp.Addr(), count(c.clients, "client"), lobby.tcp.Addr(), c.clients))
	s.printLine("link: " + c.link())
	if c.onListen != nil {
		c.onListen(lobby.tcp.Addr().String())
	}
	if err := p.assemble(ctx); err != nil {
		return nil, err
	}

	p.lockstep = c.headless
	for range c.pace(ctx) {
		if c.ticks != 0 && p.ticks >= c.ticks || p.present() == 0 {
			break
		}
		p.admit()
		p.tick(true)
		s.show(p.ticks, c.tickRate, p.picture)
	}
	s.leave()
	summary := func(guests []*guest) *report {
		r := p.report(c, guests)
		r.Role, r.Transport = "server", "udp"
		r.Interrupted = ctx.Err() != nil || p.allLeftProperly()
		return r
	}
	result := summary(p.guests)
	for _, v := range p.visitors {
		v.result = summary(v.guests)
	}

	p.heal()
	p.lockstep = true
	for !result.Converged && result.QuietTicks < c.quietTicks() && p.present() > 0 {
		p.tick(false)
		result.QuietTicks++
		result.Converged = result.QuietTicks >= c.sendStep() && p.compare(result)
	}
	result.Checks, result.Mismatches = p.compared()
	p.farewell(result)
	return result, nil
}

// assemble waits until enough clients have connected.
func (p *party) assemble(ctx context.Context) error {
	var late <-chan time.Time
	if p.c.wait > 0 {
		late = time.After(p.c.wait)
	}
	ticker := time.NewTicker(time.Second / 10)
	defer ticker.Stop()
	for p.present() < p.c.clients {
		select {
		case v := <-p.lobby.knocked:
			p.seat(v)
		case <-ticker.C:
			p.seeOff()
		case <-ctx.Done():
			return nil
		case <-late:
			return fmt.Errorf("%d of %d clients came within %v", p.present(), p.c.clients, p.c.wait)
		}
	}
	return nil
}

// seeOff handles clients that leave before the fight.
func (p *party) seeOff() {
	for _, v := range p.visitors {
		select {
		case r, ok := <-v.replies:
			if !v.gone && (!ok || r.Leaving) {
				v.leftProperly = true // before the fight, closing the connection is enough
				p.dismissAll(v)
			}
		default:
		}
	}
}

// admit accepts late clients.
func (p *party) admit() {
	select {
	case v := <-p.lobby.knocked:
		p.seat(v)
	default:
	}
}

// seat connects the clients of a process.
func (p *party) seat(v *visitor) {
	remote := v.conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	for _, number := range v.ports {
		port := p.lobby.udp.port(netip.AddrPortFrom(remote, number), localPatience)
		i := uint64(len(p.guests))
		v.guests = append(v.guests, p.welcome(newLine(port, p.c.seed+2*i, p.c.weather())))
	}
	v.replies = make(chan reply, 64)
	go func() {
		defer close(v.replies)
		for {
			var r reply
			if v.receive(&r) != nil {
				return
			}
			v.replies <- r
		}
	}()
	p.visitors = append(p.visitors, v)

	// A late process needs the record so far.
	if p.ticks > 0 {
		p.sendFrame(v, frame{Number: p.ticks, Recorded: true, Tick: p.truth.tick, Changes: p.truth.snapshot()})
	}
}

// tick plays a tick on the server and on all clients.
func (p *party) tick(fight bool) {
	before := p.truth.records
	changes := p.step(fight)
	for _, v := range p.visitors {
		p.sendFrame(v, frame{
			Number: p.ticks, Recorded: p.truth.records > before, Tick: p.truth.tick, Changes: changes, Quiet: !fight,
			Cost: p.costs.cost,
		})
	}
	for _, v := range p.visitors {
		p.listen(v)
	}
}

// sendFrame sends a frame to a process of clients, or drops it on an error.
func (p *party) sendFrame(v *visitor, f frame) {
	if v.gone {
		return
	}
	f.Traffic = p.traffic(v.guests)
	if p.lockstep {
		for _, g := range v.guests {
			f.Sent = append(f.Sent, g.line.port.written())
		}
	}
	if v.send(f) != nil {
		p.dismissAll(v)
	}
}

// listen reads the replies of a process. In lockstep it waits for the one to the latest frame.
func (p *party) listen(v *visitor) {
	var late <-chan time.Time
	if p.lockstep {
		timer := time.NewTimer(maxPatience)
		defer timer.Stop()
		late = timer.C
	}
	for !v.gone && v.latest.Number < p.ticks {
		if late == nil && len(v.replies) == 0 {
			return
		}
		select {
		case r, ok := <-v.replies:
			if !ok || r.Leaving {
				v.leftProperly = ok && r.Leaving
				p.dismissAll(v)
				return
			}
			v.latest = r
			for i := range min(len(v.guests), len(r.Views)) {
				v.guests[i].view = r.Views[i]
			}
			for i := 0; p.lockstep && i < min(len(v.guests), len(r.Sent)); i++ {
				v.guests[i].line.port.expect(r.Sent[i])
			}
		case <-late:
			p.dismissAll(v)
		}
	}
}

// dismissAll disconnects a process.
func (p *party) dismissAll(v *visitor) {
	if v.gone {
		return
	}
	v.gone = true
	v.close()
	for _, g := range v.guests {
		p.dismiss(g)
	}
}

// present returns the number of connected clients.
func (p *party) present() int {
	n := 0
	for _, v := range p.visitors {
		if !v.gone {
			n += len(v.guests)
		}
	}
	return n
}

// allLeftProperly reports whether all processes have announced that they leave.
func (p *party) allLeftProperly() bool {
	for _, v := range p.visitors {
		if !v.leftProperly {
			return false
		}
	}
	return true
}

// compared returns how many entities the clients have compared, and how many were wrong.
func (p *party) compared() (checks, wrong int) {
	for _, v := range p.visitors {
		checks += sum(v.latest.Checks)
		wrong += sum(v.latest.Mismatches)
	}
	return checks, wrong
}

// picture returns everything that this process can show.
func (p *party) picture() *picture {
	checks, wrong := p.compared()
	return &picture{
		c: p.c, ticks: p.ticks, limit: p.c.ticks, views: []view{p.view()}, figures: p.figures(p.c, checks, wrong),
	}
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// compare records which clients report that their worlds equal this one, and reports whether all
// do. Processes that have announced that they leave do not count; lost ones do.
func (p *party) compare(r *report) bool {
	all := p.present() > 0
	for _, v := range p.visitors {
		if v.leftProperly {
			continue
		}
		for i, g := range v.guests {
			equal := !v.gone && i < len(v.latest.Equal) && v.latest.Equal[i]
			r.Rows[g.number].Equal, r.Rows[g.number].Compared = equal, true
			all = all && equal
		}
	}
	return all
}

// farewell sends every process the result and the rows of its clients.
func (p *party) farewell(r *report) {
	for _, v := range p.visitors {
		v.result.Converged, v.result.QuietTicks = r.Converged, r.QuietTicks
		for i, g := range v.guests {
			if i < len(v.latest.Mismatches) {
				r.Rows[g.number].Mismatches = v.latest.Mismatches[i]
			}
			v.result.Rows[i] = r.Rows[g.number]
		}
		p.sendFrame(v, frame{Number: p.ticks, Result: v.result})
	}
}
