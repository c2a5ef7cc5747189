package delta

// This file has what Compact learns.

// Model holds what a [Compact] coding has learnt from a sequence of packets: how likely each
// decision is in each of its contexts, and how far motions reach. Its size follows from the layout,
// see [Compact.ModelBytes]. A Model is made by [Compact.NewModel] or
// [Compact.Reset] and copied by [Model.CopyFrom]; assigning it shares its memory.
//
// Encoder and decoder must begin a packet with equal models. A sender keeps the model that
// resulted from each packet, and begins a packet with that of the newest acknowledged one,
// which it names. So a model never depends on a lost packet.
type Model struct {
	decisions []decision
	shares    []int32  // of the parts of numbers, see aim.go
	latest    []uint32 // the codes of the latest rows without a baseline
}

// CopyFrom makes m equal to another model. It allocates only if m never was one of that size.
func (m *Model) CopyFrom(from *Model) {
	m.decisions = append(m.decisions[:0], from.decisions...)
	m.shares = append(m.shares[:0], from.shares...)
	m.latest = append(m.latest[:0], from.latest...)
}

// Each field has a column of the model of its own until there are so many; further fields share
// them.
const (
	numberColumns = 32 // of Linear, Wrap and Quat fields
	plainColumns  = 48 // of fields of all other kinds
	symbolColumns = 32 // of components
	latestColumns = 64 // of fields of all kinds
)

// modelLayout locates the columns of models of one layout.
type modelLayout struct {
	numbers, plains, components, latest int // columns of each kind

	firstNumber, firstPlain, firstSymbol, firstLatest int // indices of decisions, behind those of heads
	decisions                                         int
}

// newModelLayout returns the layout of models for so many fields and components.
func newModelLayout(numbers, plains, components int) (m modelLayout) {
	m.numbers, m.plains = min(numbers, numberColumns), min(plains, plainColumns)
	m.components, m.latest = min(components, symbolColumns), min(numbers+plains, latestColumns)
	m.firstNumber = HeadDecisions
	m.firstPlain = m.firstNumber + m.numbers*numberDecisions
	m.firstSymbol = m.firstPlain + m.plains*plainDecisions
	m.firstLatest = m.firstSymbol + m.components*symbolDecisions
	m.decisions = m.firstLatest + m.latest
	return m
}

// ModelBytes returns the size of a model, without some 100 bytes for the Model itself.
func (c *Compact) ModelBytes() int {
	return 4 * (len(c.fresh.decisions) + len(c.fresh.shares) + len(c.fresh.latest))
}

// The decisions of columns, in order of their index in a column.
const (
	// Of numbers: lengthDecisions for every context of their length in bits; the second
	// highest bit for every length; the first two bits of lengths in the fineContexts first
	// contexts of either kind, by the fraction of the prediction; the side of the prediction, for
	// the smallest lengths by that fraction, and for larger ones by the trend and the length.
	lengthDecisions = 12
	numberContexts  = 24
	firstContext    = 2  // of the first number of a moving entity
	laterContext    = 10 // of its later ones
	numberTop       = numberContexts * lengthDecisions
	topDecisions    = 12
	numberFine      = numberTop + topDecisions
	fineContexts    = 3
	fractionStates  = 3
	numberSide      = numberFine + 2*fineContexts*2*fractionStates
	sideLengths     = 2
	numberTrend     = numberSide + sideLengths*fractionStates
	trendLengths    = 8
	numberDecisions = numberTrend + trendStates*trendLengths
	numberShares    = shareParts * shareContexts

	// Of plain fields and references: whether the field changed; the lengths of the
	// change or the index; those of a reference's counter; and whether a number goes on as
	// between the baselines, by whether these agree.
	plainChanged   = 0
	plainLength    = 1
	plainLengths   = 11
	plainCounter   = plainLength + plainLengths
	counterLengths = 8
	plainSteady    = plainCounter + counterLengths
	plainDecisions = plainSteady + 2

	// Of components: whether the row equals the prediction, by the bits of its motion; if
	// it doesn't, whether it equals the baseline; whether it equals the baseline where
	// nothing moves, by whether it changed between the baselines; and whether the chart is that
	// of the reference. All but the last by the activity of the entity, and by whether it changes
	// steadily.
	symbolPredicted = 0
	symbolStopped   = symbolPredicted + shownStates*motionStates
	symbolSame      = symbolStopped + shownStates
	symbolChart     = symbolSame + 2*shownStates
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

// The trend of an entity is whether the latest number that was not predicted exactly went on in the direction of its
// motion, or back.
const (
	trendNone = iota
	trendOn
	trendBack
	trendStates
)

// newModel returns a model that has learnt nothing.
func newModel(l *modelLayout) *Model {
	m := &Model{
		decisions: make([]decision, l.decisions),
		shares:    make([]int32, l.numbers*numberShares),
		latest:    make([]uint32, l.latest),
	}
	for i := range m.decisions {
		m.decisions[i] = evenDecision
	}
	for i := range m.shares {
		if i/shareContexts%shareParts < 2 { // the fourth baseline seldom adds to the third
			m.shares[i] = shareOne
		}
	}
	return m
}

// NewModel returns a model that has learnt nothing.
func (c *Compact) NewModel() *Model { return c.fresh.clone() }

func (m *Model) clone() *Model {
	x := new(Model)
	x.CopyFrom(m)
	return x
}

// Reset makes m a model that has learnt nothing.
func (c *Compact) Reset(m *Model) { m.CopyFrom(c.fresh) }

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
var rates = func() (r [mostMet + 1]uint16) {
	for n := range r {
		r[n] = uint16(655360 / (10*n + 16))
	}
	return r
}()

// chance returns the probability that the bit is set, in units of 1/65536.
func (d decision) chance() uint32 { return uint32(d >> 16) }

// learn moves the probability towards a bit, which is all ones or 0.
func (d *decision) learn(set uint64) {
	v := int64(*d)
	target := int64(leastValue + (mostValue-leastValue)&set)
	n := v & mostMet
	v += (target - v) * int64(rates[n]) >> 16
	*d = decision(v&^mostMet | min(n+1, mostMet))
}
