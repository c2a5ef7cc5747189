package netsim_test

import (
	"bytes"
	"testing"

	"github.com/arche-replicate/arche-replicate/replication/netsim"
)

// FuzzPipe runs a script of sends, steps, receives and changes of the configuration, and checks
// what holds for any configuration: the counters add up, nothing arrives that was not sent, nothing
// intact arrives changed, and a perfect pipe becomes empty.
func FuzzPipe(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add(uint64(3), bytes.Repeat([]byte{0, 255, 1, 130, 2, 3}, 40))
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		if len(script) > 4096 {
			return
		}
		p := netsim.NewPipe(seed, netsim.Config{Latency: 1})
		sent := map[string]int{} // payload to number of possible deliveries
		corrupts := false
		receive := func(packet []byte) {
			if corrupts {
				return
			}
			if sent[string(packet)] == 0 {
				t.Fatalf("seed %d: got %x, which was not sent or arrived too often", seed, packet)
			}
			sent[string(packet)]--
		}
		var now int64
		for i := 0; i+1 < len(script); i += 2 {
			arg := int(script[i+1])
			switch op := script[i] % 8; op {
			case 0, 1, 2:
				packet := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, arg)
				if err := p.Send(packet); err != nil {
					t.Fatal(err)
				}
				sent[string(packet)] += 2
			case 3, 4:
				p.Step()
				now++
			case 5, 6:
				p.Receive(receive)
			case 7:
				share := float64(arg) / 255
				cfg := netsim.Config{Latency: share * 10}
				switch arg % 8 {
				case 0:
					cfg.Loss = share
				case 1:
					cfg.Jitter = share * 20
				case 2:
					cfg.Duplicate = share
				case 3:
					cfg.Reorder, cfg.ReorderBy = share, 1+arg
				case 4:
					cfg.Corrupt, corrupts = share, true
				case 5:
					cfg.Bandwidth, cfg.QueueLimit = 1+arg, arg*7
				case 6:
					cfg.Burst = netsim.Burst{Start: share, Length: 1 + share*20}
				}
				p.SetConfig(cfg)
			}
			checkBooks(t, p)
		}
		if p.Now() != now {
			t.Fatalf("tick %d after %d steps", p.Now(), now)
		}
		p.SetConfig(netsim.Config{})
		for range 400 { // the longest delay above is 10 + 20 + 256 ticks
			p.Step()
			p.Receive(receive)
		}
		checkBooks(t, p)
		if p.Pending() > 0 {
			t.Fatalf("seed %d: %d packets never arrived", seed, p.Pending())
		}
	})
}
