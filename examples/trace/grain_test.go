package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/quantize"
)

// snap returns the number that a game records which quantised it before.
func snap(q interface {
	Encode(v float64) (uint64, bool)
	Decode(code uint64) (float64, bool)
}, v float64,
) float64 {
	code, _ := q.Encode(v)
	v, _ = q.Decode(code)
	return v
}

// wandering is a recording with every kind of step, either fine or as coarse as the steps.
func wandering(t *testing.T, coarse bool) string {
	fixed, err := quantize.NewFixed(-50, 50, 0.01)
	require.NoError(t, err)
	small, err := quantize.NewFloat(-1000, 1000, 0.5)
	require.NoError(t, err)
	angle, err := quantize.NewAngle(2*math.Pi, 10)
	require.NoError(t, err)
	quat, err := quantize.NewQuat(9)
	require.NoError(t, err)

	var b strings.Builder
	b.WriteString("tick,entity,P.Fixed,P.Shifted,P.Small,P.Angle,P.Q[0],P.Q[1],P.Q[2],P.Q[3],P.Still\n")
	b.WriteString(`uint32,uint32,"float64 range=-50:50,step=0.01","float64 range=-50:50,step=0.01","float64 range=-1000:1000,precision=0.5",` +
		`"float64 angle,bits=10","[4]float64 quat,bits=9",,,,"float64 range=0:1,step=0.1"` + "\n")
	rng := rand.New(rand.NewPCG(1, 2))
	x, y, a := 0.0, 300.0, 0.0
	q := [4]float64{0.1, 0.2, 0.3, 0.9}
	for tick := range 400 {
		x, y, a = x+rng.NormFloat64()/20, y+rng.NormFloat64()*2, a+rng.NormFloat64()/20
		for i := range q {
			q[i] += rng.NormFloat64() / 50
		}
		length := math.Hypot(math.Hypot(q[0], q[1]), math.Hypot(q[2], q[3]))
		for i := range q {
			q[i] /= length
		}
		row := []float64{x, x, y, a, q[0], q[1], q[2], q[3], 0.5}
		if coarse {
			code, _ := quat.Encode(q)
			r, _ := quat.Decode(code)
			// The second is on another grid.
			row = []float64{snap(&fixed, x), snap(&fixed, x) + 0.003, snap(&small, y), snap(&angle, a), r[0], r[1], r[2], r[3], 0.5}
		}
		fmt.Fprintf(&b, "%d,7", tick)
		for _, v := range row {
			fmt.Fprintf(&b, ",%.9g", v)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestARecordingAsCoarseAsItsStepsIsRecognised(t *testing.T) {
	for _, coarse := range []bool{false, true} {
		a := adviseText(t, wandering(t, coarse), perfect())
		for _, f := range a.Advice.Fields {
			want := !coarse && f.Name != "P.Still" // a field that never moves proves nothing
			require.Equal(t, want, f.RecordedFiner, "%s, coarse: %v", f.Name, coarse)
		}
	}
}

func TestGrainLooksAtSmallMovesOnly(t *testing.T) {
	var g grain
	require.False(t, g.finer())
	g.add(5, 5)
	g.add(0, smallMoves+1)
	g.add(math.MaxUint64, 0)
	require.Zero(t, g)
	g.add(9, 8)
	g.add(8, 9)
	g.add(6, 8)
	require.Equal(t, grain{odd: 2, even: 1}, g)
	require.True(t, g.finer())
	g.even = 15
	require.False(t, g.finer(), "2 of 17 may be chance")
}
