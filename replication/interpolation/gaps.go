package interpolation

import (
	"math"
	"slices"
)

// gaps are the latest states: the offset at which each came, and how much of the server's time nothing was known about
// until then. The offset that a state needs, so that time does not run out before it comes, is the sum of both.
//
// The two have little to do with each other, since one follows from jitter and the other from loss. So their
// distributions are kept apart and convolved: the tail of the sums is known far better than from the few that were
// seen.
type gaps struct {
	ring    []gap                // the last maxGaps
	next    int                  // where the next one goes
	n       int                  // how many there are
	offsets []float64            // of the ring, sorted
	lengths [maxLength + 1]int32 // how many there are of each length, in ticks
	shifted float64              // by shift, in all
}

type gap struct {
	offset   float64
	shifted  float64 // gaps.shifted before
	length   int32
	interval int32 // between states, as it was then
}

const (
	maxGaps   = 2048 // 100 seconds at 20 states a second
	maxLength = 255  // ticks; longer ones count as this long
)

// add takes in a state, of a server that sends one per interval.
func (g *gaps) add(offset, length, interval float64) {
	if g.ring == nil {
		g.ring, g.offsets = make([]gap, maxGaps), make([]float64, 0, maxGaps)
	}
	place := &g.ring[g.next]
	if g.n == maxGaps {
		at, _ := slices.BinarySearch(g.offsets, place.offset)
		g.offsets = slices.Delete(g.offsets, at, at+1)
		g.lengths[place.length]--
	} else {
		g.n++
	}
	*place = gap{offset, g.shifted, int32(min(max(math.Round(length), 0), maxLength)), int32(interval)}
	g.next = (g.next + 1) % maxGaps
	at, _ := slices.BinarySearch(g.offsets, offset)
	g.offsets = slices.Insert(g.offsets, at, offset)
	g.lengths[place.length]++
}

// change calls f, which may change offsets, for all gaps, the latest first.
func (g *gaps) change(f func(i int, gap *gap)) {
	g.offsets = g.offsets[:0]
	for i := range g.n {
		gap := &g.ring[(g.next-1-i+2*maxGaps)%maxGaps]
		f(i, gap)
		g.offsets = append(g.offsets, gap.offset)
	}
	slices.Sort(g.offsets)
}

// shift makes all offsets longer but the latest ones, which count as at most so long.
func (g *gaps) shift(by float64, latest int, most float64) {
	g.shifted += by
	g.change(func(i int, gap *gap) {
		if i >= latest-1 { // the latest is not in the ring yet
			gap.offset += by
		} else {
			gap.offset, gap.shifted = min(gap.offset, most), g.shifted
		}
	})
}

// restart forgets the latest states, of so many ticks, and makes the least of the other offsets what it is now.
func (g *gaps) restart(latest, least float64) {
	age := 0.
	for g.n > 0 && age < latest {
		at := (g.next - 1 + maxGaps) % maxGaps
		age += float64(g.ring[at].length)
		g.lengths[g.ring[at].length]--
		g.next, g.n = at, g.n-1
	}
	g.change(func(int, *gap) {})
	if g.n == 0 {
		return
	}
	by := least - g.offsets[0]
	g.change(func(_ int, gap *gap) { gap.offset, gap.shifted = gap.offset+by, g.shifted })
}

// straighten makes offsets what they would have been if they had not grown by a slope per tick for so long. What looked
// like another path meanwhile was none, as far as that explains it, but for some slack.
func (g *gaps) straighten(slope, lasted, slack float64) {
	age, by := 0., 0.
	g.change(func(_ int, gap *gap) {
		if age <= lasted {
			grown, shifted := slope*age, g.shifted-gap.shifted
			if slope < 0 {
				by = grown - max(min(shifted, 0), grown-slack)
			} else {
				by = grown - min(max(shifted, 0), grown+slack)
			}
		}
		gap.offset, gap.shifted = gap.offset+by, g.shifted
		age += float64(gap.length)
	})
}

// stretch makes lengths what they would have been with another interval. As many states get lost as before, so gaps are
// as many intervals long.
func (g *gaps) stretch(interval float64) {
	g.lengths = [maxLength + 1]int32{}
	for i := range g.n {
		gap := &g.ring[i]
		if was := float64(gap.interval); was > 0 && interval > 0 {
			gap.length = int32(min(max(math.Round(float64(gap.length)*interval/was), 1), maxLength))
			gap.interval = int32(interval)
		}
		g.lengths[gap.length]++
	}
}

// exceeding returns the share of gaps that need a larger offset than the given one.
//
// If ticks take several packets, an entity is in one of them, and the lengths that were seen are not its own: the tick
// comes with any of its packets. Then an entity misses one interval after the other with the share of packets that get
// lost. Gaps that are longer than longest, and than an interval, are left out.
func (g *gaps) exceeding(offset float64, l *losses, interval, longest float64) (share float64) {
	longest = max(longest, interval)
	if l.several() {
		lost, rest := l.share(), 1.
		for length := interval; rest > 0.0001 && length <= longest; length += interval {
			at, _ := slices.BinarySearch(g.offsets, offset-length)
			share += rest * (1 - lost) * float64(g.n-at) / float64(g.n)
			rest *= lost
		}
		return share / (1 - rest)
	}
	pairs, all := 0, 0
	for length, count := range g.lengths {
		if count > 0 && float64(length) <= longest {
			at, _ := slices.BinarySearch(g.offsets, offset-float64(length))
			pairs, all = pairs+int(count)*(g.n-at), all+int(count)
		}
	}
	return float64(pairs) / float64(max(all, 1)) / float64(g.n)
}

// quantile returns the offset that a share q of the gaps does not exceed.
func (g *gaps) quantile(q float64, l *losses, interval, longest float64) float64 {
	if g.n == 0 {
		return math.Inf(-1)
	}
	low, high := g.offsets[0], g.offsets[g.n-1]+maxLength
	for i := 0; i < 64 && high-low > 1./4096; i++ {
		if middle := (low + high) / 2; g.exceeding(middle, l, interval, longest) > 1-q {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// losses count packets: of late, since older ones count less and less.
type losses struct{ sent, received, ticks float64 }

// memory is how many packets are remembered fully.
const memory = 2000

// add takes in packets: how many were sent, came, and were the first of a newer tick.
func (l *losses) add(sent, received, ticks int) {
	if l.sent > memory {
		l.sent, l.received, l.ticks = l.sent/2, l.received/2, l.ticks/2
	}
	l.sent, l.received, l.ticks = l.sent+float64(sent), l.received+float64(received), l.ticks+float64(ticks)
}

// share returns the share of packets that got lost.
func (l *losses) share() float64 {
	if l.sent < enoughGaps {
		return 0
	}
	return min(max(1-l.received/l.sent, 0), 0.9)
}

// several reports whether ticks take several packets.
func (l *losses) several() bool { return l.sent > enoughGaps && l.received > 1.3*l.ticks }
