package delta

import "github.com/arche-replicate/arche-replicate/bitbuf"

// Rows of an entity that have symbols mostly have those that are usual: what moves goes on
// nearly as predicted, and what does not is as it was. So two or more such rows stand
// behind a bit:
//
//	0    all their symbols are the usual ones and all charts the same, and left out
//	1    they stand before their rows
//
// The usual symbol takes one bit in any case:
//
//	moving                                    0, residuals against the prediction
//	still, two baselines or nothing to move   0, equal to the baseline
//	still, one baseline                       1, residuals against the baseline
//
// The last line is since an entity with one baseline was at rest, and is sent because it
// is not any more.

// A heldRow is the bits of a row until it is known whether its symbol is written.
type heldRow struct {
	bitString // words before its last one are in held.long
	component uint32
	long      int32  // index of its words
	symbol    uint32 // bits of symbol and charts, which are the first ones; 0 if it has none
}

// held are the rows of an entity.
type held struct {
	rows    []heldRow // room for one of each component
	n       int       // of them are there
	symbols int       // have symbols
	unusual bool
	long    []uint64
	words   []uint64 // of the draft of all
}

// Begin forgets the rows that were added and begins an entity.
func (p *Packed) Begin() {
	h := &p.held
	h.n, h.symbols, h.unusual, h.long = 0, 0, false, h.long[:0]
}

// hold adds a row that begins with a symbol.
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

// holdSymbol adds a row that is a symbol and nothing else.
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

// keep copies the words of a row.
func (h *held) keep(r *heldRow, words []uint64) {
	r.long = int32(len(h.long))
	h.long = append(h.long, words[:r.n>>6]...)
}

// put appends a row without its first bits to the draft of an entity.
func (h *held) put(d bitString, r *heldRow, without uint) bitString {
	if r.n < 64 {
		return d.put(h.words, r.acc>>(without&63), r.n-without)
	}
	return d.putLong(h.words, h.long[r.long:], r.bitString, without)
}

// AddSame is Add for a row of component c that is the same as at its baselines, of which
// there are two or one.
func (p *Packed) AddSame(c int, two bool) {
	if comp := &p.layout.Components[c]; comp.width > 0 {
		p.holdSymbol(c, 0b0, 1, two || !comp.moves)
	}
}

// End writes the rows that were added since Begin. The bit before them counts as one of
// the first symbol.
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

// withoutSymbols appends rows, some of which have symbols, without these.
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

// Usual reads the bit before the rows of an entity of which that many have symbols: those
// with a baseline and a width. The rows are read with DecodeUsual if it returns true, else
// with DecodeRow.
func Usual(r *bitbuf.Reader, symbols int) bool { return symbols > 1 && !r.ReadBool() }

// DecodeUsual is DecodeRow for a row whose symbol is the usual one and was left out.
func (p *Packed) DecodeUsual(r *bitbuf.Reader, c int, dst, base, base2 []uint32, ratio int64) {
	if !p.DecodeChange(r, c, true, dst, base, base2, ratio) {
		copy(dst, base)
	}
}

// changesAlone reports whether a still row is usually another one than the baseline.
func changesAlone(c *Component, base2 []uint32, ratio int64) bool {
	return c.moves && (base2 == nil || ratio == 0)
}
