package main

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	largestDatagram = 64 << 10
	inboxDatagrams  = 4096 // datagrams beyond this are lost, as in the kernel
)

// udpPort is one end of a connection over UDP. Each client has a socket, the server has one for
// all.
type udpPort struct {
	socket   *socket
	to       netip.AddrPort
	inbox    chan []byte
	patience time.Duration // how long read waits for expected datagrams

	sent     uint64
	got      uint64
	expected uint64
}

func (p *udpPort) write(packet []byte) error {
	p.sent++
	_, err := p.socket.conn.WriteToUDPAddrPort(packet, p.to)
	return err
}

func (p *udpPort) read(fn func(packet []byte)) {
	for {
		select {
		case packet := <-p.inbox:
			p.got++
			fn(packet)
			continue
		default:
		}
		if p.got >= p.expected || p.patience == 0 {
			return
		}
		select {
		case packet := <-p.inbox:
			p.got++
			fn(packet)
		case <-time.After(p.patience):
			p.got = p.expected // it is lost
			return
		}
	}
}

func (p *udpPort) written() uint64     { return p.sent }
func (p *udpPort) expect(total uint64) { p.expected = total }
func (p *udpPort) close()              { p.socket.forget(p) }

// socket reads datagrams in the background and sorts them by sender. Those of unknown senders are
// dropped.
type socket struct {
	conn  *net.UDPConn
	owned bool // by its only port

	mu    sync.Mutex
	ports map[netip.AddrPort]*udpPort
}

// listenUDP opens a socket.
func listenUDP(address string) (*socket, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, err
	}
	// Best effort: a small buffer only means more loss.
	_ = conn.SetReadBuffer(4 << 20)
	s := &socket{conn: conn, ports: map[netip.AddrPort]*udpPort{}}
	go s.listen()
	return s, nil
}

// address returns the socket's own address.
func (s *socket) address() netip.AddrPort {
	return s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// port returns the connection with another socket.
func (s *socket) port(to netip.AddrPort, patience time.Duration) *udpPort {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	p := &udpPort{socket: s, to: to, inbox: make(chan []byte, inboxDatagrams), patience: patience}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports[to] = p
	return p
}

// forget ends a connection.
func (s *socket) forget(p *udpPort) {
	s.mu.Lock()
	if s.ports[p.to] == p { // else a newer connection has the address
		delete(s.ports, p.to)
	}
	s.mu.Unlock()
	if s.owned {
		s.close()
	}
}

func (s *socket) close() { _ = s.conn.Close() }

func (s *socket) listen() {
	buf := make([]byte, largestDatagram)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Some systems report the refusal of an earlier datagram here.
			time.Sleep(time.Millisecond)
			continue
		}
		s.mu.Lock()
		p := s.ports[netip.AddrPortFrom(from.Addr().Unmap(), from.Port())]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		select {
		case p.inbox <- slices.Clone(buf[:n]):
		default:
		}
	}
}
