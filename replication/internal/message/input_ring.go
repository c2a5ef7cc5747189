package message

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// An inputRing keeps the inputs of a client by tick, at the server.
type inputRing struct {
	rows   []inputRow // by tick modulo wire.InputTicks; nil before there is any
	margin [wire.InputTicks]int8
	known  [wire.InputTicks]bool // the client said what is there, if only that there is nothing
	start  delta.Tick            // the first tick that the client gave an input for
	newest delta.Tick
	any    bool
	late   uint8 // low bits of how many came late or never, for the report
}

// inputFate is what became of an input that arrived.
type inputFate uint8

const (
	inputKnown  inputFate = iota // it came before, or is of a time that nobody asks for any more
	inputInTime                  // it came before its tick was replicated
	inputLate
	inputEarly // so early that it is refused
)

// clear forgets everything.
func (r *inputRing) clear() { *r = inputRing{rows: r.rows} }

// at returns the place of a tick.
func (r *inputRing) at(tick delta.Tick) int { return int(tick % wire.InputTicks) }

// has reports whether the client said what is there at a tick.
func (r *inputRing) has(tick delta.Tick) bool {
	i := r.at(tick)
	return r.any && r.known[i] && r.rows[i].tick == tick
}

// take takes over an input that arrived before the tick now+1 is replicated.
func (r *inputRing) take(in *inputRow, now delta.Tick) inputFate {
	ahead := int32(in.tick - now - 1)
	switch {
	case ahead >= wire.InputTicks-InputsBehind:
		return inputEarly
	case ahead < -InputsBehind || r.has(in.tick):
		return inputKnown
	}
	if r.rows == nil {
		r.rows = makeInputRows(wire.InputTicks, len(in.row))
	}
	i := r.at(in.tick)
	r.known[i], r.margin[i] = true, int8(ahead)
	r.rows[i].tick, r.rows[i].present = in.tick, in.present
	copy(r.rows[i].row, in.row)
	if !r.any {
		r.any, r.start, r.newest = true, in.tick, in.tick
	}
	if in.tick.After(r.newest) {
		r.newest = in.tick
	}
	if r.newest-r.start > wire.Ancient {
		r.start = r.newest - wire.InputTicks // within reach of serial arithmetic
	}
	switch {
	case !in.present:
		return inputKnown
	case ahead < 0:
		return inputLate
	}
	return inputInTime
}

// Find returns the row of a tick's input, or else that of the newest input before it that is not long ago, or nil.
func (r *inputRing) Find(tick delta.Tick) (row []uint32, exact bool) {
	for back := range delta.Tick(InputsBehind + 1) {
		if r.has(tick - back) {
			if in := &r.rows[r.at(tick-back)]; in.present {
				return in.row, back == 0
			}
		}
	}
	return nil, false
}

// flows reports whether inputs come.
func (r *inputRing) flows(now delta.Tick) bool {
	return r.any && !r.start.After(now) && int32(r.newest-now) > -InputsBehind
}

// miss ends tick now, and reports whether its input has not come though there should be one.
func (r *inputRing) miss(now delta.Tick) bool {
	if r.any && int32(now-r.newest) > wire.Ancient/2 {
		r.clear() // ticks must stay within reach of serial arithmetic
	}
	if r.flows(now) && !r.has(now) {
		r.late++
		return true
	}
	return false
}

// gathered returns for how many ticks after now in a row it is known what there is.
func (r *inputRing) gathered(now delta.Tick) (n uint32) {
	for n < wire.InputTicks-InputsBehind && r.has(now+1+delta.Tick(n)) {
		n++
	}
	return n
}

// judged is how many ticks a report looks at.
const judged = 16

// worst returns the least margin of the latest inputs, in ticks before it would have been late, and the tick it is of.
func (r *inputRing) worst(now delta.Tick) (margin int32, tick delta.Tick, ok bool) {
	if !r.any || int32(r.newest-now) <= -InputsBehind {
		return 0, 0, false
	}
	for back := range delta.Tick(judged) {
		t := r.newest - back
		if t.Before(r.start) {
			break
		}
		m := int32(-1)
		if r.has(t) {
			m = int32(r.margin[r.at(t)])
		} else if t.After(now) {
			continue // it may still come
		}
		if !ok || m < margin {
			margin, tick, ok = m, t, true
		}
	}
	return margin, tick, ok
}
