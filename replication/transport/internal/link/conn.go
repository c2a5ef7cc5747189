package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/internal/seam"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// What a client's connection may take.
const (
	connInbox  = 1024
	connOutbox = 8
)

// An Inbox has the packets that have arrived at a client and wait for its loop.
type Inbox struct {
	queue    queue[struct{}] // its lock guards what follows
	received uint64
	full     uint64
}

// Put copies a packet into the inbox. It may be called on any goroutine.
func (b *Inbox) Put(packet []byte) error {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	b.received++
	if len(b.queue.waiting) >= connInbox {
		b.full++
		return nil
	}
	b.queue.put(struct{}{}, packet)
	return nil
}

// Poll gives the client what has arrived.
func (b *Inbox) Poll(client *replication.Client) {
	b.queue.mu.Lock()
	taken := b.queue.take()
	b.queue.mu.Unlock()
	for _, p := range taken {
		_ = client.Receive(p.data) // counted in Client.Stats
	}
	b.queue.mu.Lock()
	b.queue.release()
	b.queue.mu.Unlock()
}

// Counts returns the packets that have arrived, and those of them that were dropped since the inbox was full.
func (b *Inbox) Counts() (received, full uint64) {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	return b.received, b.full
}

// A ClientSocket is an open connection to a server.
type ClientSocket interface {
	// Read returns the next packet, which is valid until the next call.
	Read() ([]byte, error)
	// Write sends a packet. It may wait for the network.
	Write(packet []byte) error
	// Close closes the socket, which ends the other calls. why is nil if the user closes it.
	Close(why error)
}

// A Puller is a ClientSocket whose packets wait in it until Poll pulls them, where resuming a goroutine for each of
// them would cost too much. Its Read waits for the end of the socket.
type Puller interface {
	ClientSocket
	// Pull returns the next packet, which is valid until the next call, or nil.
	Pull() []byte
	// Dropped returns how many packets were dropped, since too many waited.
	Dropped() uint64
}

// A Dialer opens a socket. An error that is [Final] can't be mended by another try.
type Dialer func(ctx context.Context) (ClientSocket, error)

// Final marks the error of a Dialer as one that waiting does not mend.
func Final(err error) error { return final{err} }

type final struct{ error }

func (f final) Unwrap() error { return f.error }

// A Conn keeps a socket to a server open for a client: it dials when the client wants to send, and again when the
// socket has failed. Poll and Close are for the goroutine of the client's loop.
type Conn struct {
	name   string
	client *replication.Client
	fail   func(err error)
	dial   Dialer
	paths  [2]*netsim.Path
	inbox  Inbox
	stop   context.CancelFunc
	done   chan struct{}
	wanted chan struct{} // has room for one
	closed bool

	mu       sync.Mutex // guards what follows
	mtu      int        // 0: any
	box      *outbox    // of the socket that is open, or nil
	last     error      // why there is none
	lost     error      // for good
	fresh    bool       // a socket was opened that the client does not know of
	sockets  uint64     // opened
	dials    uint64
	failures uint64
	slow     uint64 // packets that former outboxes dropped
	missed   uint64 // packets that former Pullers dropped

	pulls    sync.Mutex // guards what follows
	puller   Puller     // the socket that is open, if it is one
	received func()     // to be called when it had a packet
}

// NewConn attaches a connection to a client. where names the server in errors.
func NewConn(name, where string, client *replication.Client, network *netsim.Network, dial Dialer) *Conn {
	if client == nil {
		panic(name + ": there is no client: replication.NewClient makes one")
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &Conn{
		name: name, client: client, fail: seam.OfClient(client).Fail, dial: dial,
		stop: stop, done: make(chan struct{}), wanted: make(chan struct{}, 1),
		last: fmt.Errorf("%s: no answer from %s yet: is a server running there?", name, where),
	}
	if network != nil {
		c.paths = [2]*netsim.Path{up: network.Through(c.transmit), down: network.Through(c.inbox.Put)}
	}
	client.SetSend(c.send)
	go c.run(ctx)
	return c
}

// SetMTU lets the send function refuse packets that are larger, with a sentence.
func (c *Conn) SetMTU(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mtu = bytes
}

// Poll gives the client what has arrived. It never waits.
func (c *Conn) Poll() {
	if c.closed {
		return
	}
	c.mu.Lock()
	fresh, lost := c.fresh, c.lost
	c.fresh, c.lost = false, nil
	again := c.sockets > 1
	c.mu.Unlock()
	if lost != nil {
		c.fail(lost)
		return
	}
	c.pull()
	c.inbox.Poll(c.client)
	if fresh && again && c.client.Status() != replication.StatusDisconnected { // else it has ended, or is closed
		c.client.Reconnect()
	}
}

// Stats returns what the connection has counted.
func (c *Conn) Stats() transport.ConnStats {
	c.pulls.Lock()
	defer c.pulls.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := transport.ConnStats{Dials: c.dials, Failures: c.failures, OutboxFull: c.slow}
	if c.box != nil {
		s.OutboxFull += c.box.dropped()
	}
	s.Received, s.InboxFull = c.inbox.Counts()
	s.InboxFull += c.missed
	if c.puller != nil {
		s.InboxFull += c.puller.Dropped()
	}
	return s
}

// pull takes what waits in a Puller.
func (c *Conn) pull() {
	c.pulls.Lock()
	defer c.pulls.Unlock()
	if c.puller == nil {
		return
	}
	for range connInbox {
		packet := c.puller.Pull()
		if packet == nil {
			return
		}
		c.received()
		c.arrived(packet)
	}
}

// arrived takes a packet of the server's.
func (c *Conn) arrived(packet []byte) {
	if path := c.paths[down]; path != nil {
		_ = path.Send(packet) // counted by the network
		return
	}
	_ = c.inbox.Put(packet)
}

// pullFrom sets the Puller, or nil. What waits in the former one is taken.
func (c *Conn) pullFrom(p Puller, received func()) {
	c.pull()
	c.pulls.Lock()
	defer c.pulls.Unlock()
	if c.puller != nil {
		n := c.puller.Dropped()
		c.mu.Lock()
		c.missed += n
		c.mu.Unlock()
	}
	c.puller, c.received = p, received
}

// Close disconnects the client, which notifies the server, and closes the socket.
func (c *Conn) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.client.Disconnect(replication.Reason{})
	if c.paths[up] != nil {
		Await(c.paths[up].Close())
		c.paths[down].Close()
	}
	c.mu.Lock()
	if c.box != nil {
		c.box.close()
	}
	c.mu.Unlock()
	c.stop()
	<-c.done
	return nil
}

// send is the send function of the client.
func (c *Conn) send(packet []byte) error {
	select {
	case c.wanted <- struct{}{}:
	default:
	}
	if path := c.paths[up]; path != nil {
		return path.Send(packet)
	}
	return c.transmit(packet)
}

func (c *Conn) transmit(packet []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mtu > 0 && len(packet) > c.mtu {
		return fmt.Errorf("%s: a packet has %d bytes, and the connection carries %d: "+
			"give NewClient replication.WithMTU(%d)", c.name, len(packet), c.mtu, c.mtu)
	}
	if c.box == nil {
		return c.last
	}
	return c.box.send(packet)
}

const (
	dialTime   = 10 * time.Second
	leastPause = 250 * time.Millisecond // between two tries
	mostPause  = 5 * time.Second
	silence    = 10 * time.Second // after which a socket is taken for dead; servers send something every second
)

// run keeps a socket open.
func (c *Conn) run(ctx context.Context) {
	defer close(c.done)
	for pause := leastPause; ; {
		select {
		case <-ctx.Done():
			return
		case <-c.wanted: // an ended client sends nothing, and needs no socket
		}
		received, err := c.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if received {
			pause = leastPause
		}
		c.note(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause)): // not all clients of a server at once
		}
		pause = min(2*pause, mostPause)
	}
}

func (c *Conn) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.last = fmt.Errorf("%s: %w", c.name, err)
	if errors.As(err, new(final)) && c.sockets == 0 {
		c.lost = c.last
	}
}

// open dials.
func (c *Conn) open(ctx context.Context) (ClientSocket, error) {
	c.mu.Lock()
	c.dials++
	c.mu.Unlock()
	// Not WithTimeout, with which clients in browsers are larger: its type can print times.
	dialing, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(dialTime, cancel)
	s, err := c.dial(dialing)
	if !late.Stop() && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("no answer within %v", dialTime)
	}
	return s, err
}

// serve opens a socket and carries packets until it fails. It reports whether any has arrived.
func (c *Conn) serve(ctx context.Context) (received bool, err error) {
	s, err := c.open(ctx)
	if err != nil {
		return false, err
	}
	box := newOutbox(connOutbox)
	c.mu.Lock()
	c.box, c.fresh = box, true
	c.sockets++
	c.mu.Unlock()
	written := make(chan struct{})
	var once sync.Once
	var cause error // why this end closed the socket
	closing := func(why error) { once.Do(func() { cause = why; s.Close(why) }) }
	go func() {
		defer close(written)
		closing(box.run(s.Write))
	}()
	dead := time.AfterFunc(silence, func() {
		closing(errSilent)
	})
	var pulled atomic.Bool
	if p, ok := s.(Puller); ok {
		c.pullFrom(p, func() { pulled.Store(true); dead.Reset(silence) })
	}
	stopped := context.AfterFunc(ctx, func() { // Close has closed the box: what is in it is still sent
		select {
		case <-written:
		case <-time.After(lastWords):
			closing(nil)
		}
	})
	for {
		var packet []byte
		if packet, err = s.Read(); err != nil {
			break
		}
		received = true
		dead.Reset(silence)
		c.arrived(packet)
	}
	c.pullFrom(nil, nil)
	dead.Stop()
	stopped()
	box.close()
	closing(err)
	if cause != nil {
		err = cause
	}
	<-written
	c.mu.Lock()
	c.box, c.slow = nil, c.slow+box.dropped()
	c.mu.Unlock()
	select {
	case <-c.wanted: // it may have been for this socket
	default:
	}
	return received || pulled.Load(), err
}

var errSilent = errors.New("nothing has arrived for 10 seconds")
