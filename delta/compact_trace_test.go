package delta

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/arche-replicate/arche-replicate/bitbuf"
)

// What rows cost in both codings, on recorded games. Run it with
//
//	DELTA_TRACES=DIRECTORY go test -run TestCodingsOfTraces -v ./delta
//
// where the directory has the traces of docs/benchmarks.md. Only rows are counted: what
// names entities and baselines is not of this package.

func TestCodingsOfTraces(t *testing.T) {
	dir := os.Getenv("DELTA_TRACES")
	if dir == "" {
		t.Skip("DELTA_TRACES names no directory with traces")
	}
	for _, trace := range []struct {
		name string
		rtt  int
	}{{"cubes", 6}, {"arena", 6}, {"rocket", 3}, {"football", 2}} {
		r := readRecording(t, filepath.Join(dir, trace.name+".trace.csv.zst"), Tick(trace.rtt))
		packed := r.packed(trace.rtt)
		two := r.compact(t, trace.rtt, false)
		three := r.compact(t, trace.rtt, true)
		t.Logf("%-9s packed %7.1f bytes/tick; compact %7.1f, with three baselines %7.1f", trace.name, packed.bytes, two.bytes, three.bytes)
		t.Logf("          encode %4.0f, %4.0f, %4.0f ns/row: %.1f and %.1f times as long; decode %.0f and %.0f ns/row",
			packed.encode, two.encode, three.encode, two.encode/packed.encode, three.encode/packed.encode, two.decode, three.decode)
	}
}

// A codingCost is bytes per tick and nanoseconds per row.
type codingCost struct{ bytes, encode, decode float64 }

func (r *recording) cost(first, bits, rows int, encode, decode time.Duration) codingCost {
	return codingCost{
		float64(bits) / 8 / float64(len(r.ticks)-first),
		float64(encode.Nanoseconds()) / float64(rows), float64(decode.Nanoseconds()) / float64(rows),
	}
}

func (r *recording) packed(rtt int) codingCost {
	packed := NewPacked(r.layout)
	buf := make([]byte, 1<<20)
	bits, rows := 0, 0
	var encode time.Duration
	for i, tick := range r.ticks {
		start := time.Now()
		w := bitbuf.NewWriter(buf)
		packed.Costs = packed.Costs[:0]
		for j := range tick {
			x := &tick[j]
			packed.EncodeRow(&w, x.component, x.cur, x.past.Base, x.past.Base2, x.past.Ratio)
		}
		encode += time.Since(start)
		if rows += len(tick); i > rtt {
			bits += w.Len()
		}
	}
	return r.cost(rtt+1, bits, rows, encode, 0)
}

// compact codes each tick as a packet that begins with the model of the packet of one round
// trip before.
func (r *recording) compact(t *testing.T, rtt int, near bool) codingCost {
	sender, receiver := NewCompact(r.layout), NewCompact(r.layout)
	ours, theirs := make([]Model, rtt), make([]Model, rtt)
	for i := range ours {
		ours[i].Reset()
		theirs[i].Reset()
	}
	buf, dst := make([]byte, 1<<20), make([]uint32, 64)
	bits, rows := 0, 0
	var encode, decode time.Duration
	for i, tick := range r.ticks {
		if !near {
			for j := range tick {
				tick[j].past.Near, tick[j].near = nil, tick[j].past.Near
			}
		}
		start := time.Now()
		sender.Begin(&ours[i%rtt])
		e := NewRangeEncoder(buf)
		for j := range tick {
			x := &tick[j]
			if j == 0 || x.entity != tick[j-1].entity {
				sender.Entity(true)
			}
			sender.EncodeRow(&e, x.component, x.cur, &x.past)
		}
		stream, err := e.Finish()
		require.NoError(t, err)
		middle := time.Now()
		receiver.Begin(&theirs[i%rtt])
		d := NewRangeDecoder(stream)
		for j := range tick {
			x := &tick[j]
			if j == 0 || x.entity != tick[j-1].entity {
				receiver.Entity(true)
			}
			receiver.DecodeRow(&d, x.component, dst[:len(x.cur)], &x.past)
			if !equal(x.cur, dst) {
				t.Fatalf("tick %d: entity %d is %v, want %v", i, x.entity, dst[:len(x.cur)], x.cur)
			}
		}
		decode += time.Since(middle)
		encode += middle.Sub(start)
		require.NoError(t, d.Err())
		if rows += len(tick); i > rtt {
			bits += 8 * len(stream)
		}
		if !near {
			for j := range tick {
				tick[j].past.Near = tick[j].near
			}
		}
	}
	return r.cost(rtt+1, bits, rows, encode, decode)
}
