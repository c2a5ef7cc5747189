package clock

import "math"

// Interval measures how many ticks of the server pass from one state packet to the next.
//
// Gaps between packets are longer than the interval if packets get lost, and if nothing changes. A settled packet
// shows that the server had nothing else to send, see receive.Settling, so the gap before it does not count. If the
// server makes the interval longer, it sends no settled packets until the client has received more than longGaps
// others.
type Interval struct {
	Ticks  uint32 // 0 if it is not known
	newest uint32 // tick of a state packet
	any    bool   // newest is valid
	proven bool   // since a gap was no longer than Ticks, a settled packet came among each longGaps
	short  uint32 // a gap that was shorter than Ticks, or 0
	least  uint32 // the smallest of the latest gaps, all longer than Ticks
	gaps   int    // their number
	others int    // packets since a settled one
}

// longGaps is the number of longer gaps in succession after which the smallest of them counts.
const longGaps = 32

// Begin starts a session whose welcome has an interval.
func (i *Interval) Begin(ticks uint32) {
	*i = Interval{Ticks: ticks, proven: true, least: math.MaxUint32}
}

// Arrive notes that a state packet of the given tick arrived, of a server with so many ticks per second.
func (i *Interval) Arrive(tick, rate uint32, settled bool) {
	gap := tick - i.newest
	late := i.any && int32(gap) < 0
	if i.others++; settled && !late {
		i.others = 0
	}
	i.proven = i.proven && i.others < longGaps // it may have become longer, also in a world at rest
	if late || i.any && gap == 0 {
		return
	}
	i.newest = tick
	if !i.any {
		i.any = true
		return
	}
	switch {
	case gap < i.Ticks && i.short == 0: // twice, for the same reason as below
		i.short = gap
	case gap < i.Ticks:
		i.set(max(gap, i.short))
	case gap >= rate: // the world rested
	case gap == i.Ticks:
		i.proven, i.least, i.gaps = true, math.MaxUint32, 0
	case settled && i.proven: // the server had nothing to send
		i.least, i.gaps = math.MaxUint32, 0
	default:
		i.lengthen(gap)
	}
}

// lengthen notes a gap that is longer than the interval.
func (i *Interval) lengthen(gap uint32) {
	if i.gaps > 0 { // the first may be the one from the old rhythm to the new one
		i.least = min(i.least, gap)
	}
	if i.gaps++; i.gaps == longGaps {
		i.set(i.least)
	}
}

// set sets the interval to what was measured.
func (i *Interval) set(ticks uint32) {
	newest := i.newest
	i.Begin(ticks)
	i.newest, i.any = newest, true
}
