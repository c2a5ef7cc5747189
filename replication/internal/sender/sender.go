// Package sender decides what a peer is sent in a tick and fills packets with it. It reads the
// snapshot of the tick, what the peer may see and what it is known to hold, keeps to the peer's
// budget, and yields datagrams for the peer's send function. The server calls it: a [Sender] is a
// part of each peer, and [Workers] run the senders of all peers in a tick.
package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/encode"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A Sender sends one peer its state.
//
// What a tick reads and writes for a peer that is sent nothing stands together, in front: with many
// peers, each of its cache lines is one to wait for.
type Sender struct {
	peer

	HasMessages bool // there are new messages for the peer

	// Of the present tick.
	planned  plan
	Relays   bool // the packets of a complete packet set may be all that the peer needs
	holdsAll bool // it holds everything at the likely baselines: see ackstate.Tracker.CanRelay
	Rests    bool // the peer needs nothing
	splits   bool // what changed in this tick is sent before all else, see ackstate.Tracker.Splits
	Sending  bool // states are being sent; or a send function panicked while they were

	counted   uint64 // entities sent in the ticks that account has covered
	states    stateSender
	Joining   joining
	Selector  selector
	Budget    budget
	Packet    packetWriter
	KeepAlive KeepAlive
	outbox
	groups  groupSender
	Hashing hashing
}

// A peer is what the parts of a Sender share. It belongs to other packages.
type peer struct {
	snap     *snapshot.Snapshot
	opts     *config.ServerOptions
	interest *interest.Shared
	sight    *interest.Sight
	acked    *ackstate.Tracker
	stats    *counters.PeerCounters
	narrow   bool // complete shared packets may be larger than its MTU
}

// Init prepares a sender. The send function is called with memory that the sender owns.
func (p *Sender) Init(snap *snapshot.Snapshot, opts *config.ServerOptions, shared *interest.Shared,
	sight *interest.Sight, acked *ackstate.Tracker, stats *counters.PeerCounters, send func(packet []byte) error,
) {
	p.peer = peer{snap: snap, opts: opts, interest: shared, sight: sight, acked: acked, stats: stats}
	p.outbox = outbox{peer: &p.peer, Send: send}
	p.Budget = budget{peer: &p.peer}
	p.Selector = selector{peer: &p.peer}
	p.Packet = packetWriter{peer: &p.peer, out: &p.outbox, budget: &p.Budget}
	p.states = stateSender{peer: &p.peer, packet: &p.Packet, packetSet: encode.NoSet}
	p.groups = groupSender{peer: &p.peer, packet: &p.Packet, states: &p.states}
	p.Joining = joining{peer: &p.peer, packet: &p.Packet, budget: &p.Budget, groups: &p.groups}
}

// Begin starts a session, after the peer's sight and its acknowledgements have. The key is that of
// the session's packets to the client.
func (p *Sender) Begin(key wire.Key, isCompact bool) {
	p.setKey(key)
	p.Packet.Compact = nil
	if isCompact {
		p.Packet.Compact = compact.NewWriter(p.snap)
	}
	p.Budget.begin()
	p.Selector.drop()
	p.states.restart()
	p.groups.begin()
	p.KeepAlive = KeepAlive{next: p.acked.Log.Next}
	p.Joining.begin()
	p.Rests, p.Sending = false, false
}

// End frees what a session takes.
func (p *Sender) End() {
	p.Selector.drop()
	p.Packet.Compact = nil
}

// SendMessages sends a packet of messages and charges the budget for it. Messages are sent even if
// the budget is used up, so the debt is bounded.
func (p *Sender) SendMessages(packet []byte) {
	p.Budget.charge(len(packet))
	p.Transmit(packet)
}

// SendHashes sends the peer hashes of as many entities as fit into a packet, which is written to buf.
func (p *Sender) SendHashes(buf []byte) { p.Hashing.send(&p.outbox, buf) }

// Keep ends the tick of a connected peer: if nothing was sent for a while, an empty packet is.
func (p *Sender) Keep() { p.KeepAlive.keep(&p.Packet) }

// Timed implements the outcomes of [ackstate.Tracker]: a packet's round trip is known.
func (p *Sender) Timed(sent *ackstate.SentPacket) { p.Budget.sample(sent) }

// Arrived implements the outcomes of [ackstate.Tracker]: a packet was acknowledged.
func (p *Sender) Arrived(sent *ackstate.SentPacket, sequence uint32) {
	p.Budget.acknowledge(sent)
	if k := p.Packet.Compact; k != nil {
		k.Kept.Acknowledge(sequence)
	}
}

// Lost implements the outcomes of [ackstate.Tracker]: a packet counts as lost.
func (p *Sender) Lost(sequence uint32) {
	if k := p.Packet.Compact; k != nil {
		k.Kept.Lose(sequence)
	}
	p.Budget.lose()
}
