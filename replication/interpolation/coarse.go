package interpolation

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/receive"
)

// A component that goes less than a step of its precision between two states stands still in most frames and then jumps
// by a step. Samples of what moves show whether a component suffers from that.

// samples are the latest motions of a column that were looked at.
type samples struct {
	next   uint32 // the slot to look at next
	n      int    // how many there are, up to mostSamples
	coarse uint16 // a bit for each: whether its steps are too coarse for it; the lowest is the latest
}

const (
	mostSamples   = 16
	enoughSamples = 8
	manyCoarse    = 4  // of mostSamples
	sampleFrames  = 8  // frames between two looks
	sampleSlots   = 32 // slots in a look
	leastChanges  = 3  // of a motion in a second, for a sample
	mostSteps     = 2  // of a change: more than one if a state got lost
)

// sample looks at the next entity that moves, in some frames.
func (c *column) sample(p *Interpolation) {
	if p.clock.counts.frames%sampleFrames != 0 {
		return
	}
	for range sampleSlots {
		slot := c.samples.next
		if int(slot/receive.ReplicaPage) >= len(c.pages.all) {
			c.samples.next = 0
			return
		}
		c.samples.next++
		e := c.pages.find(slot)
		if e == nil {
			c.samples.next = (slot/receive.ReplicaPage + 1) * receive.ReplicaPage
			continue
		}
		if e.state != moving {
			continue
		}
		if moves, coarse := c.isCoarse(p, slot); moves {
			c.samples.add(coarse)
			return
		}
	}
}

func (s *samples) add(coarse bool) {
	s.n = min(s.n+1, mostSamples)
	if s.coarse <<= 1; coarse {
		s.coarse |= 1
	}
}

// isCoarse reports whether a slot has moved during the last second, and whether by less than a step in the time between
// two states, always the same way: otherwise it is no motion, but noise.
func (c *column) isCoarse(p *Interpolation, slot uint32) (moves, coarse bool) {
	r := p.inside.Apply.RowsOf(slot, c.number)
	if r == nil || !r.Any {
		return false, false
	}
	newest := r.Held.At(r.Newest)
	if newest == nil {
		return false, false
	}
	var later []uint32
	var at, first, last delta.Tick // of the state after, and of the first and the last change
	var changes int
	var way, oldest, most uint32 // in steps: all of it, that of the first change, the longest of a change
	var up, down uint64
	for s := range r.Held.After(newest.Tick - delta.Tick(p.clock.rate)) {
		row := c.rowOf(s, newest.Generation)
		if row == nil {
			break
		}
		if later != nil {
			if n, u, d := c.kernel.Steps(row, later); n > 0 {
				if changes++; changes == 1 {
					last = at
				}
				first, oldest = at, n
				way, most, up, down = way+n, max(most, n), up|u, down|d
			}
		}
		later, at = row, s.Tick
	}
	if changes < leastChanges {
		return false, false
	}
	slow := 5*float64(way-oldest)*p.clock.interval < 4*float64(last-first)
	return true, slow && most <= mostSteps && up&down == 0
}

// coarse returns the name of the component if it suffers.
func (c *column) coarse() string {
	if s := &c.samples; s.n >= enoughSamples && bits.OnesCount16(s.coarse) >= manyCoarse {
		return c.comp.Name
	}
	return ""
}
