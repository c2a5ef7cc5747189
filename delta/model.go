package delta

// This file has what Compact learns.

// Model holds what a [Compact] coding has learnt from a sequence of packets. It takes less than 64 KiB, whatever the
// layout. [Compact.Reset] makes one of the zero value and [Model.CopyFrom] copies it; assigning it shares its memory.
//
// Encoder and decoder must begin a packet with equal models. A sender keeps the model that resulted from each packet,
// and begins a packet with that of the newest acknowledged one, which it names: a model never depends on a lost packet.
type Model struct {
	heads   []decision
	numbers []numberModel
	plains  []plainModel
	symbols []symbolModel
	same    []decision // whether a code without a baseline is the latest one
	latest  []uint32   // the codes of the latest rows without a baseline
}

// CopyFrom makes m equal to another model. It allocates only if m never was one of that size.
func (m *Model) CopyFrom(from *Model) {
	m.heads = append(m.heads[:0], from.heads...)
	m.numbers = append(m.numbers[:0], from.numbers...)
	m.plains = append(m.plains[:0], from.plains...)
	m.symbols = append(m.symbols[:0], from.symbols...)
	m.same = append(m.same[:0], from.same...)
	m.latest = append(m.latest[:0], from.latest...)
}

// The first fields or components have a part of the model each, so many of them; further ones share these parts.
const (
	numberModels = 32 // of Linear, Wrap and Quat fields
	plainModels  = 48 // of fields of all other kinds
	symbolModels = 32 // of components
	latestCodes  = 64 // of fields of all kinds
)

// newModel returns a model for so many fields and components that has learnt nothing.
func newModel(numbers, plains, components int) *Model {
	latest := min(numbers+plains, latestCodes)
	m := &Model{
		heads:   make([]decision, HeadDecisions),
		numbers: make([]numberModel, min(numbers, numberModels)),
		plains:  make([]plainModel, min(plains, plainModels)),
		symbols: make([]symbolModel, min(components, symbolModels)),
		same:    make([]decision, latest),
		latest:  make([]uint32, latest),
	}
	m.each(func(d *decision) { *d = evenDecision })
	for i := range m.numbers {
		shares := &m.numbers[i].shares
		for j := range shareContexts { // the fourth baseline seldom adds to the third
			shares[0][j], shares[1][j] = shareOne, shareOne
		}
	}
	return m
}

// each calls a function for every decision of the model.
func (m *Model) each(f func(*decision)) {
	eachOf(m.heads, f)
	for i := range m.numbers {
		m.numbers[i].each(f)
	}
	for i := range m.plains {
		m.plains[i].each(f)
	}
	for i := range m.symbols {
		m.symbols[i].each(f)
	}
	eachOf(m.same, f)
}

// eachOf calls a function for each of some decisions.
func eachOf(decisions []decision, f func(*decision)) {
	for i := range decisions {
		f(&decisions[i])
	}
}

// numberModel is what a model has learnt of a number: a Linear or Wrap field, or the components of a Quat field.
type numberModel struct {
	first   [firstStates][2]decision                  // whether it is longer than 0 and 1 bits, see amount.first
	lengths [numberContexts][lengthDecisions]decision // than 2 bits and more, by the context
	top     [topDecisions]decision                    // the second highest bit, by the length

	// The side of the prediction: for the smallest lengths by the fraction, for larger ones by the trend.
	near  [sideLengths * fractionStates]decision
	trend [trendStates * trendLengths]decision

	shares [shareParts][shareContexts]int32 // see aim.go
}

const (
	lengthDecisions = 10
	numberContexts  = 24
	firstContext    = 2  // of the first number of a moving entity
	laterContext    = 10 // of its later ones
	topDecisions    = 12
	fineContexts    = 3 // of either kind, the first ones
	fractionStates  = 3
	firstStates     = numberContexts + 2*fineContexts*fractionStates
	sideLengths     = 2
	trendLengths    = 8
)

// each is [Model.each] for one number.
func (m *numberModel) each(f func(*decision)) {
	for i := range m.first {
		eachOf(m.first[i][:], f)
	}
	for i := range m.lengths {
		eachOf(m.lengths[i][:], f)
	}
	eachOf(m.top[:], f)
	eachOf(m.near[:], f)
	eachOf(m.trend[:], f)
}

// plainModel is what a model has learnt of a field that is no number.
type plainModel struct {
	changed decision
	lengths [11]decision // of the change, or of the index of a reference
	counter [8]decision  // lengths of the counter of a reference
	steady  [2]decision  // whether it goes on as between the baselines, by whether these agree
}

// each is [Model.each] for one field.
func (m *plainModel) each(f func(*decision)) {
	f(&m.changed)
	eachOf(m.lengths[:], f)
	eachOf(m.counter[:], f)
	eachOf(m.steady[:], f)
}

// symbolModel is what a model has learnt of a component: whether the row equals the prediction, by the bits of its
// motion; if it doesn't, whether it equals the baseline; whether it equals the baseline where nothing moves, by whether
// it changed between the baselines; and whether the chart is that of the reference. All but the last are by the
// activity of the entity, and by whether it changes steadily.
type symbolModel struct {
	predicted [shownStates][motionStates]decision
	stopped   [shownStates]decision
	same      [2 * shownStates]decision
	chart     decision
}

const (
	shownStates  = 2 * activityStates
	motionStates = 4
)

// each is [Model.each] for one component.
func (m *symbolModel) each(f func(*decision)) {
	for i := range m.predicted {
		eachOf(m.predicted[i][:], f)
	}
	eachOf(m.stopped[:], f)
	eachOf(m.same[:], f)
	f(&m.chart)
}

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

// A pace is how a decision learns a bit: its low half is the step by which it moves towards the bit, in units of
// 1/65536, and its high half how often it was met then.
type pace uint32

// paces has the pace of decisions by how often they were met. All bits weigh the same at first; later, about the last
// 120 do.
var paces = func() (r [mostMet + 1]pace) {
	for n := range r {
		r[n] = pace(655360/(10*n+16) | min(n+1, mostMet)<<16)
	}
	return r
}()

// chance returns the probability that the bit is set, in units of 1/65536.
func (d decision) chance() uint32 { return uint32(d >> 16) }

// learn moves the probability towards a bit, which is all ones or 0.
func (d *decision) learn(set uint64) { *d = d.after(set) }

// after returns the decision when it has learnt a bit.
func (d decision) after(set uint64) decision {
	v := int64(d)
	target := int64(leastValue + (mostValue-leastValue)&set)
	p := paces[v&mostMet]
	v += (target - v) * int64(uint16(p)) >> 16
	return decision(v&^mostMet | int64(p>>16))
}
