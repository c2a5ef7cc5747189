package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/arche-replicate/arche-replicate/replication/internal/history"
)

// A Steadiness measures how steady the motion in the world is, from a sample of what changes.
type Steadiness struct {
	// Shift is that of all packets of the tick, and Span the least distance of second baselines. Found and foundSpan
	// are those that suit what was seen.
	Shift, Found    delta.Shift
	Span, foundSpan delta.Tick

	shifts [len(Spans)]delta.ShiftMeter // by distance
	suits  [len(Spans)]delta.Shift      // by distance: what its meter found
	spans  spanMeter
	packed *delta.Packed // for the shifts
	age    delta.Tick    // of the baselines of the sample
	same   uint8         // samples in a row that found the same, stableSamples at most
	open   bool          // all peers saw everything in the last tick
	blocks []int         // scratch memory
}

const (
	// A sample has about this many slots at most, of this many blocks, and one in so many of those that changed.
	sampleSlots  = 16
	sampleBlocks = 4
	sampleShare  = 4
	// After so many samples in a row that found the same, a quarter as many are taken, until one finds something else.
	stableSamples = 64
)

// Init prepares for components of a layout.
func (m *Steadiness) Init(l *delta.Layout, opts *config.ServerOptions) {
	m.packed, m.age = delta.NewPacked(l), delta.Tick(max(opts.TickRate/10, 1)) // a usual round trip
	m.spans = spanMeter{columns: delta.NewColumns(l)}
	m.Span, m.foundSpan = Spans[0], Spans[0]
}

// Begin sets Span for the tick, before any peer is prepared. ages is the sum of the ages of the base ticks of some
// peers, if it is known: then samples have baselines of the mean age.
func (m *Steadiness) Begin(ages, peers int) {
	if peers > 0 {
		m.age = delta.Tick(max(ages/peers, 1))
	}
	if m.Span = Spans[0]; m.open {
		m.Span = m.foundSpan
	}
}

// Measure takes a sample in one of four ticks, or of sixteen once they find the same, and sets Shift. open reports
// whether all peers see all entities: what a peer is sent must not depend on what it does not see.
func (m *Steadiness) Measure(s *Snapshot, open bool) {
	m.open = open
	if m.Shift = 0; !open {
		return // what is hidden now must not show later either
	}
	if random := uint64(s.Tick) * 0x9e3779b97f4a7c15; m.samplesAt(random) { // multiplicative hashing
		m.sample(s, random)
	}
	m.Shift = m.Found
}

// samplesAt reports whether a sample is taken in a tick with a random number.
func (m *Steadiness) samplesAt(random uint64) bool {
	if m.Stable() {
		return random>>60 == 0
	}
	return random>>62 == 0
}

// Stable reports whether samples have found the same for a while.
func (m *Steadiness) Stable() bool { return m.same == stableSamples }

// sample measures some of what changed. It leaves out sub-entities, which some peers may not see.
func (m *Steadiness) sample(s *Snapshot, random uint64) {
	changes := 0
	m.blocks = m.blocks[:0]
	for b := range s.Slots.ChangedBlocks.All() {
		if !s.Slots.HoldsSubEntities(b) {
			m.blocks = append(m.blocks, b)
			changes += bits.OnesCount64(s.Slots.Changed[b])
		}
	}
	n, seen := min(len(m.blocks), sampleBlocks), 0
	for i := range n {
		b := m.blocks[(int(random>>40&0xffff)+i)%len(m.blocks)]
		moved := s.Slots.Changed[b] & s.Slots.Alive[b] &^ s.Slots.Churned[b]
		first := int(random >> 34 & 63)
		rest, chosen := bits.RotateLeft64(moved, -first), uint64(0)
		for left := max(min(sampleSlots, changes/sampleShare)/n, 1); rest != 0 && left > 0; left-- {
			chosen |= rest & -rest
			rest &= rest - 1
		}
		m.see(s, b, bits.RotateLeft64(chosen, first))
		seen += bits.OnesCount64(chosen)
	}
	if n == 0 {
		return
	}
	fills := changes <= sampleSlots && int(random>>8&0xff)%changes < seen // the share of the packet that was seen
	if fills {
		m.spans.packet()
	}
	for i := range m.shifts {
		m.suits[i] = m.shifts[i].Next(fills)
	}
	best := m.spans.next()
	found, span := m.suits[best], Spans[best]
	if m.same = min(m.same+1, stableSamples); found != m.Found || span != m.foundSpan {
		m.same = 0
	}
	m.Found, m.foundSpan = found, span
}

// see shows the meters what changed in slots of a block.
func (m *Steadiness) see(s *Snapshot, b int, slots uint64) {
	a1 := s.Tick - min(m.age, delta.Tick(s.Opts.Window)-delta.SecondGrid)
	m.spans.see(s, b, slots, a1, &m.suits)
	for slot := range bitset.Slots(b, slots) {
		m.seeRows(s, slot, a1)
	}
}

// seeRows shows the meters of shifts what changed in a slot.
func (m *Steadiness) seeRows(s *Snapshot, slot int, a1 delta.Tick) {
	var v history.Versions
	for c, h := range s.Histories {
		if !h.Find(slot, &v) || v.Began() != s.Tick {
			continue
		}
		base, was := v.At(a1)
		if was != history.Present {
			continue
		}
		for i, span := range Spans {
			a2 := secondOf(s.Tick, a1, span)
			if a2.Before(s.Slots.Info[slot].Born) {
				break
			}
			if base2, was := v.At(a2); was == history.Present {
				m.shifts[i].See(m.packed, c, v.Row(), base, base2, delta.Ratio(s.Tick, a1, a2))
			}
		}
	}
}
