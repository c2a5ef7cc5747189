// Package ackstate knows what a client is known to hold: packets in flight, acks and losses, and what is dirty for it.
package ackstate

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/counters"
	"github.com/arche-replicate/arche-replicate/replication/internal/interest"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// Tracker is what a client is known to hold, and what was sent to it of which that is not known yet.
type Tracker struct {
	Snap     *snapshot.Snapshot
	opts     *config.ServerOptions
	sight    *interest.Sight
	interest *interest.Shared
	stats    *counters.PeerCounters

	Structure *Structure // nil: there are no messages that wait for the world
	Acks      AckTable
	outcome   outcomes
	Dirty     bitset.Set // slots to look at: all others are up to date or on their way
	Large     map[int]*LargeState
	Log       SentLog
	Followed  uint32                           // of all packets before it is known what became of them, or taken to be
	Full      [snapshot.RecentTicks]delta.Tick // by tick modulo their number: ticks in which all that changed was sent in packets of a stream

	AnyAcked bool // Recent and RecentSequence are valid

	Trip           clock.RoundTrip
	Recent         delta.Tick // newest tick that the peer acknowledged a packet of
	RecentSequence uint32     // of a packet acknowledged with that tick
	Classes        baseline.Classes
	Pairs          []snapshot.BasePair // of baselines that are tried first
	Join           Join
	Silence        Silence
	Interval       delta.Tick // ticks from one send to the next
	Phase          delta.Tick // of the interval: peers take turns
}

// Init prepares a tracker, whose outcomes interest the given one.
func (p *Tracker) Init(snap *snapshot.Snapshot, opts *config.ServerOptions, shared *interest.Shared, sight *interest.Sight,
	stats *counters.PeerCounters, outcome outcomes,
) {
	p.Snap, p.opts, p.interest, p.sight, p.stats, p.outcome = snap, opts, shared, sight, stats, outcome
	p.Interval, p.Classes.Slots = 1, &snap.Slots
}

// Begin starts a session: the client holds nothing. first is the sequence of its first packet, and waits says whether there
// are messages that wait for the world.
func (p *Tracker) Begin(first uint32, compact, waits bool) {
	p.Acks.Reset(&p.Snap.Slots, p.Snap.Tick)
	p.Dirty, p.Large = nil, map[int]*LargeState{}
	p.Log, p.Followed = NewSentLog(first), first
	p.Trip, p.AnyAcked = clock.RoundTrip{}, false
	for i := range p.Full {
		p.Full[i] = p.Snap.Tick // none that is to come
	}
	p.Join, p.Silence = Join{}, Silence{answered: first}
	p.Classes.Compact = compact
	p.Structure = nil
	if waits {
		p.Structure = &Structure{}
	}
}

// End gives back what a session takes.
func (p *Tracker) End() {
	p.Acks, p.Dirty, p.Large, p.Log = AckTable{}, nil, nil, SentLog{}
	p.Join, p.Structure = Join{}, nil
}

// Near reports whether the peer got a packet near enough to complete short forms of the
// sequence and tick.
func (p *Tracker) Near() bool {
	return p.AnyAcked && p.Snap.Tick-p.Recent < 1<<14 && p.Log.Next-p.RecentSequence < 1<<14
}
