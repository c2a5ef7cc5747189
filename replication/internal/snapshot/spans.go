package snapshot

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/bitset"
)

// Spans are the least distances of second baselines that a server chooses from. A short one follows jerky motion
// sooner; a long one averages the noise of quantising.
var Spans = [...]delta.Tick{delta.SecondGrid, 2 * delta.SecondGrid, 4 * delta.SecondGrid}

// A spanMeter finds the distance that suits a game: it encodes a sample of what changed against second baselines at
// all of them.
type spanMeter struct {
	bits    [len(Spans)]uint32 // that entities took; older ones count less
	best    int                // index in Spans
	columns *delta.Columns
}

const (
	// Once what was seen has this many bits, it counts half.
	spanMemory = 1 << 14
	// Another distance must save a sixty-fourth of the bits, and leastSaved bits, before it replaces the present one.
	leastGain, leastSaved = 64, 128
	// namedSpan is how many bits more a packet takes whose second baseline is not the one that is cheapest to name.
	namedSpan = 1 + 5 // a bit, and the distance up to delta.MaxSpan
)

// SecondAt returns the newest tick that peers have in common as second baseline, at least so many ticks before a first
// one.
func SecondAt(a1, span delta.Tick) delta.Tick {
	return delta.Second(a1 + delta.SecondGrid - max(span, delta.SecondGrid))
}

// LeastSpan returns how many ticks before a first baseline the second one must be to predict the state at tick now.
func LeastSpan(now, a1 delta.Tick) delta.Tick {
	return max((now-a1+delta.MaxExtrapolation-1)/delta.MaxExtrapolation, 1)
}

// secondOf returns the second baseline of a first one, given one of Spans.
func secondOf(now, a1, span delta.Tick) delta.Tick {
	return SecondAt(a1, max(span, LeastSpan(now, a1)))
}

// see adds entities of a block that are sent against first baseline a1, with the shift that suits each distance.
func (m *spanMeter) see(s *Snapshot, b int, slots uint64, a1 delta.Tick, shifts *[len(Spans)]delta.Shift) {
	farthest := secondOf(s.Tick, a1, Spans[len(Spans)-1])
	components, changed := s.Slots.Components(b, slots, farthest)
	slots &^= changed
	s.BeginColumns(m.columns, b, slots, components, farthest)
	var took [len(Spans)]uint32
	for i := len(Spans) - 1; i >= 0; i-- { // what has the farthest baseline has the others
		a2 := secondOf(s.Tick, a1, Spans[i])
		slots = m.columns.Encode(delta.Against{
			Slots: slots, A1: a1, A2: a2, Ratio: delta.Ratio(s.Tick, a1, a2), Shift: shifts[i],
		})
		for slot := range bitset.Slots(b, slots) {
			took[i] += uint32(m.columns.Bits(slot))
		}
	}
	for i := range took {
		m.bits[i] += took[i]
	}
}

// packet adds what the choice takes itself. It is for entities that fill a packet.
func (m *spanMeter) packet() {
	for i := range m.bits[1:] {
		m.bits[1+i] += namedSpan
	}
}

// next ends a sample, and returns which of Spans suits the ticks up to the next one.
func (m *spanMeter) next() int {
	best := m.best
	for i := range m.bits {
		if m.bits[i] < m.bits[best] {
			best = i
		}
	}
	if now := m.bits[m.best]; m.bits[best]+now/leastGain+leastSaved < now {
		m.best = best
	}
	if m.bits[m.best] > spanMemory {
		for i := range m.bits {
			m.bits[i] /= 2
		}
	}
	return m.best
}
