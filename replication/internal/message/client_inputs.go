package message

// This file has the client's end of inputs.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// clientInputs has the inputs that a client has given and the server may not have.
type clientInputs struct {
	ring   []inputRow // of the latest ticks, by tick modulo their number
	first  delta.Tick // the first one that is not acknowledged
	newest delta.Tick
	any    bool       // newest is valid
	list   []inputRow // scratch memory of unacknowledged
}

// Set reports whether a tick, or one shortly after it, has an input.
func (c *clientInputs) Set(tick delta.Tick) bool {
	return c.any && c.newest-tick < inputRingTicks
}

// Add makes tick the newest one and returns the row for its input.
func (c *clientInputs) Add(tick delta.Tick) []uint32 {
	n := delta.Tick(len(c.ring))
	if !c.any || tick-c.newest >= n { // start again
		c.first, c.newest, c.any = tick, tick-1, true
	}
	for c.newest != tick {
		c.newest++
		in := &c.ring[c.newest%n]
		in.tick, in.present = c.newest, c.newest == tick
	}
	return c.ring[tick%n].row
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

// putInputs writes the inputs of successive ticks:
//
//	low bits of the last tick 16 | number of ticks less one 5 | for each tick, a bit and, if it is 1, the row
//
// A tick without a row has no input. The first row has no baseline; each other one is taken against
// the one or two before it.
func putInputs(w *bitbuf.Writer, packed *delta.Packed, number int, rows []inputRow) {
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
}
