package wire

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// A Stamp is the time shown that a client showed when it gave an input: a tick of the server and a
// fraction.
type Stamp struct {
	Tick      delta.Tick
	Part      uint8 // of the tick: 0 to stampParts-1, a multiple of stampParts >> Precision
	Precision uint8 // bits of the fraction, 0 to stampBits
	Valid     bool  // the client showed a time of the server at all
}

// stampParts is the number of parts that a tick has in stamps, 1 << stampBits.
const (
	stampBits  = 6
	stampParts = 1 << stampBits
)

// delay returns by how much an input's tick is after the stamp, in units of the stamp's precision.
func (s *Stamp) delay(tick delta.Tick) int32 {
	return int32(tick-s.Tick)<<s.Precision - int32(s.Part>>(stampBits-s.Precision))
}

// stampOf returns the stamp that has a delay.
func stampOf(tick delta.Tick, delay int32, precision uint8) Stamp {
	late := -delay // from the input's tick to the stamp
	return Stamp{
		Tick:      tick + delta.Tick(late>>precision),
		Part:      uint8(late&(1<<precision-1)) << (stampBits - precision),
		Precision: precision, Valid: true,
	}
}

// Delays codes the stamps of a packet's inputs, one after the other. A client shows the world at a
// steady delay, and gives an input in the first frame of its tick: the delays of inputs differ by up to
// a frame, at random. So a delay is coded as one of those between the smallest and the largest of the
// latest ones, all equally likely.
//
//	the first: precision 3 | zigzag of the delay, exp-Golomb
//	another:   number of the delay among the likely ones, or 0 | if 0: 1 if below them | distance, exp-Golomb
//
// The zero value has no delays. Writer and reader push the same ones.
type Delays struct {
	recent    [recentDelays]int32
	n         uint32 // pushed so far
	precision uint8
}

const (
	// recentDelays is the number of delays that the next one is likely to be among.
	recentDelays = 8
	// maxDelay is the limit of delays: no history is that long.
	maxDelay = 1 << 20

	// referenceLag is how many ticks before a packet's first input its reference ends, beyond the number of inputs.
	referenceLag = 2

	precisionBits   = 3
	firstDelayOrder = 8 // of the exp-Golomb code of the first delay,
	distanceOrder   = 0 // and of the distance from the likely ones
)

// Push appends the stamp of the input of a tick.
func (d *Delays) Push(tick delta.Tick, s *Stamp) { d.push(s.delay(tick), s.Precision) }

func (d *Delays) push(delay int32, precision uint8) {
	d.recent[d.n%recentDelays] = delay
	d.n++
	d.precision = precision
}

// ReferenceTicks returns the ticks whose stamps the first one may be coded against in a packet of the inputs of n
// ticks, from one tick up to another. The longer a round trip is, the more inputs a packet has. So these are of so
// long ago, and not longer, that the client knows, in steady play, whether the server has them.
func ReferenceTicks(first delta.Tick, n int) (from, end delta.Tick) {
	end = first - delta.Tick(n+referenceLag)
	return end - recentDelays, end
}

// Any reports whether there are delays.
func (d *Delays) Any() bool { return d.n > 0 }

// Fits reports whether a stamp can be coded.
func (d *Delays) Fits(tick delta.Tick, s *Stamp) bool {
	ticks := int32(tick - s.Tick) // fewer than units
	if !s.Valid || ticks >= maxDelay || ticks <= -maxDelay {
		return false
	}
	delay := s.delay(tick)
	return delay < maxDelay && delay > -maxDelay && (d.n == 0 || s.Precision == d.precision)
}

// likely returns the smallest and the largest of the recent delays.
func (d *Delays) likely() (low, high int32) {
	low, high = d.recent[0], d.recent[0]
	for _, x := range d.recent[:min(d.n, recentDelays)] {
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

// Write appends the stamp of the input of a tick, which must fit.
func (d *Delays) Write(w *bitbuf.Writer, tick delta.Tick, s *Stamp) {
	delay := s.delay(tick)
	if d.n == 0 {
		w.WriteBits(uint64(s.Precision), precisionBits)
		w.WriteExpGolomb(uint64(uint32(delay<<1^delay>>31)), firstDelayOrder)
		d.push(delay, s.Precision)
		return
	}
	low, high := d.likely()
	numbers := uint64(high-low) + 2
	switch {
	case delay < low:
		w.WriteTruncated(0, numbers)
		w.WriteBool(true)
		w.WriteExpGolomb(uint64(low-delay-1), distanceOrder)
	case delay > high:
		w.WriteTruncated(0, numbers)
		w.WriteBool(false)
		w.WriteExpGolomb(uint64(delay-high-1), distanceOrder)
	default:
		w.WriteTruncated(uint64(delay-low)+1, numbers)
	}
	d.push(delay, s.Precision)
}

// Read reads the stamp of the input of a tick. It returns false if there is no such stamp.
func (d *Delays) Read(r *bitbuf.Reader, tick delta.Tick) (s Stamp, ok bool) {
	var delay int64
	if d.n == 0 {
		d.precision = uint8(r.ReadBits(precisionBits))
		z := r.ReadExpGolomb(firstDelayOrder)
		if d.precision > stampBits || z >= 2*maxDelay {
			return s, false
		}
		delay = int64(z>>1) ^ -int64(z&1)
	} else {
		low, high := d.likely()
		if number := r.ReadTruncated(uint64(high-low) + 2); number > 0 {
			delay = int64(low) + int64(number) - 1
		} else {
			below := r.ReadBool()
			distance := r.ReadExpGolomb(distanceOrder)
			if distance >= 2*maxDelay {
				return s, false
			}
			if delay = int64(high) + 1 + int64(distance); below {
				delay = int64(low) - 1 - int64(distance)
			}
		}
	}
	if r.Err() != nil || delay >= maxDelay || delay <= -maxDelay {
		return s, false
	}
	d.push(int32(delay), d.precision)
	return stampOf(tick, int32(delay), d.precision), true
}

// StampPrecision returns the precision for a number of ticks per second: the finest one of which parts are
// not much shorter than a millisecond. A finer one takes more bits, and nobody sees the difference.
func StampPrecision(ticks float64) (precision uint8) {
	const parts = 1280 // per second, at most
	for precision = stampBits; precision > 0 && ticks*float64(int(1)<<precision) > parts; {
		precision--
	}
	return precision
}
