package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// MaxPeriod is the longest send interval, in ticks, over which changes are tracked.
const MaxPeriod = 8

// A Period is what changed in as many ticks as a send interval has, up to the present one: what peers with
// that interval are sent if they lack nothing else.
type Period struct {
	Ticks   delta.Tick // 1 to MaxPeriod
	Changed bitset.Set // slots in which something changed
	Blocks  bitset.Set // blocks with such slots
	Changes int        // number of changed slots
}

// Periods are those that peers need in this tick.
type Periods struct {
	of    [1 + MaxPeriod]Period // by their length
	found uint16                // bits of the lengths
}

// begin forgets the periods of the tick before.
func (p *Periods) begin() { p.found = 0 }

// Find finds what changed in the last n ticks, after the capture. Longer periods than MaxPeriod are not found.
func (p *Periods) Find(n delta.Tick, s *SlotTable) {
	if n > MaxPeriod || p.found>>n&1 != 0 {
		return
	}
	p.found |= 1 << n
	of := &p.of[n]
	if of.Ticks = n; n == 1 {
		of.Changed, of.Blocks, of.Changes = s.Changed, s.ChangedBlocks, s.Changed.Count()
		return
	}
	of.Changed = append(of.Changed[:0], s.Changed...)
	for ago := range n - 1 {
		for b, word := range s.Log[(s.Recent.Now-ago)%RecentTicks] {
			of.Changed[b] |= word
		}
	}
	of.Blocks, of.Changes = of.Changed.Blocks(of.Blocks), of.Changed.Count()
}

// Get returns what changed in the last n ticks, or nil if that was not found in this tick.
func (p *Periods) Get(n delta.Tick) *Period {
	if n > MaxPeriod || p.found>>n&1 == 0 {
		return nil
	}
	return &p.of[n]
}
