package delta

// This file learns how far motions reach. Motions seldom continue unchanged: a sliding body slows
// down, a pushed one is pushed again. So Compact predicts the baseline plus a learnt share of the
// extrapolated distance, plus a learnt share of the correction that a nearer baseline suggests.
// Each share approaches the median by a fixed step after every number.

import "math/bits"

// numberModel has the shares of a number's motion, in units of 1/65536, by the bits of the distance
// that they apply to.
type numberModel struct {
	reach      [reachContexts]int32 // of the distance to the prediction
	correction [reachContexts]int32 // of the correction that the nearer baseline suggests
}

const (
	reachContexts = 12

	reachOne       = 1 << 16 // the entire distance
	reachStep      = reachOne / 320
	correctionStep = reachOne / 44 // larger: a nearer baseline may be all that matters, or only noise
)

// reachOf returns the share for a distance.
func reachOf(reach *[reachContexts]int32, distance int64) *int32 {
	return &reach[min(uint(bits.Len64(uint64(abs(distance)))), reachContexts-1)]
}

// follow lengthens the share of a distance a little if the remaining error has its sign, and
// shortens it otherwise.
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
