package delta

// This file has what Compact learns.

// Model holds what a [Compact] coding has learnt from a sequence of packets: how likely each
// decision is in each of its contexts, and how far motions reach. It is a plain value of
// [ModelBytes] bytes, whatever the layout is: assigning it copies it, and == compares it. The
// zero value is not ready for use, see [NewModel].
//
// Encoder and decoder must begin a packet with equal models. A sender keeps the model that
// resulted from each packet, and begins a packet with that of the newest acknowledged one,
// which it names. So a model never depends on a lost packet.
type Model struct {
	decisions [modelDecisions]decision
	numbers   [numberColumns]numberModel
	latest    [latestColumns]uint32 // the codes of the latest rows without a baseline
	heads     [HeadDecisions]decision
}

// ModelBytes is the size of a Model.
const ModelBytes = 4*(modelDecisions+latestColumns+HeadDecisions) + numberColumns*4*2*reachContexts

// Each field has a column of the model of its own until none is left; further fields share columns.
const (
	numberColumns = 8  // of Linear, Wrap and Quat fields
	plainColumns  = 12 // of fields of all other kinds
	symbolColumns = 8  // of components
	latestColumns = 16 // of fields of all kinds

	firstNumber    = 0
	firstPlain     = firstNumber + numberColumns*numberDecisions
	firstSymbol    = firstPlain + plainColumns*plainDecisions
	firstLatest    = firstSymbol + symbolColumns*symbolDecisions
	modelDecisions = firstLatest + latestColumns
)

// The decisions of columns, in order of their index in a column.
const (
	// Of numbers: lengthDecisions for every context of their length in bits, then the
	// second highest bit for every length.
	lengthDecisions = 12
	numberContexts  = 16
	numberTop       = numberContexts * lengthDecisions
	topDecisions    = 12
	numberDecisions = numberTop + topDecisions

	// Of plain fields and references: whether the field changed; the lengths of the
	// change or the index; and those of a reference's counter.
	plainChanged   = 0
	plainLength    = 1
	plainLengths   = 11
	plainCounter   = plainLength + plainLengths
	counterLengths = 8
	plainDecisions = plainCounter + counterLengths

	// Of components: whether the row equals the prediction, by the bits of its motion; if
	// it doesn't, whether it equals the baseline; whether it equals the baseline where
	// nothing moves; and whether the chart is that of the reference. All but the last by
	// the activity of the entity, and by whether it changes steadily.
	symbolPredicted = 0
	symbolStopped   = symbolPredicted + shownStates*motionStates
	symbolSame      = symbolStopped + shownStates
	symbolChart     = symbolSame + shownStates
	symbolDecisions = symbolChart + 1
	shownStates     = 2 * activityStates
	motionStates    = 4
)

// The activity of an entity is what its rows so far have shown.
const (
	shownNothing   = iota // there was no row, or none with a baseline
	shownRows             // rows that equal the baseline or the prediction
	shownResiduals        // a row with residuals
	activityStates
)

// NewModel returns a model that has learnt nothing.
func NewModel() *Model {
	m := new(Model)
	m.Reset()
	return m
}

// fresh is a model that has learnt nothing.
var fresh = func() (m Model) {
	for i := range m.decisions {
		m.decisions[i] = evenDecision
	}
	for i := range m.heads {
		m.heads[i] = evenDecision
	}
	for i := range m.numbers {
		for j := range m.numbers[i].reach {
			m.numbers[i].reach[j], m.numbers[i].correction[j] = reachOne, reachOne
		}
	}
	return m
}()

// Reset makes the model forget everything that it has learnt.
func (m *Model) Reset() { *m = fresh }

// decision is the probability that a bit is set, as observed in one context. Its high 25 bits are
// the probability, of which the range coder takes 16; its low 7 bits count how often the decision
// was met, up to mostMet.
type decision uint32

const (
	countBits = 7
	mostMet   = 1<<countBits - 1

	evenDecision = decision(1 << 31)
	leastChance  = 32 // of 65536: a bit that is never set costs less than 1/1400 bits
	leastValue   = leastChance << 16
	mostValue    = 1<<32 - leastChance<<16
)

// rates are the steps by which a decision moves towards an observed bit, in units of 1/65536, by
// how often it was met. All bits weigh the same at first; later, about the last 120 do.
var rates = func() (r [mostMet + 1]int64) {
	for n := range r {
		r[n] = 655360 / int64(10*n+16)
	}
	return r
}()

// chance returns the probability that the bit is set, in units of 1/65536.
func (d decision) chance() uint32 { return uint32(d >> 16) }

// learn moves the probability towards a bit.
func (d *decision) learn(bit bool) {
	v := int64(*d)
	target := int64(leastValue)
	if bit {
		target = mostValue
	}
	n := v & mostMet
	v += (target - v) * rates[n] >> 16
	*d = decision(v&^mostMet | min(n+1, mostMet))
}
