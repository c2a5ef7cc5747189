package replication

import (
	"testing"
	"time"

	"github.com/arche-replicate/arche-replicate/replication/internal/config"
	"github.com/mlange-42/arche/ecs"
)

// BenchmarkReceive receives about 1,000 entities, each of which moves every few ticks, at a round
// trip of six ticks. It measures the time of Receive only.
func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct {
		name   string
		every  int
		coding Coding
	}{
		{"every tick", 1, Packed}, {"every third tick", 3, Packed}, {"every tick in Compact", 1, Compact}, {"every third tick in Compact", 3, Compact},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := connectedWire(b, testSchema(), WithMTU(65507), config.ServerFunc(func(o *config.ServerOptions) { o.Compact = c.coding == Compact }))
			position := ecs.ComponentID[tPosition](x.world)
			var entities []ecs.Entity
			for range 1000 {
				entities = append(entities, x.spawn(position))
			}
			x.rounds(3)
			var took time.Duration
			var way [6][][]byte
			tick, moved := 0, 0
			play := func() {
				tick++
				for i, e := range entities {
					if (i+tick)%c.every == 0 {
						(*tPosition)(x.world.Get(e, position)).X = float32(1 + (tick/c.every+i)%90)
						moved++
					}
				}
				for _, p := range x.replicate() {
					start := time.Now()
					if err := x.client.Receive(p); err != nil {
						b.Fatal(err)
					}
					took += time.Since(start)
				}
				acks := &way[tick%len(way)]
				x.answer(*acks...)
				*acks = x.apply()
			}
			for range 200 {
				play()
			}
			took, moved = 0, 0
			b.ResetTimer()
			for range b.N {
				play()
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(moved), "ns/entity")
		})
	}
}
