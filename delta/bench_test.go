package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// transforms are rows of 512 moving transforms of 83 bits at three ticks of one distance,
// too many for a branch predictor to learn.
type transforms struct {
	packed           *Packed
	cur, base, base2 [512][]uint32
}

func newTransforms() *transforms {
	rng := rand.New(rand.NewPCG(1, 2))
	x := &transforms{packed: NewPacked(NewLayout(Component{Fields: []Field{
		{Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}, {Kind: Linear, Bits: 18}, {Kind: Quat, Bits: 9},
	}}))}
	for i := range x.cur {
		var at, speed [7]float64
		for j := range at {
			at[j], speed[j] = 50_000+100_000*rng.Float64(), 60*rng.NormFloat64()
			if j > 3 {
				at[j], speed[j] = 128+256*rng.Float64(), 6*rng.NormFloat64()
			}
		}
		row := func(t, noise float64) []uint32 {
			r := make([]uint32, 7)
			for j := range r {
				r[j] = uint32(at[j] + t*speed[j] + noise*speed[j]*rng.NormFloat64())
			}
			r[3] = uint32(i % 4)
			return r
		}
		x.base2[i], x.base[i], x.cur[i] = row(0, 0), row(1, 0), row(2, 0.1)
	}
	return x
}

// encode writes transform i of all against two baselines, one, or none.
func (x *transforms) encode(w *bitbuf.Writer, i, baselines int) {
	x.packed.Costs = x.packed.Costs[:0]
	switch i &= 511; baselines {
	case 0:
		x.packed.EncodeRow(w, 0, x.cur[i], nil, nil, 0)
	case 1:
		x.packed.EncodeRow(w, 0, x.cur[i], x.base[i], nil, 0)
	case 2:
		x.packed.EncodeRow(w, 0, x.cur[i], x.base[i], x.base2[i], 1<<16)
	}
}

func (x *transforms) decode(r *bitbuf.Reader, dst []uint32, i, baselines int) {
	switch i &= 511; baselines {
	case 0:
		x.packed.DecodeRow(r, 0, dst, nil, nil, 0)
	case 1:
		x.packed.DecodeRow(r, 0, dst, x.base[i], nil, 0)
	case 2:
		x.packed.DecodeRow(r, 0, dst, x.base[i], x.base2[i], 1<<16)
	}
}

var baselineNames = [...]string{"absolute", "delta", "predicted"}

func BenchmarkEncodeRow(b *testing.B) {
	x := newTransforms()
	buf := make([]byte, 64)
	for baselines, name := range baselineNames {
		b.Run(name, func(b *testing.B) {
			i, bits := 0, 0
			for b.Loop() {
				w := bitbuf.NewWriter(buf)
				x.encode(&w, i, baselines)
				bits += w.Len()
				i++
			}
			b.ReportMetric(float64(bits)/float64(i), "bits/row")
		})
	}
}

func BenchmarkDecodeRow(b *testing.B) {
	x := newTransforms()
	for baselines, name := range baselineNames {
		b.Run(name, func(b *testing.B) {
			var packed [512][]byte
			for i := range packed {
				w := bitbuf.NewWriter(make([]byte, 64))
				x.encode(&w, i, baselines)
				packed[i] = w.Bytes()
			}
			dst := make([]uint32, 7)
			i := 0
			for b.Loop() {
				r := bitbuf.NewReader(packed[i&511])
				x.decode(&r, dst, i, baselines)
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
				i++
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	x := newTransforms()
	buf, dst := make([]byte, 64), make([]uint32, 7)
	for baselines, name := range baselineNames {
		i := 0
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			w := bitbuf.NewWriter(buf)
			x.encode(&w, i, baselines)
			r := bitbuf.NewReader(w.Bytes())
			x.decode(&r, dst, i, baselines)
			i++
		}), name)
	}
}
