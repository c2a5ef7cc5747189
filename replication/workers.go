package replication

import (
	"cmp"
	"slices"
	"sync"

	"github.com/mlange-42/arche/ecs"
)

const maxWorkers = 64

// workers share the encoding for peers. Each has a cache of its own; as peers that have
// acknowledged the same go to the same worker, little is encoded twice for that.
type workers struct {
	caches []runCache
	jobs   []func() // of all but the first, made once so that starting them allocates nothing
	group  sync.WaitGroup
	peers  []*Peer // connected ones, by what they acknowledged
}

func (w *workers) init(s *Server, n int) {
	w.caches = make([]runCache, n)
	for i := range w.caches {
		w.caches[i].init(s)
		w.jobs = append(w.jobs, func() {
			w.work(i)
			w.group.Done()
		})
	}
}

// run replicates to all connected peers.
func (w *workers) run(s *Server) {
	w.peers = w.peers[:0]
	for _, p := range s.peers {
		if p.connected {
			w.peers = append(w.peers, p)
		}
	}
	for _, p := range w.peers {
		p.outbox.direct = len(w.peers) == 1
		p.view.ask(s.capture.tables)
		if p.callsBack() {
			p.prepare(&w.caches[0].choice)
		}
	}
	for i := range w.caches {
		w.caches[i].begin(s.tick)
	}
	if len(w.caches) > 1 {
		slices.SortStableFunc(w.peers, func(a, b *Peer) int { return cmp.Compare(s.tick-a.recent, s.tick-b.recent) })
	}
	w.group.Add(len(w.jobs) - 1)
	for _, job := range w.jobs[1:] {
		go job()
	}
	w.work(0)
	w.group.Wait()
	for i := range w.caches {
		w.caches[i].finish()
	}
	for _, p := range s.peers {
		if p.connected {
			p.flush()
		}
	}
}

// ask has the filter judge all tables, on the caller's goroutine: it may be the user's own.
func (v *view) ask(tables map[ecs.Mask]*table) {
	if v.Filter != nil && len(v.passes) < len(tables) {
		for _, t := range tables {
			v.pass(t)
		}
	}
}

// work is the share of one worker.
func (w *workers) work(i int) {
	n := len(w.caches)
	peers := w.peers[i*len(w.peers)/n : (i+1)*len(w.peers)/n]
	for _, p := range peers {
		if !p.callsBack() {
			p.prepare(&w.caches[i].choice)
		}
	}
	w.caches[i].encode(peers)
}

// An outbox holds the packets of a tick until the send function may be called.
type outbox struct {
	direct bool // it may be called at once
	bytes  []byte
	queue  []queued
	failed []uint32 // sequences of packets that were not taken
	most   int      // bytes in a tick, lately
}

// outboxTicks is after how many ticks memory that a rare burst took is given back.
const outboxTicks = 64

type queued struct {
	end      int // of its bytes
	sequence uint32
}

// put sends a packet or keeps a copy for later.
func (p *Peer) put(packet []byte, sequence uint32) {
	o := &p.outbox
	if o.direct {
		p.deliver(packet, sequence)
		return
	}
	o.bytes = append(o.bytes, packet...)
	o.queue = append(o.queue, queued{len(o.bytes), sequence})
}

func (p *Peer) deliver(packet []byte, sequence uint32) {
	if p.send(packet) != nil {
		p.outbox.failed = append(p.outbox.failed, sequence)
	}
}

// flush sends what is in the outbox. What the send function did not take is lost.
func (p *Peer) flush() {
	o := &p.outbox
	first := 0
	for _, q := range o.queue {
		p.deliver(o.bytes[first:q.end:q.end], q.sequence)
		first = q.end
	}
	o.most = max(o.most, len(o.bytes))
	o.bytes, o.queue = o.bytes[:0], o.queue[:0]
	if p.server.tick%outboxTicks == 0 {
		if cap(o.bytes) > 2*o.most {
			o.bytes = make([]byte, 0, o.most+o.most/8)
		}
		o.most = 0
	}
	for _, sequence := range o.failed {
		p.stats.SendErrors++
		p.lose(p.log.at(sequence))
	}
	o.failed = o.failed[:0]
}
