package snapshot

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/delta"
)

// A BaseGrid selects the ticks that serve as base ticks of peers with Packed and without a send interval: the
// multiples of its step. What changed is encoded once for each base tick in use, however many peers use it, so
// the number of base ticks decides what a tick costs. It grows with the number of different round trips. A larger
// step bounds it, for baselines that are a little older.
type BaseGrid struct {
	shift  uint8 // the step is 1 << shift
	enough uint8 // ticks in a row in which half the step would have been enough
	open   uint8 // ticks in a row in which all peers saw everything, openTicks at most

	peers  int    // that Want was called for
	wanted uint32 // bits of the base ticks that peers would have with a step of 1, modulo gridTicks
}

const (
	gridTicks   = 32
	mostShift   = 3
	shrinkTicks = 64            // after which the step shrinks, so that it does not follow jitter
	openTicks   = 2 * gridTicks // after which what was hidden from a peer no longer shows in what others want
	fewPeers    = 4             // for each base tick: with fewer, encoding costs little in all
)

// Step returns 1, 2, 4 or 8.
func (g *BaseGrid) Step() delta.Tick { return 1 << g.shift }

// Fix sets the step.
func (g *BaseGrid) Fix(step delta.Tick) { g.shift = uint8(bits.TrailingZeros32(uint32(step))) }

// Want adds the newest tick that a peer could have as its base tick.
func (g *BaseGrid) Want(at delta.Tick) {
	g.wanted |= 1 << (at % gridTicks)
	g.peers++
}

// Choose sets the step, after the last peer: to the least one with which there are at most so many base ticks, if
// there are fewPeers times as many peers. The step shrinks only if there would be at most three fourths as many for
// a while.
//
// Which tick a peer wants depends on what it was sent, and the step shows in the packets of all. What a peer is
// sent must not depend on what it does not see. So the step is 1 unless all peers see everything, as open reports,
// and have done so for openTicks. It returns whether what others are sent may show.
func (g *BaseGrid) Choose(most int, open bool) (mayShow bool) {
	defer func() { g.wanted, g.peers = 0, 0 }()
	if !open {
		g.open = 0
	}
	if g.open < openTicks {
		g.open++
		g.shift, g.enough = 0, 0
		return false
	}
	if g.peers < fewPeers*most {
		most = 2 * gridTicks
	}
	for g.shift < mostShift && g.bases(g.shift) > most {
		g.shift, g.enough = g.shift+1, 0
	}
	if g.shift == 0 || g.bases(g.shift-1) > most-most/4 {
		g.enough = 0
	} else if g.enough++; g.enough == shrinkTicks {
		g.shift, g.enough = g.shift-1, 0
	}
	return true
}

// bases returns the number of base ticks with a step of 1 << shift.
func (g *BaseGrid) bases(shift uint8) (n int) {
	step := delta.Tick(1) << shift
	for first := delta.Tick(0); first < gridTicks; first += step {
		if g.wanted>>first&(1<<step-1) != 0 {
			n++
		}
	}
	return n
}
