package quantize_test

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newRand returns a generator whose seed the test prints: one that is the test's own and always the same, or
// the value of QUANTIZE_SEED, which may be a number or "random".
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	hash := fnv.New64a()
	hash.Write([]byte(t.Name()))
	seed := hash.Sum64()
	switch env := os.Getenv("QUANTIZE_SEED"); env {
	case "":
	case "random":
		seed = uint64(time.Now().UnixNano())
	default:
		var err error
		seed, err = strconv.ParseUint(env, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("to repeat: QUANTIZE_SEED=%d go test -run '^%s$'", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

// tries is how many random values to try of n: a tenth under -short, which is for the race detector and for machines that
// are emulated or have 32 bits.
func tries(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// exhaustive is the largest code up to which every code is tried.
func exhaustive() uint64 {
	return uint64(tries(1<<12 - 1))
}

// scalar is what the quantisers of a single float have in common.
type scalar interface {
	Bits() uint
	Max() uint64
	MaxError() float64
	Encode(v float64) (code uint64, ok bool)
	Decode(code uint64) (v float64, ok bool)
}

// contract checks what doc.go promises of one scalar quantiser, value by value.
type contract struct {
	t        testing.TB
	name     string
	q        scalar
	min, max float64 // in range, inclusive
	period   float64 // not 0: values wrap
	float32s bool    // decoded values may be stored as float32
	nanLow   bool    // NaN counts as the low bound even if zero is in range
	worst    float64 // the largest error seen
}

func (c *contract) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf(c.name+": "+format, args...)
}

// value checks one input of Encode.
func (c *contract) value(v float64) {
	code, ok := c.q.Encode(v)
	decoded, valid := c.q.Decode(code)
	if code > c.q.Max() || !valid {
		c.fail("Encode(%v) gives code %d, which Decode refuses", v, code)
	}
	inRange := v >= c.min && v <= c.max
	if c.period != 0 {
		inRange = !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	if ok != inRange {
		c.fail("Encode(%v) returns ok=%v, in range=%v", v, ok, inRange)
	}
	if !inRange {
		if want, _ := c.q.Encode(c.clamp(v)); code != want {
			c.fail("Encode(%v) is clamped to code %d, not to %d", v, code, want)
		}
	}
	if inRange {
		want := v
		if c.period != 0 {
			want = math.Remainder(v, c.period)
		}
		err := c.distance(decoded, want)
		c.worst = max(c.worst, err)
		if !(err <= c.q.MaxError()) {
			c.fail("%v comes back as %v: error %v > %v", v, decoded, err, c.q.MaxError())
		}
		if c.float32s {
			stored := float32(decoded)
			if err := c.distance(float64(stored), want); !(err <= c.q.MaxError()) {
				c.fail("%v comes back as float32 %v: error %v > %v", v, stored, err, c.q.MaxError())
			}
		}
	}
	c.code(code)
}

// distance returns how far a is from b; the shorter way round if values wrap.
func (c *contract) distance(a, b float64) float64 {
	d := math.Abs(a - b)
	if c.period != 0 {
		return math.Abs(math.Remainder(d, c.period))
	}
	return d
}

// clamp returns what a value that is out of range counts as, by the table in doc.go.
func (c *contract) clamp(v float64) float64 {
	switch {
	case c.period != 0:
		return 0
	case v > c.max:
		return c.max
	case math.IsNaN(v) && c.min <= 0 && c.max >= 0 && !c.nanLow:
		return 0
	}
	return c.min
}

// code checks one input of Decode.
func (c *contract) code(code uint64) {
	v, valid := c.q.Decode(code)
	stored := float32(v)
	if !valid {
		if v != 0 {
			c.fail("Decode(%d) refuses the code but gives %v, not zero", code, v)
		}
		return
	}
	if v == 0 && (math.Signbit(v) || math.Signbit(float64(stored))) {
		c.fail("Decode(%d) gives negative zero", code)
	}
	if c.period == 0 && (v < c.min || v > c.max) {
		c.fail("Decode(%d) gives %v, out of range", code, v)
	}
	if again, ok := c.q.Encode(v); again != code || !ok {
		c.fail("code %d decodes to %v, which encodes to %d %v", code, v, again, ok)
	}
	if !c.float32s {
		return
	}
	if again, ok := c.q.Encode(float64(stored)); again != code || !ok {
		c.fail("code %d decodes to float32 %v, which encodes to %d %v", code, stored, again, ok)
	}
}

// edges checks every kind of input that might be special.
func (c *contract) edges() {
	c.t.Helper()
	if got := uint(bits.Len64(c.q.Max())); got != c.q.Bits() {
		c.fail("Bits is %d, the largest code %d takes %d", c.q.Bits(), c.q.Max(), got)
	}
	for _, v := range []float64{
		c.min, c.max, (c.min + c.max) / 2, c.min / 2, c.max / 2, 2 * c.min, 2 * c.max, c.period, -c.period, c.period / 2,
		-c.period / 2, 1.5 * c.period, 1e6 * c.period, 0, 1, 1e-3, 0.1, 65504, 65520, math.SmallestNonzeroFloat64, 0x1p-1022, 1e-310,
		math.SmallestNonzeroFloat32, 0x1p-126, 1e-40, math.MaxFloat32, math.MaxFloat64, math.Inf(1), 1 << 51, 1 << 52, 1 << 53, 1 << 63,
	} {
		c.around(v)
		c.around(-v)
	}
	c.value(math.NaN())
	c.value(math.Copysign(math.NaN(), -1))
	for k := range uint64(40) {
		c.near(k)
		c.near(c.q.Max() - k)
		c.code(c.q.Max() + 1 + k)
		c.code(math.MaxUint64 - k)
	}
	for k := range 64 {
		c.near(1 << k)
	}
	positive, _ := c.q.Encode(0)
	negative, _ := c.q.Encode(math.Copysign(0, -1))
	if positive != negative {
		c.fail("0 encodes to %d, -0 to %d", positive, negative)
	}
}

// near checks a code, the middle between it and the next, and the neighbouring floats of both.
func (c *contract) near(code uint64) {
	c.code(code)
	v, ok := c.q.Decode(code)
	if !ok {
		return
	}
	c.around(v)
	if next, ok := c.q.Decode(code + 1); ok {
		c.around(v + (next-v)/2)
	}
}

// around checks a value and its neighbours, in both float types.
func (c *contract) around(v float64) {
	c.value(v)
	c.value(math.Nextafter(v, math.Inf(1)))
	c.value(math.Nextafter(v, math.Inf(-1)))
	w := float32(v)
	c.value(float64(w))
	c.value(float64(math.Nextafter32(w, float32(math.Inf(1)))))
	c.value(float64(math.Nextafter32(w, float32(math.Inf(-1)))))
}

// random checks n random inputs of many kinds, fewer under -short.
func (c *contract) random(rng *rand.Rand, n int) {
	c.t.Helper()
	low, span := c.min, c.max-c.min
	if c.period != 0 {
		low, span = -c.period, 2*c.period
	}
	for range tries(n) {
		switch r := rng.Uint32N(16); {
		case r < 10:
			c.value(low + rng.Float64()*span)
		case r < 12:
			c.value(low + (4*rng.Float64()-1.5)*span)
		case r < 13:
			c.value(math.Float64frombits(rng.Uint64()))
		case r < 14:
			c.value(math.Ldexp(rng.Float64()*2-1, -rng.IntN(40)) * span)
		default:
			c.near(rng.Uint64() >> rng.IntN(64) % max(c.q.Max(), 1))
		}
	}
}

// sorted checks that a larger value never gets a smaller code.
func (c *contract) sorted(rng *rand.Rand, n int) {
	c.t.Helper()
	for range tries(n) {
		a := c.min + rng.Float64()*(c.max-c.min)
		b := a + math.Ldexp(rng.Float64(), -rng.IntN(50))*(c.max-c.min)
		x, _ := c.q.Encode(a)
		y, _ := c.q.Encode(b)
		if x > y {
			c.fail("%v gets code %d, the larger %v the smaller code %d", a, x, b, y)
		}
	}
}
