package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/config"
)

// A Steadiness measures how steady the motion in the world is, from a sample of what changes.
type Steadiness struct {
	// Shift is that of all packets of the tick, Found the one that suits what was seen.
	Shift, Found delta.Shift

	meter  delta.ShiftMeter
	packed *delta.Packed // for the meter
	age    delta.Tick    // of the baselines of the sample: a tenth of a second, a usual round trip
	blocks []int         // scratch memory
}

const (
	// A sample has this many slots, of this many blocks at most.
	sampleSlots  = 16
	sampleBlocks = 4
	// sampleSpan is the distance of most second baselines.
	sampleSpan = 2
)

// Init prepares for components of a layout.
func (m *Steadiness) Init(l *delta.Layout, opts *config.ServerOptions) {
	m.packed, m.age = delta.NewPacked(l), delta.Tick(min(max(opts.TickRate/10, 1), opts.Window-sampleSpan))
}

// Measure takes a sample in one of four ticks, and sets Shift. open reports whether all peers see all entities: what a
// peer is sent must not depend on what it does not see.
func (m *Steadiness) Measure(s *Snapshot, open bool) {
	if m.Shift = delta.NoShift; !open {
		return // what is hidden now must not show later either
	}
	if random := uint64(s.Tick) * 0x9e3779b97f4a7c15; random>>62 == 0 { // multiplicative hashing
		m.sample(s, random)
	}
	m.Shift = m.Found
}

// sample shows the meter some of what changed. Where conditions are, not all peers see what changed in sub-entities.
func (m *Steadiness) sample(s *Snapshot, random uint64) {
	changes := 0
	m.blocks = m.blocks[:0]
	for _, b := range s.Slots.Busy {
		if !s.Slots.HoldsSubEntities(int(b)) {
			m.blocks = append(m.blocks, int(b))
			changes += bits.OnesCount64(s.Slots.Changed[b])
		}
	}
	n := min(len(m.blocks), sampleBlocks)
	for i := range n {
		b := m.blocks[(int(random>>40&0xffff)+i)%len(m.blocks)]
		moved := s.Slots.Changed[b] & s.Slots.Alive[b] &^ s.Slots.Churned[b]
		first := int(random >> 34 & 63)
		left := sampleSlots / n
		for rest := bits.RotateLeft64(moved, -first); rest != 0 && left > 0; rest &= rest - 1 {
			m.see(s, b<<6|(bits.TrailingZeros64(rest)+first)&63)
			left--
		}
	}
	if n == 0 {
		return
	}
	if changes <= sampleSlots {
		m.meter.Packet()
	}
	m.Found = m.meter.Next()
}

// see shows the meter what changed in a slot.
func (m *Steadiness) see(s *Snapshot, slot int) {
	a1 := s.Tick - m.age
	a2 := a1 - sampleSpan
	if a2.Before(s.Slots.Info[slot].Born) {
		return
	}
	ratio := delta.Ratio(s.Tick, a1, a2)
	var v delta.Versions
	for c, h := range s.Histories {
		if !h.Find(slot, &v) || v.Began() != s.Tick {
			continue
		}
		row, now := v.At(s.Tick)
		base, was := v.At(a1)
		base2, was2 := v.At(a2)
		if now == delta.Present && was == delta.Present && was2 == delta.Present {
			m.meter.See(m.packed, c, row, base, base2, ratio)
		}
	}
}
