package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
)

// ListenerStats counts the datagrams of a listener and what became of them.
type ListenerStats struct {
	Received   uint64 // datagrams
	Answered   uint64 // cookies sent to strangers
	RateLimit  uint64 // strangers that got no answer, see WithHelloRate
	TooShort   uint64 // datagrams of strangers that are shorter than the answer
	TooLarge   uint64 // datagrams over 2,048 bytes
	BadCookie  uint64 // cookies that are wrong or too old; the stranger gets a new one
	Full       uint64 // proven strangers refused by WithMaxPeers
	FullIP     uint64 // proven strangers refused by WithMaxPerIP
	InboxFull  uint64 // packets of peers dropped by WithInbox
	NoClient   uint64 // proven strangers whose first packet the server did not accept
	ReadErrors uint64 // errors of the socket
}

// Listener is a UDP socket of a server. Its methods are for the goroutine of the
// server's loop.
type Listener struct {
	conn   *net.UDPConn
	server *replication.Server
	opts   options
	done   chan struct{} // closed when the reader has ended
	peers  map[*replication.Peer]*remote
	taken  []datagram // what Poll works on
	closed bool

	// Of the reader alone.
	baker  baker
	answer [headerSize]byte
	tokens float64 // answers that may be sent now
	filled time.Duration

	mu    sync.Mutex // guards what follows
	table map[netip.AddrPort]*remote
	perIP map[netip.Addr]int
	inbox []datagram
	free  [][]byte
	stats ListenerStats
}

// remote is a proven address.
type remote struct {
	addr    netip.AddrPort
	peer    *replication.Peer // of the loop; nil before the first packet
	waiting int               // packets in the inbox
	gone    bool              // no longer in the table
}

type datagram struct {
	from *remote
	data []byte
}

// Listen opens a socket at an address such as ":9000" or "127.0.0.1:0", whose
// clients become peers of the server in Poll. The error reports a wrong address
// or a port that is taken.
func Listen(address string, server *replication.Server, opts ...Option) (*Listener, error) {
	if server == nil {
		panic("udp: Listen needs a server: replication.NewServer makes one")
	}
	start := time.Now()
	o := options{
		maxPeers: 256, maxPerIP: 8, inbox: 64, helloRate: 2000,
		now: func() time.Duration { return time.Since(start) },
	}
	for _, opt := range opts {
		if opt == nil {
			panic("udp: Listen: an option is nil; leave it out")
		}
		opt(&o)
	}
	at, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("udp: listen at %q: %w", address, err)
	}
	conn, err := net.ListenUDP("udp", at)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	l := &Listener{
		conn: conn, server: server, opts: o, done: make(chan struct{}), baker: newBaker(),
		tokens: float64(o.helloRate), filled: o.now(),
		peers: map[*replication.Peer]*remote{}, table: map[netip.AddrPort]*remote{}, perIP: map[netip.Addr]int{},
	}
	copy(l.answer[:], magic)
	server.OnDisconnect(func(p *replication.Peer) {
		if r := l.peers[p]; r != nil {
			delete(l.peers, p)
			l.forget(r)
		}
	})
	go l.read()
	return l, nil
}

// Addr returns the address of the socket.
func (l *Listener) Addr() netip.AddrPort {
	return unmap(l.conn.LocalAddr().(*net.UDPAddr).AddrPort())
}

// Remote returns the address of a peer, if it is one of the listener's.
func (l *Listener) Remote(p *replication.Peer) (netip.AddrPort, bool) {
	r := l.peers[p]
	if r == nil {
		return netip.AddrPort{}, false
	}
	return r.addr, true
}

// Stats returns what the listener has counted.
func (l *Listener) Stats() ListenerStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Poll gives the server what has arrived. It never waits. Call it before the
// systems of a tick.
func (l *Listener) Poll() {
	if l.closed {
		return
	}
	l.mu.Lock()
	l.taken, l.inbox = l.inbox, l.taken[:0]
	for _, d := range l.taken {
		d.from.waiting--
	}
	l.mu.Unlock()
	for _, d := range l.taken {
		l.receive(d)
	}
	l.mu.Lock()
	for i := range l.taken {
		l.free = append(l.free, l.taken[i].data)
		l.taken[i] = datagram{}
	}
	l.mu.Unlock()
}

func (l *Listener) receive(d datagram) {
	r := d.from
	switch {
	case r.gone || l.closed:
	case r.peer != nil:
		_ = r.peer.Receive(d.data) // counted in Peer.Stats
	default:
		p := l.server.Connect(func(packet []byte) error {
			_, err := l.conn.WriteToUDPAddrPort(packet, r.addr)
			return err
		})
		r.peer, l.peers[p] = p, r
		if err := p.Receive(d.data); err != nil { // not a client that wants to join
			l.mu.Lock()
			l.stats.NoClient++
			l.mu.Unlock()
			p.Disconnect(replication.Reason{})
		}
	}
}

func (l *Listener) forget(r *remote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.gone = true
	delete(l.table, r.addr)
	if ip := network(r.addr); l.perIP[ip] > 1 {
		l.perIP[ip]--
	} else {
		delete(l.perIP, ip)
	}
}

// Close disconnects the peers of the listener, which are notified, and closes the
// socket. The server and its other peers go on.
func (l *Listener) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	for p := range l.peers {
		p.Disconnect(replication.Reason{})
	}
	err := l.conn.Close()
	<-l.done
	return err
}

// read is the goroutine of the socket: it keeps all from the loop that is not from a proven address.
func (l *Listener) read() {
	defer close(l.done)
	buf := make([]byte, maxPacket+headerSize+1)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if l.take(buf[:n], unmap(from), err) {
			_, _ = l.conn.WriteToUDPAddrPort(l.answer[:], from) // lost: the stranger asks again
		}
	}
}

// take takes what was read, and reports whether l.answer has to be sent.
func (l *Listener) take(data []byte, from netip.AddrPort, err error) (answer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.stats.ReadErrors++
		return false
	}
	l.stats.Received++
	cookie, packet, headed := split(data)
	if len(packet) > maxPacket {
		l.stats.TooLarge++
		return false
	}
	r := l.table[from]
	if r == nil {
		if len(data) < headerSize {
			l.stats.TooShort++
			return false
		}
		period := uint64(l.opts.now() / cookiePeriod)
		if !headed || !l.baker.proves(cookie, from, period) {
			if headed && [cookieSize]byte(cookie) != [cookieSize]byte{} {
				l.stats.BadCookie++
			}
			return l.answerStranger(from, period)
		}
		if r = l.admit(from); r == nil {
			return false
		}
	}
	if r.waiting >= l.opts.inbox {
		l.stats.InboxFull++
		return false
	}
	var room []byte
	if n := len(l.free); n > 0 {
		room, l.free = l.free[n-1], l.free[:n-1]
	}
	r.waiting++
	l.inbox = append(l.inbox, datagram{r, append(room[:0], packet...)})
	return false
}

func (l *Listener) answerStranger(from netip.AddrPort, period uint64) bool {
	now, rate := l.opts.now(), float64(l.opts.helloRate)
	l.tokens = min(rate, l.tokens+(now-l.filled).Seconds()*rate)
	l.filled = now
	if l.tokens < 1 {
		l.stats.RateLimit++
		return false
	}
	l.tokens--
	l.stats.Answered++
	copy(l.answer[len(magic):], l.baker.cookie(from, period))
	return true
}

func (l *Listener) admit(from netip.AddrPort) *remote {
	switch ip := network(from); {
	case len(l.table) >= l.opts.maxPeers:
		l.stats.Full++
	case l.perIP[ip] >= l.opts.maxPerIP:
		l.stats.FullIP++
	default:
		r := &remote{addr: from}
		l.table[from] = r
		l.perIP[ip]++
		return r
	}
	return nil
}

// network is what one owner has: an IPv4 address, or a /64 of IPv6.
func network(a netip.AddrPort) netip.Addr {
	if ip := a.Addr(); ip.Is6() {
		p, _ := ip.WithZone("").Prefix(64)
		return p.Addr()
	}
	return a.Addr()
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
