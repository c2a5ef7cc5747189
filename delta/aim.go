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

// shareSteps bounds the steps of shares, by part.
var shareSteps = [shareParts]int64{reachStep, turnStep, turnStep}

// sight is what the baselines show of a number. Its distances are from the first baseline to where
// the others predict the number, in units of 1/2^fineBits codes.
type sight struct {
	base    int64             // the code at the first baseline
	ahead   [shareParts]int64 // of the second, the third and the fourth baseline
	nearer  int               // baselines that are nearer than the second: the rest of ahead is not in use
	moving  bool              // false: base is all there is
	roughly bool              // base is the code to expect, and nothing is learnt
}

// amount has what a number is coded with: a Linear or Wrap field, or a component of a quaternion.
type amount struct {
	column  []decision
	context uint
	at      int64 // the prediction, against which the residual is taken
	above   int64 // how far the fine prediction is above that, in units of 1/2^fineBits codes
	aimed   bool
	fine    uint // index of the decisions whether it is longer than 0 bits, or 0 if context has them

	parts  [shareParts]int64
	shares [shareParts]*int32
}

// aim prepares a number of a field.
func (c *Compact) aim(n *amount, field int, s *sight, first bool) {
	col := &c.columns[field]
	n.column = c.model.decisions[col.decisions:][:numberDecisions]
	n.at, n.above, n.fine, n.aimed = s.base, 0, 0, s.moving && !s.roughly
	if !n.aimed {
		n.context = numberContext(s.moving, first, 0, 0, c.largest)
		return
	}
	shares := c.model.shares[col.shares:][:numberShares]
	fine := s.base << fineBits
	for i := range s.nearer + 1 {
		part := s.ahead[i]
		if i > 0 {
			part -= s.ahead[0]
		}
		n.parts[i] = part
		n.shares[i] = &shares[i*shareContexts+min(bits.Len64(uint64(abs(part))>>(fineBits-2)), shareContexts-1)]
		fine += (part*int64(*n.shares[i]) + 1<<15) >> 16
	}
	clear(n.parts[s.nearer+1:])
	n.at = (fine + 1<<(fineBits-1)) >> fineBits
	n.above = fine - n.at<<fineBits
	ahead := uint(bits.Len64(uint64(abs(s.ahead[0])) >> fineBits))
	spread := ahead
	if s.nearer > 0 {
		spread = uint(bits.Len64(uint64(abs(n.parts[1])) >> (fineBits - 2)))
	}
	n.context = numberContext(true, first, ahead, spread, c.largest)
	n.fine = n.fineDecisions()
}

// learn moves the shares towards those that would have predicted the number. v is its residual.
func (n *amount) learn(v int64) {
	left := v<<fineBits - n.above
	if !n.aimed || left == 0 {
		return
	}
	for i, part := range n.parts {
		if part == 0 {
			continue
		}
		step := min(abs(left)<<16>>(bits.Len64(uint64(abs(part)))+shareCaution), shareSteps[i])
		if (part < 0) != (left < 0) {
			step = -step
		}
		*n.shares[i] = int32(min(max(int64(*n.shares[i])+step, -shareMost), shareMost))
	}
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

// length returns the decision whether the length of a number exceeds some bits. For the first two
// it depends on the fraction too, where numbers are so well predicted that this matters.
func (n *amount) length(bits uint) *decision {
	if bits < 2 && n.fine != 0 {
		return &n.column[n.fine+bits*fractionStates]
	}
	return &n.column[n.context*lengthDecisions+min(bits, lengthDecisions-1)]
}

// fineDecisions returns where the decisions of a context by the fraction are, or 0 if there are none.
func (n *amount) fineDecisions() uint {
	k := n.context - firstContext
	switch {
	case k < fineContexts:
	case n.context-laterContext < fineContexts:
		k = n.context - laterContext + fineContexts
	default:
		return 0
	}
	return numberFine + k*2*fractionStates + n.fraction()
}

// side returns the decision whether a number of some bits, 1 or more, is on that side of its
// prediction where the fine one is, or nil if either side is as likely.
func (n *amount) side(length uint) *decision {
	if !n.aimed || length > sideLengths {
		return nil
	}
	return &n.column[numberSide+(length-1)*fractionStates+n.fraction()]
}
