package delta

// This file writes the rows of one entity. Most symbols of an entity are the usual ones: what moves
// continues nearly as predicted, and what rests stays the same. So a bit precedes two or more rows
// that have symbols:
//
//	0    all symbols are the usual ones and all charts the same; they are left out
//	1    each row has its symbol and charts
//
// The usual symbol always takes one bit:
//
//	moving                                    0, residuals against the prediction
//	still, two baselines or nothing to move   0, equal to the baseline
//	still, one baseline                       1, residuals against the baseline
//
// The last line is so because an entity with one baseline was at rest, and is sent because it
// started to move.

import "github.com/arche-replicate/arche-replicate/bitbuf"

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
	unusual bool      // a symbol or chart is not the usual one
	long    []uint64  // complete words of rows
	words   []uint64  // complete words of all rows together
}

// Begin drops the rows that were added and begins an entity.
func (p *Packed) Begin() {
	h := &p.held
	h.n, h.symbols, h.unusual, h.long = 0, 0, false, h.long[:0]
}

// hold adds a row that begins with a symbol and charts of symbol bits.
func (p *Packed) hold(component int, d bitString, words []uint64, symbol uint32, usual bool) {
	h := &p.held
	r := &h.rows[h.n]
	r.bitString, r.component, r.symbol = d, uint32(component), symbol
	if d.n >= 64 {
		h.keep(r, words)
	}
	h.n++
	h.symbols++
	h.unusual = h.unusual || !usual
}

// holdSymbol adds a row that is only a symbol of n bits.
func (p *Packed) holdSymbol(component int, code uint64, n uint32, usual bool) {
	h := &p.held
	r := &h.rows[h.n]
	r.bitString, r.component, r.symbol = bitString{code, uint(n)}, uint32(component), n
	h.n++
	h.symbols++
	h.unusual = h.unusual || !usual
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

// AddSame is Add for a row of component c that equals its baselines. two reports whether there are
// two.
func (p *Packed) AddSame(c int, two bool) {
	if comp := &p.layout.Components[c]; comp.width > 0 {
		p.holdSymbol(c, 0b0, 1, two || !comp.moves)
	}
}

// End writes the rows that were added since Begin. The bit before them is booked to the first
// symbol.
func (p *Packed) End(w *bitbuf.Writer) {
	h := &p.held
	rows := h.rows[:h.n]
	var d bitString
	switch {
	case h.symbols > 1 && !h.unusual:
		d = p.withoutSymbols(bitString{0, 1}, rows)
	case h.symbols > 1:
		d = p.withSymbols(bitString{1, 1}, rows)
	default:
		d = p.withSymbols(bitString{}, rows)
	}
	d.write(w, h.words)
}

// withoutSymbols appends rows without their symbols. One of the rows has a symbol.
func (p *Packed) withoutSymbols(d bitString, rows []heldRow) bitString {
	h := &p.held
	first := 0
	for rows[first].symbol == 0 {
		first++
	}
	p.Costs = append(p.Costs, Cost{uint32(p.layout.fields) + rows[first].component, 1})
	for i := range rows {
		if r := &rows[i]; r.n != uint(r.symbol) {
			d = h.put(d, r, uint(r.symbol))
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

// Usual reads the bit before the rows of an entity. symbols is the number of rows that have
// symbols: those with a baseline and a width. If it returns true, read the rows with DecodeUsual,
// else with DecodeRow.
func Usual(r *bitbuf.Reader, symbols int) bool { return symbols > 1 && !r.ReadBool() }

// DecodeUsual is DecodeRow for a row whose usual symbol was left out.
func (p *Packed) DecodeUsual(r *bitbuf.Reader, c int, dst, base, base2 []uint32, ratio int64) {
	if !p.DecodeChange(r, c, true, dst, base, base2, ratio) {
		copy(dst, base)
	}
}

// changesAlone reports whether the usual symbol of a still row shows that it differs from the
// baseline.
func changesAlone(c *Component, base2 []uint32, ratio int64) bool {
	return c.moves && (base2 == nil || ratio == 0)
}
