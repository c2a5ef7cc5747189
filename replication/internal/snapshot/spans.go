package snapshot

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// Spans are the least distances of second baselines that a server chooses from. A short one follows jerky motion
// sooner; a long one averages the noise of quantising.
var Spans = [...]delta.Tick{delta.SecondGrid, 2 * delta.SecondGrid, 4 * delta.SecondGrid}

// A spanMeter finds the distance that suits a game: it encodes a sample of what changed against second baselines at
// all of them.
type spanMeter struct {
	bits   [len(Spans)]uint32 // that entities took; older ones count less
	best   int                // index in Spans
	packed *delta.Packed
	w      bitbuf.Writer
	buf    []byte
}

const (
	// Once what was seen has this many bits, it counts half.
	spanMemory = 1 << 14
	// Another distance must save a sixty-fourth of the bits, and leastSaved bits, before it replaces the present one.
	leastGain, leastSaved = 64, 128
	// namedSpan is how many bits more a packet takes whose second baseline is not the one that is cheapest to name.
	namedSpan = 1 + delta.SpanBits
)

// see adds an entity that is sent against first baseline a1, with the shift that suits each distance.
func (m *spanMeter) see(s *Snapshot, slot int, a1 delta.Tick, shifts *[len(Spans)]delta.Shift) {
	var took [len(Spans)]uint32
	for i, span := range Spans {
		m.packed.SetShift(shifts[i])
		n, known := m.encode(s, slot, a1, SecondAt(a1, span))
		if !known {
			return
		}
		took[i] = uint32(n)
	}
	for i := range took {
		m.bits[i] += took[i]
	}
}

// SecondAt returns the newest tick that peers have in common as second baseline, at least so many ticks before a first
// one.
func SecondAt(a1, span delta.Tick) delta.Tick {
	return delta.Second(a1 + delta.SecondGrid - max(span, delta.SecondGrid))
}

// encode returns the bits of an entity, and whether its baselines are known.
func (m *spanMeter) encode(s *Snapshot, slot int, a1, a2 delta.Tick) (n int, known bool) {
	info, ratio := &s.Slots.Info[slot], delta.Ratio(s.Tick, a1, a2)
	if ratio == 0 || info.SetChanged.After(a2) {
		return 0, false
	}
	m.packed.Begin()
	m.packed.Costs = m.packed.Costs[:0]
	for k := info.Set.Next(0); k >= 0; k = info.Set.Next(k + 1) {
		h := s.Histories[k]
		if !h.Began(slot).After(a2) {
			m.packed.AddSame(k, true)
			continue
		}
		v := h.Versions(slot)
		base, was := v.At(a1)
		base2, was2 := v.At(a2)
		if was != delta.Present || was2 != delta.Present {
			return 0, false
		}
		m.packed.Add(k, v.Row(), base, base2, ratio)
	}
	m.w.Reset(m.buf)
	m.packed.End(&m.w)
	return m.w.Len(), m.w.Err() == nil
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
