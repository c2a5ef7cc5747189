package delta

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/quantize"
)

// A crowd is the rows of entities that walk about at 60 ticks a second, as a server
// codes them for a peer 7 ticks away: a baseline of 7 ticks before and another one 4 to 7
// before that. Positions are in units of 1 cm, velocities of 2 cm/s.
type crowd struct {
	layout *Layout
	words  []uint32
	rows   []crowdRow
}

type crowdRow struct {
	component        int
	cur, base, base2 []uint32
	ratio            int64
}

const crowdSize = 2048

const (
	crowdPosition = iota
	crowdVelocity
	crowdRotation
	crowdHealth
	crowdFlag
)

func newCrowd(t testing.TB) *crowd {
	rng := rand.New(rand.NewPCG(11, 12))
	linear := func(n int, bits uint) (f []Field) {
		for range n {
			f = append(f, Field{Kind: Linear, Bits: bits})
		}
		return f
	}
	quantiser, err := quantize.NewQuat(9)
	require.NoError(t, err)
	x := &crowd{words: make([]uint32, 0, 3*12*crowdSize), layout: NewLayout(
		Component{Name: "position", Fields: linear(3, 18)},
		Component{Name: "velocity", Fields: linear(3, 12)},
		Component{Name: "rotation", Fields: []Field{{Kind: Quat, Bits: 9}}},
		Component{Name: "health", Fields: []Field{{Kind: Plain, Bits: 7}}},
		Component{Name: "flag", Fields: []Field{{Kind: Plain, Bits: 1}}},
	)}
	for range crowdSize {
		var at, speed [3]float64
		for i := range at {
			at[i], speed[i] = 1000+600*rng.Float64(), 5*rng.NormFloat64()
		}
		turn := [4]float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		axis, spin := rng.Uint64(), 0.05*rng.NormFloat64()
		health, flag := uint32(100), uint32(rng.IntN(2))
		var history [15][5][]uint32
		for now := range history {
			if rng.IntN(8) == 0 { // speeds up, slows down
				for i := range speed {
					speed[i] += rng.NormFloat64()
				}
			}
			var position, velocity []uint32
			for i := range at {
				at[i] += speed[i] / 60
				position = append(position, uint32(at[i]*100))
				velocity = append(velocity, uint32(speed[i]*50+2048))
			}
			turn = rotated(rand.New(rand.NewPCG(axis, 0)), turn, spin*(1+0.05*rng.NormFloat64()))
			code, _ := quantiser.Encode(turn)
			if rng.IntN(60) == 0 {
				health -= uint32(rng.IntN(10))
			}
			if rng.IntN(200) == 0 {
				flag ^= 1
			}
			history[now] = [5][]uint32{position, velocity, quatRow(code), {health}, {flag}}
		}
		base2 := rng.IntN(4)
		clone := func(row []uint32) []uint32 { // side by side with its like: no part of this is about caches
			x.words = append(x.words, row...)
			return x.words[len(x.words)-len(row):]
		}
		for c := range x.layout.Components {
			x.rows = append(x.rows, crowdRow{
				c, clone(history[14][c]), clone(history[7][c]), clone(history[base2][c]), Ratio(14, 7, Tick(base2)),
			})
		}
	}
	return x
}

// only returns the crowd's rows that the condition holds for.
func (x *crowd) only(cond func(r *crowdRow) bool) (rows []crowdRow) {
	for i := range x.rows {
		if cond(&x.rows[i]) {
			rows = append(rows, x.rows[i])
		}
	}
	return rows
}

// BenchmarkEncodeCrowd compares the encoder with its slow twin on the same rows, turn by
// turn, as neither the machine's speed nor its load is the same from one second to the
// next.
func BenchmarkEncodeCrowd(b *testing.B) {
	x := newCrowd(b)
	of := func(component int) []crowdRow {
		return x.only(func(r *crowdRow) bool { return r.component == component })
	}
	still := x.only(func(r *crowdRow) bool { return r.component == crowdPosition })
	for i := range still {
		still[i].cur, still[i].base2 = still[i].base, still[i].base
	}
	slow := newSlowPacked(x.layout)
	off := func(component int) []crowdRow { // neither at rest nor as predicted
		return x.only(func(r *crowdRow) bool {
			return r.component == component && slow.predict(&x.layout.Components[component], r.base, r.base2, r.ratio) &&
				!equal(r.cur, slow.row) && !equal(r.cur, r.base)
		})
	}
	one := of(crowdPosition)
	for i := range one {
		one[i].base2, one[i].ratio = nil, 0
	}
	full := of(crowdPosition)
	for i := range full {
		full[i].base, full[i].base2 = nil, nil
	}
	for _, c := range []struct {
		name string
		rows []crowdRow
	}{
		{"position", of(crowdPosition)},
		{"position off its prediction", off(crowdPosition)},
		{"position with one baseline", one},
		{"position without baselines", full},
		{"position at rest", still},
		{"velocity", of(crowdVelocity)},
		{"velocity off its prediction", off(crowdVelocity)},
		{"rotation", of(crowdRotation)},
		{"rotation off its prediction", off(crowdRotation)},
		{"health", of(crowdHealth)},
		{"flag", of(crowdFlag)},
		{"all five in turn", x.rows},
	} {
		b.Run(c.name, func(b *testing.B) {
			fast, slow := NewPacked(x.layout), newSlowPacked(x.layout)
			buf := make([]byte, 1<<16)

			var total [2]time.Duration
			bits := 0
			for b.Loop() {
				fast.Costs, slow.costs = fast.Costs[:0], slow.costs[:0]
				start := time.Now()
				w := bitbuf.NewWriter(buf)
				for i := range c.rows {
					r := &c.rows[i]
					slow.encodeRow(&w, r.component, r.cur, r.base, r.base2, r.ratio)
				}
				middle := time.Now()
				w = bitbuf.NewWriter(buf)
				for i := range c.rows {
					r := &c.rows[i]
					fast.EncodeRow(&w, r.component, r.cur, r.base, r.base2, r.ratio)
				}
				end := time.Now()
				for i, d := range [2]time.Duration{middle.Sub(start), end.Sub(middle)} {
					total[i] += d
				}
				bits = w.Len()
			}
			n := float64(len(c.rows))
			b.ReportMetric(float64(total[0])/float64(b.N)/n, "slow-ns/row")
			b.ReportMetric(float64(total[1])/float64(b.N)/n, "ns/row")
			b.ReportMetric(float64(total[0])/float64(total[1]), "times-faster")
			b.ReportMetric(float64(bits)/n, "bits/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}
