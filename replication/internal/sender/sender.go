// Package sender chooses what a peer is sent in a tick, keeps to its budget, and fills packets.
package sender

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Sender is what is sent to a peer in a tick.
type Sender struct {
	Snap     *snapshot.Snapshot
	Opts     *config.ServerOptions
	Interest *interest.Shared
	Sight    *interest.Sight
	Acked    *ackstate.Tracker
	Stats    *counters.PeerCounters

	Send    func(packet []byte) error
	Seal    wire.Key // of packets to the client
	Compact bool     // the coding is Compact

	Relays  bool  // packets of a stream may be all that is to be sent in the present tick
	Speaks  bool  // there are new messages for the peer
	Rests   bool  // it needs nothing in the present tick
	Crowded uint8 // for so many ticks it is not tried to send all in one packet
	planned plan
	inOrder bool // all that is due is to be sent, in the order of slots
	Sending bool // what is due is being sent, or was when a send function panicked

	Stream  int32 // of the worker's streams, in the present tick; -1 for none
	Resume  int   // the slot to begin with: where the last tick had to stop
	Behind  int   // the same for what is in groups
	Yields  bool  // what is in groups took all the room, so that the rest goes first
	Runs    *worker
	Outbox  outbox
	Alive   KeepAlive
	Hashing hashing
	Budget  budget
	Weigh   func([]ecs.Entity, []float32)
	Typical int        // bits of an update with all that belongs to it, about, in 1/16
	cost    Prices     // of entries, in the present tick
	Usage   Usage      // of a budget
	Urgency Urgency    // of what is due, if there is a budget
	Met     bitset.Set // slots of which the peer knows, if there is a budget
	Packet  packetWriter
	counted uint64 // entities sent in ticks that are accounted for
}

// prepareCompact finds the rows of a slot and what they are coded against.
func (p *Sender) prepareCompact(slot int, k *baseline.Class) (entry compact.Entry) {
	s, c := p.Snap, p.Runs.CompactCoder()
	info := &s.Slots.Info[slot]
	entry.Set = info.Set
	if !k.Whole {
		name := compact.Name{A1: k.A1}
		if k.Two {
			name.Span, name.Third = k.A1-k.A2, delta.Tick(k.Third)
		}
		for tries := 0; ; tries++ { // again with fewer baselines, if some are not kept any more
			if c.Gather(s, slot, name, &entry) {
				entry.Name = name
				return entry
			}
			if name.Span == 0 {
				break
			}
			if name.Third != 0 {
				name.Third = 0
			} else {
				name.Span = 0
			}
		}
	}
	entry.Kind, entry.Part[0] = wire.EntryFull, uint64(info.Generation)
	c.Rows, entry.Work = c.Rows[:0], s.Schema.WholeWork(&info.Set)
	for k := info.Set.Next(0); k >= 0; k = info.Set.Next(k + 1) {
		c.Rows = append(c.Rows, compact.Row{Component: k, Cur: s.Histories[k].Row(slot)})
	}
	return entry
}

// counterOf returns the counter of an entry that was written, which was to be whole or not.
func (p *Sender) counterOf(entry *compact.Entry, whole bool) *uint64 {
	switch {
	case whole:
		return &p.Stats.Wholes
	case entry.Kind == wire.EntryFull:
		return &p.Stats.Jumps
	}
	return &p.Stats.Updates
}

func (p *Sender) Transmit(packet []byte) {
	if p.Send(packet) != nil {
		p.Stats.SendErrors++
	}
}

// SendMessages sends a packet of messages, and takes what it costs out of the budget. They are sent all the same, so debts
// are bounded.
func (p *Sender) SendMessages(packet []byte) {
	if b := &p.Budget; b.Rate > 0 {
		b.spend(len(packet), p.Opts.TickRate)
		b.deliver(len(packet))
		b.Tokens = max(b.Tokens, -p.savings())
	}
	p.Transmit(packet)
}

// beginSilence starts a tick.
func (p *Sender) beginSilence() {
	if !p.Opts.NoSilence {
		p.Acked.Silence.Begin(p.Snap.Tick, p.Acked.Log.Next, p.Alive.quiet, p.Acked.Patience())
		if p.Acked.Silence.Mute {
			p.Budget.Restart(p.Snap.Tick) // who comes back after that may come another way
		}
	}
}

// orderOf returns the order of the Rice code of gaps between so many slots.
func (p *Sender) orderOf(news int) uint {
	return gapOrder(p.Snap.Slots.Len()-news, max(news, 1))
}

// takeAll sends the peer all packets of its stream, if that is what it needs and it can have them. If
// nothing changed it needs none.
func (p *Sender) takeAll() bool {
	if p.Snap.Slots.Changes == 0 {
		return true
	}
	if p.Stream < 0 {
		return false
	}
	st := &p.Runs.Streams[p.Stream]
	if !p.canTakeAll(st) {
		return false
	}
	first := p.Acked.Log.Next
	for i := range st.Packets {
		p.Packet.relay(st, &st.Packets[i])
	}
	p.putCopies(st.Packets, first)
	return true
}

// canTakeAll reports whether the stream is all that the peer needs, and it can have it.
func (p *Sender) canTakeAll(st *encode.Stream) bool {
	if p.Acked.Log.Next+uint32(len(st.Packets))-p.Acked.Log.Oldest > ackstate.MaxInFlight ||
		p.Budget.Rate > 0 && p.Budget.Tokens < int64(len(st.Packets)*p.Opts.MTU*p.Opts.TickRate) {
		return false
	}
	for _, blocks := range st.Lacking {
		if blocks != 0 {
			return false
		}
	}
	return true
}

// copies returns those of some slots of a block whose entries can be copied from the stream: the
// peer holds their baselines.
func (p *Sender) copies(st *encode.Stream, b int, d uint64) uint64 {
	if d &= st.Plain[b]; d == 0 {
		return 0
	}
	return d &^ (p.Acked.LackOf(st.BasePair, b) | p.Acked.Acks.Large[b])
}

// copyBlocks appends all entries of blocks of the peer's stream to the open packet: of block b, of which d is due, and of as many
// after it as stand together in the stream, fit, and are just what is due. It returns the last of these blocks, or -1.
func (p *Sender) copyBlocks(of bitset.Set, b int, d uint64) (last int) {
	k := &p.Packet
	if p.Stream < 0 || !k.open {
		return -1
	}
	st := &p.Runs.Streams[p.Stream]
	if d != st.Slots[b] || k.Order != st.Order {
		return -1
	}
	first := int(st.Places[b])
	begin, slot := st.Entries[st.Blocks[first].First].From, b<<6+bits.TrailingZeros64(d)
	room := k.w.Remaining() - int(bitbuf.RiceLen(uint64(slot-k.Next), k.Order))
	last, end, n, work := -1, begin, 0, 0
	next := first
	for ; next < len(st.Blocks) && st.Blocks[next].Packet == st.Blocks[first].Packet; next++ {
		x, at := &st.Blocks[next], int(st.Records[next].Record().Block)
		if next > first {
			if at != p.Acked.Acks.DirtyBlocks.Next(last+1) {
				break // something else may be due before
			}
			d = of[at] & p.Acked.Dirty[at] &^ p.Snap.Slots.InGroups(at)
		}
		e := &st.Entries[x.First+x.Entries-1]
		if d != st.Slots[at] || p.Sight.View.Sees(at, p.copies(st, at, d)) != d || int(e.End-begin) > room || !k.bears(work+int(e.Sum), 0) {
			break
		}
		last, end, n, work = at, e.End, n+x.Entries, work+int(e.Sum)
	}
	if n == 0 {
		return -1
	}
	k.copySpan(st.Packets[st.Blocks[first].Packet].Body, int(begin), int(end), slot, last<<6+bits.Len64(st.Slots[last]), n, work)
	p.Acked.Log.AddAll(k.sent, st.Records[first:next])
	for i := range st.Records[first:next] {
		r := st.Records[first+i].Record()
		p.Acked.Dirty[r.Block] &^= r.Mask
		st.Blocks[first+i].Copies += uint32(st.Blocks[first+i].Entries)
	}
	p.Stats.Updates += uint64(n)
	return last
}
