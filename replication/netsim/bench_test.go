package netsim_test

import (
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// BenchmarkPipe measures a packet's path through the pipe.
func BenchmarkPipe(b *testing.B) {
	for _, name := range []string{"perfect", "lan", "home", "mobile", "awful", "hostile"} {
		b.Run(name, func(b *testing.B) {
			profile, err := netsim.ParseProfile(name)
			if err != nil {
				b.Fatal(err)
			}
			cfg := profile.Config(60)
			cfg.Bandwidth = 0 // otherwise most packets would be dropped, which is cheap
			p := netsim.NewPipe(1, cfg)
			packet := make([]byte, 1200)
			b.ReportAllocs()
			b.SetBytes(int64(len(packet)))
			for i := 0; b.Loop(); i++ {
				if err := p.Send(packet); err != nil {
					b.Fatal(err)
				}
				if i%8 == 7 {
					p.Step()
					p.Receive(func([]byte) {})
				}
			}
		})
	}
}
