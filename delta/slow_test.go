package delta

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// slowPacked is Packed's encoder in the obvious way, the oracle of the fast one: it writes
// a moving row both ways to see which is shorter, code by code, and divides where the fast
// one multiplies.
type slowPacked struct {
	layout *Layout
	slowPredictor
	costs []Cost
	spent []uint32
	shift Shift
}

func newSlowPacked(l *Layout) *slowPacked {
	return &slowPacked{layout: l, spent: make([]uint32, l.fields)}
}

func (p *slowPacked) encodeRow(w *bitbuf.Writer, c int, cur, base, base2 []uint32, ratio int64) {
	comp := &p.layout.Components[c]
	if base == nil {
		p.encodeAbsolute(w, comp, cur)
		return
	}
	if comp.width == 0 {
		return
	}
	symbol := func(bits int) { p.costs = append(p.costs, Cost{uint32(p.layout.fields + c), uint32(bits)}) }
	if !p.predict(comp, base, base2, ratio) {
		charts := 0
		if equal(cur, base) {
			w.WriteBits(0b0, 1)
		} else {
			w.WriteBits(0b1, 1)
			charts = p.encodeResiduals(w, comp, cur, slowReference{row: base})
			p.commit(comp)
		}
		symbol(1 + charts)
		return
	}
	switch {
	case equal(cur, p.row):
		w.WriteBits(0b01, 2)
		symbol(2)
		return
	case equal(cur, base):
		w.WriteBits(0b011, 3)
		symbol(3)
		return
	}
	start, from := w.Mark(), w.Len()
	w.WriteBits(0b111, 3)
	p.encodeResiduals(w, comp, cur, slowReference{row: base})
	plain := w.Len() - from
	if w.Err() != nil {
		plain = math.MaxInt // what did not fit is not the shorter one
	}
	w.Rollback(start)
	w.WriteBits(0b0, 1)
	moving := slowReference{row: p.row, base: base, base2: base2, quats: p.quats}
	bits := 1 + p.encodeResiduals(w, comp, cur, moving)
	if w.Err() != nil || w.Len()-from > plain {
		w.Rollback(start)
		w.WriteBits(0b111, 3)
		bits = 3 + p.encodeResiduals(w, comp, cur, slowReference{row: base})
	}
	p.commit(comp)
	symbol(bits)
}

// A slowRow is a row of an entity.
type slowRow struct {
	component        int
	cur, base, base2 []uint32
}

// encodeEntity returns the bits of an entity as text. It codes every row on its own, and
// looks then which of them begin as usual. What they begin with is what is booked last.
func (p *slowPacked) encodeEntity(rows []slowRow, ratio int64) string {
	with, symbols := "", 0
	var unusual []int // counted among the rows with symbols
	var without, odd []string
	for _, r := range rows {
		w := bitbuf.NewWriter(make([]byte, 4096))
		comp := &p.layout.Components[r.component]
		p.encodeRow(&w, r.component, r.cur, r.base, r.base2, ratio)
		bits := bitsOf(&w)
		with += bits
		if r.base == nil || comp.width == 0 {
			without, odd = append(without, bits), append(odd, bits)
			continue
		}
		expected := byte('0')
		has := func(kinds ...Kind) bool {
			return slices.ContainsFunc(comp.Fields, func(f Field) bool { return f.Bits > 0 && slices.Contains(kinds, f.Kind) })
		}
		if has(Linear, Wrap, Quat) && (r.base2 == nil || ratio == 0) {
			expected = '1'
		}
		begin := bits[:p.costs[len(p.costs)-1].Bits]
		if begin[0] != expected || strings.Contains(begin[1:], "1") {
			unusual = append(unusual, symbols)
		}
		symbols++
		without = append(without, bits[len(begin):])
		if has(Quat) {
			odd = append(odd, bits)
		} else {
			odd = append(odd, bits[1:])
		}
	}
	switch {
	case symbols < 2:
		return with
	case len(unusual) == 0:
		return "0" + strings.Join(without, "")
	case symbols < 4:
		return "1" + with
	case len(unusual) > 1:
		return "11" + with
	}
	at := 0
	for i, r := range rows {
		if r.base == nil || p.layout.Components[r.component].width == 0 {
			continue
		}
		if at == unusual[0] {
			without[i] = odd[i]
		}
		at++
	}
	w := bitbuf.NewWriter(make([]byte, 16))
	w.WriteTruncated(uint64(unusual[0]), uint64(symbols))
	return "10" + bitsOf(&w) + strings.Join(without, "")
}

func (p *slowPacked) commit(c *Component) {
	for i := range c.Fields {
		p.costs = append(p.costs, Cost{uint32(c.first + i), p.spent[i]})
	}
}

func (p *slowPacked) encodeAbsolute(w *bitbuf.Writer, c *Component, cur []uint32) {
	for i := range c.Fields {
		f := &c.Fields[i]
		from := w.Len()
		switch f.Kind {
		case Reference:
			slowReferenceCode(w, cur[f.word], cur[f.word+1], true)
		case Quat:
			q := cur[f.word : f.word+4]
			w.WriteBits(uint64(q[0]), 2)
			for _, x := range q[1:] {
				w.WriteBits(uint64(x), f.Bits)
			}
		case Bytes:
			text := textOf(f, cur)
			w.WriteBits(uint64(len(text)), uint(bits.Len64(f.Max)))
			slowBytes(w, text)
		default:
			w.WriteBits(f.code(cur), f.Bits)
		}
		p.costs = append(p.costs, Cost{uint32(c.first + i), uint32(w.Len() - from)})
	}
}
