package replication

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

type benchPosition struct {
	X, Y, Z float32 `repl:"range=-1000:1000,step=0.01"`
}

type benchVelocity struct {
	X, Y, Z float32 `repl:"range=-32:32,step=0.001953125"`
}

type benchHealth struct {
	Points uint16 `repl:"range=0:100"`
	Alive  bool
}

func benchColumns[T any](b *testing.B, fill func(v *T, r *rand.Rand)) {
	s := NewSchema()
	Register[T](s)
	s.raw.Freeze()
	c := &s.raw.Components[0]
	const rows = 10000
	values := make([]T, rows)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		fill(&values[i], r)
	}
	dst := make([]uint32, rows*c.Words)
	p := reflect.ValueOf(values).UnsafePointer()
	b.ReportAllocs()
	for b.Loop() {
		c.ReadColumn(dst, p, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

func BenchmarkReadColumn(b *testing.B) {
	b.Run("Position", func(b *testing.B) {
		benchColumns(b, func(v *benchPosition, r *rand.Rand) {
			v.X, v.Y, v.Z = float32(r.NormFloat64()*100), float32(r.NormFloat64()*100), float32(r.NormFloat64()*100)
		})
	})
	b.Run("Velocity", func(b *testing.B) {
		benchColumns(b, func(v *benchVelocity, r *rand.Rand) {
			v.X, v.Y, v.Z = float32(r.NormFloat64()), float32(r.NormFloat64()), float32(r.NormFloat64())
		})
	})
	b.Run("Health", func(b *testing.B) {
		benchColumns(b, func(v *benchHealth, r *rand.Rand) { v.Points, v.Alive = uint16(r.IntN(101)), true })
	})
	b.Run("Ship", func(b *testing.B) {
		benchColumns(b, func(v *schemaShip, _ *rand.Rand) { v.Rot.W = 1 })
	})
}

func BenchmarkWriteRow(b *testing.B) {
	s := NewSchema()
	Register[benchPosition](s)
	c := &s.raw.Components[0]
	v := benchPosition{1, 2, 3}
	row := make([]uint32, c.Words)
	p := reflect.ValueOf(&v).UnsafePointer()
	c.ReadColumn(row, p, 1)
	b.ReportAllocs()
	for b.Loop() {
		c.Write(p, row)
	}
}
