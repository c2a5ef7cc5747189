package delta

import (
	"math"
	"math/big"
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

type slowReference struct {
	row         []uint32
	base, base2 []uint32 // nil for a baseline alone
	quats       []slowQuat
}

type slowContext struct {
	moving  bool
	first   bool
	same    bool // all residuals so far are zero
	largest uint // bits of the largest residual so far
}

func (x *slowContext) order(m uint) uint {
	if !x.moving {
		if x.first {
			return 3
		}
		return max(x.largest, 1) - 1
	}
	switch {
	case x.first && (m == 1 || m == 2 || m == 3):
		return min(m, 2)
	case x.first || x.largest == 0:
		return m / 2
	case m == 0:
		return x.largest / 4
	case x.largest > 2:
		return (m/2 + x.largest + x.largest) / 3
	case m/2+x.largest < 2:
		return 0
	}
	return 1
}

// slowOrder returns the order that replaces another one in a field.
func slowOrder(f *Field, k uint) uint {
	for i, order := range f.Orders {
		if uint(i) == k {
			return uint(order)
		}
	}
	return k
}

func (x *slowContext) saw(residual uint64) {
	x.first = false
	x.largest = max(x.largest, uint(bits.Len64(residual)))
	x.same = x.same && residual == 0
}

// encodeResiduals returns how many bits the charts took.
func (p *slowPacked) encodeResiduals(w *bitbuf.Writer, c *Component, cur []uint32, ref slowReference) (charts int) {
	x := slowContext{moving: ref.base != nil, first: true, same: true}
	quat := 0
	start := w.Len()
	for _, f := range c.Fields {
		if f.Kind != Quat {
			continue
		}
		other := cur[f.word] != ref.row[f.word]
		w.WriteBool(other)
		if other {
			w.WriteBits(uint64(cur[f.word]), 2)
			x.same = false
		}
	}
	charts = w.Len() - start
	for i := range c.Fields {
		f := &c.Fields[i]
		last := i == c.last
		from := w.Len()
		switch {
		case f.Bits == 0:
		case f.Kind == Plain:
			v := zigzag(signed(f.code(cur)-f.code(ref.row), f.Bits))
			if !(last && x.same) {
				w.WriteBool(v != 0)
			}
			if v != 0 && f.Bits > 1 {
				slowResidual(w, v-1, plainOrder(f.Bits), f.Bits)
			}
			x.same = x.same && v == 0
		case f.Kind == Reference:
			differs := f.code(cur) != f.code(ref.row)
			if !(last && x.same) {
				w.WriteBool(differs)
			}
			if differs {
				slowReferenceCode(w, cur[f.word], cur[f.word+1], ref.row[f.word] != 0)
			}
			x.same = x.same && !differs
		case f.Kind == Counter || f.Kind == Flags:
			x.same = slowChanged(w, last, x.same, f.code(cur) != f.code(ref.row)) && x.same
			if f.code(cur) != f.code(ref.row) {
				slowJump(w, f, f.code(cur), f.code(ref.row))
			}
		case f.Kind == Bytes:
			text, was := textOf(f, cur), textOf(f, ref.row)
			x.same = slowChanged(w, last, x.same, text != was) && x.same
			if text != was {
				slowText(w, text, was, int(f.Max))
			}
		case f.Kind == Quat:
			q := cur[f.word : f.word+4]
			to, m := ref.chart(f, quat, q[0])
			quat++
			for j := range to {
				v := zigzag(int64(q[j+1]) - int64(to[j]))
				k := slowOrder(f, x.order(m[j]))
				if last && j == 2 && x.same {
					v--
				}
				slowResidual(w, v, k, f.Bits+1)
				x.saw(v)
			}
		default:
			at, order := f.code(ref.row), x.order(ref.moved(f))
			if m, together := ref.together(c.Fields, i); together {
				before := &c.Fields[i-1]
				from := new(big.Int).SetUint64(at)
				from.Add(from, big.NewInt(slowDistance(before, before.code(cur), before.code(ref.row))))
				at = from.Mod(from, new(big.Int).SetUint64(f.Max+1)).Uint64()
				order = (&slowContext{moving: true, first: true}).order(m)
			}
			v := zigzag(slowDistance(f, f.code(cur), at))
			k := slowOrder(f, order)
			if last && x.same {
				v--
			}
			slowResidual(w, v, k, f.Bits)
			x.saw(v)
		}
		p.spent[i] = uint32(w.Len() - from)
	}
	return charts
}

// together reports whether field i is an angle that turns together with the field before it, and the bits by
// which their ways between the baselines differ.
func (ref *slowReference) together(fields []Field, i int) (m uint, together bool) {
	if i == 0 || ref.base == nil {
		return 0, false
	}
	f, before := &fields[i], &fields[i-1]
	if f.Kind != Wrap || before.Kind != Wrap || f.Max != before.Max || f.Bits == 0 || f.Bits > 44 {
		return 0, false
	}
	way := slowDistance(f, f.code(ref.base), f.code(ref.base2))
	other := slowDistance(before, before.code(ref.base), before.code(ref.base2))
	apart := max(way-other, other-way)
	return uint(bits.Len64(uint64(apart))), (way >= 16 || way <= -16) && 32*apart <= max(way, -way)
}

// slowDistance is the way from one code of a Linear or Wrap field to another.
func slowDistance(f *Field, code, from uint64) int64 {
	if f.Kind == Linear {
		return signed(code-from, f.Bits)
	}
	n := new(big.Int).Add(new(big.Int).SetUint64(f.Max), big.NewInt(1))
	d := new(big.Int).Sub(new(big.Int).SetUint64(code), new(big.Int).SetUint64(from))
	d.Mod(d, n)
	if down := new(big.Int).Sub(d, n); d.CmpAbs(down) >= 0 { // as far or farther upwards
		d = down
	}
	return d.Int64()
}

// slowChanged writes whether a field changed, unless it is clear, and reports whether it
// did not.
func slowChanged(w *bitbuf.Writer, last, same, changed bool) bool {
	if !(last && same) {
		w.WriteBool(changed)
	}
	return !changed
}

func slowJump(w *bitbuf.Writer, f *Field, code, from uint64) {
	if f.Bits == 1 {
		return
	}
	if f.Kind == Counter {
		grown := new(big.Int).Sub(new(big.Int).SetUint64(code), new(big.Int).SetUint64(from))
		grown.Mod(grown, new(big.Int).Lsh(big.NewInt(1), f.Bits))
		slowResidual(w, grown.Uint64()-1, 0, f.Bits)
		return
	}
	var flips []uint
	for i := range f.Bits {
		if code>>i&1 != from>>i&1 {
			flips = append(flips, i)
		}
	}
	w.WriteBool(len(flips) > 1)
	if len(flips) == 1 {
		w.WriteBits(uint64(flips[0]), uint(bits.Len(f.Bits-1)))
		return
	}
	for i := range f.Bits {
		w.WriteBool(slices.Contains(flips, i))
	}
}

func slowText(w *bitbuf.Writer, text, was string, most int) {
	begin := 0
	for strings.HasPrefix(text, was[:begin]) && begin < len(was) && strings.HasPrefix(text, was[:begin+1]) {
		begin++
	}
	inner, inside := text[begin:], was[begin:]
	end := 0
	for end < len(inside) && strings.HasSuffix(inner, inside[len(inside)-end-1:]) {
		end++
	}
	w.WriteBits(uint64(begin), uint(bits.Len(uint(len(was)))))
	w.WriteBits(uint64(end), uint(bits.Len(uint(len(inside)))))
	inner, inside = inner[:len(inner)-end], inside[:len(inside)-end]
	most -= begin + end
	switch {
	case inside == "":
		w.WriteBits(uint64(len(inner)-1), uint(bits.Len(uint(most-1))))
	case len(inside) == len(inner):
		w.WriteBool(false)
	default:
		w.WriteBool(true)
		w.WriteBits(uint64(len(inner)), uint(bits.Len(uint(most))))
	}
	slowBytes(w, inner)
}

func slowBytes(w *bitbuf.Writer, text string) {
	if text == "" {
		return
	}
	wide := strings.ContainsFunc(text, func(r rune) bool { return r >= 128 }) // or no UTF-8
	w.WriteBool(wide)
	for i := range len(text) {
		for bit := range 8 {
			if bit < 7 || wide {
				w.WriteBool(text[i]>>bit&1 != 0)
			}
		}
	}
}

func (ref *slowReference) moved(f *Field) uint {
	if ref.base == nil {
		return 0
	}
	return magnitude(f.code(ref.base), f.code(ref.base2))
}

func (ref *slowReference) chart(f *Field, n int, largest uint32) (codes [3]uint32, moved [3]uint) {
	if ref.base == nil {
		if ref.row[f.word] != largest {
			q := slowRotationOf(ref.row[f.word:f.word+4], f.Bits)
			return q.chart(largest, f.Bits), moved
		}
		return [3]uint32(ref.row[f.word+1:]), moved
	}
	q := &ref.quats[n]
	b1, b2 := slowInChart(f, ref.base, &q.base, largest), slowInChart(f, ref.base2, &q.base2, largest)
	for j := range moved {
		moved[j] = magnitude(uint64(b1[j]), uint64(b2[j]))
	}
	return slowInChart(f, ref.row, &q.next, largest), moved
}

func slowInChart(f *Field, row []uint32, q *slowRotation, largest uint32) [3]uint32 {
	if row[f.word] == largest { // the row has what the rotation would give, and no division
		return [3]uint32(row[f.word+1:])
	}
	return q.chart(largest, f.Bits)
}

func slowResidual(w *bitbuf.Writer, v uint64, k, width uint) {
	k = min(k, width)
	limit := prefixLimit(k, width)
	q := uint(bits.Len64(v>>k+1)) - 1
	if q >= limit {
		w.WriteUnary(limit, limit)
		w.WriteBits(v, width)
		return
	}
	low := v - (1<<q-1)<<k
	if n := 2*q + 1 + k; n <= 64 {
		w.WriteBits(low<<(q+1)|1<<q, n)
		return
	}
	w.WriteUnary(q, limit)
	w.WriteBits(low, k+q)
}

// slowReferenceCode writes a reference from a table of classes.
func slowReferenceCode(w *bitbuf.Writer, index1, counter uint32, maybeNothing bool) {
	if maybeNothing {
		w.WriteBool(index1 != 0)
	}
	if index1 == 0 {
		return
	}
	first := uint64(0)
	for class, bits := range []uint{7, 10, 13, 16, 19} {
		if beyond := uint64(index1-1) - first; beyond < 1<<bits {
			w.WriteUnary(uint(class), 5)
			w.WriteBits(beyond, bits)
			slowResidual(w, uint64(counter), 3, 16)
			return
		}
		first += 1 << bits
	}
	w.WriteUnary(5, 5)
	w.WriteBits(uint64(index1-1), 30)
	w.WriteBits(uint64(counter), 16)
}

type slowPredictor struct {
	row   []uint32 // predicted codes
	quats []slowQuat
}

type slowQuat struct {
	base, base2, next slowRotation
}

func (p *slowPredictor) predict(c *Component, base, base2 []uint32, ratio int64) (moving bool) {
	if base2 == nil || ratio == 0 || equal(base, base2) {
		return false
	}
	p.row = append(p.row[:0], base...)
	p.quats = p.quats[:0]
	for i := range c.Fields {
		f := &c.Fields[i]
		switch f.Kind {
		case Linear, Wrap:
			if f.Bits > maxMovingBits {
				continue // rest
			}
			b := f.code(base)
			d := int64(b - f.code(base2))
			if f.Kind == Wrap {
				d = slowDistance(f, b, f.code(base2))
			}
			next := int64(b) + (d*ratio+1<<15)>>16
			if n := int64(f.Max) + 1; f.Kind == Wrap {
				next = (next%n + n) % n
			}
			f.setCode(p.row, uint64(min(max(next, 0), int64(f.Max))))
		case Quat:
			w := f.word
			q := slowQuat{base: slowRotationOf(base[w:w+4], f.Bits), base2: slowRotationOf(base2[w:w+4], f.Bits)}
			q.next = q.base
			if !equal(base[w:w+4], base2[w:w+4]) {
				q.next = slowExtrapolate(&q.base, &q.base2, ratio, f.Bits)
				l := q.next.largest()
				p.row[w] = l
				codes := q.next.chart(l, f.Bits)
				copy(p.row[w+1:], codes[:])
			}
			p.quats = append(p.quats, q)
		}
	}
	return !equal(p.row, base)
}

// A slowRotation is a rotation.
type slowRotation [4]int64

func slowGrid(b uint) (m, scale int64) {
	m = int64(lowBits(b))
	return m, maxQuatUnit / m
}

func slowRotationOf(words []uint32, b uint) slowRotation {
	var q slowRotation
	m, scale := slowGrid(b)
	largest, j, sum := words[0]&3, 1, int64(0)
	for i := range q {
		if i != int(largest) {
			x := (2*int64(words[j]) - m) * scale
			q[i] = x
			sum += x * x
			j++
		}
	}
	unit := m * scale
	q[largest] = isqrt(2*unit*unit - sum)
	return q
}

func (q *slowRotation) chart(largest uint32, b uint) (codes [3]uint32) {
	m, scale := slowGrid(b)
	sign := int64(1)
	if q[largest&3] < 0 {
		sign = -1
	}
	j := 0
	for i, x := range q {
		if i != int(largest&3) {
			c := (floorDiv(sign*x, scale) + m + 1) >> 1
			codes[j] = uint32(min(max(c, 0), m))
			j++
		}
	}
	return codes
}

func (q *slowRotation) largest() uint32 {
	l := 0
	for i := 1; i < 4; i++ {
		if abs(q[i]) > abs(q[l]) {
			l = i
		}
	}
	return uint32(l)
}

func slowExtrapolate(q1, q2 *slowRotation, t int64, b uint) slowRotation {
	dot := q1[0]*q2[0] + q1[1]*q2[1] + q1[2]*q2[2] + q1[3]*q2[3]
	sign := int64(1)
	if dot < 0 { // q and -q are the same rotation: take the nearer one
		dot, sign = -dot, -1
	}
	m, scale := slowGrid(b)
	length2 := 2 * (m * scale) * (m * scale) // the length of q1 and q2, squared
	x := min((dot-length2)/(length2>>30), 0) // cos(a)-1 in 34.30 fixed point
	f1, f2 := sineRatio(t+1<<16, x), sineRatio(t, x)*sign
	var q slowRotation
	for i := range q {
		q[i] = (f1*q1[i] - f2*q2[i]) >> 20
	}
	return q
}

// floorDiv returns a/b rounded down, b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
