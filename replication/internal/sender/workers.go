package sender

import (
	"cmp"
	"slices"
	"sync"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/join"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// MaxWorkers bounds the number of workers.
const MaxWorkers = 64

// Workers fill the packets of all peers in a tick. Each worker caches what it encodes. Peers are
// distributed in the order of their newest acknowledgements, so most that share go to the same worker.
//
// The first worker runs on the goroutine that calls Replicate, and so does everything that calls
// functions of the user: a panic of these reaches the caller.
type Workers struct {
	List   []worker
	parts  encode.Partitions
	joins  join.Plan
	sets   []*encode.PacketSets // by worker
	jobs   []func()             // by worker; made once, so that starting them allocates nothing
	group  sync.WaitGroup
	peers  []*Sender // of the present tick, by their newest acknowledgement
	active int       // workers that have peers in the present tick, at least the first
}

// Init makes n workers.
func (w *Workers) Init(snap *snapshot.Snapshot, n int) {
	w.List = make([]worker, n)
	w.joins.Init(snap)
	for i := range w.List {
		w.List[i].init(snap, &w.parts, &w.joins)
		w.sets = append(w.sets, &w.List[i].Sets)
		w.jobs = append(w.jobs, func() {
			defer w.group.Done()
			w.work(i)
		})
	}
}

// Begin starts a tick without peers.
func (w *Workers) Begin() {
	w.peers = w.peers[:0]
	w.joins.Begin()
}

// Add adds a connected peer, unless it is new and has to wait for its first tick.
func (w *Workers) Add(p *Sender) {
	if p.Joining.enter(&w.joins) {
		w.peers = append(w.peers, p)
	}
}

// Ready is called after the last peer was added.
func (w *Workers) Ready(snap *snapshot.Snapshot) {
	open, ages, n := true, 0, 0
	for _, p := range w.peers {
		if p.direct = len(w.peers) == 1; p.acked.InInterval() {
			snap.Slots.Periods.Find(p.acked.Interval, &snap.Slots)
		}
		if open = open && !p.sight.View.Limited; p.acked.SharesBases() {
			snap.Bases.Want(p.acked.Acks.Through)
			if p.acked.AnyAcked {
				// As of the last tick: it is not known yet what arrived since.
				ages, n = ages+int(snap.Tick-1-p.acked.Base()), n+1
			}
		}
	}
	if !snap.Bases.Choose(config.MostBases, open) {
		n = 0
	}
	snap.Steady.Begin(ages, n)
	if snap.Opts.Grid != 0 {
		snap.Bases.Fix(snap.Opts.Grid)
	}
	w.joins.Choose(snap.Opts.LeastApart)
	if slices.ContainsFunc(w.peers, func(p *Sender) bool { return p.Budget.Rate > 0 }) {
		snap.Slots.Weights.Update(&snap.Slots, uint32(snap.Tick))
	}
}

// PrepareHere prepares a peer on the caller's goroutine if that calls functions of the user.
func (w *Workers) PrepareHere(p *Sender) {
	if p.callsBack() {
		p.prepare(&w.List[0].choice)
	}
}

// Run prepares the other peers and fills the packets of all.
func (w *Workers) Run(now delta.Tick) {
	w.active = max(1, min(len(w.List), len(w.peers)))
	for i := range w.List {
		w.List[i].begin(now)
	}
	if len(w.List) > 1 {
		slices.SortStableFunc(w.peers, func(a, b *Sender) int {
			return cmp.Compare(now-a.acked.Recent, now-b.acked.Recent)
		})
	}
	w.group.Add(w.active - 1)
	for _, job := range w.jobs[1:w.active] {
		go job()
	}
	w.work(0)
	w.group.Wait()
	for i := range w.List {
		w.List[i].finish()
	}
	encode.UpdatePartitions(w.sets, now)
}

// work is the share of one worker. What needs no packet sets is sent at once, while the peer's memory is in the
// processor's cache.
func (w *Workers) work(i int) {
	n := len(w.peers)
	c, peers := &w.List[i], w.peers[i*n/w.active:(i+1)*n/w.active]
	for _, p := range peers {
		p.box, p.first = &c.Box, -1
		if mtu := p.opts.MTU; mtu > len(c.Box.packet) {
			c.Box.packet, c.Contents = make([]byte, mtu), make([]byte, mtu+8)
		}
		if !p.callsBack() {
			p.prepare(&c.choice)
		}
		if p.planned != sendAll {
			c.send(p)
		}
	}
	c.makePacketSets(peers)
	for _, p := range peers {
		if p.planned == sendAll {
			c.send(p)
		}
	}
}
