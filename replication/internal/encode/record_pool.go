package encode

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/replication/internal/baseline"
)

// A recordPool has records of shared packets of earlier ticks. The logs of peers refer to them while they remember the
// packets; after that, the records of new packets are written there.
type recordPool struct {
	list []*baseline.SharedRecords
	at   int // of the oldest one, and behind the newest one
}

const (
	// poolTries bounds how many records replace looks at. Those of recent ticks are in use, and so are those of packets
	// that an idle peer remembers.
	poolTries = 4
	// A pool keeps poolSpare records for each one in use, and poolLeast more. Without idle peers about half of its
	// records are in use.
	poolSpare, poolLeast = 4, 8
)

// replace returns empty records that no log refers to, in exchange for others: the same if possible. There may be none
// in exchange.
func (p *recordPool) replace(old *baseline.SharedRecords) *baseline.SharedRecords {
	switch {
	case old == nil:
		return new(baseline.SharedRecords)
	case !old.InUse():
		return emptied(old, 0)
	}
	if p.at >= len(p.list) {
		p.at = 0
	}
	for i := range min(poolTries, len(p.list)) {
		at := (p.at + i) % len(p.list)
		if r := p.list[at]; !r.InUse() {
			p.list[at], p.at = old, at+1
			return emptied(r, len(old.List))
		}
	}
	p.list = slices.Insert(p.list, p.at, old)
	p.at += 2 // behind one that is in use, or several of these would be in the way forever
	return emptied(new(baseline.SharedRecords), len(old.List))
}

// emptied empties records and makes room for n, at once and not step by step.
func emptied(r *baseline.SharedRecords, n int) *baseline.SharedRecords {
	r.List = slices.Grow(r.List[:0], n)
	return r
}

// shrink gives back the memory of a rare burst.
func (p *recordPool) shrink() {
	used := 0
	for _, r := range p.list {
		if r.InUse() {
			used++
		}
	}
	excess := len(p.list) - (poolSpare*used + poolLeast)
	p.list = slices.DeleteFunc(p.list, func(r *baseline.SharedRecords) bool {
		if excess <= 0 || r.InUse() {
			return false
		}
		excess--
		return true
	})
}
