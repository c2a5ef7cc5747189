package message

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// clientInputs are the inputs that a client has given and the server may not have.
type clientInputs struct {
	ring   []inputRow // by tick modulo their number
	first  delta.Tick // the first that may be sent still
	newest delta.Tick
	any    bool // newest is valid
	list   []inputRow
}

// Set reports whether a tick has its input already, or one shortly after it has.
func (c *clientInputs) Set(tick delta.Tick) bool {
	return c.any && c.newest-tick < inputRingTicks
}

// Add makes tick the newest one and returns the row to be filled with its input.
func (c *clientInputs) Add(tick delta.Tick) []uint32 {
	n := delta.Tick(len(c.ring))
	if !c.any || tick-c.newest >= n { // or a new start
		c.first, c.newest, c.any = tick, tick-1, true
	}
	for c.newest != tick {
		c.newest++
		in := &c.ring[c.newest%n]
		in.tick, in.present = c.newest, c.newest == tick
	}
	return c.ring[tick%n].row
}

// pass notes that inputs up to a tick need not be sent any more.
func (c *clientInputs) pass(tick delta.Tick) {
	if c.any && !tick.Before(c.first) {
		c.first = tick + 1
		c.any = int32(c.first-c.newest) <= inputRingTicks // else nobody has given any for long
	}
}

// unsettled returns those that are to be sent, in their order.
func (c *clientInputs) unsettled() []inputRow {
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

// putInputs writes inputs of successive ticks:
//
//	low bits of the last tick 16 | number of ticks less one 5 | a bit and, if it is 1, the row, for every tick
//
// A tick without row has no input: the client left it out. The first row is absolute; each other one is taken against the one
// or two before it.
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
