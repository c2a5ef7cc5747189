package message

// This file reads packets of inputs.

import (
	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/schema"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// inputRow is the input of a tick.
type inputRow struct {
	tick    delta.Tick
	present bool // false if the client gave no input for the tick
	known   bool // at the client: the server has it, or knows that there is none
	bare    bool // a packet had the input without its stamp, or with one that the server could not read
	stamp   wire.Stamp
	acked   delta.Tick // at the server: see Stamped
	row     []uint32
}

// A Stamped input is what the server knows of the time that a client showed when it gave an input.
type Stamped struct {
	Shown   wire.Stamp
	Acked   delta.Tick // the newest tick that the client had acknowledged when the input arrived
	Arrived delta.Tick // the server's tick before which it arrived
}

// makeInputRows returns memory for n inputs.
func makeInputRows(n, words int) []inputRow {
	rows, all := make([]inputRow, n), make([]uint32, n*words)
	for i := range rows {
		rows[i].row = all[i*words:][:words:words]
	}
	return rows
}

const (
	// maxRepeated is the largest number of inputs in a packet.
	maxRepeated = 32
	// repeatBits is the width of that number less one.
	repeatBits = 5
	// noReference stands for it where stamps do not refer to earlier ones. So at most maxReferring inputs do.
	noReference  = maxRepeated - 1
	maxReferring = maxRepeated - 1

	// InputsBehind is the number of past ticks whose inputs the server keeps.
	InputsBehind = 32
)

// parseInputs reads what putInputs wrote into rows, and returns those that it filled. near is a tick
// near the inputs' ticks. had are the inputs that the server has; it is nil if the packet has no stamps.
// If the server lacks the stamps that those of the packet refer to, they are left out.
func parseInputs(
	r *bitbuf.Reader, packed *delta.Packed, number int, c *schema.Component, near delta.Tick, rows []inputRow,
	had *inputRing,
) ([]inputRow, error) {
	last := delta.Tick(wire.Extend16(uint16(r.ReadBits(16)), uint32(near)))
	n := int(r.ReadBits(repeatBits)) + 1
	refers := had != nil
	if refers && n == noReference+1 {
		n, refers = int(r.ReadBits(repeatBits))+1, false
	}
	var before, before2 *inputRow
	for i := range n {
		in := &rows[i]
		in.tick, in.present, in.bare, in.stamp = last-delta.Tick(n-1-i), r.ReadBool(), false, wire.Stamp{}
		if !in.present {
			continue
		}
		base, base2, ratio := inputBaselines(in.tick, before, before2)
		packed.DecodeRow(r, number, in.row, base, base2, ratio)
		if r.Err() != nil || !c.ValidRow(in.row) {
			return nil, wire.ErrMalformed
		}
		before, before2 = in, before
	}
	if r.Err() != nil {
		return nil, wire.ErrMalformed
	}
	if had != nil && !parseStamps(r, rows[:n], had, refers) {
		for i := range n {
			rows[i].bare = true
		}
		return rows[:n], nil
	}
	if r.Finish() != nil {
		return nil, wire.ErrMalformed
	}
	return rows[:n], nil
}

// parseStamps reads the stamps of inputs. It returns false if the server lacks those that they refer to.
func parseStamps(r *bitbuf.Reader, rows []inputRow, had *inputRing, refers bool) bool {
	var delays wire.Delays
	if refers && !had.reference(&delays, rows[0].tick, len(rows)) {
		return false
	}
	for i := range rows {
		in := &rows[i]
		if !in.present {
			continue
		}
		var ok bool
		if in.stamp, ok = delays.Read(r, in.tick); !ok {
			r.Fail(wire.ErrMalformed)
			break
		}
	}
	return true
}

// inputBaselines returns the baselines of the input of a tick: the one or two inputs before it.
func inputBaselines(tick delta.Tick, before, before2 *inputRow) (base, base2 []uint32, ratio int64) {
	if before == nil {
		return nil, nil, 0
	}
	if before2 == nil {
		return before.row, nil, 0
	}
	return before.row, before2.row, delta.Ratio(tick, before.tick, before2.tick)
}
