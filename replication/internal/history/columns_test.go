package history

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/bitbuf"
	"github.com/arche-replicate/arche-replicate/delta"
)

// A columnsCrowd is blocks of entities with a position, a velocity, health and a flag. Nearly a third of them
// move, or few.
type columnsCrowd struct {
	layout    *delta.Layout
	histories []*Rows
	moved     []uint64 // by block: what moved lately
	now       delta.Tick
}

const (
	columnsBlocks = 128
	columnsTicks  = 40
)

func newColumnsCrowd(movers int) *columnsCrowd {
	rng := rand.New(rand.NewPCG(21, 22))
	linear := func(bits uint) []delta.Field {
		f := delta.Field{Kind: delta.Linear, Bits: bits}
		return []delta.Field{f, f, f}
	}
	x := &columnsCrowd{moved: make([]uint64, columnsBlocks), layout: delta.NewLayout(
		delta.Component{Name: "position", Fields: linear(18)},
		delta.Component{Name: "velocity", Fields: linear(10)},
		delta.Component{Name: "health", Fields: []delta.Field{{Kind: delta.Plain, Bits: 7}}},
		delta.Component{Name: "flag", Fields: []delta.Field{{Kind: delta.Plain, Bits: 1}}},
	)}
	for i := range x.layout.Components {
		x.histories = append(x.histories, New(x.layout.Components[i].Words(), 64))
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

// pairs calls fn with five pairs of baselines.
func (x *columnsCrowd) pairs(fn func(a delta.Against)) {
	for age := delta.Tick(5); age < 10; age++ {
		a1 := x.now - age
		fn(delta.Against{A1: a1, A2: delta.Second(a1), Ratio: delta.Ratio(x.now, a1, delta.Second(a1))})
	}
}

// together encodes what moved in a block with Columns, and returns how many entries that made.
func (x *columnsCrowd) together(c *delta.Columns, w *bitbuf.Writer, costs []uint32, block int) (entries int) {
	c.Begin(x.now - 12)
	for k, h := range x.histories {
		c.Add(k, h.Block(64*block), x.moved[block])
	}
	x.pairs(func(a delta.Against) {
		a.Slots = x.moved[block]
		slots := c.Encode(a)
		c.Works(slots)
		for rest := slots; rest != 0; rest &= rest - 1 {
			c.Write(w, bits.TrailingZeros64(rest))
		}
		c.AddCosts(costs)
		entries += bits.OnesCount64(slots)
	})
	return entries
}

// alone encodes the same slot by slot.
func (x *columnsCrowd) alone(p *delta.Packed, w *bitbuf.Writer, block int) {
	p.Costs = p.Costs[:0]
	x.pairs(func(a delta.Against) {
		for rest := x.moved[block]; rest != 0; rest &= rest - 1 {
			slot := 64*block + bits.TrailingZeros64(rest)
			p.Begin()
			for k, h := range x.histories {
				if !h.Began(slot).After(a.A2) {
					p.AddSame(k, true)
					continue
				}
				v := h.Versions(slot)
				base, _ := v.At(a.A1)
				base2, _ := v.At(a.A2)
				p.Add(k, v.Row(), base, base2, a.Ratio)
			}
			p.End(w)
		}
	})
}

// BenchmarkColumns encodes blocks of slots against five pairs of baselines, as a server does for peers with other
// round trips, and compares that with encoding each slot by itself, which makes the same bits.
func BenchmarkColumns(b *testing.B) {
	for _, movers := range []int{19, 1} { // of 64
		b.Run(fmt.Sprintf("movers=%d", movers), func(b *testing.B) {
			x := newColumnsCrowd(movers)
			columns, packed := delta.NewColumns(x.layout), delta.NewPacked(x.layout)
			buf := make([]byte, 1<<16)
			costs := make([]uint32, x.layout.Fields()+len(x.layout.Components))
			var total [2]time.Duration
			entries := 0
			for b.Loop() {
				bits := [2]int{}
				start := time.Now()
				for block := range x.moved {
					w := bitbuf.NewWriter(buf)
					entries += x.together(columns, &w, costs, block)
					bits[0] += w.Len()
				}
				middle := time.Now()
				for block := range x.moved {
					w := bitbuf.NewWriter(buf)
					x.alone(packed, &w, block)
					bits[1] += w.Len()
				}
				total[0], total[1] = total[0]+middle.Sub(start), total[1]+time.Since(middle)
				if bits[0] != bits[1] {
					b.Fatalf("%d bits together, %d alone", bits[0], bits[1])
				}
			}
			b.ReportMetric(float64(total[0])/float64(entries), "ns/entry")
			b.ReportMetric(float64(total[1])/float64(entries), "alone-ns/entry")
			b.ReportMetric(float64(total[0])/float64(total[1]), "of-alone")
			b.ReportMetric(0, "ns/op")
		})
	}
}
