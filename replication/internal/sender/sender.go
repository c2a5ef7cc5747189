// Package sender chooses what a peer is sent in a tick, keeps to its budget, and fills packets.
package sender

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/ackstate"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/compact"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
	"github.com/mlange-42/arche/ecs"
)

// Sender is what is sent to a peer in a tick.
type Sender struct {
	snap     *snapshot.Snapshot
	opts     *config.ServerOptions
	interest *interest.Shared
	sight    *interest.Sight
	acked    *ackstate.Tracker
	stats    *counters.PeerCounters

	Send func(packet []byte) error
	key  wire.Key // of packets to the client

	Relays  bool  // packets of a stream may be all that is to be sent in the present tick
	Speaks  bool  // there are new messages for the peer
	Rests   bool  // it needs nothing in the present tick
	crowded uint8 // for so many ticks it is not tried to send all in one packet
	planned plan
	inOrder bool // all that is due is to be sent, in the order of slots
	Sending bool // what is due is being sent, or was when a send function panicked

	packetSet int32 // of the worker's streams, in the present tick; -1 for none
	resume    int   // the slot to begin with: where the last tick had to stop
	behind    int   // the same for what is in groups
	yields    bool  // what is in groups took all the room, so that the rest goes first
	Worker    *worker
	outbox    outbox
	Alive     KeepAlive
	Hashing   hashing
	Budget    budget
	Weigh     func([]ecs.Entity, []float32)
	typical   int        // bits of an update with all that belongs to it, about, in 1/16
	cost      Prices     // of entries, in the present tick
	usage     usage      // of a budget
	Urgency   Urgency    // of what is due, if there is a budget
	Met       bitset.Set // slots of which the peer knows, if there is a budget
	Packet    packetWriter
	counted   uint64 // entities sent in ticks that are accounted for
}

// Init prepares a sender.
func (p *Sender) Init(snap *snapshot.Snapshot, opts *config.ServerOptions, shared *interest.Shared, sight *interest.Sight,
	acked *ackstate.Tracker, stats *counters.PeerCounters, send func(packet []byte) error,
) {
	p.snap, p.opts, p.interest, p.sight, p.acked, p.stats = snap, opts, shared, sight, acked, stats
	p.Send, p.packetSet = send, -1
}

// Begin starts a session, behind what it is for Sight and Acked: seal is the key of its packets.
func (p *Sender) Begin(key wire.Key, isCompact bool) {
	p.key, p.Packet.Compact = key, nil
	if isCompact {
		p.Packet.Compact = compact.NewWriter(p.snap)
	}
	p.Budget.restart(p.snap.Tick)
	p.resume, p.behind, p.yields, p.crowded = 0, 0, false, 0
	p.Rests, p.Sending = false, false
	p.outbox.failed = p.outbox.failed[:0]
	p.typical, p.usage = firstTypical, usage{spent: p.stats.Spending()}
	p.Alive = KeepAlive{next: p.acked.Log.Next}
	p.Urgency, p.Met = Urgency{}, nil
}

// End gives back what a session takes.
func (p *Sender) End() {
	p.Urgency, p.Met = Urgency{}, nil
	p.Packet.Compact = nil
}

// Transmit sends a packet, and counts if that fails.
func (p *Sender) Transmit(packet []byte) {
	if p.Send(packet) != nil {
		p.stats.SendErrors++
	}
}

// SendMessages sends a packet of messages, and takes what it costs out of the budget. They are sent all the same, so debts
// are bounded.
func (p *Sender) SendMessages(packet []byte) {
	if b := &p.Budget; b.Rate > 0 {
		b.spend(len(packet), p.opts.TickRate)
		b.deliver(len(packet))
		b.Tokens = max(b.Tokens, -p.savings())
	}
	p.Transmit(packet)
}

// beginSilence starts a tick.
func (p *Sender) beginSilence() {
	if !p.opts.NoSilence {
		p.acked.Silence.Begin(p.snap.Tick, p.acked.Log.Next, p.Alive.quiet, p.acked.Patience())
		if p.acked.Silence.Mute {
			p.Budget.restart(p.snap.Tick) // who comes back after that may come another way
		}
	}
}

// blocked reports whether no more packets may be sent now.
func (p *Sender) blocked() bool { return p.acked.Log.Full() || p.Budget.short() }

// Timed is of [ackstate.Outcomes], as are Arrived and Lost.
func (p *Sender) Timed(sent *ackstate.SentPacket) { p.Budget.sample(sent, p.snap.Tick+1) }

// Arrived tells the budget and the models of Compact of a packet that came.
func (p *Sender) Arrived(sent *ackstate.SentPacket, sequence uint32) {
	p.Budget.acknowledge(sent, p.snap.Tick+1)
	if k := p.Packet.Compact; k != nil {
		k.Kept.Acknowledge(sequence)
	}
}

// Lost tells them of one that counts as lost.
func (p *Sender) Lost(sequence uint32) {
	if k := p.Packet.Compact; k != nil {
		k.Kept.Lose(sequence)
	}
	p.Budget.lose()
}
