package netsim

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCorruptAlwaysChangesThePacketAndKeepsToTheMTU(t *testing.T) {
	var pcg rand.PCG
	for seed := range uint64(20_000) {
		pcg.Seed(seed, 0)
		size := int(seed % 33)
		original := bytes.Repeat([]byte{byte(seed)}, size)
		mtu := 0
		if seed%2 == 1 {
			mtu = max(size, 1) + int(seed%3)
		}
		got := corrupt(bytes.Clone(original), mtu, &pcg)
		require.NotEqual(t, original, got, "seed %d", seed)
		require.LessOrEqual(t, len(got), size+maxExtend, "seed %d", seed)
		if mtu > 0 {
			require.LessOrEqual(t, len(got), mtu, "seed %d", seed)
		}
	}
}

func TestCorruptKnowsAllKinds(t *testing.T) {
	var cut, extended int
	var flips [maxFlips + 1]int
	var pcg rand.PCG
	pcg.Seed(1, 2)
	original := make([]byte, 100)
	const n = 8000
	for range n {
		got := corrupt(bytes.Clone(original), 0, &pcg)
		switch {
		case len(got) < len(original):
			cut++
			require.Equal(t, original[:len(got)], got)
		case len(got) > len(original):
			extended++
			require.Equal(t, original, got[:len(original)])
		default:
			ones := 0
			for _, b := range got {
				ones += bits.OnesCount8(b)
			}
			flips[ones]++
		}
	}
	require.InDelta(t, n/4, cut, 200)
	require.InDelta(t, n/4, extended, 200)
	require.Zero(t, flips[0])
	for k := 1; k <= maxFlips; k++ {
		require.InDelta(t, n/2/maxFlips, flips[k], 120, "%d bits", k)
	}
}
