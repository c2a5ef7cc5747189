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
	Opts     *config.ServerOptions
	Sight    *interest.Sight
	Interest *interest.Shared
	Stats    *counters.PeerCounters

	Structure *Structure // nil: there are no messages that wait for the world
	Acks      AckTable
	Outcome   outcomes
	Dirty     bitset.Set // slots to look at: all others are up to date or on their way
	Large     map[int]*LargeState
	Log       SentLog
	Followed  uint32                           // of all packets before it is known what became of them, or taken to be
	Full      [snapshot.RecentTicks]delta.Tick // by tick modulo their number: ticks in which all that changed was sent in packets of a stream

	Heard bool // Recent and RecentSequence are valid

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

// Peers with replication.Compact have baselines of their own: nothing is gained by having those of others.
// A nearer second one serves better, once it is learnt how far motions reach, and so does a third.

// addSpread adds the classes of slots that the peer holds as of tick at, that have the baselines
// that are best for Compact, and returns the others.
func (p *Tracker) addSpread(b int, m uint64, at delta.Tick) uint64 {
	c := &p.Classes
	for span := delta.Tick(2); span <= 4 && m != 0; span++ {
		two := m & p.heldFor(b, at, at-span)
		if two == 0 {
			continue
		}
		m &^= two
		for third := delta.Tick(1); third < span && third <= 3 && two != 0; third++ {
			if three := two & p.heldFor(b, at, at-third); three != 0 {
				two &^= three
				c.AddClass(baseline.Class{Mask: three, Third: uint8(third), Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
			}
		}
		if two != 0 {
			c.AddClass(baseline.Class{Mask: two, Baselines: delta.Baselines{A1: at, A2: at - span, Two: true}})
		}
	}
	return m
}

// ClassOfSlot returns the class of a slot that the peer is to be sent.
func (p *Tracker) ClassOfSlot(slot int) *baseline.Class {
	b, bit := slot>>6, uint64(1)<<(slot&63)
	p.Classify(b, bit)
	return &p.Classes.List[0]
}

// Front returns the baselines that are in front of the list in the peer's packets.
func (p *Tracker) Front() delta.Baselines {
	switch base := p.Base(); {
	case !p.Snap.Fresh(base) || base == p.Snap.Tick:
		return delta.Baselines{A1: p.Snap.Tick - 1}
	case p.Interval > delta.MaxSpan:
		return delta.Baselines{A1: base}
	default:
		return delta.Baselines{A1: base, A2: p.Second(base), Two: true}
	}
}

// Near reports whether the peer got a packet near enough to complete short forms of the
// sequence and tick.
func (p *Tracker) Near() bool {
	return p.Heard && p.Snap.Tick-p.Recent < 1<<14 && p.Log.Next-p.RecentSequence < 1<<14
}
