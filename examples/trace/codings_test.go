package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTimesOfCodings compares the times of the codings on recorded games with one peer, so that
// Packed shares nothing between peers:
//
//	TRACES=DIRECTORY go test -run TestTimesOfCodings -v ./examples/trace
//
// The directory has the traces of docs/benchmarks.md. The codings take turns; each figure is the
// median of seven ratios of one turn. Capture is part of Replicate in both. TRACES_TICKS limits the
// ticks played of each.
// what is played of each.
func TestTimesOfCodings(t *testing.T) {
	dir := os.Getenv("TRACES")
	if dir == "" {
		t.Skip("TRACES names no directory with traces")
	}
	ticks, _ := strconv.Atoi(os.Getenv("TRACES_TICKS")) // 0: all
	const turns = 7
	for _, trace := range []struct {
		name string
		rtt  int
	}{{"cubes", 6}, {"arena", 6}, {"rocket", 3}, {"football", 2}} {
		play := func(coding string) report {
			src, err := os.Open(filepath.Join(dir, trace.name+".trace.csv.zst"))
			require.NoError(t, err)
			defer func() { _ = src.Close() }()
			r, err := run(config{in: src.Name(), coding: coding, rtt: trace.rtt, seed: 1, peers: 1, mtu: 1200, ticks: ticks}, src, nil)
			require.NoError(t, err)
			require.True(t, r.Converged && r.Mismatches == 0, "%v", r.described)
			return r
		}
		var encode, decode, receive, times []float64
		for range turns {
			packed, compact := play("packed"), play("compact")
			encode = append(encode, compact.EncodeNsPerTick/packed.EncodeNsPerTick)
			decode = append(decode, compact.DecodeNsPerTick/packed.EncodeNsPerTick)
			receive = append(receive, compact.DecodeNsPerTick/packed.DecodeNsPerTick)
			times = append(times, packed.EncodeNsPerTick/1000)
		}
		t.Logf("%-9s of Packed's Replicate, %.1f us/tick: Compact's Replicate %.2f, Receive and Frame %.2f; these of Packed's %.2f",
			trace.name, median(times), median(encode), median(decode), median(receive))
		require.Less(t, median(encode), 6.)
		require.Less(t, median(decode), 6.)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
