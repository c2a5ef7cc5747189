package playout

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
)

// An Option configures a [Playout]: see [New].
type Option func(*Playout)

// defaultMargin is the share of gaps between states that the delay covers. To cover one more in a hundred would cost
// about as much delay as two thirds of an interval where a packet in five gets lost.
const defaultMargin = 0.9944

// Margin sets the share of gaps between states that the delay covers. With the default, 0.9944, about 2.5 frames in
// 1,000 have nothing new to show if a fifth of the packets are lost, and 1 on good networks. A larger share makes the
// delay longer.
//
// Panics outside 0.5 to 0.9999.
func Margin(share float64) Option {
	if !(share >= 0.5 && share <= 0.9999) {
		panic(fmt.Sprintf("playout: Margin(%v): use 0.5 to 0.9999", share))
	}
	return func(p *Playout) { p.clock.limits.margin = share }
}

// Speed sets how slowly and how fast the time shown may pass while the delay changes, where 1 is real time. The default
// is 0.75 and 1.05.
//
// Panics if slowest is not 0.25 to 1, or fastest is not 1.01 to 2.
func Speed(slowest, fastest float64) Option {
	if !(slowest >= 0.25 && slowest <= 1 && fastest >= 1.01 && fastest <= 2) {
		panic(fmt.Sprintf("playout: Speed(%v, %v): use 0.25 to 1, and 1.01 to 2", slowest, fastest))
	}
	return func(p *Playout) { p.clock.limits.slowest, p.clock.limits.fastest = slowest, fastest }
}

// Extrapolate makes entities continue their motion when the next state is late, until the given number of server ticks
// after their newest state. By default they stop at that state. Entities that are known to rest do not move. When the
// next state arrives, an entity that has changed course jumps.
//
// Panics if ticks is not 1 to 60.
func Extrapolate(ticks int) Option {
	if ticks < 1 || ticks > 60 {
		panic(fmt.Sprintf("playout: Extrapolate(%d): use 1 to 60 ticks", ticks))
	}
	return func(p *Playout) { p.extrapolate, p.clock.ahead = delta.Tick(ticks), float64(ticks) }
}

// A ComponentOption configures how a component is shown: see [Interpolate], [InterpolateInto] and [Hermite].
type ComponentOption func(*componentOptions)

type componentOptions struct {
	modes []blend.FieldMode
	snap  float64
}

// Step makes fields keep their value until the time of the next state, and change then. Paths are those of
// [replication.Field].
//
// Panics if there is no path; [Interpolate] panics if the component lacks such a field.
func Step(paths ...string) ComponentOption { return mode("Step", blend.Step, paths) }

// Linear makes integer fields move evenly from one value to the next, rounded. Floats, and integers with the tag
// linear, do so anyway. Paths are those of [replication.Field].
//
// Panics if there is no path; [Interpolate] panics if the component lacks such a field, or if it has no numbers to
// move.
func Linear(paths ...string) ComponentOption { return mode("Linear", blend.Linear, paths) }

func mode(name string, m blend.Mode, paths []string) ComponentOption {
	if len(paths) == 0 {
		panic("playout: " + name + " needs the paths of fields")
	}
	return func(o *componentOptions) {
		for _, path := range paths {
			o.modes = append(o.modes, blend.FieldMode{Path: path, Mode: m})
		}
	}
}

// Snap treats a change of more than distance per server tick as a teleport, which is not interpolated. The change is
// measured as the length of the vector of all fields that move linearly, in their units: floats and integers, but
// nothing that turns or goes round. The limit grows with the time between two states, so that a fast entity may go far
// while packets are lost. If the server can count teleports, [Cut] is better.
//
// Panics if distance is not positive.
func Snap(distance float64) ComponentOption {
	if !(distance > 0) {
		panic(fmt.Sprintf("playout: Snap(%v): use the distance above 0 that nothing moves in a tick", distance))
	}
	return func(o *componentOptions) { o.snap = distance }
}
