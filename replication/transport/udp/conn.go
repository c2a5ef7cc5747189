package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport/internal/link"
)

// ConnStats counts the datagrams of a client's socket.
type ConnStats struct {
	Received   uint64 // packets
	InboxFull  uint64 // packets dropped, since 1,024 waited for Poll
	Cookies    uint64 // cookies of the server
	Strangers  uint64 // datagrams that are not from the server
	NotOpened  uint64 // packets that the function of WithSeal refused
	ReadErrors uint64 // errors of the socket
}

// Conn is a UDP socket of a client. Its methods are for the goroutine of the
// client's loop.
type Conn struct {
	conn   *net.UDPConn
	client *replication.Client
	server netip.AddrPort
	opts   *options
	paths  [2]*netsim.Path
	inbox  link.Inbox
	done   chan struct{}
	sealed []byte // of the goroutine that sends: header and packet
	opened []byte // of the reader
	closed bool

	proven   atomic.Bool  // the server has answered a packet, so it knows the address
	received atomic.Int64 // when something came from the server, by opts.now; 0 before the first packet to it
	silent   error        // what send functions return when that was long ago

	mu     sync.Mutex // guards what follows
	cookie [cookieSize]byte
	stats  ConnStats
}

// Ways of packets.
const (
	up = iota
	down
)

// Dial opens a socket to a server's address, such as "game.example:9000", and
// gives the client its send function. It does not wait for the server:
// Client.Frame connects, and Client.Err reports how that goes. The error reports
// an address that is wrong or unknown.
func Dial(address string, client *replication.Client, opts ...Option) (*Conn, error) {
	if client == nil {
		panic("udp: Dial needs a client: replication.NewClient makes one")
	}
	o := settings(true, opts)
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("udp: dial %q: %w", address, err)
	}
	if to.Port == 0 || to.IP == nil {
		return nil, fmt.Errorf("udp: dial %q: give a host and a port, such as 127.0.0.1:9000", address)
	}
	server, network := unmap(to.AddrPort()), "udp6"
	if server.Addr().Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, nil) // not connected: the machine's own address may change
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	c := &Conn{conn: conn, client: client, server: server, opts: o, done: make(chan struct{})}
	c.silent = fmt.Errorf("udp: no answer from %s: is the server running, does it use package udp, "+
		"and do firewalls let UDP through?", address)
	send := c.transmit
	if n := o.network; n != nil {
		c.paths = [2]*netsim.Path{up: n.Through(c.transmit), down: n.Through(c.inbox.Put)}
		send = c.paths[up].Send
	}
	client.SetSend(send)
	go c.read()
	return c, nil
}

// silence is for how long a server may send nothing before that is an error of packets to it, although they are sent:
// nothing else would show that it is not there. Servers send something every second.
const silence = 3 * time.Second

// transmit sends a packet.
func (c *Conn) transmit(packet []byte) (err error) {
	out := c.sealed[:0]
	if !c.proven.Load() {
		c.mu.Lock()
		out = append(append(out, magic...), c.cookie[:]...)
		c.mu.Unlock()
	}
	switch {
	case c.opts.seal != nil:
		if out, err = c.opts.seal(out, packet, c.server); err != nil {
			return fmt.Errorf("udp: the function of WithSeal refused a packet: %w", err)
		}
		c.sealed, packet = out, out
	case len(out) > 0:
		out = append(out, packet...)
		c.sealed, packet = out, out
	}
	if _, err = c.conn.WriteToUDPAddrPort(packet, c.server); err != nil {
		return err
	}
	now := int64(c.opts.now())
	if !c.received.CompareAndSwap(0, now) && now-c.received.Load() > int64(silence) {
		return c.silent
	}
	return nil
}

// Poll gives the client what has arrived. It never waits. Call it before
// Client.Frame.
func (c *Conn) Poll() {
	if !c.closed {
		c.inbox.Poll(c.client)
	}
}

// Stats returns what the connection has counted.
func (c *Conn) Stats() ConnStats {
	c.mu.Lock()
	s := c.stats
	c.mu.Unlock()
	s.Received, s.InboxFull = c.inbox.Counts()
	return s
}

// Close disconnects the client, which notifies the server, and closes the socket.
// The client's world stays as it is.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.client.Disconnect(replication.Reason{})
	if c.paths[up] != nil {
		link.Await(c.paths[up].Close())
		c.paths[down].Close()
	}
	err := c.conn.Close()
	<-c.done
	return err
}

func (c *Conn) read() {
	defer close(c.done)
	buf := make([]byte, mostBytes)
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.count(&c.stats.ReadErrors)
			time.Sleep(afterError)
			continue
		}
		c.take(buf[:n], unmap(from))
	}
}

func (c *Conn) count(counter *uint64) {
	c.mu.Lock()
	*counter++
	c.mu.Unlock()
}

func (c *Conn) take(data []byte, from netip.AddrPort) {
	if from != c.server {
		c.count(&c.stats.Strangers)
		return
	}
	c.received.Store(int64(c.opts.now()))
	if cookie, packet, ok := split(data); ok && len(packet) == 0 {
		c.mu.Lock()
		c.stats.Cookies++
		c.cookie = [cookieSize]byte(cookie)
		c.mu.Unlock()
		c.proven.Store(false) // the server does not know the address, or no longer
		return
	}
	if c.opts.open != nil {
		opened, err := c.opts.open(c.opened[:0], data, from)
		if err != nil {
			c.count(&c.stats.NotOpened)
			return
		}
		c.opened, data = opened, opened
	}
	c.proven.Store(true)
	if path := c.paths[down]; path != nil {
		_ = path.Send(data) // counted by the network
		return
	}
	_ = c.inbox.Put(data)
}
