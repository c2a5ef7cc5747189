package clock

import "math"

// Interval measures how many ticks of the server pass from one state packet to the next.
type Interval struct {
	Ticks  uint32 // 0 if it is not known
	newest uint32 // tick of a state packet
	any    bool   // newest is valid
	short  uint32 // a gap that was shorter than Ticks, or 0
	least  uint32 // the smallest of the latest gaps, all longer than Ticks
	gaps   int    // their number
}

// longGaps is the number of longer gaps in succession after which the smallest of them counts: packets get
// lost, and nothing is sent while nothing changes.
const longGaps = 32

// Begin starts a session whose welcome has an interval.
func (i *Interval) Begin(ticks uint32) { *i = Interval{Ticks: ticks, least: math.MaxUint32} }

// Arrive notes that a state packet of the given tick arrived, of a server with so many ticks per second.
func (i *Interval) Arrive(tick, rate uint32) {
	gap := tick - i.newest
	if i.any && int32(gap) <= 0 {
		return
	}
	i.newest = tick
	if !i.any {
		i.any = true
		return
	}
	if gap < i.Ticks { // twice, for the same reason as below
		if i.short > 0 {
			i.Begin(max(gap, i.short))
			i.newest, i.any = tick, true
			return
		}
		i.short = gap
		return
	}
	switch {
	case gap >= rate: // the world rested
		return
	case gap == i.Ticks:
		i.least, i.gaps = math.MaxUint32, 0
		return
	}
	if i.gaps > 0 { // the first may be the one from the old rhythm to the new one
		i.least = min(i.least, gap)
	}
	if i.gaps++; i.gaps == longGaps {
		i.Begin(i.least)
		i.newest, i.any = tick, true
	}
}
