package replication

import (
	"errors"
	"reflect"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
)

// Inputs are commands of a client for ticks of the server that are to come. Each goes out in every packet of inputs until the
// server has it or its tick is over, so that a lost packet costs a few bits and no time.

// ErrInputSet is the error of [SetInput] for a tick that has its input already, or is before one that has.
var ErrInputSet = errors.New("replication: the tick has its input already: inputs are set once for a tick, in their order")

// putInputs writes inputs of successive ticks:
//
//	low bits of the last tick 16 | number of ticks less one 5 | a bit and, if it is 1, the row, for every tick
//
// A tick without row has no input: the client left it out. The first row is absolute; each other one is taken against the one
// or two before it.
func putInputs(w *bitbuf.Writer, packed *delta.Packed, number int, rows []message.InputRow) {
	w.WriteBits(uint64(rows[len(rows)-1].Tick), 16)
	w.WriteBits(uint64(len(rows)-1), message.RepeatBits)
	packed.Costs = packed.Costs[:0]
	var before, before2 *message.InputRow
	for i := range rows {
		in := &rows[i]
		w.WriteBool(in.Present)
		if !in.Present {
			continue
		}
		base, base2, ratio := message.InputBaselines(in.Tick, before, before2)
		packed.EncodeRow(w, number, in.Row, base, base2, ratio)
		before, before2 = in, before
	}
}

// SetInput gives the command of a client for a tick of the server, and sends it with the next [Client.Apply], and again until
// the server has it. Ticks go up; those left out have no input. Which tick to give one for says [Client.InputTick].
//
// The errors are [ErrNotConnected], one that wraps [ErrMessageTooLarge] if a text is longer than its max, and [ErrInputSet] for
// a tick that is not after the last one: that happens when the lead shrinks, and then the tick of the client has no input of
// its own. Only a step back of 64 ticks or more is taken for a new start.
//
// Panics if T is not the input type of the schema.
func SetInput[T any](c *Client, tick uint32, input T) error {
	c.mustExist()
	c.schema.CheckInput(reflect.TypeFor[T]())
	if !c.session.open() {
		return ErrNotConnected
	}
	t := c.talk
	v := &t.Values[len(c.schema.Messages)]
	*v.Pointer.(*T) = input
	if err := c.schema.Input.CheckTexts(v.Address); err != nil {
		return err
	}
	if t.inputs.set(delta.Tick(tick)) {
		return ErrInputSet
	}
	row := t.inputs.add(delta.Tick(tick))
	c.schema.Input.ReadColumn(row, v.Address, 1)
	if c.schema.Input.Refers() {
		c.apply.NameEntities(c.schema.Input, row)
	}
	return nil
}

// Input returns the command of a client for a tick, usually the one to be simulated next, [Server.Tick] + 1, and true. If
// there is none it returns the newest one before it that is not older than 32 ticks, or else the zero value, and false.
//
// Panics if T is not the input type of the schema.
func Input[T any](p *Peer, tick uint32) (T, bool) {
	p.mustExist()
	s := p.server
	s.schema.CheckInput(reflect.TypeFor[T]())
	var input T
	if p.talk == nil {
		return input, false
	}
	row, exact := p.talk.Inputs.Find(delta.Tick(tick))
	if row == nil {
		return input, false
	}
	v := &s.messages.Messenger.Values[len(s.schema.Messages)]
	s.messages.Messenger.Read(s.schema.Input, v, row)
	return *v.Pointer.(*T), exact
}

// clientInputs are the inputs that a client has given and the server may not have.
type clientInputs struct {
	ring   []message.InputRow // by tick modulo their number
	first  delta.Tick         // the first that may be sent still
	newest delta.Tick
	any    bool // newest is valid
	list   []message.InputRow
}

// set reports whether a tick has its input already, or one shortly after it has.
func (c *clientInputs) set(tick delta.Tick) bool {
	return c.any && c.newest-tick < inputRingTicks
}

// add makes tick the newest one and returns the row to be filled with its input.
func (c *clientInputs) add(tick delta.Tick) []uint32 {
	n := delta.Tick(len(c.ring))
	if !c.any || tick-c.newest >= n { // or a new start
		c.first, c.newest, c.any = tick, tick-1, true
	}
	for c.newest != tick {
		c.newest++
		in := &c.ring[c.newest%n]
		in.Tick, in.Present = c.newest, c.newest == tick
	}
	return c.ring[tick%n].Row
}

// pass notes that inputs up to a tick need not be sent any more.
func (c *clientInputs) pass(tick delta.Tick) {
	if c.any && !tick.Before(c.first) {
		c.first = tick + 1
		c.any = int32(c.first-c.newest) <= inputRingTicks // else nobody has given any for long
	}
}

// unsettled returns those that are to be sent, in their order.
func (c *clientInputs) unsettled() []message.InputRow {
	if !c.any || c.first.After(c.newest) {
		return nil
	}
	if c.newest-c.first >= message.MaxRepeated {
		c.first = c.newest - message.MaxRepeated + 1
	}
	c.list = c.list[:0]
	for tick := c.first; !tick.After(c.newest); tick++ {
		c.list = append(c.list, c.ring[tick%delta.Tick(len(c.ring))])
	}
	return c.list
}
