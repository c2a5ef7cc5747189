package message

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// inputRing keeps the inputs of a client at the server, by tick.
type inputRing struct {
	rows   []inputRow            // by tick modulo wire.InputTicks; nil before the first input
	margin [wire.InputTicks]int8 // ticks by which the input was early
	known  [wire.InputTicks]bool // a packet had the tick, with an input or without
	start  delta.Tick            // the first tick for which the client gave an input
	newest delta.Tick
	any    bool
	late   uint8 // low bits of the number of inputs that were late, never came or lost their stamps, for the report
}

// inputFate is the outcome of an input that arrived.
type inputFate uint8

const (
	inputIgnored inputFate = iota // it had arrived before, is too old, or is no input
	inputInTime                   // it arrived before its tick was replicated
	inputLate
	inputEarly // too early to be kept
)

// clear forgets everything.
func (r *inputRing) clear() { *r = inputRing{rows: r.rows} }

// at returns the index of a tick.
func (r *inputRing) at(tick delta.Tick) int { return int(tick % wire.InputTicks) }

// has reports whether a packet had the input of a tick, or that there is none.
func (r *inputRing) has(tick delta.Tick) bool {
	i := r.at(tick)
	return r.any && r.known[i] && r.rows[i].tick == tick
}

// take stores an input that arrived after tick now was replicated.
func (r *inputRing) take(in *inputRow, now delta.Tick) inputFate {
	ahead := int32(in.tick - now - 1)
	switch {
	case ahead >= wire.InputTicks-InputsBehind:
		return inputEarly
	case ahead < -InputsBehind || r.has(in.tick):
		return inputIgnored
	}
	if r.rows == nil {
		r.rows = makeInputRows(wire.InputTicks, len(in.row))
	}
	i := r.at(in.tick)
	r.known[i], r.margin[i] = true, int8(ahead)
	r.rows[i].tick, r.rows[i].present = in.tick, in.present
	r.rows[i].bare, r.rows[i].stamp, r.rows[i].acked = in.bare, in.stamp, in.acked
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
		return inputIgnored
	case ahead < 0:
		return inputLate
	}
	return inputInTime
}

// Find returns the row of a tick's input, or of the newest input in the InputsBehind ticks before it,
// or nil. exact reports whether it is of the tick itself.
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

// reference pushes the stamps that a packet's first one is coded against, if all of them have arrived.
func (r *inputRing) reference(d *wire.Delays, first delta.Tick, n int) bool {
	from, end := wire.ReferenceTicks(first, n)
	for tick := from; tick != end; tick++ {
		if !r.has(tick) {
			return false
		}
		in := &r.rows[r.at(tick)]
		if !in.present {
			continue
		}
		if !d.Fits(tick, &in.stamp) {
			return false
		}
		d.Push(tick, &in.stamp)
	}
	return d.Any()
}

// Stamp returns what is known of the stamp of a tick's input. It returns false if there is no such
// input, or it has no stamp.
func (r *inputRing) Stamp(tick delta.Tick) (s Stamped, ok bool) {
	if !r.has(tick) {
		return s, false
	}
	in := &r.rows[r.at(tick)]
	s = Stamped{Shown: in.stamp, Acked: in.acked, Arrived: tick - delta.Tick(r.margin[r.at(tick)])}
	return s, in.present && in.stamp.Valid
}

// NewestStamp returns the newest tick up to the given one whose input has a stamp, among those that Find
// considers.
func (r *inputRing) NewestStamp(tick delta.Tick) (delta.Tick, bool) {
	for back := range delta.Tick(InputsBehind + 1) {
		if _, ok := r.Stamp(tick - back); ok {
			return tick - back, true
		}
	}
	return 0, false
}

// flowing reports whether the client is giving inputs.
func (r *inputRing) flowing(now delta.Tick) bool {
	return r.any && !r.start.After(now) && int32(r.newest-now) > -InputsBehind
}

// endTick ends tick now, and reports whether its input is missing though the client is giving inputs.
func (r *inputRing) endTick(now delta.Tick) bool {
	if r.any && int32(now-r.newest) > wire.Ancient/2 {
		r.clear() // ticks must stay within reach of serial arithmetic
	}
	missing := !r.has(now)
	if !r.flowing(now) {
		return false
	}
	if missing || r.rows[r.at(now)].bare {
		r.late++
	}
	return missing
}

// missed reports whether a tick that ended, one of the last InputsBehind, had no input in time. Ticks before the
// client's first input count as had.
func (r *inputRing) missed(tick delta.Tick) bool {
	if !r.any || tick.Before(r.start) {
		return false
	}
	i := r.at(tick)
	return !r.has(tick) || !r.rows[i].present || r.margin[i] < 0
}

// misses returns the ticks up to now that had no input in time: bit i is tick now-i.
func (r *inputRing) misses(now delta.Tick) (mask uint32) {
	if !r.any {
		return 0
	}
	for back := range delta.Tick(InputsBehind) {
		if r.missed(now - back) {
			mask |= 1 << back
		}
	}
	return mask
}

// recent reports whether the client gave an input not long ago, or an outage may have lost those that it gave.
func (r *inputRing) recent(now delta.Tick) bool {
	return r.any && int32(now-r.newest) < wire.InputTicks
}

// gathered returns the number of consecutive ticks after now that packets had, with their stamps.
func (r *inputRing) gathered(now delta.Tick) (n uint32) {
	for t := now + 1; n < wire.InputTicks-InputsBehind && r.has(t) && !r.rows[r.at(t)].bare; t++ {
		n++
	}
	return n
}

// reportedInputs is the least number of ticks that a report considers.
const reportedInputs = 16

// worst returns the smallest margin of the latest inputs, in ticks, and the tick of that input. A late input has a
// margin below 0. ok is false if the client is not giving inputs, or will not be in the next tick if nothing comes: so
// if it is true in two ticks and late the same, nothing was lacking between them. A long frame gives many inputs at
// once, the first ones with the least margins, so all of the ticks to come count.
func (r *inputRing) worst(now delta.Tick) (margin int32, tick delta.Tick, ok bool) {
	if !r.any || int32(r.newest-now) <= 1-InputsBehind {
		return 0, 0, false
	}
	for back := range delta.Tick(max(reportedInputs, int32(r.newest-now)+1)) {
		t := r.newest - back
		if t.Before(r.start) {
			break
		}
		m := int32(-1)
		if r.has(t) {
			m = int32(r.margin[r.at(t)])
		} else if t.After(now) {
			continue // it may still arrive
		}
		if !ok || m < margin {
			margin, tick, ok = m, t, true
		}
	}
	return margin, tick, ok
}
