package link

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/arche-replicate/arche-replicate/replication"
	"github.com/arche-replicate/arche-replicate/replication/netsim"
	"github.com/arche-replicate/arche-replicate/replication/transport"
)

// patience is for how long a connection stays without a session: before its client asks for one, and after one that the
// server has ended, so that a client to which the reason got lost learns it.
const patience = 10 * time.Second

// A Hub has the connections of a listener. Open, and the methods of links, are for any goroutine; Poll and Close are
// for the one of the loop.
type Hub struct {
	name    string // of the transport
	server  *replication.Server
	limits  transport.Limits
	network *netsim.Network // nil: none
	remove  func()          // takes the hook back
	now     func() time.Time
	polling bool // Poll runs
	closed  bool // by Close
	peers   map[*replication.Peer]*Link
	idle    []*Link // without a session
	writers sync.WaitGroup

	queue  queue[*Link] // its lock guards what follows, too
	opened []*Link      // since the last Poll
	hung   []*Link      // whose sockets have closed since the last Poll
	moved  []*Link      // whose clients have other addresses since the last Poll
	links  map[*Link]struct{}
	perIP  map[netip.Addr]int
	making map[netip.Addr]int // see Begin
	made   int                // sum of making
	stats  transport.Stats
	shut   bool // no connection is opened any more
}

// Ways of packets.
const (
	up = iota
	down
)

// A Link is one connection of a listener.
type Link struct {
	hub     *Hub
	socket  Socket
	ip      netip.Addr      // what it counts for
	paths   [2]*netsim.Path // up and down, nil without a network
	box     *outbox         // nil: the socket never blocks
	closing sync.Once

	// Of the loop.
	peer    *replication.Peer // nil before the first session
	since   time.Time         // when it became idle
	idle    bool
	replied bool // something was sent, see repeats

	// Guarded by the lock of the queue.
	waiting int
	bytes   int // in these
	gone    bool
	to      netip.AddrPort // where the client has moved to, if that is valid
}

// Socket is what a link needs of a transport.
type Socket struct {
	Transport string // its name, if it is not the hub's
	Address   netip.AddrPort
	Send      func(packet []byte) error
	// Blocks is set if Send may wait for the network. It is called on a goroutine of the link's then.
	Blocks bool
	// Close closes the socket, which ends a call of Send. It is called once, when the packets are sent or have waited
	// for long, on any goroutine.
	Close func()
	// Connectionless is set if only the client's own disconnect reports that its socket is gone.
	Connectionless bool
	Peer           []replication.PeerOption
}

// NewHub returns the hub of a listener. name is the transport's.
func NewHub(name string, server *replication.Server, l transport.Limits, network *netsim.Network) *Hub {
	if server == nil {
		panic(name + ": there is no server: replication.NewServer makes one")
	}
	h := &Hub{
		name: name, server: server, limits: withDefaults(name, l), network: network, now: time.Now,
		peers: map[*replication.Peer]*Link{}, links: map[*Link]struct{}{}, perIP: map[netip.Addr]int{},
		making: map[netip.Addr]int{},
	}
	h.remove = server.OnDisconnect(h.ended)
	return h
}

func withDefaults(name string, l transport.Limits) transport.Limits {
	for _, f := range []struct {
		field string
		value *int
		usual int
	}{{"Peers", &l.Peers, 256}, {"PeersPerIP", &l.PeersPerIP, 8}, {"Inbox", &l.Inbox, 64}, {"Outbox", &l.Outbox, 8}} {
		switch {
		case *f.value < 0:
			panic(fmt.Sprintf("%s: Limits.%s is %d: give a positive number, or 0 for the default",
				name, f.field, *f.value))
		case *f.value == 0:
			*f.value = f.usual
		}
	}
	return l
}

// Errors of Open.
var (
	ErrFull   = errors.New("the server is full")
	ErrFullIP = errors.New("the server has too many clients of this address")
	ErrShut   = errors.New("the server is closed")
)

// Open adds a connection, unless the limits forbid it.
func (h *Hub) Open(s Socket) (*Link, error) {
	l := &Link{hub: h, socket: s, ip: Network(s.Address), since: h.now()}
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	switch {
	case h.shut:
		return nil, ErrShut
	case len(h.links) >= h.limits.Peers:
		h.stats.Full++
		return nil, ErrFull
	case h.perIP[l.ip] >= h.limits.PeersPerIP:
		h.stats.FullIP++
		return nil, ErrFullIP
	}
	if s.Blocks {
		l.box = newOutbox(h.limits.Outbox)
		h.writers.Go(func() {
			_ = l.box.run(s.Send) // the loop sees errClosed
			l.closeSocket()
		})
	}
	if h.network != nil {
		l.paths = [2]*netsim.Path{up: h.network.Through(l.take), down: h.network.Through(l.transmit)}
	}
	h.links[l] = struct{}{}
	h.perIP[l.ip]++
	h.stats.Opened++
	h.opened = append(h.opened, l)
	return l, nil
}

// Begin counts a connection that is being made, before it can be opened: as many as the limits allow clients may be
// made at a time. It reports whether there is room, and returns the function that ends the count.
func (h *Hub) Begin(a netip.AddrPort) (end func(), ok bool) {
	ip := Network(a)
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	if h.shut || h.made >= h.limits.Peers || h.making[ip] >= h.limits.PeersPerIP {
		return nil, false
	}
	h.made++
	h.making[ip]++
	return sync.OnceFunc(func() {
		h.queue.mu.Lock()
		defer h.queue.mu.Unlock()
		h.made--
		less(h.making, ip)
	}), true
}

func less(counts map[netip.Addr]int, ip netip.Addr) {
	if counts[ip]--; counts[ip] == 0 {
		delete(counts, ip)
	}
}

// Poll gives the server what has arrived, and ends the connections that are over.
func (h *Hub) Poll() {
	switch {
	case h.closed:
		return
	case h.polling:
		panic(h.name + ": Poll within Poll: call it outside of the server's hooks and message handlers")
	}
	h.polling = true
	defer func() { h.polling = false }()
	q := &h.queue
	q.mu.Lock()
	taken := q.take()
	for i := range taken {
		taken[i].from.waiting--
		taken[i].from.bytes -= len(taken[i].data)
	}
	opened, hung, moved := h.opened, h.hung, h.moved
	h.opened, h.hung, h.moved = nil, nil, nil
	for _, l := range moved {
		h.move(l)
	}
	q.mu.Unlock()
	for _, l := range opened {
		h.rest(l)
	}
	for _, l := range moved {
		if l.peer != nil && !l.idle {
			l.peer.SetRemote(l.remote())
		}
	}
	for _, p := range taken {
		h.receive(p.from, p.data)
	}
	for _, l := range hung {
		h.hungUp(l)
	}
	h.endSilent()
	q.mu.Lock()
	q.release()
	q.mu.Unlock()
}

func (h *Hub) receive(l *Link, data []byte) {
	switch {
	case l.gone:
	case l.peer != nil && !l.idle:
		_ = l.peer.Receive(data) // counted in Peer.Stats
	case l.peer != nil && l.repeats(data):
	case h.server.Accepts(data):
		h.connect(l)
		_ = l.peer.Receive(data)
	default:
		h.queue.mu.Lock()
		h.stats.NoClient++
		h.queue.mu.Unlock()
	}
}

// repeats gives a packet to a peer that has ended, and reports whether it sent the client the reason. If not, the
// client knows.
func (l *Link) repeats(data []byte) bool {
	l.replied = false
	_ = l.peer.Receive(data)
	return l.replied
}

func (h *Hub) connect(l *Link) {
	h.idle = slices.DeleteFunc(h.idle, func(other *Link) bool { return other == l })
	p := h.server.Connect(l.send, l.socket.Peer...)
	p.SetRemote(l.remote())
	l.peer, l.idle = p, false
	h.peers[p] = l
}

// rest notes that a link has no session.
func (h *Hub) rest(l *Link) {
	l.idle, l.since = true, h.now()
	h.idle = append(h.idle, l)
}

// ended is the server's hook.
func (h *Hub) ended(p *replication.Peer) {
	l := h.peers[p]
	if l == nil {
		return
	}
	delete(h.peers, p)
	var why *replication.DisconnectError
	if l.socket.Connectionless && errors.As(p.Err(), &why) && why.Remote {
		h.drop(l) // nothing else reports that it has left
		return
	}
	h.rest(l)
}

func (h *Hub) hungUp(l *Link) {
	if l.gone {
		return
	}
	if l.peer != nil && !l.idle {
		l.peer.Disconnect(replication.Reason{
			Code: replication.ReasonClosed, Text: "the client's " + l.remote().Transport + " connection has closed",
		})
	}
	h.drop(l)
}

// endSilent drops links that have been without a session for too long. The oldest come first.
func (h *Hub) endSilent() {
	now := h.now()
	for len(h.idle) > 0 && now.Sub(h.idle[0].since) > patience {
		if h.idle[0].peer == nil {
			h.queue.mu.Lock()
			h.stats.Silent++
			h.queue.mu.Unlock()
		}
		h.drop(h.idle[0])
	}
}

// drop ends a link. Its socket is closed when it has sent what waits, or soon.
func (h *Hub) drop(l *Link) {
	h.queue.mu.Lock()
	if l.gone {
		h.queue.mu.Unlock()
		return
	}
	l.gone = true
	delete(h.links, l)
	less(h.perIP, l.ip)
	h.queue.mu.Unlock()
	h.idle = slices.DeleteFunc(h.idle, func(other *Link) bool { return other == l })
	if l.paths[down] == nil {
		l.end()
		return
	}
	l.paths[up].Close()
	left := l.paths[down].Close()
	h.writers.Go(func() {
		Await(left)
		l.end()
	})
}

// Await waits until what is under way on a bad network has left, or for a second.
func Await(left <-chan struct{}) {
	select {
	case <-left:
	case <-time.After(time.Second):
	}
}

// end closes the socket when it has sent what waits.
func (l *Link) end() {
	if l.box == nil {
		l.closeSocket()
		return
	}
	l.box.close()
	time.AfterFunc(lastWords, l.closeSocket) // the writer may be stuck
}

// lastWords is how long a socket that is to be closed may take to send what waits.
const lastWords = 500 * time.Millisecond

func (l *Link) closeSocket() { l.closing.Do(l.socket.Close) }

// Close disconnects the peers, whose clients then wait for the next server, and closes the connections. It returns when
// their sockets are closed.
func (h *Hub) Close() {
	if h.closed {
		return
	}
	h.closed = true
	h.queue.mu.Lock()
	h.shut = true
	all := slices.Collect(maps.Keys(h.links))
	h.queue.mu.Unlock()
	for p := range h.server.Peers() {
		if h.peers[p] != nil {
			p.Disconnect(replication.Reason{Code: replication.ReasonTimeout, Text: "the server has stopped"})
		}
	}
	h.remove()
	for _, l := range all {
		h.drop(l)
	}
	h.writers.Wait()
}

// Stats returns what the hub has counted.
func (h *Hub) Stats() transport.Stats {
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	s := h.stats
	s.Peers = len(h.links)
	return s
}

// Deliver takes a packet that arrived, and copies it.
func (l *Link) Deliver(packet []byte) {
	if up := l.paths[up]; up != nil {
		_ = up.Send(packet) // counted by the network
		return
	}
	_ = l.take(packet)
}

func (l *Link) take(packet []byte) error {
	h := l.hub
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	switch {
	case l.gone:
	case l.waiting >= h.limits.Inbox, l.bytes+len(packet) > h.limits.Inbox*usualBytes:
		h.stats.InboxFull++
	default:
		l.waiting++
		l.bytes += len(packet)
		h.queue.put(l, packet)
	}
	return nil
}

// Moved reports that the client has another address now, which the transport has validated.
func (l *Link) Moved(to netip.AddrPort) {
	l.hub.queue.mu.Lock()
	defer l.hub.queue.mu.Unlock()
	if !l.to.IsValid() {
		l.hub.moved = append(l.hub.moved, l)
	}
	l.to = to
}

// move applies Moved. A link counts for its former address if the new one has as many as it may. The hub must be
// locked.
func (h *Hub) move(l *Link) {
	l.socket.Address, l.to = l.to, netip.AddrPort{}
	if ip := Network(l.socket.Address); !l.gone && ip != l.ip && h.perIP[ip] < h.limits.PeersPerIP {
		less(h.perIP, l.ip)
		h.perIP[ip]++
		l.ip = ip
	}
}

func (l *Link) remote() replication.Remote {
	return replication.Remote{Transport: cmp.Or(l.socket.Transport, l.hub.name), Address: l.socket.Address.String()}
}

// HangUp reports that the socket has closed.
func (l *Link) HangUp() {
	l.hub.queue.mu.Lock()
	defer l.hub.queue.mu.Unlock()
	if !l.gone {
		l.hub.hung = append(l.hub.hung, l)
	}
}

// send is the send function of the peer.
func (l *Link) send(packet []byte) error {
	l.replied = true
	if down := l.paths[down]; down != nil {
		return down.Send(packet)
	}
	return l.transmit(packet)
}

func (l *Link) transmit(packet []byte) error {
	if l.box == nil {
		return l.socket.Send(packet)
	}
	err := l.box.send(packet)
	if err == errSlow {
		l.hub.queue.mu.Lock()
		l.hub.stats.OutboxFull++
		l.hub.queue.mu.Unlock()
	}
	return err
}

// Network is what one owner has: an IPv4 address, or a /64 of IPv6.
func Network(a netip.AddrPort) netip.Addr {
	ip := a.Addr().Unmap()
	if ip.Is6() {
		p, _ := ip.WithZone("").Prefix(64)
		return p.Addr()
	}
	return ip
}
