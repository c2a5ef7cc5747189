package sender

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/join"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A worker fills the packets of some of the peers. It holds what these share: encoded entries and
// packets, and scratch memory.
type worker struct {
	encode.Cache
	Sets   encode.PacketSets
	joins  *join.Plan
	full   encode.FullPackets // of the plan
	Box    packetBox
	choice chooser
	batch  batch
	old    bitset.Set // see findOld
	waits  bitset.Set // slots of a peer that wait for a later tick
	ready  bitset.Set // see Sender.ready
}

// init prepares for the slots of a snapshot.
func (c *worker) init(snap *snapshot.Snapshot, parts *encode.Partitions, joins *join.Plan) {
	c.Init(snap)
	c.joins = joins
	c.Sets.Init(snap, parts)
}

// begin starts a tick.
func (c *worker) begin(now delta.Tick) {
	c.Begin(now)
	c.Sets.Begin(now)
	c.full.Begin()
	c.Box.empty(now) // not at the end of a tick, since a send function may panic before
}

// finish ends a tick: it counts what was sent.
func (c *worker) finish() {
	c.Finish()
	c.Sets.Finish(&c.Counts)
	c.full.Finish(&c.Counts)
}

// send fills the packets of a peer that is prepared, and ends its tick.
func (c *worker) send(p *Sender) {
	if !p.Rests {
		c.Trim()
		p.Sending = true
		p.sendPlanned(c)
	}
	p.end()
}

// makePacketSets makes the packet sets that the peers need.
func (c *worker) makePacketSets(peers []*Sender) {
	shares := !c.Snap.Opts.NoSharedPackets
	for _, p := range peers {
		if shares && p.Relays && p.acked.Period.Changes > 0 {
			p.states.packetSet = p.states.sources.Choose(&c.Sets, p.acked, p.holdsAll)
		}
	}
	for _, p := range peers {
		if shares && !p.Relays && p.planned == sendAll && p.Packet.Compact == nil {
			c.want(p)
		}
	}
	c.Sets.Fill()
}

// A wish is the packet sets that a peer needs entries of, by its pairs of baselines, or NoSet: those of its period, and
// those without parts.
type wish struct {
	divided, others [baseline.NearBases]int32
}

// want adds what a peer needs to the packet sets.
func (c *worker) want(p *Sender) {
	if len(p.acked.Pairs) == 0 {
		return
	}
	var sets wish
	for i, of := range p.acked.Pairs {
		if sets.divided[i], sets.others[i] = encode.NoSet, encode.NoSet; p.acked.Period != nil {
			sets.divided[i] = c.Sets.Find(of, p.acked.Period)
		}
	}
	for b := range p.acked.DirtyBlocks.All() {
		c.wantBlock(p, b, &sets)
	}
	if p.acked.Pairs[0] != p.acked.Likely {
		return // only entries against the front can be copied together
	}
	if p.states.packetSet = sets.divided[0]; p.states.packetSet == encode.NoSet {
		p.states.packetSet = sets.others[0]
	}
}

// wantBlock adds what a peer needs of a block: each slot to the set of the first pair of baselines
// that the peer holds.
func (c *worker) wantBlock(p *Sender, b int, sets *wish) {
	s, acks := &c.Snap.Slots, &p.acked.Acks
	d := p.sight.View.Sees(b, p.acked.Dirty[b]&s.Alive[b]) &^ (acks.None[b] | p.acked.Large.In(b) | s.InGroups(b))
	for i := 0; d != 0 && i < len(p.acked.Pairs); i++ {
		pair := p.acked.Pairs[i]
		held := d &^ p.acked.LackOf(pair, b)
		d &^= held
		if sets.divided[i] >= 0 {
			held &^= c.Sets.List[sets.divided[i]].Wanted(b)
		}
		if held == 0 || !c.Snap.Predicts(pair) {
			continue
		}
		if sets.others[i] < 0 {
			sets.others[i] = c.Sets.Add(pair)
		}
		if sets.others[i] >= 0 {
			c.Sets.List[sets.others[i]].Want(b, held)
		}
	}
}
