package delta

// A Model is what a [Compact] coding has learnt of a stream of packets: how likely each
// decision is in each of its contexts, and how far motions go on. It is a plain value of
// [ModelBytes] bytes whatever the layout is: assigning it copies it, and == compares it. The
// zero value is not ready for use, see [NewModel].
//
// Encoder and decoder must begin a packet with equal models. A sender keeps the model as it
// was behind each packet and begins a packet with that of the newest one that was
// acknowledged, which it names; so nothing that is lost has ever been learnt from.
type Model struct {
	decisions [modelDecisions]decision
	numbers   [numberColumns]numberModel
	latest    [latestColumns]uint32 // the latest codes of rows without baseline
	heads     [HeadDecisions]decision
}

// ModelBytes is the size of a Model.
const ModelBytes = 4*(modelDecisions+latestColumns+HeadDecisions) + numberColumns*4*2*reachContexts

// Fields have a column of the model each as long as there are any, and share them then.
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
	// second bit from the top for every length.
	lengthDecisions = 12
	numberContexts  = 16
	numberTop       = numberContexts * lengthDecisions
	topDecisions    = 12
	numberDecisions = numberTop + topDecisions

	// Of plain fields and references: whether it changed, and the lengths of what by, or of
	// the index; then those of a reference's counter.
	plainChanged   = 0
	plainLength    = 1
	plainLengths   = 11
	plainCounter   = plainLength + plainLengths
	counterLengths = 8
	plainDecisions = plainCounter + counterLengths

	// Of components: whether the row is as predicted, by what the entity has shown, whether
	// it is steady, and by motion; if not so, as at the baseline; as at the baseline where nothing moves; and
	// whether the chart is the predicted one. Each but the last by what the entity has shown and
	// whether it is steady.
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

// NewModel returns a model that knows nothing.
func NewModel() *Model {
	m := new(Model)
	m.Reset()
	return m
}

// fresh is a model that knows nothing.
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

// Reset makes the model forget all that it has learnt.
func (m *Model) Reset() { *m = fresh }

// A decision is the probability that a bit is set, as it was seen in one context: 25 bits
// of it, the high 16 being the chance that the range coder takes, and 7 bits that count how
// often the decision was met, up to mostMet.
type decision uint32

const (
	countBits = 7
	mostMet   = 1<<countBits - 1

	evenDecision = decision(1 << 31)
	leastChance  = 32 // of 65536: a bit that is never set costs less than 1/1400 bits
	leastValue   = leastChance << 16
	mostValue    = 1<<32 - leastChance<<16
)

// rates are by how much a decision moves towards what is seen, in units of 1/65536, by how
// often it was met: as if all bits counted the same, but no less than the last 120 or so.
var rates = func() (r [mostMet + 1]int64) {
	for n := range r {
		r[n] = 655360 / int64(10*n+16)
	}
	return r
}()

// chance returns the probability that the bit is set, in units of 1/65536.
func (d decision) chance() uint32 { return uint32(d >> 16) }

// learn takes note of a bit.
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
