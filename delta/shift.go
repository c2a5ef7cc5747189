package delta

// This file adapts Packed to how steady the motion in a game is. Where things keep their speed, nearly
// all distances from predictions are as small as quantising allows; where players, physics or noise
// change it all the time, they are large. The baselines of a row do not show which of the two it is. So
// all rows of a tick have the orders of their residuals shifted by the same number, which packets name.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A Shift moves the orders of the residuals of Linear and Wrap fields without Orders of their own: 0 leaves them as
// they are, 1 and 2 lower them by as much, 3 raises them by one.
type Shift uint8

const (
	noShift Shift = iota
	lowerOne
	lowerTwo
	raiseOne
	shifts
)

// shiftedOrders has what stands for each order. No order is higher.
var shiftedOrders = func() (all [shifts][]uint8) {
	const highest = 63
	for _, s := range [...]struct {
		shift Shift
		by    int
	}{{lowerOne, -1}, {lowerTwo, -2}, {raiseOne, 1}} {
		for k := range highest + 1 {
			all[s.shift] = append(all[s.shift], uint8(max(k+s.by, 0)))
		}
	}
	return all
}()

// Write appends the shift: 0 for none, or 1 and which of the others in truncated binary.
func (s Shift) Write(w *bitbuf.Writer) {
	if w.WriteBool(s != noShift); s != noShift {
		w.WriteTruncated(uint64(s-1), uint64(shifts-1))
	}
}

// bits returns the length of the shift's code.
func (s Shift) bits() uint {
	if s == noShift {
		return 1
	}
	_, n := bitbuf.TruncatedCode(uint64(s-1), uint64(shifts-1))
	return 1 + n
}

// ReadShift reads a shift.
func ReadShift(r *bitbuf.Reader) Shift {
	if !r.ReadBool() {
		return noShift
	}
	return Shift(1 + r.ReadTruncated(uint64(shifts-1)))
}

// SetShift sets the shift of the rows to come, 0 at first.
func (p *Packed) SetShift(s Shift) {
	if s == p.shift {
		return
	}
	p.shift = s
	for _, steps := range p.steps {
		for i := range steps {
			steps[i].orders = &steps[i].shifted[s]
		}
	}
}

// A ShiftMeter finds the shift that suits a game. The zero value has seen nothing.
type ShiftMeter struct {
	bits  [shifts]uint32 // that rows took with each shift; older rows count less
	shift Shift
}

const (
	// Once what was seen has this many bits, it counts half: what a few hundred rows took is remembered.
	shiftMemory = 1 << 13
	// A shift must save 1/2^leastGain of the bits, and leastSaved bits, before it replaces another one.
	leastGain, leastSaved = 6, 64
)

// See adds a row of component c with its baselines, if the component consists of Linear and Wrap fields. p is of the
// layout; its shift does not matter.
func (m *ShiftMeter) See(p *Packed, c int, cur, base, base2 []uint32, ratio int64) {
	steps := p.movingSteps(c)
	if steps == nil || ratio == 0 {
		return
	}
	moving, off, changed := extrapolateSteps(steps, cur, base, base2, ratio)
	if moving == 0 || off == 0 || changed == 0 {
		return
	}
	if steps[0].turning {
		turnTogether(steps, base, base2)
		deviate(steps)
	}
	seen := uint(0)
	for i := range steps {
		st := &steps[i]
		v, width, k := st.predicted, uint(st.width), movingOrder(uint(st.moved), seen)
		seen = max(seen, 1+uint(bits.Len32(v)))
		if len(p.layout.Components[c].Fields[i].Orders) > 0 {
			continue
		}
		for s := range m.bits {
			_, n := shortResidual(v, st.shifted[s].of(k), width)
			m.bits[s] += uint32(n)
		}
	}
}

// Next ends a sample, and returns the shift for the ticks up to the next one. fills reports whether the sample fills a
// packet, so that what naming the shift takes counts.
func (m *ShiftMeter) Next(fills bool) Shift {
	if fills {
		for s := range shifts {
			m.bits[s] += uint32(s.bits())
		}
	}
	best := m.shift
	for s := range shifts {
		if m.bits[s] < m.bits[best] {
			best = s
		}
	}
	if now := m.bits[m.shift]; m.bits[best]+now>>leastGain+leastSaved < now {
		m.shift = best
	}
	if m.bits[m.shift] > shiftMemory {
		for s := range m.bits {
			m.bits[s] /= 2
		}
	}
	return m.shift
}
