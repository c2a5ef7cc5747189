package encode

import (
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
)

// setParts are the parts of a packet set.
type setParts struct {
	period    *snapshot.Period // nil: the set has no parts
	partition *partition       // of the period
	list      []setPart
	at        int // the part that is being filled
}

// A setPart is a part of a packet set.
type setPart struct {
	wanted     bool
	first, end int // its packets, a range of those of the set
}

// begin divides what changed in a period. There are no parts yet.
func (p *setParts) begin(period *snapshot.Period, of *partition) {
	p.period, p.partition = period, of
	for range of.len() {
		p.list = append(p.list, setPart{})
	}
}

// bounds returns the first block of a part and the first one after it.
func (p *setParts) bounds(part int) (from, to int) {
	return p.partition.bounds(part, len(p.period.Changed))
}

// add adds a packet of the set to the part, after those that it has.
func (k *setPart) add(packet int) {
	if k.end == 0 {
		k.first = packet
	}
	k.end = packet + 1
}
