package replication

import (
	"testing"
	"time"

	"github.com/mlange-42/arche/ecs"
)

// BenchmarkApply applies about 1,000 entities that all move, with and without hooks. It measures
// the time of Apply only.
func BenchmarkApply(b *testing.B) {
	for _, hooks := range []bool{false, true} {
		name := "plain"
		if hooks {
			name = "hooks"
		}
		b.Run(name, func(b *testing.B) {
			x := connectedWire(b, testSchema(), WithMTU(65507))
			position := ecs.ComponentID[tPosition](x.world)
			var entities []ecs.Entity
			for range 1000 {
				entities = append(entities, x.spawn(position))
			}
			x.rounds(3)
			calls := 0
			if hooks {
				OnChange(x.client, func(_ ecs.Entity, _, _ *tPosition) { calls++ })
			}
			var took time.Duration
			b.ResetTimer()
			for i := range b.N {
				for _, e := range entities {
					(*tPosition)(x.world.Get(e, position)).X = float32(1 + i%90)
				}
				x.deliver(x.replicate()...)
				start := time.Now()
				_ = x.client.Apply()
				took += time.Since(start)
				x.answer(x.up...)
				x.up = nil
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/1000, "ns/entity")
			if hooks && calls < b.N*900 {
				b.Fatal("the hooks were not called")
			}
		})
	}
}
