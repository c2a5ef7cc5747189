package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// visitor is a process of clients.
type visitor struct {
	*control
	ports        []uint16
	guests       []*guest
	replies      chan reply // closed with the connection
	latest       reply
	result       *report // for its clients, at the end of the fight
	leftProperly bool    // it announced that it leaves
	gone         bool
}

// lobby is where processes of clients connect.
type lobby struct {
	tcp     net.Listener
	udp     *socket
	knocked chan *visitor
}

// openLobby listens on TCP and UDP at the same port.
func openLobby(address string) (*lobby, error) {
	const attempts = 10 // for port 0: a port that is free for TCP may be in use for UDP
	var lastErr error
	for range attempts {
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		udp, err := listenUDP(tcp.Addr().String())
		if err != nil {
			lastErr = errors.Join(err, tcp.Close())
			continue
		}
		return &lobby{tcp, udp, make(chan *visitor)}, nil
	}
	return nil, lastErr
}

// close stops listening.
func (l *lobby) close() {
	_ = l.tcp.Close()
	l.udp.close()
}

// open accepts processes until the lobby or ctx is closed.
func (l *lobby) open(ctx context.Context, c *config) {
	for {
		conn, err := l.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of some resource; it may pass
			continue
		}
		go func() {
			v, err := greet(newControl(conn), c)
			if err != nil {
				_ = conn.Close()
				return
			}
			select {
			case l.knocked <- v:
			case <-ctx.Done():
				v.close()
			}
		}()
	}
}

// greet checks a new process.
func greet(ctl *control, c *config) (*visitor, error) {
	var h hello
	if err := ctl.greeting(&h); err != nil {
		return nil, err
	}
	w := welcome{TickRate: c.tickRate, SendRate: c.sendRate, Expected: c.clients}
	switch {
	case h.Magic != controlMagic:
		w.Refused = fmt.Sprintf("it speaks %q, the clients %q", controlMagic, h.Magic)
	case len(h.Ports) < 1 || len(h.Ports) > maxClients:
		w.Refused = fmt.Sprintf("%d clients in a process are not from 1 to %d", len(h.Ports), maxClients)
	}
	if err := ctl.send(w); err != nil {
		return nil, err
	}
	if w.Refused != "" {
		return nil, errors.New(w.Refused)
	}
	return &visitor{control: ctl, ports: h.Ports}, nil
}
