package delta

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// A columnsCrowd is blocks of entities with a position, a velocity, health and a flag. Nearly a third of them
// move, or few.
type columnsCrowd struct {
	layout    *Layout
	histories []*History
	moved     []uint64 // by block: what moved lately
	now       Tick
}

const (
	columnsBlocks = 128
	columnsTicks  = 40
)

func newColumnsCrowd(movers int) *columnsCrowd {
	rng := rand.New(rand.NewPCG(21, 22))
	linear := func(bits uint) []Field {
		f := Field{Kind: Linear, Bits: bits}
		return []Field{f, f, f}
	}
	x := &columnsCrowd{moved: make([]uint64, columnsBlocks), layout: NewLayout(
		Component{Name: "position", Fields: linear(18)},
		Component{Name: "velocity", Fields: linear(10)},
		Component{Name: "health", Fields: []Field{{Kind: Plain, Bits: 7}}},
		Component{Name: "flag", Fields: []Field{{Kind: Plain, Bits: 1}}},
	)}
	for i := range x.layout.Components {
		x.histories = append(x.histories, NewHistory(x.layout.Components[i].Words(), 64))
	}
	at, speed := make([][3]float64, 64*columnsBlocks), make([][3]float64, 64*columnsBlocks)
	for slot := range at {
		if rng.IntN(64) < movers {
			x.moved[slot/64] |= 1 << (slot % 64)
		}
		for i := range 3 {
			at[slot][i], speed[slot][i] = 1000+600*rng.Float64(), 5*rng.NormFloat64()
		}
		x.histories[2].Set(slot, 0, 0, []uint32{100})
		x.histories[3].Set(slot, 0, 0, []uint32{1})
	}
	for x.now = range columnsTicks {
		for slot := range at {
			if x.now > 0 && x.moved[slot/64]>>(slot%64)&1 == 0 {
				continue
			}
			if rng.IntN(20) == 0 {
				for i := range 3 {
					speed[slot][i] += rng.NormFloat64()
				}
			}
			var p, v [3]uint32
			for i := range 3 {
				at[slot][i] += speed[slot][i] / 60
				p[i], v[i] = uint32(at[slot][i]*100), uint32(speed[slot][i]*10+512)
			}
			x.histories[0].Set(slot, x.now, 0, p[:])
			x.histories[1].Set(slot, x.now, 0, v[:])
		}
	}
	x.now = columnsTicks - 1
	return x
}

// BenchmarkColumns encodes blocks of slots against five pairs of baselines, as a server does for peers with other
// round trips, and compares that with encoding each slot by itself.
func BenchmarkColumns(b *testing.B) {
	for _, c := range []struct {
		name   string
		movers int // of 64
	}{{"movers=19", 19}, {"movers=1", 1}} {
		b.Run(c.name, func(b *testing.B) {
			x := newColumnsCrowd(c.movers)
			columns, packed := NewColumns(x.layout), NewPacked(x.layout)
			buf := make([]byte, 1<<16)
			costs := make([]uint32, x.layout.Fields()+len(x.layout.Components))
			var total [2]time.Duration
			entries, n := 0, 0
			for b.Loop() {
				start := time.Now()
				for block, moved := range x.moved {
					columns.Begin(x.now - 12)
					for k, h := range x.histories {
						columns.Add(k, h, 64*block, moved)
					}
					for age := Tick(5); age < 10; age++ {
						w := bitbuf.NewWriter(buf)
						a1 := x.now - age
						a2 := Second(a1)
						slots := columns.Encode(Against{Slots: moved, A1: a1, A2: a2, Ratio: Ratio(x.now, a1, a2)})
						works := columns.Works(slots)
						for rest := slots; rest != 0; rest &= rest - 1 {
							i := bits.TrailingZeros64(rest)
							columns.Write(&w, i)
							n += int(works[i])
						}
						columns.AddCosts(costs)
						entries += bits.OnesCount64(slots)
					}
				}
				middle := time.Now()
				for block, moved := range x.moved {
					for age := Tick(5); age < 10; age++ {
						w := bitbuf.NewWriter(buf)
						a1 := x.now - age
						a2 := Second(a1)
						ratio := Ratio(x.now, a1, a2)
						packed.Costs = packed.Costs[:0]
						for rest := moved; rest != 0; rest &= rest - 1 {
							slot := 64*block + bits.TrailingZeros64(rest)
							packed.Begin()
							for k, h := range x.histories {
								if !h.Began(slot).After(a2) {
									packed.AddSame(k, true)
									continue
								}
								v := h.Versions(slot)
								base, _ := v.At(a1)
								base2, _ := v.At(a2)
								packed.Add(k, v.Row(), base, base2, ratio)
							}
							packed.End(&w)
						}
					}
				}
				total[0] += middle.Sub(start)
				total[1] += time.Since(middle)
			}
			b.ReportMetric(float64(total[0])/float64(entries), "ns/entry")
			b.ReportMetric(float64(total[1])/float64(entries), "alone-ns/entry")
			b.ReportMetric(float64(total[0])/float64(total[1]), "of-alone")
			b.ReportMetric(0, "ns/op")
		})
	}
}
