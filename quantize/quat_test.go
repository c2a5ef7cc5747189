package quantize_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

func newQuat(t testing.TB, bits uint) quantize.Quat {
	t.Helper()
	q, err := quantize.NewQuat(bits)
	require.NoError(t, err)
	return q
}

// quatGrid returns the grid of a width as the documentation defines it: the length of a quaternion in steps, and the
// code of zero.
func quatGrid(bits uint) (length, zero float64) {
	most := math.Ldexp(1, int(bits)-1) - 1 // of the zero
	length = max(2*math.Floor(most/math.Sqrt2), 1)
	return length, math.Ceil(length / math.Sqrt2)
}

// gridValue is the value of a code as the documentation defines it; false if the kept components are as long as one.
func gridValue(q quantize.Quat, code quantize.QuatCode) (v [4]float64, ok bool) {
	length, zero := quatGrid(q.Bits())
	rest, k := 1.0, 0
	for i := range v {
		if i != int(code.Largest) {
			n := float64([3]uint32{code.A, code.B, code.C}[k]) - zero
			v[i] = n / length
			if math.Abs(n) == zero {
				v[i] = math.Copysign(math.Sqrt(0.5), n)
			}
			rest -= v[i] * v[i]
			k++
		}
	}
	v[code.Largest] = math.Sqrt(max(rest, 0))
	return v, rest > 1e-14
}

// naiveQuat leaves out the largest component, the last of equals, and rounds the others, without a second thought.
func naiveQuat(q quantize.Quat, v [4]float64) quantize.QuatCode {
	length, zero := quatGrid(q.Bits())
	largest := 0
	for i := range v {
		if math.Abs(v[i]) >= math.Abs(v[largest]) {
			largest = i
		}
	}
	codes := []uint32{}
	for i := range v {
		if i != largest {
			x := v[i] * math.Copysign(length, v[largest])
			n := math.RoundToEven(x)
			if math.Abs(x) > (zero-1+length*math.Sqrt(0.5))/2 {
				n = math.Copysign(zero, x)
			}
			codes = append(codes, uint32(n+zero))
		}
	}
	return quantize.QuatCode{Largest: uint32(largest), A: codes[0], B: codes[1], C: codes[2]}
}

func quatError(a, b [4]float64) float64 {
	plus, minus := 0.0, 0.0
	for i := range a {
		plus, minus = max(plus, math.Abs(a[i]-b[i])), max(minus, math.Abs(a[i]+b[i]))
	}
	return min(plus, minus)
}

// randomRotation favours what is hard: components that are equal, nearly equal, or zero.
func randomRotation(rng *rand.Rand) [4]float64 {
	v := [4]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
	for range rng.IntN(4) {
		i, j := rng.IntN(4), rng.IntN(4)
		switch rng.IntN(4) {
		case 0:
			v[i] = math.Copysign(v[j], v[i])
		case 1:
			v[i] = math.Copysign(v[j], v[i]) * (1 + math.Ldexp(rng.Float64()-0.5, -rng.IntN(30)))
		case 2:
			v[i] = 0
		}
	}
	length := math.Sqrt(v[0]*v[0] + v[1]*v[1] + v[2]*v[2] + v[3]*v[3])
	if length == 0 {
		return [4]float64{3: 1}
	}
	for i := range v {
		v[i] /= length
	}
	return v
}

// checkQuatCode checks all that is promised of one code.
func checkQuatCode(t testing.TB, q quantize.Quat, code quantize.QuatCode) (valid bool) {
	v, valid := q.Decode(code)
	if max(code.A, code.B, code.C) > uint32(q.Max()) || code.Largest > 3 {
		if valid || v != [4]float64{} {
			t.Fatalf("%d bits: Decode(%v) accepts a code that is too large, as %v", q.Bits(), code, v)
		}
		return false
	}
	narrow, valid32 := q.Decode32(code)
	if valid != valid32 {
		t.Fatalf("%d bits: Decode(%v) returns %v, Decode32 %v", q.Bits(), code, valid, valid32)
	}
	if !valid {
		if v != [4]float64{} || narrow != [4]float32{} {
			t.Fatalf("%d bits: Decode(%v) refuses but gives %v", q.Bits(), code, v)
		}
		// A code that would come back must not be refused.
		if v, onGrid := gridValue(q, code); onGrid {
			if again, _ := q.Encode(v); again == code {
				t.Fatalf("%d bits: Decode refuses %v, which %v encodes to", q.Bits(), code, v)
			}
		}
		return false
	}
	want, _ := gridValue(q, code)
	for i := range v {
		if math.Abs(v[i]-want[i]) > 1e-15 {
			t.Fatalf("%d bits: %v decodes to %v, want %v", q.Bits(), code, v, want)
		}
	}
	if again, ok := q.Encode(v); again != code || !ok {
		t.Fatalf("%d bits: %v decodes to %v, which encodes to %v %v", q.Bits(), code, v, again, ok)
	}
	if again, ok := q.Encode32(narrow); again != code || !ok {
		t.Fatalf("%d bits: %v decodes to float32 %v, which encodes to %v %v", q.Bits(), code, narrow, again, ok)
	}
	return true
}

func TestQuatIsIdempotentForEveryCodeOfSmallWidths(t *testing.T) {
	widest := uint(6)
	if testing.Short() {
		widest = 4
	}
	for bits := uint(2); bits <= widest; bits++ {
		q := newQuat(t, bits)
		side, accepted := uint32(q.Max())+1, 0
		for largest := range uint32(4) {
			for a := range side {
				for b := range side {
					for c := range side {
						if checkQuatCode(t, q, quantize.QuatCode{Largest: largest, A: a, B: b, C: c}) {
							accepted++
						}
					}
				}
			}
		}
		t.Logf("%d bits: %d of %d codes are used", bits, accepted, 4*side*side*side)
		require.Positive(t, accepted)
	}
}

// nearTie returns a code whose restored component is nearly equal to a kept one, or to two.
func nearTie(rng *rand.Rand, q quantize.Quat) quantize.QuatCode {
	length, zero := quatGrid(q.Bits())
	n := [3]float64{(rng.Float64()*2 - 1) * zero, (rng.Float64()*2 - 1) * zero, 0}
	rest := length*length - n[0]*n[0] - n[1]*n[1]
	n[2] = math.Sqrt(max(rest, 0) / 2)
	if rng.IntN(3) == 0 {
		n[1] = math.Sqrt((length*length - n[0]*n[0]) / 3)
		n[2] = n[1]
	}
	if rng.IntN(2) == 0 {
		n[1], n[2] = -n[1], -n[2]
	}
	rng.Shuffle(3, func(i, j int) { n[i], n[j] = n[j], n[i] })
	var c [3]uint32
	for i := range n {
		c[i] = uint32(min(max(math.Round(n[i]+zero)+float64(rng.IntN(7)-3), 0), 2*zero))
	}
	return quantize.QuatCode{Largest: rng.Uint32N(4), A: c[0], B: c[1], C: c[2]}
}

func TestQuatIsIdempotentForSampledCodesOfLargeWidths(t *testing.T) {
	rng := newRand(t)
	for _, bits := range []uint{9, 12, 15} {
		testSampledQuatCodes(t, rng, newQuat(t, bits), tries(1_000_000))
	}
	for _, bits := range []uint{7, 8, 10, 11, 13, 17, 20} {
		testSampledQuatCodes(t, rng, newQuat(t, bits), tries(100_000))
	}
}

func testSampledQuatCodes(t *testing.T, rng *rand.Rand, q quantize.Quat, count int) {
	side, accepted := uint32(q.Max())+1, 0
	for i := range count {
		code := quantize.QuatCode{Largest: rng.Uint32N(4), A: rng.Uint32N(side), B: rng.Uint32N(side), C: rng.Uint32N(side)}
		if i%2 == 0 {
			code = nearTie(rng, q)
		}
		if checkQuatCode(t, q, code) {
			accepted++
		}
	}
	require.Greater(t, accepted, count/4, "%d bits: too few codes were valid to mean much", q.Bits())
}

// checkRotation checks all that is promised of one input; it returns the error, and whether the code is another than the
// obvious one.
func checkRotation(t *testing.T, q quantize.Quat, in [4]float64) (got float64, another bool) {
	code, ok := q.Encode(in)
	out, valid := q.Decode(code)
	if !ok || !valid || !checkQuatCode(t, q, code) {
		t.Fatalf("%d bits: %v encodes to %v %v, valid %v", q.Bits(), in, code, ok, valid)
	}
	got = quatError(in, out)
	if got > q.MaxError() {
		t.Fatalf("%d bits: %v comes back as %v, %v off, more than %v", q.Bits(), in, out, got, q.MaxError())
	}
	narrow, _ := q.Decode32(code)
	stored := [4]float64{float64(narrow[0]), float64(narrow[1]), float64(narrow[2]), float64(narrow[3])}
	if got := quatError(in, stored); got > q.MaxError() {
		t.Fatalf("%d bits: %v comes back as float32 %v, %v off, more than %v", q.Bits(), in, narrow, got, q.MaxError())
	}
	naive := naiveQuat(q, in)
	twin, onGrid := gridValue(q, naive)
	if want := quatError(in, twin); code != naive && onGrid && got > want+0x1p-20 {
		t.Fatalf("%d bits: %v is coded %v, %v off; %v would be %v off", q.Bits(), in, code, got, naive, want)
	}
	return got, code != naive
}

func TestQuatIsNoWorseThanLeavingOutTheLargest(t *testing.T) {
	rng := newRand(t)
	for bits := uint(2); bits <= 20; bits++ {
		q := newQuat(t, bits)
		require.Equal(t, bits, q.Bits())
		others := 0
		for range tries(60_000) {
			if _, another := checkRotation(t, q, randomRotation(rng)); another {
				others++
			}
		}
		t.Logf("%d bits: %d codes not the obvious ones", bits, others)
	}
}

// roundedUp returns the rotations whose three kept components lie just above the middle between two grid values, all close
// to 1/2, so that all are rounded up by as much as can be and the one left out, restored from them, falls the most.
func roundedUp(q quantize.Quat) [][4]float64 {
	const neighbours, above = 3, 1e-6 // in grid steps to either side; in steps
	length, _ := quatGrid(q.Bits())
	half := math.Floor(length/2) + 0.5 // a middle, in steps
	in := [][4]float64{{1 / math.Sqrt(3), 1 / math.Sqrt(3), 0, 1 / math.Sqrt(3)}}
	for i := -neighbours; i <= neighbours; i++ {
		for j := -neighbours; j <= neighbours; j++ {
			for k := -neighbours; k <= neighbours; k++ {
				a, b, c := half+float64(i)+above, half+float64(j)+above, half+float64(k)+above
				d := math.Sqrt(max(length*length-a*a-b*b-c*c, 0))
				if min(a, b, c) < 0 || d < max(a, b, c) {
					continue
				}
				v := [4]float64{a, b, c, d}
				largest, signs := len(in)%4, len(in)/4
				v[largest], v[3] = v[3], v[largest]
				for n := range v {
					v[n] /= length
					if signs>>n&1 == 1 {
						v[n] = -v[n]
					}
				}
				in = append(in, v)
			}
		}
	}
	return in
}

func TestQuatMaxErrorIsReached(t *testing.T) {
	for bits := uint(2); bits <= 20; bits++ {
		q := newQuat(t, bits)
		worst := 0.0
		for _, in := range roundedUp(q) {
			got, _ := checkRotation(t, q, in)
			worst = max(worst, got)
		}
		// The formula takes all components to be 1/2, where the nearest middles may be some steps away. It knows better for
		// two and three bits.
		share := min(1-6/float64(q.Max()), 0.999)
		if bits <= 3 {
			share = 0.99
		}
		stated := q.MaxError() - 0x1p-20 // the rounding of float32 is not looked for
		require.Greater(t, worst, share*stated, "%d bits: MaxError is too generous", bits)
	}
}

// A value written by another encoder on this grid survives, even where it left out a component that is not the largest
// any more once decoded.
func TestQuatKeepsWhatTheObviousEncoderSent(t *testing.T) {
	rng := newRand(t)
	for _, bits := range []uint{4, 5, 7, 9, 10} {
		q := newQuat(t, bits)
		swapped := 0
		for range tries(100_000) {
			sent := naiveQuat(q, randomRotation(rng))
			v, onGrid := gridValue(q, sent)
			if !onGrid {
				continue
			}
			code, ok := q.Encode(v)
			if again, _ := q.Decode(code); !ok || code != sent && quatError(v, again) > 1e-15 { // but for two codes of one value
				t.Fatalf("%d bits: %v, sent as %v, encodes to %v %v", bits, v, sent, code, ok)
			}
			if naiveQuat(q, v) != sent {
				swapped++
			}
		}
		require.Positive(t, swapped, "no case was hard")
	}
}

func TestQuatNormalisesAndRefusesWhatIsNoRotation(t *testing.T) {
	rng := newRand(t)
	q := newQuat(t, 9)
	for range tries(10_000) {
		in := randomRotation(rng)
		code, _ := q.Encode(in)
		out, _ := q.Decode(code)
		factor := math.Ldexp(rng.Float64()+0.5, rng.IntN(2000)-1000)
		if rng.IntN(2) == 0 {
			factor = -factor
		}
		for i := range in {
			in[i] *= factor
		}
		scaled, ok := q.Encode(in)
		again, _ := q.Decode(scaled)
		if !ok || quatError(out, again) > 2*q.MaxError() {
			t.Fatalf("%v is scaled by %v: %v became %v", in, factor, out, again)
		}
	}
	identity, ok := q.Encode([4]float64{0, 0, 0, 1})
	require.True(t, ok)
	require.EqualValues(t, 3, identity.Largest)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i := range 4 {
			in := [4]float64{1, -2, math.MaxFloat64, 0}
			in[i] = bad
			code, ok := q.Encode(in)
			require.False(t, ok)
			require.Equal(t, identity, code)
		}
	}
	code, ok := q.Encode([4]float64{})
	require.False(t, ok)
	require.Equal(t, identity, code)
	code, ok = q.Encode([4]float64{0, 0, 0, -math.SmallestNonzeroFloat64})
	require.True(t, ok)
	require.Equal(t, identity, code)
	code, ok = q.Encode([4]float64{math.Copysign(0, -1), 0, 0, -math.MaxFloat64})
	require.True(t, ok)
	require.Equal(t, identity, code)
}

func TestQuatSignDoesNotMatter(t *testing.T) {
	rng := newRand(t)
	q := newQuat(t, 12)
	for range tries(10_000) {
		in := randomRotation(rng)
		code, _ := q.Encode(in)
		negative, _ := q.Encode([4]float64{-in[0], -in[1], -in[2], -in[3]})
		if a, b := mustDecode(t, q, code), mustDecode(t, q, negative); quatError(a, b) > 2.1/float64(q.Max())/math.Sqrt2 {
			t.Fatalf("%v encodes to %v, its negative to %v", in, code, negative)
		}
	}
}

func mustDecode(t *testing.T, q quantize.Quat, code quantize.QuatCode) [4]float64 {
	v, ok := q.Decode(code)
	require.True(t, ok)
	return v
}

func TestQuatRefusesCodesThatAreTooLarge(t *testing.T) {
	q := newQuat(t, 9)
	for _, code := range []quantize.QuatCode{
		{Largest: 4, A: 256, B: 256, C: 256},
		{A: 512, B: 256, C: 256},
		{A: 256, B: 512, C: 256},
		{A: 256, B: 256, C: math.MaxUint32},
		{A: 511, B: 511, C: 511},
		{A: 0, B: 0, C: 0},
		{Largest: 2, A: 511, B: 256, C: 511},
	} {
		v, ok := q.Decode(code)
		require.False(t, ok, "%v", code)
		require.Zero(t, v)
	}
}

func TestUnusableQuatWidthsAreRefused(t *testing.T) {
	for _, bits := range []uint{0, 1, 21, 64} {
		_, err := quantize.NewQuat(bits)
		require.ErrorContains(t, err, "use 2..20 bits")
	}
}
