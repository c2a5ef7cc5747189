package delta

// This file writes the rows of one entity. Most symbols of an entity are the usual ones: what moves
// continues nearly as predicted, and what rests stays the same. So two or more rows that have
// symbols are preceded by
//
//	0    all symbols are the usual ones and all charts the same; they are left out
//	1    each row has its symbol and charts
//
// and four or more such rows by
//
//	0      as above
//	10 i   all but those of row i, counted among the rows with symbols, in truncated binary
//	11     each row has its symbol and charts
//
// The first bit of the symbol of row i follows from its not being the usual one, and is left out. If
// the component has charts, these may be what is unusual, so its symbol and charts are complete.
//
// The usual symbol always takes one bit:
//
//	moving                                    0, residuals against the prediction
//	still, two baselines or nothing to move   0, equal to the baseline
//	still, one baseline                       1, residuals against the baseline
//
// The last line is so because an entity with one baseline was at rest, and is sent because it
// started to move.

import (
	"math"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// leastNamed is the least number of symbols of which the only unusual one is named.
const leastNamed = 4

// heldRow holds the bits of a row until it is known whether its symbol is written.
type heldRow struct {
	bitString // its complete words are in held.long
	component uint32
	long      int32  // index of its complete words
	symbol    uint32 // bits of the symbol and the charts, which come first; 0 if it has none
}

// held are the rows of an entity.
type held struct {
	rows    []heldRow // room for one of each component
	n       int       // number of rows
	symbols int       // number of rows with symbols
	unusual int       // number of rows of which the symbol or a chart is not the usual one
	odd     int       // the last of these, counted among the rows with symbols
	long    []uint64  // complete words of rows
	words   []uint64  // complete words of all rows together
}

// Begin drops the rows that were added and begins an entity.
func (p *Packed) Begin() {
	h := &p.held
	h.n, h.symbols, h.unusual, h.long = 0, 0, 0, h.long[:0]
}

// hold adds a row that begins with a symbol and charts of symbol bits.
func (p *Packed) hold(component int, d bitString, words []uint64, symbol uint32, usual bool) {
	h := &p.held
	r := &h.rows[h.n]
	r.bitString, r.component, r.symbol = d, uint32(component), symbol
	if d.n >= 64 {
		h.keep(r, words)
	}
	h.count(usual)
}

// holdSymbol adds a row that is only a symbol of n bits.
func (p *Packed) holdSymbol(component int, code uint64, n uint32, usual bool) {
	h := &p.held
	r := &h.rows[h.n]
	r.bitString, r.component, r.symbol = bitString{code, uint(n)}, uint32(component), n
	h.count(usual)
}

// count counts a row with a symbol.
func (h *held) count(usual bool) {
	if !usual {
		h.unusual++
		h.odd = h.symbols
	}
	h.n++
	h.symbols++
}

// holdAbsolute adds a row without a symbol.
func (p *Packed) holdAbsolute(d bitString, words []uint64) {
	h := &p.held
	r := &h.rows[h.n]
	r.bitString, r.symbol = d, 0
	if d.n >= 64 {
		h.keep(r, words)
	}
	h.n++
}

// keep copies the complete words of a row.
func (h *held) keep(r *heldRow, words []uint64) {
	r.long = int32(len(h.long))
	h.long = append(h.long, words[:r.n>>6]...)
}

// put appends a row without its first bits to the bits of an entity.
func (h *held) put(d bitString, r *heldRow, without uint) bitString {
	if r.n < 64 {
		return d.put(h.words, r.acc>>(without&63), r.n-without)
	}
	return d.putLong(h.words, h.long[r.long:], r.bitString, without)
}

// AddSame is Add for a row that equals its baselines; two reports whether there are two.
func (p *Packed) AddSame(c int, two bool) {
	if comp := &p.layout.Components[c]; comp.width > 0 {
		p.holdSymbol(c, 0b0, 1, two || !comp.moves)
	}
}

// End writes the rows that were added since Begin.
func (p *Packed) End(w *bitbuf.Writer) {
	h := &p.held
	rows := h.rows[:h.n]
	start := symbolsStart(h.symbols, h.unusual, h.odd)
	var d bitString
	switch {
	case h.symbols > 1 && h.unusual == 0:
		d = p.withoutSymbols(start, rows, math.MaxInt)
	case h.symbols >= leastNamed && h.unusual == 1:
		d = p.withoutSymbols(start, rows, h.odd)
	default:
		d = p.withSymbols(start, rows)
	}
	d.write(w, h.words)
}

// symbolsStart returns what comes before the rows of an entity. odd is the only unusual one of the
// rows with symbols, if there is just one.
func symbolsStart(symbols, unusual, odd int) bitString {
	switch {
	case symbols < 2:
		return bitString{}
	case unusual == 0:
		return bitString{0, 1}
	case symbols < leastNamed:
		return bitString{1, 1}
	case unusual == 1:
		code, n := bitbuf.TruncatedCode(uint64(odd), uint64(symbols))
		return bitString{0b01 | code<<2, 2 + n}
	}
	return bitString{0b11, 2}
}

// withoutSymbols appends rows without their symbols, except for what is not known of the odd one,
// counted among the rows with symbols. One of the rows has a symbol.
func (p *Packed) withoutSymbols(d bitString, rows []heldRow, odd int) bitString {
	h := &p.held
	bit, i := uint32(d.n), 0
	for j := range rows {
		r := &rows[j]
		without := r.symbol
		if r.symbol > 0 {
			if i == odd {
				without = p.layout.Components[r.component].oddKnown()
			}
			if cost := bit + r.symbol - without; cost > 0 {
				p.Costs = append(p.Costs, Cost{uint32(p.layout.fields) + r.component, cost})
				bit = 0
			}
			i++
		}
		if r.n != uint(without) {
			d = h.put(d, r, uint(without))
		}
	}
	return d
}

// withSymbols appends rows with their symbols.
func (p *Packed) withSymbols(d bitString, rows []heldRow) bitString {
	h := &p.held
	costs := p.book(h.symbols)
	n, bit := 0, uint32(d.n)
	for i := range rows {
		r := &rows[i]
		d = h.put(d, r, 0)
		if r.symbol > 0 {
			costs[n] = Cost{uint32(p.layout.fields) + r.component, r.symbol + bit}
			n, bit = n+1, 0
		}
	}
	return d
}

// Symbols holds which rows of an entity begin with a symbol; every row that is decoded changes it. In its zero value
// all do.
type Symbols struct {
	omitted bool
	odd     int32 // rows with symbols before the only unusual one
}

// ReadSymbols reads what comes before the rows of an entity, of which n have symbols: those with a baseline and a
// width.
func ReadSymbols(r *bitbuf.Reader, n int) Symbols {
	switch {
	case n < 2:
		return Symbols{}
	case !r.ReadBool():
		return Symbols{omitted: true, odd: math.MaxInt32}
	case n < leastNamed || r.ReadBool():
		return Symbols{}
	}
	return Symbols{omitted: true, odd: int32(r.ReadTruncated(uint64(n)))}
}

// AllUsual reports whether all symbols are left out. Then rows of components that do not move are those of the first
// baseline, and need not be decoded.
func (s *Symbols) AllUsual() bool { return s.omitted && s.odd == math.MaxInt32 }

// Forms of the symbol of a row.
const (
	symbolWritten = iota
	symbolUsual   // left out, with the charts
	symbolOdd     // not the usual one; without its first bit
)

// next returns the form of the next row's symbol. The row has one.
func (s *Symbols) next(c *Component) int {
	if !s.omitted {
		return symbolWritten
	}
	s.odd--
	switch {
	case s.odd != -1:
		return symbolUsual
	case c.oddKnown() == 0:
		return symbolWritten
	}
	return symbolOdd
}

// oddKnown returns the bits of the symbol that are left out of the only unusual row of an entity.
func (c *Component) oddKnown() uint32 {
	if c.quats > 0 {
		return 0
	}
	return 1
}

// changesAlone reports whether the usual symbol of a still row shows that it differs from the
// baseline.
func changesAlone(c *Component, base2 []uint32, ratio int64) bool {
	return c.moves && (base2 == nil || ratio == 0)
}
