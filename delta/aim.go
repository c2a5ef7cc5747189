package delta

// This file aims at numbers in Compact: it predicts them more finely than their codes, and learns how.
// Motions seldom continue unchanged: a sliding body slows down, a pushed one is pushed again. So
// Compact predicts the first baseline, plus a learnt share of the distance that the second one
// extrapolates, plus learnt shares of the corrections that nearer baselines suggest. A far second
// baseline measures a steady speed well, and nearer ones show what has changed since.

import "math/bits"

// fineBits is the number of bits of distances below one code.
const fineBits = 8

// maxAimBits is the largest width of a field that is aimed at: products must fit into 63 bits.
const maxAimBits = 32

const (
	shareParts    = 3  // the second baseline, the third, the fourth
	shareContexts = 14 // by the bits of the distance that a share applies to

	shareOne  = 1 << 16      // the entire distance
	shareMost = 4 * shareOne // enough to continue an acceleration
	reachStep = shareOne / 320
	turnStep  = shareOne / 44 // larger: a nearer baseline may be all that matters, or only noise

	// A share moves by this power of two less than it takes to have predicted the code, and by no more
	// than its step: so it comes to rest where motions are smooth, and outliers do not move it far.
	shareCaution = 3
)

// amount has what a number is coded with: a Linear or Wrap field, or a component of a quaternion. It has no pointers,
// since storing them takes longer.
type amount struct {
	context uint
	at      int64 // the prediction, against which the residual is taken
	above   int64 // how far the fine prediction is above that, in units of 1/2^fineBits codes
	aimed   bool
	trend   uint // of the numbers of the entity before it
	first   uint // which decisions of numberModel.first: of the context, or of the context and the fraction

	nearer int              // baselines that are nearer than the second
	parts  [shareParts]part // the second baseline, and the corrections that nearer ones suggest
}

// part is a distance from which a share is taken.
type part struct {
	distance int64
	size     uint // bits of its magnitude
	above    uint // and how many of them are above a quarter of a code
	share    uint // index of the share among those of the part
}

// expect prepares a number of which the baselines show nothing but the code to expect. moving reports whether the
// others of the row are extrapolated.
func (c *Compact) expect(n *amount, code int64, moving, first bool) {
	n.at, n.above, n.aimed, n.parts[0].distance = code, 0, false, 0
	n.context = numberContext(moving, first, 0, 0, uint(bits.Len64(c.shown)))
	n.first = n.context
}

// aim prepares a number of a field. base is its code at the first baseline. The distances from there to where the
// second baseline, the third and the fourth predict the number are in units of 1/2^fineBits codes. n.nearer has how
// many of the last two are in use.
func (c *Compact) aim(n *amount, m *numberModel, base, far, near, middle int64, first bool) {
	fine := base<<fineBits + n.reach(m, 0, far)
	if n.nearer > 0 {
		if fine += n.reach(m, 1, near-far); n.nearer > 1 {
			fine += n.reach(m, 2, middle-far)
		}
	}
	n.at = (fine + 1<<(fineBits-1)) >> fineBits
	n.above = fine - n.at<<fineBits
	ahead := max(n.parts[0].above, 2) - 2
	spread := ahead
	if n.nearer > 0 {
		spread = n.parts[1].above
	}
	n.context = numberContext(true, first, ahead, spread, uint(bits.Len64(c.shown)))
	n.aimed, n.trend = true, c.trend
	states := &fractions[n.context&31]
	n.first = states.at + states.by*n.fraction()
}

// reach sets part i and returns the share of it.
func (n *amount) reach(m *numberModel, i uint, distance int64) int64 {
	p := &n.parts[i]
	p.distance = distance
	size := uint64(abs(distance))
	p.size, p.above = uint(bits.Len64(size)), uint(bits.Len64(size>>(fineBits-2)))
	p.share = min(p.above, shareContexts-1)
	return (distance*int64(m.shares[i][p.share]) + 1<<15) >> 16
}

// learn moves the shares towards those that would have predicted the number. v is its residual.
func (n *amount) learn(m *numberModel, v int64) {
	if !n.aimed {
		return
	}
	left := v<<fineBits - n.above
	n.parts[0].learn(&m.shares[0], left, reachStep)
	if n.nearer > 0 {
		if n.parts[1].learn(&m.shares[1], left, turnStep); n.nearer > 1 {
			n.parts[2].learn(&m.shares[2], left, turnStep)
		}
	}
}

// learn moves the share of the part, by most at the most. left is by how much the prediction was too low.
func (p *part) learn(shares *[shareContexts]int32, left, most int64) {
	some := (p.distance | -p.distance) >> 63 // -1, or 0 if there is no distance, of which a share would be nothing
	step := min(abs(left)<<16>>((p.size+shareCaution)&63), most) & some
	back := (p.distance ^ left) >> 63 // -1 or 0
	share := &shares[p.share]
	*share = int32(min(max(int64(*share)+(step^back)-back, -shareMost), shareMost))
}

// numberContext returns the context of a number's length: how large it may be is predicted by the
// bits of the distance ahead, by the spread, which is how far the baselines disagree, and by the
// residuals before it in the entity.
func numberContext(moving, first bool, ahead, spread, largest uint) uint {
	switch {
	case !moving && first:
		return 0
	case !moving:
		return 1
	case first:
		return firstContext + min(spread, laterContext-firstContext-1)
	}
	return laterContext + min((ahead+spread+largest)/3, numberContexts-laterContext-1)
}

// fraction returns how far from a code the fine prediction is: 0 if it is near one, to
// fractionStates-1 if it is between two.
func (n *amount) fraction() uint { return uint(abs(n.above)) * fractionStates / (1<<(fineBits-1) + 1) }

// length returns the decision whether the length of a number exceeds some bits.
func (n *amount) length(m *numberModel, bits uint) *decision {
	if bits < 2 {
		return &m.first[n.first][bits]
	}
	return &m.lengths[n.context][min(bits-2, lengthDecisions-1)]
}

// fractions has which decisions of numberModel.first a context has: from at on, by times the fraction. They depend on
// the fraction where numbers are so well predicted that this matters.
var fractions = func() (of [32]struct{ at, by uint }) {
	for k := range of {
		of[k].at = min(uint(k), numberContexts-1)
	}
	for k := range fineContexts {
		of[firstContext+k].at, of[firstContext+k].by = uint(numberContexts+k*fractionStates), 1
		of[laterContext+k].at, of[laterContext+k].by = uint(numberContexts+(fineContexts+k)*fractionStates), 1
	}
	return of
}()

// side returns the decision on which side of its prediction a number of some bits, 1 or more, is, and the sign of the
// side that the decision means. It returns nil if either side is as likely. A small number is probably where the fine
// prediction is. A large one goes on in the direction of the motion, or back, as the entity's number before it did: a
// body that has hit something slows down on all axes.
func (n *amount) side(m *numberModel, length uint) (d *decision, sign int64) {
	switch {
	case !n.aimed:
		return nil, 0
	case length <= sideLengths:
		return &m.near[(length-1)*fractionStates+n.fraction()], n.above >> 63
	case n.parts[0].distance == 0:
		return nil, 0
	}
	large := min(length-sideLengths, trendLengths) - 1
	return &m.trend[n.trend*trendLengths+large], n.parts[0].distance >> 63
}
