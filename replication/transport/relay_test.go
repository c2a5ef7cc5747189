package transport_test

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A relay is between one client and the server.
type relay interface {
	address() string
	// mute loses all packets, or ends that. Where none can be lost, they wait.
	mute(on bool)
	// hold lets packets wait in the system's buffers, or ends that.
	hold(on bool)
	// move gives the client another address, as a router does.
	move()
	close()
}

// gate stops the goroutines of a relay.
type gate struct{ held, muted, closed atomic.Bool }

func (g *gate) hold(on bool) { g.held.Store(on) }

// wait returns when packets may pass.
func (g *gate) wait() {
	for g.held.Load() && !g.closed.Load() {
		time.Sleep(time.Millisecond)
	}
}

type datagramRelay struct {
	gate
	front *net.UDPConn
	to    netip.AddrPort
	work  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	back   *net.UDPConn
	client netip.AddrPort
}

func localUDP() (*net.UDPConn, error) {
	return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

func relayDatagrams(t *testing.T, to string) relay {
	front, err := localUDP()
	require.NoError(t, err)
	r := &datagramRelay{front: front, to: netip.MustParseAddrPort(to)}
	r.move()
	r.work.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			r.wait()
			n, from, err := front.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.client = from
			if !r.muted.Load() {
				_, _ = r.back.WriteToUDPAddrPort(buf[:n], r.to) // lost, as networks do
			}
			r.mu.Unlock()
		}
	})
	t.Cleanup(r.close)
	return r
}

func (r *datagramRelay) address() string { return r.front.LocalAddr().String() }

func (r *datagramRelay) mute(on bool) { r.muted.Store(on) }

func (r *datagramRelay) move() {
	back, err := localUDP()
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	if r.back != nil {
		_ = r.back.Close()
	}
	r.back = back
	r.mu.Unlock()
	r.work.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			r.wait()
			n, _, err := back.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			to := r.client
			r.mu.Unlock()
			if to.IsValid() && !r.muted.Load() {
				_, _ = r.front.WriteToUDPAddrPort(buf[:n], to)
			}
		}
	})
}

func (r *datagramRelay) close() {
	r.closed.Store(true)
	_ = r.front.Close()
	r.mu.Lock()
	_ = r.back.Close()
	r.mu.Unlock()
	r.work.Wait()
}

type connectionRelay struct {
	gate
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns []net.Conn
}

func relayConnections(t *testing.T, to string) relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &connectionRelay{listener: l, to: to}
	r.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.wait()
			server, err := net.Dial("tcp", r.to)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, client, server)
			r.mu.Unlock()
			r.work.Go(func() { r.copy(client, server) })
			r.work.Go(func() { r.copy(server, client) })
		}
	})
	t.Cleanup(r.close)
	return r
}

func (r *connectionRelay) copy(from, to net.Conn) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	buf := make([]byte, 4096)
	for {
		r.wait()
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		r.wait()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (r *connectionRelay) address() string { return r.listener.Addr().String() }

func (r *connectionRelay) mute(on bool) { r.hold(on) }

// move closes the connections: those of TCP do not survive another address.
func (r *connectionRelay) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

func (r *connectionRelay) close() {
	r.closed.Store(true)
	_ = r.listener.Close()
	r.move()
	r.work.Wait()
}
