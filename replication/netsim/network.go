package netsim

import (
	"container/heap"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	step = time.Second / maxRate // of the pipes of a Network

	// maxUnderWay limits the packets inside one path.
	maxUnderWay = 1024

	// maxSteps limits the steps that a pipe makes up for, after a pause of a path or of the process: 10 seconds.
	maxSteps = 10_000

	never = math.MaxInt64
)

// ErrClosed is returned by [Path.Send] after Close of the path or its network.
var ErrClosed = errors.New("netsim: the network or the path is closed")

// Network is a bad network by the wall clock, around the send functions of any transport: it delays, loses,
// duplicates, reorders and damages packets like a [Pipe], in steps of a millisecond. One goroutine belongs to it,
// which sleeps while no packet is under way. All methods are safe for concurrent use.
type Network struct {
	seed  uint64
	start time.Time
	wake  chan struct{} // a path has something to do earlier than the goroutine knows
	ended chan struct{} // closed when the goroutine has ended

	mu         sync.Mutex // guards what follows, and all paths and their pipes
	profile    Profile
	config     Config
	paths      map[*Path]struct{}
	queue      schedule
	asleep     int64 // the tick at which the goroutine wakes
	numbered   uint64
	gone       Stats // of paths that have ended
	sendErrors uint64
	closed     bool
}

// NetworkStats counts what happened on all paths of a [Network], those that have ended included.
type NetworkStats struct {
	Stats
	Paths      int    // that have not ended
	UnderWay   int    // packets and copies
	SendErrors uint64 // errors of the functions given to Through
}

// NewNetwork returns a network and starts its goroutine, which [Network.Close] ends. The fate of the n-th packet of the
// n-th path depends on the seed; its time depends on the clock, so no two runs are the same.
//
// Panics if the profile is not valid, see [Profile.Validate].
func NewNetwork(seed uint64, p Profile) *Network {
	n := &Network{
		seed:    seed,
		start:   time.Now(),
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		profile: p,
		config:  p.Config(maxRate),
		paths:   map[*Path]struct{}{},
	}
	go n.run()
	return n
}

// Set changes the network, for packets that are sent from now on. Packets that wait for bandwidth leave at the new
// rate.
//
// Panics if the profile is not valid, see [Profile.Validate].
func (n *Network) Set(p Profile) {
	config := p.Config(maxRate)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.profile, n.config = p, config
	for path := range n.paths {
		path.pipe.advanceTo(n.now())
		path.pipe.SetConfig(config)
		n.schedule(path)
	}
}

// Profile returns the profile in use.
func (n *Network) Profile() Profile {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.profile
}

// Stats returns the counters so far.
func (n *Network) Stats() NetworkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	stats := NetworkStats{Stats: n.gone, Paths: len(n.paths), SendErrors: n.sendErrors}
	for path := range n.paths {
		stats.add(path.pipe.Stats())
		stats.UnderWay += path.pipe.Pending()
	}
	return stats
}

// Close ends the network's goroutine and waits for that. Packets under way are lost, and [Path.Send] returns
// [ErrClosed] from then on. It must not be called by a function that was given to [Network.Through].
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.signal()
	<-n.ended
}

// Path is one direction between two ends, through a [Network]. Its methods are safe for concurrent use.
type Path struct {
	network *Network
	send    func(packet []byte) error
	receive func(packet []byte) // calls send
	pipe    *Pipe

	at         int64 // the tick at which the pipe has something to do; never: nothing
	index      int   // in network.queue; negative: not there
	err        error // of send, for the next Send
	delivering bool
	closed     bool
	done       chan struct{}
}

// Through makes a path: [Path.Send] takes packets, and the network's goroutine calls send with those that survive, when
// their time has come. Its slice is valid until send returns; send may overwrite it. As one goroutine serves all paths,
// send must not block. It may call any method but [Network.Close].
//
// Each path has its own bandwidth and its own random numbers. Up to 1,024 packets are under way on it; those beyond are
// dropped and counted. Close every path that is no longer used.
func (n *Network) Through(send func(packet []byte) error) *Path {
	if send == nil {
		panic("netsim: Network.Through: send is nil; give the function that packets shall reach")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// Sequences 0 and 1 are those of pipes and links.
	pipe := NewPipe(rand.NewPCG(n.seed, 2+n.numbered).Uint64(), n.config)
	n.numbered++
	pipe.now, pipe.limit = n.now(), maxUnderWay
	p := &Path{network: n, send: send, pipe: pipe, at: never, index: -1, done: make(chan struct{})}
	p.receive = p.deliver
	if n.closed {
		p.closed = true
		close(p.done)
		return p
	}
	n.paths[p] = struct{}{}
	return p
}

// Send puts a copy of the packet on its way. A lost packet is not an error. If the function given to
// [Network.Through] has failed since the last call, Send returns its error and sends nothing; after Close it returns
// [ErrClosed]. It serves as the send function of a peer or client.
func (p *Path) Send(packet []byte) error {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if err := p.err; err != nil {
		p.err = nil
		return err
	}
	p.pipe.advanceTo(n.now())
	err := p.pipe.Send(packet)
	n.schedule(p)
	return err
}

// Close ends the path: it takes no more packets, and is forgotten when those under way have arrived. The channel is
// closed then, and send is not called any more. Close does not wait; calling it again has no effect.
func (p *Path) Close() <-chan struct{} {
	n := p.network
	n.mu.Lock()
	defer n.mu.Unlock()
	p.closed = true
	n.schedule(p)
	return p.done
}

// deliver calls send without the lock.
func (p *Path) deliver(packet []byte) {
	n := p.network
	if n.closed {
		return
	}
	n.mu.Unlock()
	defer n.mu.Lock() // before a panic of send goes on
	if err := p.send(packet); err != nil {
		n.mu.Lock()
		n.sendErrors++
		p.err = err
		n.mu.Unlock()
	}
}

func (n *Network) now() int64 { return int64(time.Since(n.start) / step) }

// run is the network's goroutine.
func (n *Network) run() {
	defer close(n.ended)
	timer := time.NewTimer(maxDuration)
	defer timer.Stop()
	for n.deliver() {
		var tick <-chan time.Time
		n.mu.Lock()
		asleep := n.asleep
		n.mu.Unlock()
		if asleep < never {
			timer.Reset(time.Until(n.start.Add(time.Duration(asleep) * step)))
			tick = timer.C
		}
		select {
		case <-tick:
		case <-n.wake:
		}
	}
}

// deliver hands over all packets that have arrived and decides when to wake. It reports false once the network is
// closed.
func (n *Network) deliver() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asleep = 0
	for !n.closed && len(n.queue) > 0 && n.queue[0].at <= n.now() {
		p := n.queue[0]
		p.delivering = true
		p.pipe.advanceTo(n.now())
		p.pipe.Receive(p.receive)
		p.delivering = false
		n.schedule(p)
	}
	if n.closed {
		for p := range n.paths {
			p.closed = true
			n.forget(p)
		}
		return false
	}
	n.asleep = never
	if len(n.queue) > 0 {
		n.asleep = n.queue[0].at
	}
	return true
}

// schedule notes when a path has something to do, and forgets it if that is never again.
func (n *Network) schedule(p *Path) {
	p.at = p.pipe.next()
	switch {
	case p.at < never && p.index < 0:
		heap.Push(&n.queue, p)
	case p.at < never:
		heap.Fix(&n.queue, p.index)
	case p.index >= 0:
		heap.Remove(&n.queue, p.index)
	}
	if p.at == never && p.closed && !p.delivering {
		n.forget(p)
	}
	if p.at < n.asleep {
		n.asleep = p.at
		n.signal()
	}
}

func (n *Network) forget(p *Path) {
	if _, ok := n.paths[p]; !ok {
		return
	}
	delete(n.paths, p)
	n.gone.add(p.pipe.Stats())
	n.gone.Dropped += uint64(p.pipe.Pending())
	close(p.done)
}

// signal wakes the goroutine.
func (n *Network) signal() {
	select {
	case n.wake <- struct{}{}:
	default: // it will wake already
	}
}

// schedule holds the paths with something to do, a heap for package heap.
type schedule []*Path

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at < s[j].at }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

func (s *schedule) Push(x any) {
	p := x.(*Path)
	p.index = len(*s)
	*s = append(*s, p)
}

func (s *schedule) Pop() any {
	last := len(*s) - 1
	p := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	p.index = -1
	return p
}
