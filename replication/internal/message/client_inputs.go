package message

// This file has the client's end of inputs.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// clientInputs has the inputs that a client has given and the server may not have.
type clientInputs struct {
	ring   []inputRow // of the latest ticks, by tick modulo their number
	first  delta.Tick // the first one that is not acknowledged
	newest delta.Tick
	any    bool // newest is valid
	// The server has the inputs of these ticks, or knows that there are none: from known[0] up to known[1].
	known      [2]delta.Tick
	reported   bool       // known is valid
	reportedAt delta.Tick // the tick of the newest report
	late       uint8      // the number of late inputs in it
	list       []inputRow // scratch memory of unacknowledged
}

// Set reports whether a tick, or one shortly after it, has an input.
func (c *clientInputs) Set(tick delta.Tick) bool {
	return c.any && c.newest-tick < inputRingTicks
}

// Add makes tick the newest one and returns the row for its input. shown is the play-out time that the
// client shows now.
func (c *clientInputs) Add(tick delta.Tick, shown wire.Stamp) []uint32 {
	n := delta.Tick(len(c.ring))
	if !c.any || tick-c.newest >= n { // start again
		c.first, c.newest, c.any = tick, tick-1, true
	}
	for c.newest != tick {
		c.newest++
		in := &c.ring[c.newest%n]
		in.tick, in.present, in.bare, in.stamp = c.newest, c.newest == tick, false, wire.Stamp{}
	}
	in := &c.ring[tick%n]
	in.stamp = shown
	return in.row
}

// gathered notes that the server has the inputs of n ticks after a tick, at which so many had been late
// or never came. flowing reports that it counts those that never come.
func (c *clientInputs) gathered(tick delta.Tick, n uint32, late uint8, flowing bool) {
	if c.reported && !tick.After(c.reportedAt) {
		return // an old report
	}
	if !c.reported || c.late != late || !flowing || tick-c.reportedAt > inputRingTicks {
		// Something is missing, or came without its stamp. What is given from now on is watched anew.
		c.known[0], c.known[1] = c.newest+1, c.newest
	}
	c.reported, c.reportedAt, c.late = true, tick, late
	if last := tick + delta.Tick(n); last.After(c.known[1]) {
		c.known[1] = last
	}
	if int32(c.known[1]-c.known[0]) > inputRingTicks {
		c.known[0] = c.known[1] - inputRingTicks // within reach of serial arithmetic
	}
}

// acknowledge notes that the server needs no inputs up to a tick any more.
func (c *clientInputs) acknowledge(tick delta.Tick) {
	if c.any && !tick.Before(c.first) {
		c.first = tick + 1
		c.any = int32(c.first-c.newest) <= inputRingTicks // false if there was no input for long
	}
}

// unacknowledged returns the inputs to send, by tick.
func (c *clientInputs) unacknowledged() []inputRow {
	if !c.any || c.first.After(c.newest) {
		return nil
	}
	if c.newest-c.first >= maxRepeated {
		c.first = c.newest - maxRepeated + 1
	}
	c.list = c.list[:0]
	for tick := c.first; !tick.After(c.newest); tick++ {
		c.list = append(c.list, c.ring[tick%delta.Tick(len(c.ring))])
	}
	return c.list
}

// stamped reports whether the inputs of a packet have stamps that the packet can carry. If not, it notes
// that the server may get them without.
func (c *clientInputs) stamped(rows []inputRow) bool {
	var d wire.Delays
	fit, some := true, false
	for i := range rows {
		if in := &rows[i]; in.present {
			some = true
			if fit = fit && d.Fits(in.tick, &in.stamp); fit {
				d.Push(in.tick, &in.stamp)
			}
		}
	}
	if fit && some {
		return true
	}
	for i := range rows {
		c.ring[rows[i].tick%delta.Tick(len(c.ring))].bare = true
	}
	return false
}

// reference returns the stamps that a packet's first one is coded against, or none if they are not
// certain to be at the server.
func (c *clientInputs) reference(rows []inputRow) (d wire.Delays) {
	from, end := wire.ReferenceTicks(rows[0].tick)
	if !c.reported || from.Before(c.known[0]) || end.After(c.known[1]+1) {
		return d
	}
	for tick := from; tick != end; tick++ {
		in := &c.ring[tick%delta.Tick(len(c.ring))]
		if in.tick != tick || in.present && (in.bare || !d.Fits(tick, &in.stamp)) {
			return wire.Delays{}
		}
		if in.present {
			d.Push(tick, &in.stamp)
		}
	}
	for i := range rows {
		if in := &rows[i]; in.present && !d.Fits(in.tick, &in.stamp) {
			return wire.Delays{}
		}
	}
	return d
}

// putInputs writes the inputs of successive ticks:
//
//	low bits of the last tick 16 | number of ticks less one 5 | for each tick, a bit and, if it is 1, the row
//	if they have stamps: reference 1 | the stamp of each input
//
// A tick without a row has no input. The first row has no baseline; each other one is taken against
// the one or two before it. delays has the reference of the first stamp, if there is one; it is nil
// if the inputs have no stamps.
func putInputs(w *bitbuf.Writer, packed *delta.Packed, number int, rows []inputRow, delays *wire.Delays) {
	w.WriteBits(uint64(rows[len(rows)-1].tick), 16)
	w.WriteBits(uint64(len(rows)-1), repeatBits)
	packed.Costs = packed.Costs[:0]
	var before, before2 *inputRow
	for i := range rows {
		in := &rows[i]
		w.WriteBool(in.present)
		if !in.present {
			continue
		}
		base, base2, ratio := inputBaselines(in.tick, before, before2)
		packed.EncodeRow(w, number, in.row, base, base2, ratio)
		before, before2 = in, before
	}
	if delays == nil {
		return
	}
	w.WriteBool(delays.Any())
	for i := range rows {
		if in := &rows[i]; in.present {
			delays.Write(w, in.tick, &in.stamp)
		}
	}
}
