package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/arche-replicate/arche-replicate/replication"
)

const connInbox = 1024 // packets that wait for Poll

// ConnStats counts the datagrams of a client's socket.
type ConnStats struct {
	Received   uint64 // datagrams
	Cookies    uint64 // of them, cookies of the server
	Strangers  uint64 // datagrams that are not from the server
	InboxFull  uint64 // packets dropped, since 1,024 waited for Poll
	ReadErrors uint64 // errors of the socket
}

// Conn is a UDP socket of a client. Its methods are for the goroutine of the
// client's loop.
type Conn struct {
	conn   *net.UDPConn
	client *replication.Client
	server netip.AddrPort
	done   chan struct{}
	taken  [][]byte
	out    []byte // header and packet
	closed bool

	proven atomic.Bool // the server has answered a packet, so it knows the address

	mu     sync.Mutex // guards what follows
	cookie [cookieSize]byte
	inbox  [][]byte
	free   [][]byte
	stats  ConnStats
}

// Dial opens a socket to a server's address, such as "game.example:9000", and
// gives the client its send function. It does not wait for the server:
// Client.Frame connects, and Client.Err reports how that goes.
func Dial(address string, client *replication.Client) (*Conn, error) {
	if client == nil {
		panic("udp: Dial needs a client: replication.NewClient makes one, with a nil send function")
	}
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
	c := &Conn{conn: conn, client: client, server: server, done: make(chan struct{})}
	client.SetSend(c.send)
	go c.read()
	return c, nil
}

func (c *Conn) send(packet []byte) error {
	if c.proven.Load() {
		_, err := c.conn.WriteToUDPAddrPort(packet, c.server)
		return err
	}
	c.mu.Lock()
	c.out = append(append(append(c.out[:0], magic...), c.cookie[:]...), packet...)
	c.mu.Unlock()
	_, err := c.conn.WriteToUDPAddrPort(c.out, c.server)
	return err
}

// Poll gives the client what has arrived. It never waits. Call it before
// Client.Frame.
func (c *Conn) Poll() {
	c.mu.Lock()
	c.taken, c.inbox = c.inbox, c.taken[:0]
	c.mu.Unlock()
	for _, packet := range c.taken {
		_ = c.client.Receive(packet) // counted in Client.Stats
	}
	c.mu.Lock()
	c.free = append(c.free, c.taken...)
	c.mu.Unlock()
	clear(c.taken)
}

// Stats returns what the connection has counted.
func (c *Conn) Stats() ConnStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close disconnects the client, which notifies the server, and closes the socket.
// The client's world stays as it is.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.client.Disconnect(replication.Reason{})
	err := c.conn.Close()
	<-c.done
	return err
}

func (c *Conn) read() {
	defer close(c.done)
	buf := make([]byte, 1<<16)
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		c.take(buf[:n], unmap(from), err)
	}
}

func (c *Conn) take(data []byte, from netip.AddrPort, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.stats.ReadErrors++
		return
	case from != c.server:
		c.stats.Strangers++
		return
	}
	c.stats.Received++
	if cookie, packet, ok := split(data); ok && len(packet) == 0 {
		c.stats.Cookies++
		c.cookie = [cookieSize]byte(cookie)
		c.proven.Store(false) // the server does not know the address, or no longer
		return
	}
	c.proven.Store(true)
	if len(c.inbox) >= connInbox {
		c.stats.InboxFull++
		return
	}
	var room []byte
	if n := len(c.free); n > 0 {
		room, c.free = c.free[n-1], c.free[:n-1]
	}
	c.inbox = append(c.inbox, append(room[:0], data...))
}
