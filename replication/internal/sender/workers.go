package sender

import (
	"cmp"
	"slices"
	"sync"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

const MaxWorkers = 64

// Workers share the encoding for peers. Each has a cache of its own; as peers that have
// acknowledged the same go to the same worker, little is encoded twice for that.
//
// The first worker runs on the caller's goroutine, and so does whatever calls functions of
// the user: what they panic with reaches the caller of Replicate.
type Workers struct {
	Caches []worker
	Boxes  []packetBox // of the caches
	jobs   []func()    // of all but the first, made once so that starting them allocates nothing
	group  sync.WaitGroup
	peers  []*Sender // connected ones, by what they acknowledged
	active int       // workers that have peers in the present tick, and the first in any case
}

// A worker encodes for some of the peers.
type worker struct {
	encode.Cache
	Sets   encode.PacketSets
	choice Chooser
	batch  batch
}

func (w *Workers) Init(snap *snapshot.Snapshot, n int) {
	w.Caches, w.Boxes = make([]worker, n), make([]packetBox, n)
	for i := range w.Caches {
		w.Caches[i].Init(snap)
		w.Caches[i].Sets.Init(snap)
		w.jobs = append(w.jobs, func() {
			defer w.group.Done()
			w.work(i)
		})
	}
}

// Begin starts a tick: no peer is to be sent anything yet.
func (w *Workers) Begin() { w.peers = w.peers[:0] }

// Add takes a connected peer for the tick.
func (w *Workers) Add(p *Sender) { w.peers = append(w.peers, p) }

// Ready is called when all peers of the tick were added.
func (w *Workers) Ready(snap *snapshot.Snapshot) {
	for _, p := range w.peers {
		p.outbox.direct = len(w.peers) == 1
	}
	if slices.ContainsFunc(w.peers, func(p *Sender) bool { return p.Budget.Rate > 0 }) {
		snap.Slots.Weights.Update(&snap.Slots, uint32(snap.Tick))
	}
}

// PrepareHere prepares a peer on the caller's goroutine if that calls functions of the user.
func (w *Workers) PrepareHere(p *Sender) {
	if p.callsBack() {
		p.prepare(&w.Caches[0].choice)
	}
}

// Run replicates to the peers of the tick.
func (w *Workers) Run(now delta.Tick) {
	w.active = max(1, min(len(w.Caches), len(w.peers)))
	for i := range w.Caches {
		w.Caches[i].Begin(now)
		w.Caches[i].Sets.Begin(now)
		w.Boxes[i].empty(now) // here, since a send function may have panicked
	}
	if len(w.Caches) > 1 {
		slices.SortStableFunc(w.peers, func(a, b *Sender) int { return cmp.Compare(now-a.acked.Recent, now-b.acked.Recent) })
	}
	w.group.Add(w.active - 1)
	for _, job := range w.jobs[1:w.active] {
		go job()
	}
	w.work(0)
	w.group.Wait()
	for i := range w.Caches {
		w.Caches[i].Finish()
		w.Caches[i].Sets.Finish(&w.Caches[i].Counts)
	}
}

// work is the share of one worker.
func (w *Workers) work(i int) {
	n := len(w.peers)
	peers := w.peers[i*n/w.active : (i+1)*n/w.active]
	for _, p := range peers {
		p.outbox.box, p.outbox.first = &w.Boxes[i], -1
		if !p.callsBack() {
			p.prepare(&w.Caches[i].choice)
		}
	}
	w.Caches[i].encode(peers)
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
	Queued []queued
	most   int // bytes in a tick, lately
	list   int // packets in a tick, lately
}

type queued struct {
	first, end int                   // of its bytes
	from       []encode.SharedPacket // that it is a copy of, if any, and those that follow with higher sequences
	sequence   uint32
	next       int32 // packet of the same peer, -1 for none
}

// empty drops the packets of the tick before. Now and then it gives back what a rare burst took.
func (b *packetBox) empty(now delta.Tick) {
	b.most, b.list = max(b.most, len(b.bytes)), max(b.list, len(b.Queued))
	b.bytes, b.Queued = b.bytes[:0], b.Queued[:0]
	if now%ackstate.ResizeTicks == 0 {
		if size := b.most + b.most/16; cap(b.bytes) > size+size/8 {
			b.bytes, b.Queued = make([]byte, 0, size), make([]queued, 0, b.list)
		}
		b.most, b.list = 0, 0
	}
}

// put sends a packet or keeps a copy for later.
func (p *Sender) put(packet []byte, sequence uint32) {
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
func (p *Sender) putCopies(from []encode.SharedPacket, sequence uint32) {
	if len(from) == 0 {
		return // all that changed is in groups
	}
	if p.outbox.direct {
		p.deliverCopies(from, sequence)
		return
	}
	p.queue(queued{from: from, sequence: sequence})
}

func (p *Sender) deliverCopies(from []encode.SharedPacket, sequence uint32) {
	for i := range from {
		p.deliver(p.Packet.copyOf(&from[i], sequence), sequence)
		sequence++
	}
}

func (p *Sender) queue(q queued) {
	o := &p.outbox
	i := int32(len(o.box.Queued))
	q.next = -1
	o.box.Queued = append(o.box.Queued, q)
	if o.first < 0 {
		o.first = i
	} else {
		o.box.Queued[o.last].next = i
	}
	o.last = i
}

func (p *Sender) deliver(packet []byte, sequence uint32) {
	if p.Send(packet) != nil {
		p.outbox.failed = append(p.outbox.failed, sequence)
	}
}

// Flush sends what is in the outbox. What the send function did not take is lost.
func (p *Sender) Flush() {
	o := &p.outbox
	for i := o.first; i >= 0; {
		q := &o.box.Queued[i]
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
		p.acked.LoseAt(sequence)
	}
	o.failed = o.failed[:0]
}

// beginPacketSets makes the streams that the peers need.
func (c *worker) beginPacketSets(peers []*Sender) {
	shares := !c.Snap.Opts.NoSharedPackets
	for _, p := range peers {
		if p.packetSet = -1; p.Relays && c.Snap.Slots.Changes == 0 {
			continue // it is sent nothing
		}
		c.setOrder(p)
		if shares && p.Relays {
			p.packetSet = c.Sets.Add(p.acked.Newest(), true, p.Packet.Order)
		}
	}
	for _, p := range peers {
		if shares && !p.Relays && p.planned == sendAll && p.Packet.Compact == nil {
			c.want(p)
		}
	}
	c.Sets.Fill()
}

// setOrder sets the order of the peer's gaps to that of a stream, if the peer needs much of what changed. It is the
// same whether there is a stream or not.
func (c *worker) setOrder(p *Sender) {
	switch s := &c.Snap.Slots; {
	case p.Relays:
		p.Packet.Order = p.orderOf(s.Changes)
	case p.planned != sendAll || p.Packet.Compact != nil || p.acked.Interval > ackstate.MaxSpan:
	case p.sight.View.InView == nil: // else it would tell of what is hidden
		if changed := c.ChangedIn(p.acked.Interval); p.acked.Needs() > changed/encode.SharedFraction {
			p.Packet.Order = p.orderOf(changed)
		}
	}
}

// want adds what a peer needs to the streams that are to have it.
func (c *worker) want(p *Sender) {
	s, t := &c.Snap.Slots, &p.acked.Acks
	var full, part [baseline.NearBases]int32
	for i, of := range p.acked.Pairs {
		full[i], part[i] = c.Sets.Find(of, true), -1
	}
	for w, blocks := range t.DirtyBlocks {
		for b := range bitset.Slots(w, blocks) {
			d := p.sight.View.Sees(b, p.acked.Dirty[b]&s.Alive[b]) &^ (t.None[b] | t.Large[b] | s.InGroups(b))
			for i := 0; d != 0 && i < len(p.acked.Pairs); i++ {
				held := d &^ p.acked.LackOf(p.acked.Pairs[i], b)
				d &^= held
				if full[i] >= 0 {
					held &^= s.Changed[b] // it has these
				}
				if held == 0 || !c.Snap.Predicts(p.acked.Pairs[i]) {
					continue
				}
				if part[i] < 0 {
					part[i] = c.Sets.Add(p.acked.Pairs[i], false, p.Packet.Order)
				}
				if part[i] >= 0 {
					c.Sets.List[part[i]].Want(b, held)
				}
			}
		}
	}
	if len(p.acked.Pairs) > 0 {
		if p.packetSet = full[0]; p.packetSet < 0 {
			p.packetSet = part[0]
		}
	}
}
