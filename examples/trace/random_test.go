package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomTrace returns a recording with all kinds of events.
func randomTrace(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("tick,entity,P.X,P.Y,Q.R[0],Q.R[1],Q.R[2],Q.R[3],H.A,H.B,T.On\n")
	b.WriteString("uint32,uint32,\"float32 range=-9:9,step=0.01\",\"float64 range=-100:100,precision=0.01\",\"[4]float32 quat,bits=8\",,,,int16,uint8 range=0:50,bool\n")
	entities, ticks := 1+rng.IntN(12), 1+rng.IntN(200)
	busy := rng.Float64()
	restless := rng.Float64() * rng.Float64() // share of rows that change the components
	type state struct {
		has  [4]bool
		x, y float64
	}
	states := make([]state, entities)
	for tick := range ticks {
		for e := range states {
			s := &states[e]
			if rng.Float64() > busy && tick > 0 {
				continue
			}
			if rng.Float64() < restless || tick == 0 {
				for i := range s.has {
					s.has[i] = rng.IntN(3) > 0
				}
				if rng.IntN(4) == 0 {
					s.has = [4]bool{}
				}
			}
			s.x += rng.NormFloat64() / 10
			s.y += rng.NormFloat64()
			cells := []string{fmt.Sprint(tick), fmt.Sprint(e)}
			put := func(component, columns int, format string, args ...any) {
				if s.has[component] {
					cells = append(cells, fmt.Sprintf(format, args...))
				} else {
					cells = append(cells, strings.Repeat(",", columns-1))
				}
			}
			put(0, 2, "%.3f,%.4f", s.x, s.y)
			put(1, 4, "%.3f,%.3f,%.3f,%.3f", rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 3*rng.NormFloat64())
			put(2, 2, "%d,%d", rng.IntN(1<<16)-1<<15, rng.IntN(60))
			put(3, 1, "%v", rng.IntN(5) == 0)
			b.WriteString(strings.Join(cells, ",") + "\n")
		}
	}
	return b.String()
}

func TestRandomTracesOverRandomLinks(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := config{
			in: "t.csv", coding: "packed", seed: seed,
			rtt:   1 + rng.IntN(20),
			peers: 1 + rng.IntN(3),
			mtu:   minMTU + rng.IntN(200),
		}
		if rng.IntN(4) > 0 {
			cfg.loss, cfg.dup, cfg.reorder = rng.Float64()*0.6, rng.Float64()*0.5, rng.Float64()*0.5
		}
		if rng.IntN(8) == 0 {
			cfg.rtt = 1 + rng.IntN(150)
		}
		requireOK(t, runText(t, randomTrace(rng), cfg), "seed %d, %+v", seed, cfg)
	}
}
