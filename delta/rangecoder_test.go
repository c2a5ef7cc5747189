package delta

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A choice is a bit with its chance, or n bits that are equally likely.
type choice struct {
	bit    bool
	chance uint32
	v      uint64
	n      uint
}

// choices returns some bits, most of them the likely ones, and what they cost at least.
func choices(rng *rand.Rand, n int) (all []choice, bits float64) {
	edges := []uint32{1, 2, leastChance, 1 << 15, 1<<16 - leastChance, 1<<16 - 1}
	for range n {
		if rng.IntN(8) == 0 {
			c := choice{n: rng.UintN(17)}
			c.v = rng.Uint64() & lowBits(c.n)
			if rng.IntN(2) == 0 {
				c.v = lowBits(c.n) // to have carries
			}
			all = append(all, c)
			bits += float64(c.n)
			continue
		}
		c := choice{chance: edges[rng.IntN(len(edges))]}
		if rng.IntN(2) == 0 {
			c.chance = 1 + rng.Uint32N(1<<16-1)
		}
		c.bit = rng.Uint32N(1<<16) < c.chance
		p := float64(c.chance) / (1 << 16)
		if !c.bit {
			p = 1 - p
		}
		bits -= math.Log2(p)
		all = append(all, c)
	}
	return all, bits
}

func encodeChoices(e *RangeEncoder, all []choice) {
	for _, c := range all {
		if c.chance == 0 {
			e.encodeBits(c.v, c.n)
		} else {
			e.encode(-one(c.bit), c.chance)
		}
	}
}

func requireChoices(t *testing.T, d *RangeDecoder, all []choice) {
	t.Helper()
	for i, c := range all {
		if c.chance == 0 {
			if v := d.decodeBits(c.n); v != c.v {
				t.Fatalf("choice %d: %d, want %d of %d bits", i, v, c.v, c.n)
			}
		} else if bit := d.decode(c.chance); bit != c.bit {
			t.Fatalf("choice %d: %v of chance %d", i, bit, c.chance)
		}
	}
	require.NoError(t, d.Err())
}

func TestRangeCoderGivesBackWhatWasWritten(t *testing.T) {
	rng := randomOf(t)
	for range 2000 {
		all, bits := choices(rng, rng.IntN(400))
		e := NewRangeEncoder(make([]byte, 1000))
		encodeChoices(&e, all)
		most := e.Len()
		data, err := e.Finish()
		require.NoError(t, err)
		require.LessOrEqual(t, len(data), most)
		require.LessOrEqual(t, float64(len(data)), bits/8+2, "%d choices of %.1f bits", len(all), bits)
		d := NewRangeDecoder(data)
		requireChoices(t, &d, all)
	}
}

// Words of all ones pass a carry on. That takes 2^32 tries to happen by chance.
func TestCarriesGoThroughOnes(t *testing.T) {
	for ones := range 4 {
		begin := RangeEncoder{buf: make([]byte, 100), low: math.MaxUint64 - 15, width: 1 << 40, begun: true, last: 7, ones: ones}
		for _, c := range []struct {
			v    uint64
			want []byte // of the last word and those of all ones
		}{
			{0, []byte{0, 0, 0, 7}},
			{0xffff, []byte{0, 0, 0, 8}},
		} {
			e := begin
			e.encodeBits(c.v, 16) // 2^24 times as much is added
			e.settle()
			want := c.want
			for range 4 * ones {
				want = append(want, c.want[3]-8) // 255 or 0
			}
			if c.v == 0 { // a word of ones more, that has left the interval
				want = append(want, 255, 255, 255, 255)
			} else { // 2^40 - 2^24 - 16, of which the high word has left
				want = append(want, 0, 0, 0, 255)
			}
			require.Equal(t, want, e.buf[:e.n])
		}
	}
}

func TestCopiesOfARangeEncoderAreMarks(t *testing.T) {
	rng := randomOf(t)
	for range 300 {
		first, _ := choices(rng, rng.IntN(100))
		wrong, _ := choices(rng, rng.IntN(100))
		second, _ := choices(rng, rng.IntN(100))
		e := NewRangeEncoder(make([]byte, 1000))
		encodeChoices(&e, first)
		mark := e
		encodeChoices(&e, wrong)
		e = mark
		encodeChoices(&e, second)
		data, err := e.Finish()
		require.NoError(t, err)
		d := NewRangeDecoder(data)
		requireChoices(t, &d, append(first, second...))
	}
}

func TestRangeEncoderStaysInItsBuffer(t *testing.T) {
	rng := randomOf(t)
	for range 500 {
		all, _ := choices(rng, 200)
		e := NewRangeEncoder(make([]byte, 1000))
		encodeChoices(&e, all)
		data, err := e.Finish()
		require.NoError(t, err)

		buf := make([]byte, 1000)
		room := rng.IntN(len(data) + 5)
		e = NewRangeEncoder(buf[:room:room])
		encodeChoices(&e, all)
		got, err := e.Finish()
		if room < len(data) {
			require.Equal(t, errFull, err)
		} else {
			require.NoError(t, err)
			require.Equal(t, data, got)
		}
		require.Equal(t, make([]byte, 1000-room), buf[room:])
	}
}

func TestRangeDecoderOfAnyBytes(t *testing.T) {
	rng := randomOf(t)
	failed := 0
	for range 2000 {
		data := randomBytes(rng, rng.IntN(20))
		if rng.IntN(10) == 0 {
			for i := range data {
				data[i] = 0xff
			}
		}
		d := NewRangeDecoder(data)
		for range 300 {
			if rng.IntN(2) == 0 {
				n := rng.UintN(17)
				require.Zero(t, d.decodeBits(n)>>n)
			} else {
				d.decode(1 + rng.Uint32N(1<<16-1))
			}
		}
		if d.Err() != nil {
			failed++
		}
	}
	require.Equal(t, 2000, failed) // 300 choices take more than 20 bytes
}
