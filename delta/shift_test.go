package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

func TestShiftsComeBack(t *testing.T) {
	for s := range shifts {
		w := bitbuf.NewWriter(make([]byte, 8))
		s.Write(&w)
		require.LessOrEqual(t, w.Len(), 3)
		require.EqualValues(t, s.bits(), w.Len())
		require.Equal(t, s == noShift, w.Len() == 1)
		r := bitbuf.NewReader(w.Bytes())
		require.Equal(t, s, ReadShift(&r))
		require.Equal(t, w.Len(), r.Pos())
	}
}

// A movingBody has rows of three fields that move, quantised: by how much a speed changes from tick to tick.
type movingBody struct {
	packed *Packed
	rows   [][]uint32
}

func newMovingBody(jerk float64, orders []uint8) *movingBody {
	rng := rand.New(rand.NewPCG(1, 2))
	fields := make([]Field, 3)
	for i := range fields {
		fields[i] = Field{Kind: Linear, Bits: 20, Orders: orders}
	}
	x := &movingBody{packed: NewPacked(NewLayout(Component{Fields: fields}))}
	at, speed := [3]float64{5e5, 5e5, 5e5}, [3]float64{70.4, 35.7, 10.9}
	for range 400 {
		row := make([]uint32, 3)
		for i := range at {
			speed[i] += jerk * rng.NormFloat64()
			at[i] += speed[i]
			row[i] = uint32(at[i])
		}
		x.rows = append(x.rows, row)
	}
	return x
}

// play calls fn with rows and their baselines.
func (x *movingBody) play(fn func(cur, base, base2 []uint32)) {
	for i := 12; i < len(x.rows); i++ {
		fn(x.rows[i], x.rows[i-6], x.rows[i-12])
	}
}

// bits returns what all rows take with a shift.
func (x *movingBody) bits(s Shift) (n int) {
	x.packed.SetShift(s)
	w := bitbuf.NewWriter(make([]byte, 100))
	x.play(func(cur, base, base2 []uint32) {
		w.Reset(make([]byte, 100))
		x.packed.EncodeRow(&w, 0, cur, base, base2, 1<<16)
		n += w.Len()
	})
	return n
}

// TestTheMeterFindsTheShift that takes least, by brute force, from steady to wild motion.
func TestTheMeterFindsTheShift(t *testing.T) {
	found := map[Shift]bool{}
	for _, jerk := range []float64{0, 0.01, 0.03, 0.1, 0.3, 0.4, 1, 3, 10, 30} {
		x := newMovingBody(jerk, nil)
		var m ShiftMeter
		x.packed.SetShift(lowerOne) // it does not matter
		x.play(func(cur, base, base2 []uint32) { m.See(x.packed, 0, cur, base, base2, 1<<16) })
		s := m.Next(false)
		found[s] = true
		least := x.bits(noShift)
		for other := range shifts {
			least = min(least, x.bits(other))
		}
		t.Logf("jerk %5.2f: shift %d, %d bits instead of %d; the least is %d", jerk, s, x.bits(s), x.bits(noShift), least)
		require.LessOrEqual(t, float64(x.bits(s)), 1.03*float64(least))
	}
	require.Len(t, found, int(shifts), "all shifts have their use")
}

// TestTheMeterFollows: motion that was steady for long becomes wild.
func TestTheMeterFollows(t *testing.T) {
	steady, wild := newMovingBody(0, nil), newMovingBody(10, nil)
	var m ShiftMeter
	for range 20 {
		steady.play(func(cur, base, base2 []uint32) {
			m.See(steady.packed, 0, cur, base, base2, 1<<16)
			m.Next(false)
		})
	}
	require.Equal(t, lowerTwo, m.Next(false))
	n := 0
	for m.shift == lowerTwo {
		wild.play(func(cur, base, base2 []uint32) {
			if m.shift == lowerTwo {
				m.See(wild.packed, 0, cur, base, base2, 1<<16)
				m.Next(false)
				n++
			}
		})
	}
	require.Less(t, n, 400, "rows")
}

// TestShiftsLeaveTablesAlone: fields with orders of their own take the same bits, and the meter ignores them.
func TestShiftsLeaveTablesAlone(t *testing.T) {
	x := newMovingBody(1, []uint8{3, 2, 1})
	var m ShiftMeter
	x.play(func(cur, base, base2 []uint32) { m.See(x.packed, 0, cur, base, base2, 1<<16) })
	require.Equal(t, ShiftMeter{}, m)
	for s := range shifts {
		require.Equal(t, x.bits(noShift), x.bits(s))
	}
}
