package replication

import (
	"fmt"
	"testing"

	"github.com/mlange-42/arche/ecs"
)

// BenchmarkMessages sends clients on perfect links 8 messages per tick each. It measures everything
// from Send through the handler to the acknowledgement.
func BenchmarkMessages(b *testing.B) {
	const each = 8
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			w := ecs.NewWorld()
			s := NewServer(&w, messageSchema(), WithSeed(1))
			var all []*Client
			got := 0
			for i := range clients {
				mirror := ecs.NewWorld()
				var c *Client
				p := s.Connect(func(packet []byte) error { return c.Receive(packet) })
				c = NewClientWith(&mirror, faceOf(s.schema), func(packet []byte) error { return p.Receive(packet) }, WithSeed(uint64(i)))
				OnServerMessage(c, func(mHit) { got++ })
				all = append(all, c)
			}
			tick := func(messages int) {
				for i := range messages {
					if err := SendToAll(s, mHit{Number: uint32(i)}); err != nil {
						b.Fatal(err)
					}
				}
				s.Replicate()
				for _, c := range all {
					if err := c.Apply(); err != nil {
						b.Fatal(err)
					}
				}
			}
			for range 10 {
				tick(0)
			}
			b.ReportAllocs()
			for b.Loop() {
				tick(each)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(got), "ns/message")
			b.ReportMetric(float64(s.peers[0].stats.MessageBytes)/float64(s.peers[0].stats.Messages), "bytes/message")
		})
	}
}
