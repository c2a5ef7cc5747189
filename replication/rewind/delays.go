package rewind

import (
	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
)

// delays are those from a stamp on, in parts of a tick. Of usual ones, input is the latest, and two measurements are
// bounds that nothing that happens to honest packets spoils:
//
//   - An input may arrive late, but never early. So the time from the stamp to its arrival is never much less than
//     usual.
//   - An acknowledgement may be lost, but never be of a state that the client lacks. So the time from the stamp to the
//     newest acknowledged state is never much more than usual.
type delays struct {
	shown   blend.Time // the stamp
	tick    delta.Tick // of the input; of usual ones, the latest that agreed
	input   int32      // up to that tick, or the one of the frame's last input
	arrival int32      // up to the arrival of the input; usual is the least
	acked   int32      // up to the newest acknowledged tick; usual is the most

	still  bool  // the time stood still for longer than such a frame
	passed int32 // since the input before it, in ticks
	frames int32 // how many ticks pass in a frame of the client in the mean, in parts
	frame  int32 // how many ticks have the stamp, since they passed in one frame of the client, in parts
}

const (
	// slackMilliseconds is by how much delays may differ from the usual ones at least. The tick in which an input
	// arrives and the interval between states are allowed in any case: times within these are not known.
	slackMilliseconds = 40
	// A play-out of ours goes at 0.75 to 1.05 of the server's speed, and inputs are given for earlier ticks at up to
	// half a tick per tick. Usual delays change by no more than this, in parts per tick: they shrink and grow, and get
	// laxer slowly.
	shrink  = blend.Parts / 10
	earlier = blend.Parts / 2
	grow    = blend.Parts * 3 / 10
	relax   = blend.Parts / 64
	// longest bounds delays, in ticks.
	longest = 1 << 20
)

// parts returns by how much a time is after another one, in parts of a tick.
func parts(t, other blend.Time) int32 {
	ticks := min(max(int32(t.Tick-other.Tick), -longest), longest)
	return ticks*blend.Parts + int32(t.Part) - int32(other.Part)
}

// off returns by how much the delay up to the tick of an input is longer than a usual one may be, below 0 if it is
// shorter.
func (u *delays) off(d *delays, l *limits) int32 {
	slack := max(l.slack, blend.Parts) + max(d.frames-blend.Parts, 0)
	low, high := u.pace(d)
	return max(d.input-high-slack, 0) + min(d.input-low+slack, 0)
}

// pace returns the least and the longest usual delay up to the tick of an input.
func (u *delays) pace(d *delays) (low, high int32) {
	return u.input - d.passed*(shrink+earlier), u.input + d.passed*grow
}

// bounds reports whether an input arrived no earlier than usual, and with no newer acknowledgements.
func (u *delays) bounds(d *delays, interval delta.Tick, l *limits) bool {
	passed := u.since(d, l)
	return d.arrival >= u.arrival-passed*shrink-max(l.slack, blend.Parts) &&
		d.acked <= u.acked+passed*grow+max(l.slack, int32(interval)*blend.Parts, d.frame)
}

// follow takes the delays of an input that has the usual one up to its tick.
func (u *delays) follow(d *delays, l *limits) {
	low, high := u.pace(d)
	passed := u.since(d, l)
	u.tick, u.input = d.tick, min(max(d.input, low), high)
	u.arrival = min(max(d.arrival, u.arrival-passed*shrink), u.arrival+passed*relax)
	u.acked = max(min(d.acked, u.acked+passed*grow), u.acked-passed*relax)
}

// since returns for how many ticks before an input there were no usual delays, up to the time in which a play-out
// reaches another one.
func (u *delays) since(d *delays, l *limits) int32 { return int32(min(d.tick-u.tick, l.steady)) }
