package sender

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A worker fills the packets of some of the peers. It holds what these share: encoded entries and
// packets, and scratch memory.
type worker struct {
	encode.Cache
	Sets   encode.PacketSets
	choice chooser
	batch  batch
}

// init prepares for the slots of a snapshot.
func (c *worker) init(snap *snapshot.Snapshot) {
	c.Init(snap)
	c.Sets.Init(snap)
}

// begin starts a tick.
func (c *worker) begin(now delta.Tick) {
	c.Begin(now)
	c.Sets.Begin(now)
}

// finish ends a tick: it counts what was sent.
func (c *worker) finish() {
	c.Finish()
	c.Sets.Finish(&c.Counts)
}

// fill fills the packets of peers that are prepared.
func (c *worker) fill(peers []*Sender) {
	c.makePacketSets(peers)
	for _, p := range peers {
		if !p.Rests {
			p.Sending = true
			p.sendPlanned(c)
		}
		p.end()
	}
}

// makePacketSets makes the packet sets that the peers need.
func (c *worker) makePacketSets(peers []*Sender) {
	shares := !c.Snap.Opts.NoSharedPackets
	for _, p := range peers {
		if p.states.packetSet = -1; p.Relays && p.acked.Period.Changes == 0 {
			continue // it is sent nothing
		}
		if shares && p.Relays {
			p.states.packetSet = c.Sets.Add(p.acked.Likely, p.acked.Period)
		}
	}
	for _, p := range peers {
		if shares && !p.Relays && p.planned == sendAll && p.Packet.Compact == nil {
			c.want(p)
		}
	}
	c.Sets.Fill()
}

// A wish is the packet sets that a peer needs entries of, by its pairs of baselines; -1 for none.
type wish struct {
	complete, partial [baseline.NearBases]int32
}

// want adds what a peer needs to the packet sets.
func (c *worker) want(p *Sender) {
	if len(p.acked.Pairs) == 0 {
		return
	}
	var sets wish
	for i, of := range p.acked.Pairs {
		if sets.complete[i], sets.partial[i] = -1, -1; p.acked.Period != nil {
			sets.complete[i] = c.Sets.Find(of, p.acked.Period)
		}
	}
	for w, blocks := range p.acked.Acks.DirtyBlocks {
		for b := range bitset.Slots(w, blocks) {
			c.wantBlock(p, b, &sets)
		}
	}
	if p.acked.Pairs[0] != p.acked.Likely {
		return // only entries against the front can be copied together
	}
	if p.states.packetSet = sets.complete[0]; p.states.packetSet < 0 {
		p.states.packetSet = sets.partial[0]
	}
}

// wantBlock adds what a peer needs of a block: each slot to the set of the first pair of baselines
// that the peer holds.
func (c *worker) wantBlock(p *Sender, b int, sets *wish) {
	s, acks := &c.Snap.Slots, &p.acked.Acks
	d := p.sight.View.Sees(b, p.acked.Dirty[b]&s.Alive[b]) &^ (acks.None[b] | acks.Large[b] | s.InGroups(b))
	for i := 0; d != 0 && i < len(p.acked.Pairs); i++ {
		pair := p.acked.Pairs[i]
		held := d &^ p.acked.LackOf(pair, b)
		d &^= held
		if sets.complete[i] >= 0 {
			held &^= p.acked.Period.Changed[b] // which it has
		}
		if held == 0 || !c.Snap.Predicts(pair) {
			continue
		}
		if sets.partial[i] < 0 {
			sets.partial[i] = c.Sets.Add(pair, nil)
		}
		if sets.partial[i] >= 0 {
			c.Sets.List[sets.partial[i]].Want(b, held)
		}
	}
}
