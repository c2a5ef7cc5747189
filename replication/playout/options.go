package playout

import (
	"fmt"

	"github.com/arche-replicate/arche-replicate/delta"
	"github.com/arche-replicate/arche-replicate/replication/internal/blend"
)

// An Option is an option of [New].
type Option func(*Playout)

// defaultMargin is the share of gaps between states that the delay covers. To cover one more in a hundred would cost
// about as much delay as two thirds of an interval where a packet in five gets lost.
const defaultMargin = 0.9944

// Margin sets the share of gaps between states that the delay covers, 0.5 to 0.9999. The default, 0.9944, leaves
// about 2.5 frames in 1,000 with nothing new to show if a fifth of the packets get lost, and 1 on good paths. More
// margin is more delay.
func Margin(share float64) Option {
	if !(share >= 0.5 && share <= 0.9999) {
		panic(fmt.Sprintf("playout: Margin(%v): use 0.5 to 0.9999", share))
	}
	return func(p *Playout) { p.clock.limits.margin = share }
}

// Speed sets how slow and how fast time may go while the delay changes: 0.25 to 1, and 1.01 to 2. The default is 0.75
// and 1.05.
func Speed(slowest, fastest float64) Option {
	if !(slowest >= 0.25 && slowest <= 1 && fastest >= 1.01 && fastest <= 2) {
		panic(fmt.Sprintf("playout: Speed(%v, %v): use 0.25 to 1, and 1.01 to 2", slowest, fastest))
	}
	return func(p *Playout) { p.clock.limits.slowest, p.clock.limits.fastest = slowest, fastest }
}

// Extrapolate makes entities go on as they moved before when the next state is late, for so many ticks after their last
// state at most, 1 to 60. By default they stop. Entities that are known to rest do not move. When the next state comes,
// an entity that was not where it had been thought to be jumps.
func Extrapolate(ticks int) Option {
	if ticks < 1 || ticks > 60 {
		panic(fmt.Sprintf("playout: Extrapolate(%d): use 1 to 60 ticks", ticks))
	}
	return func(p *Playout) { p.extrapolate, p.clock.ahead = delta.Tick(ticks), float64(ticks) }
}

// A ComponentOption is an option of [Interpolate] and its like.
type ComponentOption func(*componentOptions)

type componentOptions struct {
	modes []blend.FieldMode
	snap  float64
}

// Step makes fields keep their value until the time of the next state. Paths are those of [replication.Field].
func Step(paths ...string) ComponentOption { return mode("Step", blend.Step, paths) }

// Linear makes integer fields move from one value to the next, rounded. Floats, and integers with the tag linear, do so
// anyway. Paths are those of [replication.Field].
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

// Snap takes a step of more than so much per tick for a teleport, which is not interpolated: the length of the vector
// of all fields that move linearly. It grows with the time between two states, so that a fast entity may go far while
// packets get lost. Where teleports can be counted, [Cut] is better.
func Snap(distance float64) ComponentOption {
	if !(distance > 0) {
		panic(fmt.Sprintf("playout: Snap(%v): use the distance above 0 that nothing moves in a tick", distance))
	}
	return func(o *componentOptions) { o.snap = distance }
}
