package delta

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
// names entities and baselines is not of this package. The codings take turns, and each ratio of
// times is one of sums over all ticks of the median of seven turns; DELTA_TURNS is another number.

func TestCodingsOfTraces(t *testing.T) {
	dir := os.Getenv("DELTA_TRACES")
	if dir == "" {
		t.Skip("DELTA_TRACES names no directory with traces")
	}
	turns, err := strconv.Atoi(os.Getenv("DELTA_TURNS"))
	if err != nil {
		turns = 7
	}
	for _, trace := range []struct {
		name string
		rtt  int
	}{{"cubes", 6}, {"arena", 6}, {"rocket", 3}, {"football", 2}} {
		read := func(choose traceChooser) *recording {
			return readRecording(t, filepath.Join(dir, trace.name+".trace.csv.zst"), Tick(trace.rtt), choose)
		}
		shared, own := read(packedBaselines), read(compactBaselines(8, 11))
		var bytes [3]float64
		var encode, decode [3]tickTimes
		for range turns {
			for i := range bytes {
				var times runTimes
				switch i {
				case 0:
					bytes[i], times = shared.packed(trace.rtt)
				default: // with two baselines, and with four
					bytes[i], times = own.compact(t, trace.rtt, i == 2)
				}
				encode[i], decode[i] = append(encode[i], times.encode), append(decode[i], times.decode)
			}
		}
		one := encode[0].sum()
		ratios := []float64{encode[1].sum() / one, decode[1].sum() / one, encode[2].sum() / one, decode[2].sum() / one}
		t.Logf("%-9s packed %8.2f bytes/tick; compact %8.2f, with four %8.2f", trace.name, bytes[0], bytes[1], bytes[2])
		t.Logf("          times of packed's encoding, %.0f ns/row: encode %.2f, decode %.2f; with four %.2f, %.2f",
			one/float64(shared.rows()), ratios[0], ratios[1], ratios[2], ratios[3])
		for _, ratio := range ratios {
			if turns < 5 {
				break // that was for the bytes
			}
			require.Less(t, ratio, 6.)
		}
	}
}

// runTimes are nanoseconds by tick.
type runTimes struct{ encode, decode []float64 }

// tickTimes are those of several runs.
type tickTimes [][]float64

// sum adds up the medians of all ticks.
func (x tickTimes) sum() (sum float64) {
	for i := range x[0] {
		var times []float64
		for _, run := range x {
			times = append(times, run[i])
		}
		slices.Sort(times)
		sum += times[len(times)/2]
	}
	return sum
}

func (r *recording) rows() (n int) {
	for _, tick := range r.ticks {
		n += len(tick)
	}
	return n
}

func (r *recording) perTick(bits, first int) float64 {
	return float64(bits) / 8 / float64(len(r.ticks)-first)
}

func (r *recording) packed(rtt int) (bytes float64, times runTimes) {
	packed := NewPacked(r.layout)
	buf := make([]byte, 1<<20)
	bits := 0
	for i, tick := range r.ticks {
		start := time.Now()
		w := bitbuf.NewWriter(buf)
		packed.Costs = packed.Costs[:0]
		for j := range tick {
			x := &tick[j]
			packed.EncodeRow(&w, x.component, x.cur, x.past.Base, x.past.Base2, x.past.Ratio)
		}
		times.encode = append(times.encode, float64(time.Since(start)))
		if i > rtt {
			bits += w.Len()
		}
	}
	return r.perTick(bits, rtt+1), times
}

// compact codes each tick as a packet that begins with the model of the packet of one round
// trip before.
func (r *recording) compact(t *testing.T, rtt int, near bool) (bytes float64, times runTimes) {
	sender, receiver := NewCompact(r.layout), NewCompact(r.layout)
	ours, theirs := make([]Model, rtt), make([]Model, rtt)
	for i := range ours {
		sender.Reset(&ours[i])
		receiver.Reset(&theirs[i])
	}
	buf, dst := make([]byte, 1<<20), make([]uint32, 64)
	bits := 0
	for i, tick := range r.ticks {
		if !near {
			for j := range tick {
				x := &tick[j]
				x.nearer = [2][]uint32{x.past.Near, x.past.Mid}
				x.past.Near, x.past.Mid = nil, nil
			}
		}
		start := time.Now()
		sender.Costs = sender.Costs[:0]
		sender.Begin(&ours[i%rtt])
		e := NewRangeEncoder(buf)
		for j := range tick {
			x := &tick[j]
			if j == 0 || x.entity != tick[j-1].entity {
				sender.Entity(true)
			}
			sender.EncodeRow(&e, x.component, x.cur, &x.past)
		}
		data, err := e.Finish()
		require.NoError(t, err)
		middle := time.Now()
		receiver.Begin(&theirs[i%rtt])
		d := NewRangeDecoder(data)
		for j := range tick {
			x := &tick[j]
			if j == 0 || x.entity != tick[j-1].entity {
				receiver.Entity(true)
			}
			receiver.decodeRow(&d, x.component, dst[:len(x.cur)], &x.past)
			if !equal(x.cur, dst) {
				t.Fatalf("tick %d: entity %d is %v, want %v", i, x.entity, dst[:len(x.cur)], x.cur)
			}
		}
		times.decode = append(times.decode, float64(time.Since(middle)))
		times.encode = append(times.encode, float64(middle.Sub(start)))
		require.NoError(t, d.Err())
		if i > rtt {
			bits += 8 * len(data)
		}
		if !near {
			for j := range tick {
				x := &tick[j]
				x.past.Near, x.past.Mid = x.nearer[0], x.nearer[1]
			}
		}
	}
	return r.perTick(bits, rtt+1), times
}
