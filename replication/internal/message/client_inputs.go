package message

// This file has the client's end of inputs.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// clientInputs has the inputs that a client has given and the server may not have.
type clientInputs struct {
	Give   func(tick delta.Tick) // sets the input for a tick, or nil
	ring   []inputRow            // of the latest ticks, by tick modulo their number
	first  delta.Tick            // the first one that is not acknowledged
	newest delta.Tick
	sent   delta.Tick  // the newest one that a packet had
	any    bool        // newest and sent are valid
	given  bool        // newest is, or was, valid in this session
	again  delta.Tick  // the newest tick before a step back: up to there, the server may have the inputs of before
	back   bool        // again is valid
	report inputReport // the newest one
	late   uint8       // low bits of the server's count of late inputs
	list   []inputRow  // scratch memory of unacknowledged
}

// An inputReport is what the server reports in a tick about a client's inputs.
type inputReport struct {
	tick   delta.Tick
	late   uint8 // low bits of the number of ticks for which it lacked something
	judged bool  // it counts them: the client is giving inputs
}

// Set reports whether a tick, or one shortly after it, has an input.
func (c *clientInputs) Set(tick delta.Tick) bool {
	return c.any && c.newest-tick < newStartTicks
}

// Add makes tick the newest one and returns the row for its input. shown is the time shown that the
// client shows now.
func (c *clientInputs) Add(tick delta.Tick, shown wire.Stamp) []uint32 {
	if !c.any || tick-c.newest >= newStartTicks {
		c.start(tick)
	}
	for c.newest != tick {
		c.newest++
		in := c.at(c.newest)
		in.tick, in.present, in.known, in.bare, in.stamp = c.newest, c.newest == tick, false, false, wire.Stamp{}
	}
	if c.back && int32(c.newest-c.again) >= inputRingTicks {
		c.back = false // the ring has none of them any more
	}
	in := c.at(tick)
	in.stamp = shown
	return in.row
}

// start starts again with a tick. The ring may have inputs of another session, and those of before a step back.
func (c *clientInputs) start(tick delta.Tick) {
	if !c.back || c.newest.After(c.again) {
		c.again = c.newest
	}
	c.back = c.given && c.again-tick < stepBackTicks
	c.first, c.newest, c.sent, c.any, c.given = tick, tick-1, tick-1, true, true
	for i := range c.ring {
		c.ring[i] = inputRow{tick: delta.Tick(i + 1), row: c.ring[i].row} // of no tick that has this place
	}
}

// reported notes which inputs the server has, or knows not to be given, with their stamps: those of n ticks
// after a report's, and those up to there since the report before if the server has lacked nothing since. Not those
// that were given twice: of these it has the first.
func (c *clientInputs) reported(r inputReport, n uint32) {
	from, last := r.tick, &c.report
	if !last.judged || r.tick.After(last.tick) {
		if last.judged && r.judged && last.late == r.late && r.tick-last.tick <= newStartTicks {
			from = last.tick
		}
		*last = r
	}
	for tick := from + 1; c.any && !tick.After(r.tick+delta.Tick(n)); tick++ {
		if in := c.at(tick); in.tick == tick && !(c.back && !tick.After(c.again)) {
			in.known = true
		}
	}
}

// at returns the place of a tick's input.
func (c *clientInputs) at(tick delta.Tick) *inputRow { return &c.ring[tick%delta.Tick(len(c.ring))] }

// acknowledge notes that the server needs no inputs up to a tick any more.
func (c *clientInputs) acknowledge(tick delta.Tick) {
	if c.any && !tick.Before(c.first) {
		c.first = tick + 1
		c.any = int32(c.first-c.newest) <= newStartTicks // false if there was no input for long
	}
}

// pass notes that a tick is over at the server, as far as known: inputs for it are not sent again.
func (c *clientInputs) pass(tick delta.Tick) {
	if c.any && tick.After(c.sent) {
		tick = c.sent
	}
	c.acknowledge(tick)
}

// unacknowledged returns the inputs to send, by tick.
func (c *clientInputs) unacknowledged() []inputRow {
	if !c.any || c.first.After(c.newest) {
		return nil
	}
	if c.newest-c.first >= maxRepeated {
		c.first = c.newest - maxRepeated + 1
	}
	c.list, c.sent = c.list[:0], c.newest
	for tick := c.first; !tick.After(c.newest); tick++ {
		c.list = append(c.list, *c.at(tick))
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
		c.at(rows[i].tick).bare = true
	}
	return false
}

// reference returns the stamps that a packet's first one is coded against, or none if they are not
// certain to be at the server.
func (c *clientInputs) reference(rows []inputRow) (d wire.Delays) {
	if len(rows) > maxReferring {
		return d
	}
	from, end := wire.ReferenceTicks(rows[0].tick, len(rows))
	for tick := from; tick != end; tick++ {
		in := c.at(tick)
		if in.tick != tick || !in.known || in.present && (in.bare || !d.Fits(tick, &in.stamp)) {
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
//	if they have stamps: the stamp of each input
//
// A tick without a row has no input. The first row has no baseline; each other one is taken against
// the one or two before it. delays has the reference of the first stamp. If there is none, noReference
// stands before the number of ticks. delays is nil if the inputs have no stamps.
func putInputs(w *bitbuf.Writer, packed *delta.Packed, number int, rows []inputRow, delays *wire.Delays) {
	w.WriteBits(uint64(rows[len(rows)-1].tick), 16)
	if delays != nil && !delays.Any() {
		w.WriteBits(noReference, repeatBits)
	}
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
	for i := range rows {
		if in := &rows[i]; in.present {
			delays.Write(w, in.tick, &in.stamp)
		}
	}
}
