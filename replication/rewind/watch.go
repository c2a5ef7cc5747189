package rewind

import (
	"slices"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
	"github.com/arche-replicate/arche-replicate/replication/internal/message"
	"github.com/arche-replicate/arche-replicate/replication/internal/wire"
)

// A watch judges whether the times that a client claims are those of a play-out. Time in a play-out never goes back,
// and it goes at nearly the speed of the server's, so it is a steady delay behind. So a stamp is plausible if it is no
// older than one that was believed before, and if its delay is the usual one.
//
// A client that lost packets or stood still, or gives its inputs for later ticks than before, is further behind for a
// while. That is plausible within the bounds of delays, but not just after the client has claimed to go back: then it
// did not stand still.
//
// Only stamps with the usual delay teach what is usual. Others teach nothing, however many they are and whatever is
// beside them, until most stamps of half a second agree: after a long hitch, a play-out jumps.
type watch struct {
	messages *message.PeerMessages // of the session

	newest   delta.Tick // of the inputs that were considered
	any      bool       // newest is valid, and what follows
	believed uint64     // by age, from newest on
	stamp    blend.Time // of the newest
	acked    delta.Tick // the newest acknowledged tick when it arrived

	lengths [4]int32   // of the latest frames: from one stamp to the next, in parts
	frame   int32      // the mean of the second longest of them
	frames  int32      // how many frames there were, up to slowFrames
	began   delta.Tick // of the first input that has the same stamp as the newest

	shown   blend.Time // the latest time that was believed
	fell    delta.Tick // for how long no unusual delay is believed, since the client claimed to go back
	usual   delays
	learn   delta.Tick // for how long any delay may become the usual one, since the session is new
	other   delays     // another usual one, not believed yet
	votes   delta.Tick // of how many ticks the inputs agree with other, less those of which they agree with usual
	doubted bool       // other and votes are valid
}

const (
	// lookBack is the number of ticks whose stamps are considered when a view is asked for. The others are forgotten.
	lookBack = wire.InputTicks - message.InputsBehind
	// longestFrame is how many ticks count as passed in one frame, at most, and slowFrames how slowly the mean follows.
	longestFrame = 16
	slowFrames   = 16
)

// steady considers the inputs up to a tick that were not considered yet, and reports whether the stamp of that tick's
// input is plausible. There is such a stamp. interval is the peer's send interval.
func (w *watch) steady(tick, interval delta.Tick, l *limits) bool {
	first := tick - lookBack + 1
	if w.any {
		if !tick.After(w.newest) { // if it was not considered, it came after inputs that the client gave later
			return w.believed>>(w.newest-tick)&1 != 0
		}
		if tick-w.newest < lookBack {
			first = w.newest + 1
		}
	}
	for at := first; at != tick+1; at++ {
		if d, ok := w.delaysOf(at); ok {
			w.consider(&d, interval, l)
		}
	}
	return w.believed&1 != 0
}

// late returns by how many ticks the input of a tick came later than usual. It has a stamp.
func (w *watch) late(tick delta.Tick) delta.Tick {
	d, _ := w.delaysOf(tick)
	return delta.Tick(max(d.arrival-w.usual.arrival, 0) / blend.Parts)
}

// consider takes the delays of the input of a tick, later than all before.
func (w *watch) consider(d *delays, interval delta.Tick, l *limits) {
	if !w.any {
		*w = watch{
			messages: w.messages, any: true, newest: d.tick, stamp: d.shown, shown: d.shown, usual: *d, learn: l.steady,
			acked: w.ackedAt(d.tick), lengths: [4]int32{blend.Parts, blend.Parts, blend.Parts}, frame: blend.Parts,
			began: d.tick,
		}
	}
	gap := d.tick - w.newest
	w.measure(d, gap, l)
	w.newest = d.tick
	w.fell -= min(w.fell, gap)
	w.believed <<= min(gap, 64)
	if w.believes(d, min(gap, l.steady/2), interval, l) {
		w.believed, w.shown = w.believed|1, d.shown
	}
	w.learn -= min(w.learn, gap)
}

// measure relates the delays of an input to those of the inputs around it, gap ticks after the one before.
func (w *watch) measure(d *delays, gap delta.Tick, l *limits) {
	d.passed = int32(min(gap, l.steady)) // in a longer pause, a play-out has reached its delay
	// The client may have got the newest states after it gave the input, for both come in one packet.
	d.acked = min(d.acked, parts(blend.Time{Tick: w.acked + gap}, d.shown))
	w.acked = w.ackedAt(d.tick)
	// In a long frame the client gives inputs for many ticks at once. It sends acknowledgements once, before its inputs
	// or after them, so which of them the server has is a matter of chance. A single long frame does not count.
	n := gap
	if d.shown == w.stamp {
		n = d.tick - w.began + 1
		d.still = ticksOf(n) > w.frame+blend.Parts
	} else {
		copy(w.lengths[1:], w.lengths[:])
		w.lengths[0] = ticksOf(d.tick - w.began)
		w.frames = min(w.frames+1, slowFrames)
		w.frame += (second(w.lengths) - w.frame) / w.frames
		w.began, w.stamp = d.tick, d.shown
	}
	later := delta.Tick(0)
	for later+1 < longestFrame {
		if in, ok := w.delaysOf(d.tick + later + 1); !ok || in.shown != d.shown {
			break
		}
		later++
	}
	d.frames, d.frame = w.frame, min(ticksOf(n+later), w.frame)
	d.input += min(ticksOf(later), max(w.frame-blend.Parts, 0))
}

// second returns the second largest number.
func second(of [4]int32) int32 {
	slices.Sort(of[:])
	return of[2]
}

// ticksOf returns ticks of one frame in parts.
func ticksOf(n delta.Tick) int32 { return int32(min(n, longestFrame)) * blend.Parts }

// believes reports whether a stamp is plausible, and learns from it. ticks is how much it counts.
func (w *watch) believes(d *delays, ticks, interval delta.Tick, l *limits) bool {
	off := w.usual.off(d, l)
	switch {
	case parts(d.shown, w.shown) < 0:
		w.fell = l.steady
	case off == 0:
		if !d.still {
			w.usual.follow(d, l)
		}
		w.votes -= min(w.votes, ticks)
		w.doubted = w.doubted && w.votes > 0
		return true
	case w.learn > 0:
		w.usual = *d
		return true
	}
	bounded := w.usual.bounds(d, interval, l)
	switch {
	case w.doubted && w.other.off(d, l) == 0:
		w.other.follow(d, l)
		w.votes += ticks
	case !w.doubted || d.tick-w.other.tick > l.steady/4:
		w.other, w.votes, w.doubted = *d, 0, true
	}
	if w.votes < l.steady || w.other.tick != d.tick {
		return w.fell == 0 && off > 0 && bounded
	}
	if w.doubted = false; bounded { // the client gives its inputs for other ticks now
		w.usual.input = d.input
	} else {
		w.usual = w.other
	}
	return true
}

// delaysOf returns the delays of the input of a tick, if that has a stamp.
func (w *watch) delaysOf(tick delta.Tick) (d delays, ok bool) {
	in, ok := w.messages.Inputs.Stamp(tick)
	shown := timeOf(&in.Shown)
	after := func(t delta.Tick) int32 { return parts(blend.Time{Tick: t}, shown) }
	return delays{
		tick: tick, shown: shown, input: after(tick), arrival: after(in.Arrived), acked: after(in.Acked),
	}, ok
}

// ackedAt returns the newest tick that was acknowledged when the input of a tick arrived.
func (w *watch) ackedAt(tick delta.Tick) delta.Tick {
	in, _ := w.messages.Inputs.Stamp(tick)
	return in.Acked
}
