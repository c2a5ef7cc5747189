package delta

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// seedOf returns the seed of a random test, which its failure prints: one that is its own and
// always the same, or the value of DELTA_SEED, which may be a number or "random".
func seedOf(t testing.TB) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(t.Name()))
	seed := hash.Sum64()
	switch env := os.Getenv("DELTA_SEED"); env {
	case "":
	case "random":
		seed = uint64(time.Now().UnixNano())
	default:
		var err error
		seed, err = strconv.ParseUint(env, 10, 64)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("reproduce with DELTA_SEED=%d", seed)
		}
	})
	return seed
}

// roundsOf is how often a random test does the same with other values: fewer where time is
// scarce. A test that counts what it met asks for as much less.
func roundsOf(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

func randomOf(t testing.TB) *rand.Rand { return rand.New(rand.NewPCG(seedOf(t), 0)) }

// bitsOf returns what was written, first bit first.
func bitsOf(w *bitbuf.Writer) string {
	var s strings.Builder
	packed := w.Bytes()
	for i := range w.Len() {
		s.WriteByte('0' + packed[i/8]>>(i%8)&1)
	}
	return s.String()
}

// number returns the n low bits of v as text, low bit first.
func number(v uint64, n uint) string {
	var s strings.Builder
	for i := range n {
		s.WriteByte('0' + byte(v>>i&1))
	}
	return s.String()
}

// packedBits packs text made of 0, 1 and spaces.
func packedBits(s string) []byte {
	s = strings.ReplaceAll(s, " ", "")
	packed := make([]byte, (len(s)+7)/8)
	for i := range s {
		packed[i/8] |= (s[i] - '0') << (i % 8)
	}
	return packed
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// A script hands out the bytes of fuzz input, or of a random test, as choices. At its
// end it hands out zeros.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// below returns a choice of 0..n-1, n <= 256.
func (s *script) below(n int) int { return int(s.byte()) % n }

// number returns any number, more often one of few bytes or near the largest.
func (s *script) number() (v uint64) {
	kind := s.byte()
	for i := range 1 + kind%8 {
		v |= uint64(s.byte()) << (8 * i)
	}
	if kind >= 192 {
		v = ^v
	}
	return v
}

// component returns any layout of a component, without references.
func (s *script) component() Component {
	return s.componentOf(Plain, Linear, Wrap, Quat, Counter, Flags, Bytes)
}

// componentOf returns any layout of a component with fields of the given kinds.
func (s *script) componentOf(kinds ...Kind) Component {
	c := Component{Name: "c", Fields: make([]Field, s.below(7))}
	edges := []uint{0, 1, 2, 3, 31, 32, 33, 44, 45, 48, 63, 64}
	for i := range c.Fields {
		f := &c.Fields[i]
		f.Name, f.Kind = strconv.Itoa(i), kinds[s.below(len(kinds))]
		switch n := uint(s.byte()); {
		case f.Kind == Bytes:
			f.Max = 1 + uint64(n%40)
			continue
		case f.Kind == Reference:
			f.Bits = ReferenceBits
			continue
		case f.Kind == Quat:
			f.Bits = 2 + n%(maxQuatBits-1)
		case n&1 == 0:
			f.Bits = n / 2 % 65
		default:
			f.Bits = edges[int(n/2)%len(edges)]
		}
		if f.Kind != Quat && s.below(2) == 1 {
			f.Max = s.number() & lowBits(f.Bits)
		}
	}
	return c
}

// componentOfWheels has up to 6 fields, most of them angles that may turn together.
func (s *script) componentOfWheels() Component {
	c := Component{Name: "c", Fields: make([]Field, 2+s.below(5))}
	wheel := Field{Kind: Wrap, Bits: 5 + uint(s.below(12))}
	if s.below(3) == 0 {
		wheel.Bits = []uint{31, 32, 33, 44, 45}[s.below(5)]
	}
	if s.below(3) == 0 {
		wheel.Max = lowBits(wheel.Bits) - s.number()&lowBits(wheel.Bits-1)
	}
	for i := range c.Fields {
		c.Fields[i] = wheel
		if s.below(6) == 0 {
			c.Fields[i] = Field{Kind: []Kind{Linear, Wrap, Plain}[s.below(3)], Bits: uint(s.below(20))}
		}
		c.Fields[i].Name = strconv.Itoa(i)
	}
	return c
}

// replaceOrders gives some fields other orders.
func (s *script) replaceOrders(c *Component) {
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Kind.predicted() && s.below(3) == 0 {
			f.Orders = make([]uint8, s.below(MaxOrders+1))
			for j := range f.Orders {
				f.Orders[j] = s.byte() % MaxOrders
			}
		}
	}
}

// componentWithReferences is component with some fields that are references.
func (s *script) componentWithReferences() Component {
	c := s.component()
	for i := range c.Fields {
		if s.below(4) == 0 {
			c.Fields[i] = Field{Name: c.Fields[i].Name, Kind: Reference, Bits: ReferenceBits}
		}
	}
	return c
}

// reference returns a reference: to nothing, to near, to its next incarnation, or to
// anything.
func (s *script) reference(near []uint32) (words [2]uint32) {
	switch kind := s.below(8); {
	case kind == 0:
		return words
	case kind < 3 && near[0] != 0:
		return [2]uint32{near[0], (near[1] + 1) & 0xffff}
	case kind < 5:
		return [2]uint32(near)
	}
	words[0] = 1 + uint32(s.number()%maxReferences)
	words[1] = uint32(s.number() & 0xffff)
	return words
}

// row returns a valid row: unlike near, if that is nil, or with codes moved by a little
// from most of those of near.
func (s *script) row(c *Component, near []uint32) []uint32 {
	row := make([]uint32, c.Words())
	copy(row, near)
	step := func(code, most uint64) uint64 {
		switch kind := s.below(8); {
		case near == nil || kind == 0:
			code = s.number()
		case kind >= 4:
			code += uint64(int8(s.byte()))
		}
		if most == 1<<64-1 {
			return code
		}
		return code % (most + 1)
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Kind == Reference {
			words := s.reference(row[f.word:][:2])
			copy(row[f.word:], words[:])
			continue
		}
		if f.Kind == Bytes {
			setText(f, row, s.text(textOf(f, row), int(f.Max), near == nil))
			continue
		}
		if f.beside && near != nil && s.below(4) > 0 { // as far as the field before it, about
			before := &c.Fields[i-1]
			way := slowDistance(before, before.code(row), before.code(near))
			code := int64(f.code(near)) + way + int64(s.below(3)) - 1
			f.setCode(row, uint64(f.around(code)))
			continue
		}
		if f.Kind != Quat {
			f.setCode(row, step(f.code(row), f.Max))
			continue
		}
		q := row[f.word : f.word+4]
		if near == nil || s.below(8) == 0 {
			q[0] = uint32(s.below(4))
		}
		for j := range q[1:] {
			q[j+1] = uint32(step(uint64(q[j+1]), lowBits(f.Bits)))
		}
	}
	return row
}

// text returns a text of up to most bytes: any, or an edit of near.
func (s *script) text(near string, most int, fresh bool) string {
	piece := func(n int) string {
		b := make([]byte, n)
		mask := byte(0x7f)
		if s.below(3) == 0 {
			mask = 0xff
		}
		for i := range b {
			b[i] = s.byte() & mask
		}
		return string(b)
	}
	kind := s.below(8)
	from := s.below(len(near) + 1)
	to := from + s.below(len(near)-from+1)
	switch {
	case fresh || kind == 0:
		near = piece(s.below(most + 1))
	case kind <= 2:
		near = near[:from] + piece(to-from) + near[to:]
	case kind == 3:
		near = near[:from] + near[to:]
	case kind == 4:
		near = near[:from] + piece(s.below(4)) + near[from:]
	}
	return near[:min(len(near), most)]
}

// textOf returns the text of a Bytes field in a row.
func textOf(f *Field, row []uint32) string {
	b := make([]byte, row[f.word])
	for i := range b {
		b[i] = byte(row[f.word+1+i/4] >> (i % 4 * 8))
	}
	return string(b)
}

func setText(f *Field, row []uint32, text string) {
	clear(row[f.word:][:f.Words()])
	row[f.word] = uint32(len(text))
	for i := range len(text) {
		row[f.word+1+i/4] |= uint32(text[i]) << (i % 4 * 8)
	}
}
