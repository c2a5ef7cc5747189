package quantize_test

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// Both ends of a link must agree on grids, and a server on any machine must find the same codes. The sums were taken on
// amd64; if one changes, the wire format has changed.
func TestCodesAndValuesAreTheSameOnEveryMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	within := func(low, high float64) float64 { return low + float64(rng.Float64()*(high-low)) }
	sum := fnv.New64a()
	check := func(name, want string) {
		t.Helper()
		require.Equal(t, want, fmt.Sprintf("%016x", sum.Sum64()), name)
		sum.Reset()
	}
	scalars := func(q scalar, low, high float64) {
		for range 2_000 {
			code, _ := q.Encode(within(low, high))
			v, _ := q.Decode(code)
			add(sum, code, math.Float64bits(v))
		}
	}
	for _, c := range fixedCases {
		q := must(quantize.NewFixed(c[0], c[1], c[2]))
		scalars(&q, c[0], c[1])
	}
	check("Fixed", "6ad921c8c91d1b61")
	for _, c := range floatCases {
		q := must(quantize.NewFloat(c[0], c[1], c[2]))
		scalars(&q, c[0], c[1])
	}
	check("Float", "c0e4380784d28236")
	scalars(quantize.Half{}, -2, 2)
	check("Half", "7ac18dd32fe2841f")
	for bits := uint(1); bits <= 48; bits++ {
		scalars(must(quantize.NewAngle(2*math.Pi, bits)), -20, 20)
	}
	check("Angle", "f05186c7429079d4")
	for bits := uint(2); bits <= 20; bits++ {
		q := must(quantize.NewUnitVector(bits))
		for range 2_000 {
			u, v, _ := q.Encode([3]float64{within(-1, 1), within(-1, 1), within(-1, 1)})
			w, _ := q.Decode(u, v)
			add(sum, u, v, math.Float64bits(w[0]), math.Float64bits(w[1]), math.Float64bits(w[2]))
		}
	}
	check("UnitVector", "f46873a03d5ea525")
	for bits := uint(2); bits <= 20; bits++ {
		q := must(quantize.NewQuat(bits))
		for i := range 2_000 {
			in := [4]float64{within(-1, 1), within(-1, 1), within(-1, 1), within(-1, 1)}
			in[i%3+1] = in[0] * within(0.99, 1.01)
			c, _ := q.Encode(in)
			w, _ := q.Decode(c)
			add(sum, uint64(c.Largest), uint64(c.A), uint64(c.B), uint64(c.C))
			add(sum, math.Float64bits(w[0]), math.Float64bits(w[1]), math.Float64bits(w[2]), math.Float64bits(w[3]))
		}
	}
	check("Quat", "7557e80551955d25")
}

func add(sum hash.Hash, words ...uint64) {
	for _, w := range words {
		_ = binary.Write(sum, binary.LittleEndian, w) // a hash takes everything
	}
}
