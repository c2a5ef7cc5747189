package delta

import "math/bits"

// Motions mostly don't go on as they were: what slides slows down, what was pushed is pushed
// on. A model learns how far motions reach, by their size: predictions are the base and so
// much of what the motion between the baselines says, and so much of what a nearer baseline
// says beyond that. Each is a median in the making: it moves by a step after each number.

// A numberModel is how far the motion of a number reaches, in units of 1/65536: by the
// bits of the predicted distance.
type numberModel struct {
	reach [reachContexts]int32 // of the distance to the prediction
	turn  [reachContexts]int32 // of what the nearer baseline says beyond that
}

const (
	reachContexts = 12

	reachOne  = 1 << 16 // all of the distance
	reachStep = reachOne / 320
	turnStep  = reachOne / 44 // a nearer baseline may be all that matters, or noise alone
)

func reachOf(reach *[reachContexts]int32, distance int64) *int32 {
	return &reach[min(uint(bits.Len64(uint64(abs(distance)))), reachContexts-1)]
}

// follow makes a motion reach a little farther if what was left of it goes the same way.
func follow(reach *[reachContexts]int32, distance, left int64, step int32) {
	if distance == 0 {
		return
	}
	r := reachOf(reach, distance)
	if (distance < 0) == (left < 0) {
		*r = min(*r+step, 2*reachOne)
	} else {
		*r = max(*r-step, -reachOne)
	}
}
