package inspect

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	kept     = 240 // samples: 60 seconds
	lossOver = 40  // samples: 10 seconds
)

var unknown = float32(math.NaN())

// A record has values over the last 60 seconds.
type record struct {
	keys  []string  // of the first values in a row; the others are the stack's
	row   []float32 // to be put next
	rings []float32 // kept rows; sample n is row n modulo kept
	first int64     // sample
	n     int64     // the next sample
}

// newRecord returns an empty record. The stack is the bandwidth of so many components.
func newRecord(keys []string, stack int) record {
	n := len(keys) + stack
	return record{keys: keys, row: make([]float32, n), rings: make([]float32, n*kept)}
}

// begin returns the next row, in which nothing is known.
func (r *record) begin() []float32 {
	for i := range r.row {
		r.row[i] = unknown
	}
	return r.row
}

// put makes the row sample n.
func (r *record) put(n int64) { copy(r.rings[int(n%kept)*len(r.row):], r.row) }

// at returns a value of sample n.
func (r *record) at(n int64, key int) float32 { return r.rings[int(n%kept)*len(r.row)+key] }

// appendJSON appends the samples from since to before n, as a member for each key.
func (r *record) appendJSON(e *encoder, since, n int64) {
	from := max(since, r.first, n-kept, 0)
	e.key("from").integer(from)
	e.key("next").integer(n)
	values := func(k int) {
		e.array()
		for i := from; i < n; i++ {
			e.number(r.at(i, k))
		}
		e.closeArray()
	}
	e.key("samples").object()
	for k, key := range r.keys {
		e.key(key)
		values(k)
	}
	e.close()
	if len(r.keys) == len(r.row) {
		return
	}
	e.key("stack").array()
	for k := len(r.keys); k < len(r.row); k++ {
		values(k)
	}
	e.closeArray()
}

// An encoder writes JSON. Package encoding/json would need memory for every value, and cannot write NaN.
type encoder struct {
	b     []byte
	comma bool
}

func (e *encoder) separate() {
	if e.comma {
		e.b = append(e.b, ',')
	}
	e.comma = true
}

func (e *encoder) object() { e.separate(); e.b, e.comma = append(e.b, '{'), false }
func (e *encoder) close()  { e.b, e.comma = append(e.b, '}'), true }
func (e *encoder) array()  { e.separate(); e.b, e.comma = append(e.b, '['), false }

func (e *encoder) closeArray() { e.b, e.comma = append(e.b, ']'), true }

// key begins a member of an object.
func (e *encoder) key(name string) *encoder {
	e.text(name)
	e.b, e.comma = append(e.b, ':'), false
	return e
}

func (e *encoder) integer(v int64) { e.separate(); e.b = strconv.AppendInt(e.b, v, 10) }
func (e *encoder) boolean(v bool)  { e.separate(); e.b = strconv.AppendBool(e.b, v) }

// count writes a counter. Beyond 2^53 JavaScript would round it.
func (e *encoder) count(v uint64) { e.separate(); e.b = strconv.AppendUint(e.b, v, 10) }

// number writes a value to three decimals; what is not known is null.
func (e *encoder) number(v float32) {
	e.separate()
	f := math.Round(float64(v)*1000) / 1000
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.b = append(e.b, "null"...)
		return
	}
	e.b = strconv.AppendFloat(e.b, f, 'f', -1, 64)
}

// text writes a string. Bytes that are no UTF-8 become U+FFFD.
func (e *encoder) text(s string) {
	e.separate()
	e.b = append(e.b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.b = append(e.b, '\\', byte(r))
		case r < ' ' || r == 0x2028 || r == 0x2029 || r == '<':
			const hex = "0123456789abcdef"
			e.b = append(e.b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			e.b = utf8.AppendRune(e.b, r)
		}
	}
	e.b = append(e.b, '"')
}
