package replication

import (
	"cmp"
	"slices"
	"sync"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/mlange-42/arche/ecs"
)

const maxWorkers = 64

// workers share the encoding for peers. Each has a cache of its own; as peers that have
// acknowledged the same go to the same worker, little is encoded twice for that.
//
// The first worker runs on the caller's goroutine, and so does whatever calls functions of
// the user: what they panic with reaches the caller of Replicate.
type workers struct {
	caches []worker
	boxes  []packetBox // of the caches
	jobs   []func()    // of all but the first, made once so that starting them allocates nothing
	group  sync.WaitGroup
	peers  []*sender // connected ones, by what they acknowledged
	active int       // workers that have peers in the present tick, and the first in any case
}

// A worker encodes for some of the peers.
type worker struct {
	runCache
	choice chooser
	bundle bundle
}

func (w *workers) init(snap *snapshot, n int) {
	w.caches, w.boxes = make([]worker, n), make([]packetBox, n)
	for i := range w.caches {
		w.caches[i].init(snap)
		w.jobs = append(w.jobs, func() {
			defer w.group.Done()
			w.work(i)
		})
	}
}

// begin takes the connected peers of a tick.
func (w *workers) begin(snap *snapshot, peers []*sender) {
	w.peers = append(w.peers[:0], peers...)
	for _, p := range w.peers {
		p.outbox.direct = len(w.peers) == 1
	}
	if slices.ContainsFunc(w.peers, func(p *sender) bool { return p.budget.rate > 0 }) {
		snap.slots.weights.update(&snap.slots, uint32(snap.tick))
	}
}

// prepareHere prepares a peer on the caller's goroutine if that calls functions of the user.
func (w *workers) prepareHere(p *sender) {
	if p.callsBack() {
		p.prepare(&w.caches[0].choice)
	}
}

// run replicates to the peers of the tick.
func (w *workers) run(now delta.Tick) {
	w.active = max(1, min(len(w.caches), len(w.peers)))
	for i := range w.caches {
		w.caches[i].begin(now)
		w.boxes[i].empty(now) // here, since a send function may have panicked
	}
	if len(w.caches) > 1 {
		slices.SortStableFunc(w.peers, func(a, b *sender) int { return cmp.Compare(now-a.acked.recent, now-b.acked.recent) })
	}
	w.group.Add(w.active - 1)
	for _, job := range w.jobs[1:w.active] {
		go job()
	}
	w.work(0)
	w.group.Wait()
	for i := range w.caches {
		w.caches[i].finish()
		w.caches[i].finishStreams()
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
	n := len(w.peers)
	peers := w.peers[i*n/w.active : (i+1)*n/w.active]
	for _, p := range peers {
		p.outbox.box, p.outbox.first = &w.boxes[i], -1
		if !p.callsBack() {
			p.prepare(&w.caches[i].choice)
		}
	}
	w.caches[i].encode(peers)
}

// An outbox lists the packets of a tick until the send function may be called.
type outbox struct {
	direct      bool // it may be called at once: there is no other peer, so this is the caller's goroutine
	box         *packetBox
	first, last int32    // packets in the box, if there are any
	failed      []uint32 // sequences of packets that were not taken
}

// A packetBox holds the packets of all peers of a worker, as they come. What all of them
// need together goes up and down less than what each does. Packets of streams are put
// together only when they are sent.
type packetBox struct {
	bytes  []byte
	queued []queued
	most   int // bytes in a tick, lately
	list   int // packets in a tick, lately
}

type queued struct {
	first, end int            // of its bytes
	from       []streamPacket // that it is a copy of, if any, and those that follow with higher sequences
	sequence   uint32
	next       int32 // packet of the same peer, -1 for none
}

// empty drops the packets of the tick before. Now and then it gives back what a rare burst took.
func (b *packetBox) empty(now delta.Tick) {
	b.most, b.list = max(b.most, len(b.bytes)), max(b.list, len(b.queued))
	b.bytes, b.queued = b.bytes[:0], b.queued[:0]
	if now%resizeTicks == 0 {
		if size := b.most + b.most/16; cap(b.bytes) > size+size/8 {
			b.bytes, b.queued = make([]byte, 0, size), make([]queued, 0, b.list)
		}
		b.most, b.list = 0, 0
	}
}

// put sends a packet or keeps a copy for later.
func (p *sender) put(packet []byte, sequence uint32) {
	if p.outbox.direct {
		p.deliver(packet, sequence)
		return
	}
	b := p.outbox.box
	first := len(b.bytes)
	b.bytes = append(b.bytes, packet...)
	p.queue(queued{first: first, end: len(b.bytes), sequence: sequence})
}

// putCopies sends packets of the peer's stream, the first one with the given sequence, or
// does so later.
func (p *sender) putCopies(from []streamPacket, sequence uint32) {
	if len(from) == 0 {
		return // all that changed is in groups
	}
	if p.outbox.direct {
		p.deliverCopies(from, sequence)
		return
	}
	p.queue(queued{from: from, sequence: sequence})
}

func (p *sender) deliverCopies(from []streamPacket, sequence uint32) {
	for i := range from {
		p.deliver(p.packet.copyOf(&from[i], sequence), sequence)
		sequence++
	}
}

func (p *sender) queue(q queued) {
	o := &p.outbox
	i := int32(len(o.box.queued))
	q.next = -1
	o.box.queued = append(o.box.queued, q)
	if o.first < 0 {
		o.first = i
	} else {
		o.box.queued[o.last].next = i
	}
	o.last = i
}

func (p *sender) deliver(packet []byte, sequence uint32) {
	if p.send(packet) != nil {
		p.outbox.failed = append(p.outbox.failed, sequence)
	}
}

// flush sends what is in the outbox. What the send function did not take is lost.
func (p *sender) flush() {
	o := &p.outbox
	for i := o.first; i >= 0; {
		q := &o.box.queued[i]
		i = q.next
		if q.from != nil {
			p.deliverCopies(q.from, q.sequence)
		} else {
			p.deliver(o.box.bytes[q.first:q.end:q.end], q.sequence)
		}
	}
	o.first = -1
	for _, sequence := range o.failed {
		p.stats.SendErrors++
		p.acked.loseAt(sequence)
	}
	o.failed = o.failed[:0]
}
