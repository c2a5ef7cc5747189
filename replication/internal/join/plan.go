// Package join spreads the work of joining over ticks, so that those who play do not notice it. A client that joins
// is sent every entity once in full. In each tick, package sender gives a [Plan] the clients that join, and asks
// the plan what they may be sent in it, and which of that in packets that they share.
package join

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// A Plan bounds the work of joining in each tick. It goes round and round through the blocks of slots, for all clients
// together: what it comes to is encoded once and sent to every client that holds nothing of it yet. A client may get
// on anywhere and is complete after one round, or after another one for what was lost. Clients that are sent state in
// other ticks, for their send intervals, go round on their own.
type Plan struct {
	slots   *snapshot.SlotTable
	opts    *config.ServerOptions
	clients []client
	at      int  // the block with which clients that get on begin
	room    int  // for work in the present tick
	busy    int  // clients that had more to be sent after the last tick, or have begun in this one
	next    int  // busy, for the next tick
	begun   bool // a client has begun in this tick

	Partial bool       // the clients are sent the slots of some blocks only
	blocks  bitset.Set // these blocks
	Bits    int        // of what is sent to a client that holds nothing, about
	Shares  bool       // there are packets to share
	Shared  bitset.Set // slots that are in these
}

// A Place is how far a client has got on its round. The zero value is for one that has not begun.
type Place struct {
	at    int        // the block to go on with
	turn  delta.Tick // when a tick last began there
	first delta.Tick // in which it was sent anything
	on    bool       // it has begun
}

// A client joins.
type client struct {
	*ackstate.Tracker
	*Place
	work int  // for an entity of typical size
	sees bool // everything, in Packed and without a budget: it may be sent shared packets
}

// mostBusy is how many clients of a large world are sent much at the same time.
const mostBusy = 16

// busyTicks is for how long a client counts as busy at most, so that one that acknowledges nothing does not keep
// others from beginning.
const busyTicks = 64

// Work, in the units of config.JoinWork.
const (
	beginWork   = 1   // of a client that begins, for each slot
	encodeWork  = 16  // of encoding an entity
	shareWork   = 2   // of sending it to a client in a shared packet, and of the acknowledgement
	copyWork    = 10  // of sending it in another packet
	compactWork = 60  // of encoding and sending it in Compact
	typicalBits = 256 // of an entity
)

// Init prepares for the slots of a snapshot.
func (p *Plan) Init(s *snapshot.Snapshot) { p.slots, p.opts = &s.Slots, s.Opts }

// Begin starts a tick without clients.
func (p *Plan) Begin() {
	p.clients, p.room, p.begun = p.clients[:0], p.most(), false
	p.busy, p.next = p.next, 0
}

// most returns the room for work in a tick.
func (p *Plan) most() int {
	return int(int64(p.opts.JoinWork) * int64(max(p.slots.Len(), config.JoinSlots)) / config.JoinSlots)
}

// Admit reports whether one more client may begin in this tick. While many are sent much, the others wait: each that
// has begun costs work for what changes in what it has got, and memory. Those that begin take half of the room at most.
func (p *Plan) Admit() bool {
	work := beginWork * p.slots.Len()
	if p.busy >= mostBusy*config.JoinSlots/min(max(p.slots.Len(), 1), config.JoinSlots) ||
		p.begun && 2*(p.room-work) < p.most() {
		return false
	}
	p.busy++
	p.begun = true
	p.room -= work
	return true
}

// Add adds a client that joins and may be sent state in this tick, and its place. unlimited reports that it has no
// budget, and waits that more was to be sent after the last tick.
func (p *Plan) Add(t *ackstate.Tracker, at *Place, unlimited, waits bool) {
	now := p.slots.Recent.Now
	if !at.on {
		*at = Place{at: p.at, turn: now - 1, first: now, on: true}
	}
	c := client{Tracker: t, Place: at, work: copyWork, sees: unlimited && t.SeesAll() && !t.Classes.Compact}
	if t.Classes.Compact {
		c.work = compactWork
	}
	p.clients = append(p.clients, c)
	if waits && now-at.first < busyTicks {
		p.next++
	}
}

// Choose chooses what is sent. Few slots are not worth packets that nothing else is in: fewer than least, if there are
// no others.
func (p *Plan) Choose(least int) {
	p.Partial, p.Shares, p.Bits = false, false, 0
	if len(p.clients) == 0 {
		return
	}
	n := len(p.slots.Alive)
	p.blocks, p.Shared = p.blocks.Grown(n), p.Shared.Grown(p.slots.Len())
	clear(p.blocks)
	clear(p.Shared)
	first := p.begin()
	shared, blocks, passed := 0, 0, n
	for i := range n {
		b := (first + i) % n
		work, width, share := p.look(b)
		if work == 0 {
			continue
		}
		if p.room < work && blocks > 0 {
			p.Partial, passed = true, i
			break
		}
		p.room -= work
		blocks++
		p.Bits += width
		p.blocks.Add(b)
		p.Shared[b] = share
		shared += bits.OnesCount64(share)
	}
	p.move(first, passed, n)
	p.Shares = shared > 0 && (p.Partial || shared >= least)
}

// begin returns the block to begin with: that of the client that has waited longest for its turn.
func (p *Plan) begin() int {
	now, first := p.slots.Recent.Now, &p.clients[0]
	for i := range p.clients {
		if c := &p.clients[i]; now-c.turn > now-first.turn {
			first = c
		}
	}
	first.turn = now
	return first.at
}

// move moves the clients on whose places were among the passed blocks, of n.
func (p *Plan) move(first, passed, n int) {
	p.at = 0
	if p.Partial {
		p.at = (first + passed) % n
	}
	for i := range p.clients {
		if c := &p.clients[i]; !p.Partial || (c.at-first%n+n)%n <= passed {
			c.at = p.at
		}
	}
}

// look returns the work of sending the clients what they need of a block, the bits of that, about, and the slots that
// are worth sharing.
func (p *Plan) look(b int) (work, width int, share uint64) {
	if p.slots.Alive[b] == 0 {
		return 0, 0, 0
	}
	all, needed, copies := uint64(0), uint64(0), 0 // needed and copies of those that can share
	for i := range p.clients {
		c := &p.clients[i]
		first := c.FirstStates(b)
		if first == 0 {
			continue
		}
		all |= first
		if c.sees {
			needed |= first
			copies += bits.OnesCount64(first)
		} else {
			work += bits.OnesCount64(first) * c.work
		}
	}
	if all == 0 {
		return 0, 0, 0
	}
	n := bits.OnesCount64(all)
	if needed &^= p.slots.InGroups(b); copies >= 2*bits.OnesCount64(needed) {
		share = needed
		work += copies * shareWork
	} else {
		work += copies * copyWork
	}
	width = p.slots.EstimateWidths(b, all, p.slots.Recent.Now)
	work += n * encodeWork
	return work + work/n*width/typicalBits, width, share
}

// May reports whether clients may be sent first states of the slots of a block in this tick.
func (p *Plan) May(b int) bool { return !p.Partial || p.blocks.Has(b) }
