package delta

// This file encodes the rows of many slots, component by component.

import (
	"math/bits"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// Columns encodes the changes of up to 64 slots, component by component, against the same baselines in all components.
// The bits of a slot are those that [Packed] makes of its rows between Begin and End.
//
// For a block of slots, call Begin, then Add for each of their components, in rising order. Then, for any number of
// baselines, call Encode, and after it Bits and Write for each slot that it returns. Columns holds scratch memory, and
// rows of blocks until the next Begin; use one per goroutine.
type Columns struct {
	packed  *Packed
	columns []*column // room for all components
	n       int       // number of columns in use
	oldest  Tick      // no baseline is older

	atLeast [leastNamed + 1]uint64 // slots with at least that many symbols, by number
	uniform bool                   // all slots have all components

	unusual uint64                // slots in which a symbol is not the usual one
	several uint64                // slots in which more than one is not
	odd     [blockSlots]uint8     // of these slots: the column of the last such symbol
	texts   [blockSlots]bitString // rows of slots without symbols, but for what is not known of an unusual one
	long    uint64                // slots whose rows take 64 bits or more, or that have no text
	held    [blockSlots]int32
	works   [blockSlots]int32

	costs  []uint32 // by field, and of symbols by component, like Cost
	fields []uint32 // that have costs
}

// Against selects slots of a block, the ticks of their baselines, and the [Ratio] of these. A2 is used if that is not
// 0.
type Against struct {
	Slots  uint64 // a set of bits
	A1, A2 Tick
	Ratio  int64
	Shift  Shift // see [Packed.SetShift]
}

// A Block is where [Columns] finds the rows of a component of up to 64 slots, which are numbered from 0.
type Block interface {
	// Rows returns the slots that have the component, and a record for each slot, present or not: the tick at which
	// its present row began, and the row. No row of a present slot began later than tick latest.
	Rows() (present uint64, records []uint32, latest Tick)
	// At sets rows[i] to the row at tick t of each slot i of a set in which all have changed since, nil if the slot was
	// without the component. It returns the slots whose row is not known.
	At(slots uint64, t Tick, rows *[64][]uint32) (unknown uint64)
}

// blockSlots is the number of slots in a block, and the number of bits in a set of them.
const blockSlots = 64

// column has the rows of a component.
type column struct {
	component int
	block     Block
	present   uint64   // slots that have the component
	records   []uint32 // of all slots, see [Block.Rows]
	stride    int      // of records, in words
	latest    Tick
	first     uint64 // slots that have none of the columns before
	recent    uint64 // slots whose row has changed since the oldest baseline that there may be
	changed   uint64 // slots whose bits are in rows; others equal their baseline
	unusual   uint64 // slots whose symbol is not the usual one
	rows      [blockSlots]heldRow

	base, base2 [blockSlots][]uint32 // of changed slots
	second      uint64               // slots whose row of tick secondOf is in base2
	secondOf    Tick
}

// row returns the present row of a slot.
func (k *column) row(i int) []uint32 { return k.records[i*k.stride:][1:k.stride] }

// began returns those of a set of slots whose present row began after tick t.
func (k *column) began(set uint64, t Tick) (later uint64) {
	if !k.latest.After(t) {
		return 0
	}
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		// Like After, but for a distance of 2^31.
		later |= uint64(uint32(t)-k.records[i*k.stride]) >> 31 & 1 << i
	}
	return later
}

// NewColumns returns a Columns for a layout.
func NewColumns(l *Layout) *Columns {
	return &Columns{packed: NewPacked(l), costs: make([]uint32, l.fields+len(l.Components))}
}

// Begin begins a block of slots, without components. Their baselines are of tick oldest or later.
func (c *Columns) Begin(oldest Tick) {
	c.n, c.oldest = 0, oldest
	c.atLeast = [len(c.atLeast)]uint64{^uint64(0)}
	c.uniform = true
}

// Add adds a component. slots are the slots of the block that may have it. A component without width may be left out.
func (c *Columns) Add(component int, b Block, slots uint64) {
	present, records, latest := b.Rows()
	if present&slots == 0 || c.packed.layout.Components[component].width == 0 {
		return
	}
	if c.n == len(c.columns) {
		c.columns = append(c.columns, new(column))
	}
	k := c.columns[c.n]
	k.component, k.block, k.records, k.latest = component, b, records, latest
	k.stride = 1 + c.packed.layout.Components[component].words
	k.present, k.second = present&slots, 0
	k.recent, k.first = k.began(k.present, c.oldest), k.present&^c.atLeast[1]
	c.uniform = c.uniform && k.present == slots
	for i := leastNamed; i > 0; i-- {
		c.atLeast[i] |= c.atLeast[i-1] & k.present
	}
	c.n++
}

// Encode encodes slots of the block against their baselines. It returns the slots whose baselines
// are all known; it leaves out the others.
func (c *Columns) Encode(a Against) (slots uint64) {
	c.packed.SetShift(a.Shift)
	for {
		lost := c.encode(&a)
		if lost == 0 {
			break
		}
		a.Slots &^= lost
	}
	c.bookSymbols(a.Slots)
	return a.Slots
}

// encode encodes slots. It returns those of which a baseline is not known; if there are any, the result
// is not complete.
func (c *Columns) encode(a *Against) (lost uint64) {
	c.unusual, c.several, c.long = 0, 0, 0
	for _, f := range c.fields {
		c.costs[f] = 0
	}
	c.fields = c.fields[:0]
	c.packed.held.long = c.packed.held.long[:0]
	for rest := a.Slots; rest != 0; rest &= rest - 1 {
		slot := bits.TrailingZeros64(rest)
		c.held[slot], c.texts[slot] = 0, bitString{}
	}
	oldest := a.A1
	if a.Ratio != 0 {
		oldest = a.A2
	}
	for i, k := range c.columns[:c.n] {
		k.changed, k.unusual = 0, 0
		changed := k.began(a.Slots&k.recent, oldest)
		if changed != 0 {
			lost |= c.encodeColumn(k, changed, a)
		}
		if a.Ratio == 0 && c.packed.layout.Components[k.component].moves {
			still := a.Slots & k.present &^ changed
			k.unusual |= still
			c.long |= still
		}
		for rest := k.unusual; rest != 0; rest &= rest - 1 {
			c.odd[bits.TrailingZeros64(rest)] = uint8(i)
		}
		c.several |= c.unusual & k.unusual
		c.unusual |= k.unusual
	}
	for _, cost := range c.packed.Costs {
		c.book(cost.Field, cost.Bits)
	}
	c.packed.Costs = c.packed.Costs[:0]
	return lost
}

// encodeColumn encodes rows of a component that changed after the older baseline. It returns slots
// of which a baseline is not known.
func (c *Columns) encodeColumn(k *column, changed uint64, a *Against) (lost uint64) {
	later := k.began(changed, a.A1)
	lost = k.block.At(later, a.A1, &k.base)
	for rest := changed &^ later; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(rest)
		k.base[i] = k.row(i)
	}
	if a.Ratio != 0 {
		if k.secondOf != a.A2 {
			k.second, k.secondOf = 0, a.A2
		}
		unknown := k.block.At(changed&^k.second, a.A2, &k.base2)
		k.second |= changed &^ unknown
		lost |= unknown
	}
	changed &^= lost
	k.changed |= changed
	p := c.packed
	p.held.rows = k.rows[:]
	odd := p.layout.Components[k.component].oddKnown()
	if steps := p.movingSteps(k.component); steps != nil && a.Ratio != 0 {
		changed = c.encodeSteps(k, steps, changed, a.Ratio)
	}
	for ; changed != 0; changed &= changed - 1 {
		i := bits.TrailingZeros64(changed)
		base := k.base[i]
		if base == nil { // the slot got the component after the baseline
			lost |= 1 << i
			continue
		}
		var base2 []uint32
		if a.Ratio != 0 {
			base2 = k.base2[i]
		}
		p.held.n, p.held.unusual = i, 0
		p.Add(k.component, k.row(i), base, base2, a.Ratio)
		r, known := &k.rows[i], k.rows[i].symbol
		if p.held.unusual > 0 {
			k.unusual |= 1 << i
			known = odd
		}
		c.held[i] += int32(r.n) - 1
		c.addText(i, r.bitString, known)
	}
	return lost
}

// addText appends a row without its first bits, which are known, to those of slot i.
func (c *Columns) addText(i int, row bitString, known uint32) {
	t := &c.texts[i]
	if row.n+t.n >= 64 {
		c.long |= 1 << i
		return
	}
	t.acc |= row.acc >> known << t.n
	t.n += row.n - uint(known)
}

// encodeSteps is encodeColumn for a component that consists of steps and slots that have both
// baselines. It returns the other slots.
func (c *Columns) encodeSteps(k *column, steps []step, changed uint64, ratio int64) (left uint64) {
	p, odd := c.packed, c.packed.layout.Components[k.component].oddKnown()
	for i := range steps {
		steps[i].total = 0
	}
	for ; changed != 0; changed &= changed - 1 {
		i := bits.TrailingZeros64(changed)
		base, base2 := k.base[i], k.base2[i]
		if base == nil || base2 == nil {
			left |= 1 << i
			continue
		}
		x := p.codeSteps(steps, false, k.row(i), base, base2, ratio)
		r := &k.rows[i]
		r.bitString, r.component, r.symbol = x.bitString, uint32(k.component), x.symbol
		if x.n >= 64 {
			p.held.keep(r, p.words[x.way])
		}
		if uint(x.symbol) != x.n {
			for j := range steps {
				steps[j].total += uint32(steps[j].bits[x.way])
			}
		}
		known := x.symbol
		if !x.usual {
			k.unusual |= 1 << i
			known = odd
		}
		c.held[i] += int32(x.n) - 1
		c.addText(i, x.bitString, known)
	}
	first := uint32(p.layout.Components[k.component].first)
	for i := range steps {
		c.book(first+uint32(i), steps[i].total)
	}
	return left
}

// Bits returns the number of bits that Write writes for a slot, without the head.
func (c *Columns) Bits(slot int) int {
	i := uint(slot) % blockSlots
	symbols := c.symbols(i, c.n)
	n := int(c.held[i]) + symbols
	start, omitted := c.start(i, symbols)
	n += int(start.n)
	if !omitted {
		return n
	}
	for _, k := range c.columns[:c.n] {
		switch {
		case k.unusual>>i&1 != 0:
			n -= int(c.packed.layout.Components[k.component].oddKnown())
		case k.changed>>i&1 != 0:
			n -= int(k.rows[i].symbol)
		default:
			n -= int(k.present >> i & 1)
		}
	}
	return n
}

// start returns what comes before the rows of slot i, which has so many of them, and whether symbols
// are left out, except for that of the only unusual row.
func (c *Columns) start(i uint, symbols int) (d bitString, omitted bool) {
	switch {
	case c.unusual>>i&1 == 0:
		return symbolsStart(symbols, 0, 0), symbols > 1
	case symbols < leastNamed || c.several>>i&1 != 0:
		return symbolsStart(symbols, 2, 0), false
	}
	return symbolsStart(symbols, 1, c.symbols(i, int(c.odd[i]))), true
}

// Works returns, by slot of the block, the [Component.Work] of the rows of encoded slots, where a row that equals its
// baselines counts 1. The array is valid until the next call.
func (c *Columns) Works(slots uint64) *[blockSlots]int32 {
	all := int32(0)
	for rest := slots; rest != 0; rest &= rest - 1 {
		c.works[bits.TrailingZeros64(rest)] = 0
	}
	add := func(set uint64, work int32) {
		if set == slots {
			all += work
			return
		}
		for ; set != 0; set &= set - 1 {
			c.works[bits.TrailingZeros64(set)] += work
		}
	}
	for _, k := range c.columns[:c.n] {
		add(k.present&slots, 1)
		add(k.changed&slots, int32(c.packed.layout.Components[k.component].work-1))
	}
	for rest := slots; rest != 0; rest &= rest - 1 {
		c.works[bits.TrailingZeros64(rest)] += all
	}
	return &c.works
}

// Most returns an upper bound of Bits for the given slots.
func (c *Columns) Most(slots uint64) int {
	most := int32(0)
	for ; slots != 0; slots &= slots - 1 {
		most = max(most, c.held[bits.TrailingZeros64(slots)])
	}
	return int(most) + c.n + 2
}

// Write writes the rows of a slot.
func (c *Columns) Write(w *bitbuf.Writer, slot int) {
	i := uint(slot) % blockSlots
	if (c.atLeast[2]&^(c.unusual|c.long))>>i&1 != 0 { // most slots of most games
		t := &c.texts[i]
		w.WriteBits(t.acc<<1, t.n+1) // after the bit of a slot without an unusual symbol
		return
	}
	start, omitted := c.start(i, c.symbols(i, c.n))
	if omitted && c.long>>i&1 == 0 {
		w.WriteBits(start.acc, start.n)
		w.WriteBits(c.texts[i].acc, c.texts[i].n)
		return
	}
	h, d := &c.packed.held, bitString{}
	d = d.put(h.words, start.acc, start.n)
	for _, k := range c.columns[:c.n] {
		without := uint(0)
		switch {
		case !omitted:
		case k.unusual>>i&1 != 0:
			without = uint(c.packed.layout.Components[k.component].oddKnown())
		case k.changed>>i&1 != 0:
			without = uint(k.rows[i].symbol)
		default:
			without = 1
		}
		switch {
		case k.changed>>i&1 != 0:
			d = h.put(d, &k.rows[i], without)
		case k.present>>i&1 != 0:
			d = d.put(h.words, 0, 1-without)
		}
	}
	d.write(w, h.words)
}

// bookSymbols books the symbols, and the bits before the rows of entities to the first of these.
func (c *Columns) bookSymbols(slots uint64) {
	more, few := c.atLeast[2], ^c.atLeast[leastNamed]
	named := slots & c.unusual &^ c.several &^ few
	written := slots &^ (more &^ c.unusual) &^ named
	for _, k := range c.columns[:c.n] {
		n := 0
		if first := k.first & slots & more; first != 0 {
			n = bits.OnesCount64(first) + bits.OnesCount64(first&c.unusual&^few)
			for rest := first & named; rest != 0; rest &= rest - 1 {
				i := uint(bits.TrailingZeros64(rest))
				start, _ := c.start(i, c.symbols(i, c.n))
				n += int(start.n) - 2
			}
		}
		for rest := k.present & written; rest != 0; rest &= rest - 1 {
			n += k.symbol(uint(bits.TrailingZeros64(rest)))
		}
		for rest := k.unusual & named; rest != 0; rest &= rest - 1 {
			n += k.symbol(uint(bits.TrailingZeros64(rest))) - int(c.packed.layout.Components[k.component].oddKnown())
		}
		c.book(uint32(c.packed.layout.fields+k.component), uint32(n))
	}
}

// symbols returns the number of symbols of slot i in the first n columns.
func (c *Columns) symbols(i uint, n int) (symbols int) {
	if c.uniform {
		return n
	}
	for _, k := range c.columns[:n] {
		symbols += int(k.present >> i & 1)
	}
	return symbols
}

// symbol returns the bits of the symbol and the charts of slot i, which has the component.
func (k *column) symbol(i uint) int {
	if k.changed>>i&1 != 0 {
		return int(k.rows[i].symbol)
	}
	return 1
}

// book adds bits to the cost of a field.
func (c *Columns) book(field, bits uint32) {
	if bits == 0 {
		return
	}
	if c.costs[field] == 0 {
		c.fields = append(c.fields, field)
	}
	c.costs[field] += bits
}

// AddCosts adds the bits of all slots that Encode returned, by field like [Cost].
func (c *Columns) AddCosts(costs []uint32) {
	for _, f := range c.fields {
		costs[f] += c.costs[f]
	}
}
