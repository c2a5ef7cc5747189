package rewind

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A watch judges whether the times that a client claims are those of a play-out. Time in a play-out goes at nearly the
// speed of the server's, so it is a steady delay behind. Two measurements bound the delay, and what happens to honest
// packets spoils neither of them:
//
//   - An input may arrive late, but never early. So the time from the stamp to its arrival is never much less than
//     usual: the client can't claim a newer time for a single shot.
//   - An acknowledgement may be lost, but never be of a state that the client lacks. So the time from the stamp to the
//     newest acknowledged state is never much more than usual: it can't claim an older time.
//
// An input may also come so late that newer acknowledgements have come before it. So it suffices if the time from
// the stamp to the tick of the input is the usual one: that hardly changes, unless the client gives its inputs for
// earlier or later ticks than before.
//
// What is usual follows the measurements at the speed at which a play-out may change its delay. Besides, a stamp must
// suit the one before or the one after it, so an input that is sent late on purpose gains nothing either.
//
// After a long hitch, a play-out jumps. Another delay is believed when it has lasted for a while.
type watch struct {
	messages *message.PeerMessages // of the session
	newest   delays                // of the newest input that was considered
	any      bool                  // newest is valid
	first    delta.Tick            // of these inputs
	learned  bool                  // usual is known, since there were inputs for a while
	usual    delays
	other    delays // another usual one, not believed yet
	doubted  bool   // other is valid
	began    delta.Tick
	refused  uint64 // by age, from newest on: the stamp was refused
	frame    int32  // how many inputs have a stamp in common in the mean, in parts
}

// delays are those from a stamp on, in parts of a tick.
type delays struct {
	tick    delta.Tick // of the input; of usual ones, the latest that agreed
	input   int32      // up to that tick; usual is the latest
	arrival int32      // up to the arrival of the input; usual is the least
	acked   int32      // up to the newest acknowledged tick; usual is the most
	frame   int32      // how many inputs have the stamp, since the client gave them in one frame, in parts
}

const (
	// slackMilliseconds is by how much delays may differ from the usual ones at least. The tick in which an input
	// arrives and the interval between states are allowed in any case: times within these are not known.
	slackMilliseconds = 40
	// A play-out of ours goes at 0.75 to 1.05 of the server's speed. Usual delays change by no more than this, in parts
	// per tick: they shrink and grow, and get laxer slowly.
	shrink = blend.Parts / 10
	grow   = blend.Parts * 3 / 10
	relax  = blend.Parts / 64
	// lookBack is the number of ticks whose stamps are considered when a view is asked for. The others are forgotten.
	lookBack = wire.InputTicks - message.InputsBehind
	// longestFrame is how many inputs count as given in one frame, at most, and slowFrames how slowly the mean follows.
	longestFrame = 16
	slowFrames   = 64
	// neighbours is how many ticks away the stamps before and after an input may be.
	neighbours = 4
)

// steady considers the inputs up to a tick that were not considered yet, and reports whether the stamp of that tick's
// input is plausible. There is such a stamp. interval is the peer's send interval.
func (w *watch) steady(tick, interval delta.Tick, l *limits) bool {
	first := tick - lookBack + 1
	if w.any {
		if !tick.After(w.newest.tick) {
			age := w.newest.tick - tick
			return age < 64 && w.refused>>age&1 == 0
		}
		if tick-w.newest.tick < lookBack {
			first = w.newest.tick + 1
		}
	}
	for at := first; at != tick+1; at++ {
		if d, ok := w.delaysOf(at); ok {
			w.measure(&d)
			w.consider(d, interval, l)
		}
	}
	return w.refused&1 == 0
}

// delaysOf returns the delays of the input of a tick, if that has a stamp.
func (w *watch) delaysOf(tick delta.Tick) (d delays, ok bool) {
	in, ok := w.messages.Inputs.Stamp(tick)
	after := func(t delta.Tick) int32 { return int32(t-in.Shown.Tick)*blend.Parts - int32(in.Shown.Part) }
	return delays{tick: tick, input: after(tick), arrival: after(in.Arrived), acked: after(in.Acked)}, ok
}

// measure sets the frame of an input. In a long frame the client sends acknowledgements once, before its inputs or
// after them, so which of them the server has is a matter of chance. A single long frame does not count.
func (w *watch) measure(d *delays) {
	n := delta.Tick(1)
	for _, step := range [...]delta.Tick{1, ^delta.Tick(0)} {
		for at := d.tick + step; n < longestFrame; at += step {
			if in, ok := w.delaysOf(at); !ok || in.input-d.input != int32(at-d.tick)*blend.Parts {
				break
			}
			n++
		}
	}
	w.frame += (int32(n)*blend.Parts - w.frame) / slowFrames
	d.frame = min(int32(n)*blend.Parts, w.frame)
}

// late returns by how many ticks the input of a tick came later than usual. It has a stamp.
func (w *watch) late(tick delta.Tick) delta.Tick {
	d, _ := w.delaysOf(tick)
	return delta.Tick(max(d.arrival-w.usual.arrival, 0) / blend.Parts)
}

// consider takes the delays of the input of a tick, later than all before.
func (w *watch) consider(d delays, interval delta.Tick, l *limits) {
	if !w.any {
		w.any, w.first, w.newest, w.usual = true, d.tick, d, d
	}
	alone := w.alone(d, l)
	w.refused <<= min(d.tick-w.newest.tick, 64)
	w.newest = d
	switch {
	case !w.learned:
		w.usual.arrival, w.usual.acked = min(w.usual.arrival, d.arrival), max(w.usual.acked, d.acked)
		w.usual.tick, w.usual.input, w.learned = d.tick, d.input, d.tick-w.first >= l.steady
	case alone:
		w.refused |= 1
	case w.usual.agree(d, interval, l):
		w.doubted = false
	case !w.doubted || !w.other.agree(d, interval, l):
		w.other, w.doubted, w.began = d, true, d.tick
		w.refused |= 1
	case d.tick-w.began < l.steady:
		w.refused |= 1
	default:
		w.usual, w.doubted = w.other, false
	}
}

// alone reports whether a stamp suits neither the one before nor the one after it. The client may give its inputs for
// later or earlier ticks than before, but then it does so for a while.
func (w *watch) alone(d delays, l *limits) bool {
	limit := max(l.slack, blend.Parts) * 3 / 2
	if d.tick-w.newest.tick > neighbours || abs(d.input-w.newest.input) <= limit {
		return false
	}
	for at := d.tick + 1; at-d.tick <= neighbours; at++ {
		if next, ok := w.delaysOf(at); ok {
			return abs(d.input-next.input) > limit
		}
	}
	return true
}

func abs(x int32) int32 { return max(x, -x) }

// agree reports whether the delays of an input may be the usual ones. If so, these follow.
func (u *delays) agree(d delays, interval delta.Tick, l *limits) bool {
	passed := int32(min(d.tick-u.tick, l.steady)) // in a longer pause, a play-out has reached its delay
	low, high := u.input-passed*shrink, u.input+passed*grow
	inTurn := d.input >= low-l.slack && d.input <= high+l.slack
	if d.arrival < u.arrival-passed*shrink-max(l.slack, blend.Parts) ||
		d.acked > u.acked+passed*grow+max(l.slack, int32(interval)*blend.Parts, d.frame) {
		if inTurn { // it came late, with newer acknowledgements
			u.tick, u.input = d.tick, min(max(d.input, low), high)
		}
		return inTurn
	}
	if u.input = d.input; inTurn { // else the client gives its inputs for other ticks now
		u.input = min(max(d.input, low), high)
	}
	if d.acked <= 0 { // it has no newer state: packets got lost, or there is nothing to send
		return true
	}
	u.tick = d.tick
	u.arrival = min(max(d.arrival, u.arrival-passed*shrink), u.arrival+passed*relax)
	u.acked = max(min(d.acked, u.acked+passed*grow), u.acked-passed*relax)
	return true
}
