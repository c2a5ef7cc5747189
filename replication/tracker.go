package replication

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/clock"
)

// tracker is what a client is known to hold, and what was sent to it of which that is not known yet.
type tracker struct {
	snap     *snapshot
	opts     *serverOptions
	sight    *sight
	interest *interestSets
	stats    *peerCounters

	structure *structure // nil: there are no messages that wait for the world
	acks      ackTable
	outcome   outcomes
	due       bitset.Set // slots to look at: all others are up to date or on their way
	large     map[int]*largeState
	log       sentLog
	followed  uint32                  // of all packets before it is known what became of them, or taken to be
	full      [recentTicks]delta.Tick // by tick modulo their number: ticks in which all that changed was sent in packets of a stream

	heard bool // recent and recentSequence are valid

	trip           clock.RoundTrip
	recent         delta.Tick // newest tick that the peer acknowledged a packet of
	recentSequence uint32     // of a packet acknowledged with that tick
	classes        classes
	pairs          []basePair // of baselines that are tried first
	join           join
	silence        silence
	interval       delta.Tick // ticks from one send to the next
	phase          delta.Tick // of the interval: peers take turns
}
