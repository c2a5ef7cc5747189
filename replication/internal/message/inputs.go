package message

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An InputRow is the input of a tick, or that there is none.
type InputRow struct {
	Tick    delta.Tick
	Present bool
	Row     []uint32
}

// MakeInputRows returns n places for inputs.
func MakeInputRows(n, words int) []InputRow {
	rows, all := make([]InputRow, n), make([]uint32, n*words)
	for i := range rows {
		rows[i].Row = all[i*words:][:words:words]
	}
	return rows
}

const (

	// MaxRepeated is how many inputs a packet has at most.
	MaxRepeated = 32
	// RepeatBits is what their number less one takes.
	RepeatBits = 5

	InputsBehind = 32
)

// parseInputs reads what putInputs wrote into rows, which it returns. near is a tick near to those of the inputs.
func parseInputs(r *bitbuf.Reader, packed *delta.Packed, number int, c *schema.Component, near delta.Tick, rows []InputRow) ([]InputRow, error) {
	last := delta.Tick(wire.Extend16(uint16(r.ReadBits(16)), uint32(near)))
	n := int(r.ReadBits(RepeatBits)) + 1
	var before, before2 *InputRow
	for i := range n {
		in := &rows[i]
		in.Tick, in.Present = last-delta.Tick(n-1-i), r.ReadBool()
		if !in.Present {
			continue
		}
		base, base2, ratio := InputBaselines(in.Tick, before, before2)
		packed.DecodeRow(r, number, in.Row, base, base2, ratio)
		if r.Err() != nil || !c.ValidRow(in.Row) {
			return nil, wire.ErrMalformed
		}
		before, before2 = in, before
	}
	if r.Finish() != nil {
		return nil, wire.ErrMalformed
	}
	return rows[:n], nil
}

// InputBaselines returns what the input of a tick is taken against.
func InputBaselines(tick delta.Tick, before, before2 *InputRow) (base, base2 []uint32, ratio int64) {
	if before == nil {
		return nil, nil, 0
	}
	if before2 == nil {
		return before.Row, nil, 0
	}
	return before.Row, before2.Row, delta.Ratio(tick, before.Tick, before2.Tick)
}
