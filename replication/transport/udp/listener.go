package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/transport"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// ListenerStats counts the datagrams of a listener and what became of them.
type ListenerStats struct {
	transport.Stats
	Received   uint64 // datagrams
	Answered   uint64 // cookies sent to strangers
	RateLimit  uint64 // strangers that got no answer, see WithHelloRate
	TooShort   uint64 // datagrams of strangers that are shorter than the answer
	BadCookie  uint64 // cookies that are wrong or too old; the stranger gets a new one
	NoHello    uint64 // packets of proven strangers that ask for no session
	NotOpened  uint64 // packets that the function of WithSeal refused
	ReadErrors uint64 // errors of the socket
}

// Listener is a UDP socket of a server. Its methods are for the goroutine of the
// server's loop.
type Listener struct {
	conn   *net.UDPConn
	server *replication.Server
	opts   *options
	hub    *link.Hub
	done   chan struct{} // closed when the reader has ended
	sealed []byte        // of the goroutine that sends

	// Of the reader alone.
	baker     baker
	answer    [headerSize]byte
	opened    []byte
	strangers *strangers

	mu    sync.Mutex // guards what follows
	table map[netip.AddrPort]*link.Link
	stats ListenerStats
}

// readBuffer has room for about 5,000 small datagrams, where a usual default of systems has it for 280: packets of all
// clients may arrive at once, or behind a flood.
const readBuffer = 4 << 20

// Listen opens a socket at an address such as ":9000" or "127.0.0.1:0", whose
// clients become peers of the server in Poll. The error reports a wrong address
// or a port that is taken.
func Listen(address string, server *replication.Server, opts ...Option) (*Listener, error) {
	o := settings(false, opts)
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("udp: listen at %q: %w", address, err)
	}
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("udp: listen at %q: %w", address, link.ListenError(err))
	}
	_ = conn.SetReadBuffer(readBuffer) // the system may give less
	l := &Listener{
		conn: conn, server: server, opts: o, done: make(chan struct{}), baker: newBaker(),
		strangers: newStrangers(o.helloRate, o.now()), table: map[netip.AddrPort]*link.Link{},
	}
	l.hub = link.NewHub("udp", server, o.limits, o.network)
	copy(l.answer[:], magic)
	go l.read()
	return l, nil
}

// Addr returns the address of the socket.
func (l *Listener) Addr() netip.AddrPort {
	return unmap(l.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}

// Stats returns what the listener has counted.
func (l *Listener) Stats() ListenerStats {
	l.mu.Lock()
	s := l.stats
	l.mu.Unlock()
	s.Stats = l.hub.Stats()
	return s
}

// Poll gives the server what has arrived. It never waits. Call it before the
// systems of a tick.
func (l *Listener) Poll() { l.hub.Poll() }

// Close disconnects the peers of the listener, whose clients wait for the next server
// and join that by themselves, and closes the socket. The server and its other peers
// go on. Call [replication.Server.Close] first if the game has ended for the clients.
func (l *Listener) Close() error {
	l.hub.Close()
	err := l.conn.Close()
	<-l.done
	if errors.Is(err, net.ErrClosed) { // Close was called before
		return nil
	}
	return err
}

// read is the goroutine of the socket: it keeps all from the loop that is not from a proven address.
func (l *Listener) read() {
	defer close(l.done)
	buf := make([]byte, mostBytes)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.count(&l.stats.ReadErrors)
			time.Sleep(afterError)
			continue
		}
		if l.take(buf[:n], unmap(from)) {
			_, _ = l.conn.WriteToUDPAddrPort(l.answer[:], from) // lost: the stranger asks again
		}
	}
}

func (l *Listener) count(counter *uint64) {
	l.mu.Lock()
	*counter++
	l.mu.Unlock()
}

// take takes a datagram, and reports whether l.answer has to be sent to its sender.
func (l *Listener) take(data []byte, from netip.AddrPort) (answer bool) {
	l.mu.Lock()
	l.stats.Received++
	to := l.table[from]
	l.mu.Unlock()
	cookie, packet, headed := split(data)
	if to == nil {
		if len(data) < headerSize {
			l.count(&l.stats.TooShort)
			return false
		}
		period := uint64(l.opts.now() / cookiePeriod)
		if !headed || !l.baker.proves(cookie, from, period) {
			if headed && [cookieSize]byte(cookie) != [cookieSize]byte{} {
				l.count(&l.stats.BadCookie)
			}
			return l.answerStranger(from, period)
		}
	}
	if l.opts.open != nil {
		opened, err := l.opts.open(l.opened[:0], packet, from)
		if err != nil {
			l.count(&l.stats.NotOpened)
			return false
		}
		l.opened, packet = opened, opened
	}
	if to == nil {
		if to = l.admit(from, packet); to == nil {
			return false
		}
	}
	to.Deliver(packet)
	return false
}

// answerStranger makes an answer, if there may be one.
func (l *Listener) answerStranger(from netip.AddrPort, period uint64) bool {
	if !l.strangers.allow(from, l.opts.now()) {
		l.count(&l.stats.RateLimit)
		return false
	}
	l.count(&l.stats.Answered)
	copy(l.answer[len(magic):], l.baker.cookie(from, period))
	return true
}

// admit makes a link for a proven address, if the packet asks for a session.
func (l *Listener) admit(from netip.AddrPort, packet []byte) *link.Link {
	if !l.server.Accepts(packet) {
		l.count(&l.stats.NoHello)
		return nil
	}
	to, err := l.hub.Open(link.Socket{
		Address: from, Connectionless: true,
		Send:  func(packet []byte) error { return l.send(packet, from) },
		Close: func() { l.forget(from) },
	})
	if err != nil {
		return nil // counted by the hub
	}
	l.mu.Lock()
	l.table[from] = to
	l.mu.Unlock()
	return to
}

func (l *Listener) forget(from netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.table, from)
}

func (l *Listener) send(packet []byte, to netip.AddrPort) error {
	if l.opts.seal != nil {
		sealed, err := l.opts.seal(l.sealed[:0], packet, to)
		if err != nil {
			return fmt.Errorf("udp: the function of WithSeal refused a packet: %w", err)
		}
		l.sealed, packet = sealed, sealed
	}
	_, err := l.conn.WriteToUDPAddrPort(packet, to)
	return err
}
