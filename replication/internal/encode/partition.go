package encode

import (
	"math"
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/snapshot"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A partition divides the slots into parts, ranges of blocks, what changed in each of which fills a packet. All packet
// sets that share it begin a packet with each part, and parts stay the same from tick to tick where they can. So a
// packet that was lost leaves one packet of a later tick without its baselines rather than two, and the same part of a
// set with other baselines can replace that one.
type partition struct {
	starts []int32 // first blocks of the parts but the first, ascending
	last   []int32 // those of the tick before
	sizes  []int32 // by block: bits of what changed in it, a moving mean

	updated delta.Tick // last
}

// Partitions are those of periods, by their length in ticks, and by how old the first baselines of peers are, as older
// ones make larger entries. They depend on the sets of all workers.
type Partitions [snapshot.MaxPeriod + 1][ageClasses]partition

// ageClasses is the number of classes of ages: up to 2 ticks, up to 11, and older. More classes would make packets
// fuller and leave less to share.
const ageClasses = 3

// of returns the partition for a period and baselines that a peer is likely to have.
func (p *Partitions) of(period *snapshot.Period, likely snapshot.BasePair, now delta.Tick) *partition {
	class := 0
	if age := now - likely.Base; age > 11 {
		class = 2
	} else if age > 2 {
		class = 1
	}
	return &p[period.Ticks][class]
}

// How full a part makes a packet, in parts of fullParts. A part keeps its end if it is leastFull to stayFull then.
// Otherwise it is made newFull.
const (
	leastFull, newFull, stayFull = 24, 29, 31
	fullParts                    = 32
)

// len returns the number of parts.
func (p *partition) len() int { return len(p.starts) + 1 }

// bounds returns the first block of a part, and that of the next one or else the number of all blocks.
func (p *partition) bounds(part, blocks int) (from, to int) {
	if to = blocks; part > 0 {
		from = int(p.starts[part-1])
	}
	if part < len(p.starts) {
		to = min(to, int(p.starts[part]))
	}
	return from, to
}

// slots returns the slots of a part. The last one has no end.
func (p *partition) slots(part int) wire.SlotRange {
	from, to := p.bounds(part, math.MaxInt)
	if part < len(p.starts) {
		to <<= 6
	}
	return wire.SlotRange{From: from << 6, To: to}
}

// UpdatePartitions divides anew, for the next tick, given the packet sets of all workers in this one.
func UpdatePartitions(workers []*PacketSets, now delta.Tick) {
	for _, c := range workers {
		for i := range c.List {
			if of := c.List[i].parts.partition; of != nil && of.updated != now {
				of.updated = now
				of.update(workers, now)
			}
		}
	}
}

// update divides anew.
func (p *partition) update(workers []*PacketSets, now delta.Tick) {
	var room [MaxPacketSets]*PacketSet
	sets := room[:0]
	for _, c := range workers {
		for i := range c.List {
			if set := &c.List[i]; set.parts.partition == p {
				sets = append(sets, set)
			}
		}
	}
	if sets = typical(sets, now); len(sets) > 0 {
		p.measure(sets)
		p.divide(8 * int32(RoomOf(workers[0].snap)))
	}
}

// typical returns those of some sets with the same baselines, whose entries seven of eight peers find no smaller than
// their own, since they are older.
func typical(sets []*PacketSet, now delta.Tick) []*PacketSet {
	var peers [snapshot.RecentTicks]int // by the age of their first baseline
	all := 0
	for _, set := range sets {
		peers[(now-set.Base)%snapshot.RecentTicks] += set.peers
		all += set.peers
	}
	age, below := delta.Tick(0), peers[0]
	for ; 8*below < 7*all; below += peers[age] {
		age++
	}
	var of *PacketSet
	for _, set := range sets {
		if set.peers > 0 && now-set.Base == age && (of == nil || set.Second.After(of.Second)) {
			of = set
		}
	}
	return slices.DeleteFunc(sets, func(set *PacketSet) bool { return of == nil || set.BasePair != of.BasePair })
}

// measure notes the sizes of blocks, given sets with the same baselines.
func (p *partition) measure(sets []*PacketSet) {
	for len(p.sizes) < len(sets[0].Slots) {
		p.sizes = append(p.sizes, 0)
	}
	changed := sets[0].parts.period.Changed
	for b := range p.sizes {
		size, known := int32(0), changed[b] == 0
		for i := 0; i < len(sets) && !known; i++ {
			if known = sets[i].Slots[b] != 0; known {
				size = sets[i].sizeOf(b)
			}
		}
		if known {
			p.sizes[b] += (size - p.sizes[b]) >> 2
		}
	}
}

// divide finds the parts, for packets with room for so many bits.
func (p *partition) divide(room int32) {
	p.starts, p.last = p.last[:0], p.starts
	left, full := int32(0), room/fullParts
	for _, size := range p.sizes {
		left += size
	}
	for from := 0; left > stayFull*full && len(p.starts) < int(8*maxSharedBytes/room); {
		end, size := p.end(from, full)
		if end == len(p.sizes) {
			return // the last block is larger than a packet
		}
		p.starts = append(p.starts, int32(end))
		from, left = end, left-size
	}
}

// end returns the end of the part that begins with a block, and its size.
func (p *partition) end(from int, full int32) (end int, size int32) {
	end, size = from+1, p.sizes[from]
	kept := false
	for b, sum := end, size; b < len(p.sizes) && sum <= stayFull*full; b++ {
		if _, is := slices.BinarySearch(p.last, int32(b)); is && sum >= leastFull*full {
			end, size, kept = b, sum, true
		} else if !kept && sum <= newFull*full {
			end, size = b, sum
		}
		sum += p.sizes[b]
	}
	return end, size
}
